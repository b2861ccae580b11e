-- SPDX-License-Identifier: Apache-2.0
-- lua-cjson, a C module, between Lua functions.
local cjson = require("cjson")
local function document(n)
	local items = {}
	for i = 1, n do items[i] = {id = i, name = "item " .. i, tags = {"a", "b", tostring(i)}, price = i * 1.25} end
	return {items = items, total = n}
end
local function total(text)
	local sum = 0
	for _, item in ipairs(cjson.decode(text).items) do sum = sum + item.price + #item.tags end
	return sum
end
while true do total(cjson.encode(document(100))) end
