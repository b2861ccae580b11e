-- SPDX-License-Identifier: Apache-2.0
-- C functions that call each other without Lua between them, callbacks, coroutines in coroutines, errors, recursion that comes and goes.
local function less(a, b)
	return a < b
end

local function cross(word)
	return (word:gsub(".", function(c)
		return c == "7" and "x" or nil
	end))
end

local function numbers(n)
	local list = {}
	for i = 1, n do
		list[i] = i * 7919 % 1013
	end
	return list
end

local function deep(n)
	if n == 0 then
		error({})
	end
	return 1 + deep(n - 1)
end

local Vector = {}
Vector.__index = function(t, k)
	return k == "sum" and t[1] + t[2] or rawget(Vector, k)
end
Vector.__add = function(a, b)
	return setmetatable({a[1] + b[1], a[2] + b[2]}, Vector)
end
Vector.__lt = function(a, b)
	return a[1] < b[1]
end
Vector.__tostring = function(v)
	return v[1] .. ":" .. v[2]
end

local function vectors(n)
	local list, sum = {}, setmetatable({0, 0}, Vector)
	for i = 1, n do
		list[i] = setmetatable({i * 31 % 17, i}, Vector)
		sum = sum + list[i]
	end
	table.sort(list)
	return #tostring(sum) + list[1].sum
end

local function generate(n)
	for i = 1, n do
		coroutine.yield(i)
	end
end

local function inner(n)
	local sum = 0
	for i in coroutine.wrap(function() generate(n) end) do
		sum = sum + i
		if i % 10 == 0 then
			coroutine.yield(sum)
		end
	end
	return sum
end

local function outer(n)
	local co = coroutine.create(inner)
	while coroutine.status(co) ~= "dead" do
		assert(coroutine.resume(co, n))
	end
end

local function last(n)
	if n > 0 then
		return last(n - 1)
	end
	return #numbers(20)
end

while true do
	local list = numbers(200)
	pcall(table.sort, list, less)
	pcall(pcall, table.concat, list, ",")
	local _, text = pcall(string.gsub, table.concat(list, ","), "%d+", cross)
	pcall(string.rep, text, 20)
	xpcall(function() return deep(100) end, function(e) return e end)
	pcall(deep, 20)
	vectors(60)
	outer(200)
	last(50)
	string.format("%s %5d", text, #list)
	assert((loadstring or load)("local a = ... return a and #a"))(text)
end
