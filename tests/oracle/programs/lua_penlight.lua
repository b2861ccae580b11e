-- SPDX-License-Identifier: Apache-2.0
-- Penlight: templates, lists, pretty printing, string splitting.
local template, List, pretty, stringx = require("pl.template"), require("pl.List"), require("pl.pretty"), require("pl.stringx")
local page = "# for i, v in ipairs(list) do\n  <li>$(i): $(v:upper())</li>\n# end\n"
while true do
	local words = List(stringx.split("the quick brown fox jumps over the lazy dog"))
	local sorted = words:map(string.upper):sort(function(a, b) return a < b end)
	assert(template.substitute(page, {list = sorted, ipairs = ipairs}))
	assert(pretty.read(pretty.write({sorted, n = {a = 1, b = {2, 3}}})))
end
