-- SPDX-License-Identifier: Apache-2.0
-- Generators by coroutines, string buffers, sorting with a comparison in Lua.
local function words(n)
	return coroutine.wrap(function()
		for i = 1, n do coroutine.yield(("w%d"):format(i * 7919 % n)) end
	end)
end
local function count(n)
	local seen, order = {}, {}
	for word in words(n) do
		seen[word] = (seen[word] or 0) + 1
		order[#order + 1] = word
	end
	table.sort(order, function(a, b) return seen[a] > seen[b] or seen[a] == seen[b] and a < b end)
	return table.concat(order, ",")
end
while true do assert(#count(500) > 0) end
