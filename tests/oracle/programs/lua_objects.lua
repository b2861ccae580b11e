-- SPDX-License-Identifier: Apache-2.0
-- Metamethods, patterns, protected calls, varargs, coroutines, chunks that are compiled, weak tables.
loadstring = loadstring or load
local Class = {} Class.__index = Class
function Class.new(x) return setmetatable({x = x}, Class) end
function Class.__add(a, b) return Class.new(a.x + b.x) end
function Class.__lt(a, b) return a.x < b.x end
function Class.__concat(a, b) return tostring(a) .. tostring(b) end
function Class:__tostring() return string.format("<%d>", self.x) end
local function tokens(s) local out = {} for w, n in s:gmatch("(%a+)(%d*)") do out[#out + 1] = w:upper() .. (n ~= "" and n or "0") end return out end
local function each(f, ...) local n = select("#", ...) for i = 1, n do f((select(i, ...))) end return ... end
local function gen(n) return coroutine.wrap(function() for i = 1, n do coroutine.yield(i, Class.new(i)) end end) end
local function guarded(i) return pcall(function() if i % 3 == 0 then error({code = i}) end return xpcall(error, debug.traceback, i) end) end
local function compile(i) return assert(loadstring(("local a = ... ; local t = {} for i = 1, a do t[i] = i * %d end return #t"):format(i), "=chunk" .. i % 5))(20) end
local cache = setmetatable({}, {__mode = "k", __index = function(t, k) local v = {k} rawset(t, k, v) return v end})
local function work() local sum = Class.new(0) for i, c in gen(60) do sum = sum + c if c < sum then each(guarded, i, i + 1) end end
  local t = tokens(("some12 text words345 "):rep(40)) table.sort(t, function(a, b) return a > b end)
  for i = 1, 30 do local _ = cache[{}] compile(i) end return table.concat(t, ",") .. (sum .. sum) end
while true do work() string.rep("x", 100):gsub("x", function(c) return c .. "y" end) end
