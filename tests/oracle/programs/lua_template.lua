-- SPDX-License-Identifier: Apache-2.0
-- What template libraries do: find tags by patterns, make source of them, compile and run that.
loadstring = loadstring or load
local function compile(text)
	local out, at = {"local out, item, list = {}, ...\n"}, 1
	while true do
		local first, last, code = string.find(text, "{%%(.-)%%}", at)
		out[#out + 1] = "out[#out + 1] = " .. string.format("%q", string.sub(text, at, (first or 0) - 1)) .. "\n"
		if not first then break end
		out[#out + 1] = string.find(code, "^=") and "out[#out + 1] = tostring(" .. string.sub(code, 2) .. ")\n" or code .. "\n"
		at = last + 1
	end
	return assert(loadstring(table.concat(out) .. "return table.concat(out)", "=template"))
end
local function escape(text) return (text:gsub("[&<>]", {["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;"})) end
local page = "<ul>{% for i, v in ipairs(list) do %}<li>{%= i %}: {%= v.name %} of {%= item %}</li>{% end %}</ul>"
local list = {}
for i = 1, 30 do list[i] = {name = "name <" .. i .. ">"} end
while true do
	for i = 1, 50 do escape(compile(page)("item " .. i, list)) end
end
