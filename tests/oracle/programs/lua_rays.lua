-- SPDX-License-Identifier: Apache-2.0
-- Rays and spheres: objects with metatables, floating point, closures.
local V = {}
V.__index = V
local function vec(x, y, z) return setmetatable({x = x, y = y, z = z}, V) end
V.__add = function(a, b) return vec(a.x + b.x, a.y + b.y, a.z + b.z) end
V.__sub = function(a, b) return vec(a.x - b.x, a.y - b.y, a.z - b.z) end
V.__mul = function(a, k) return vec(a.x * k, a.y * k, a.z * k) end
function V:dot(b) return self.x * b.x + self.y * b.y + self.z * b.z end
function V:unit() return self * (1 / math.sqrt(self:dot(self))) end
local function sphere(center, radius)
	return function(origin, direction)
		local to = origin - center
		local b, c = to:dot(direction), to:dot(to) - radius * radius
		local d = b * b - c
		return d > 0 and -b - math.sqrt(d) or math.huge
	end
end
local world = {}
for i = 1, 12 do world[i] = sphere(vec(math.sin(i) * 3, math.cos(i) * 3, 10 + i), 1 + i % 3) end
local function trace(origin, direction)
	local near = math.huge
	for _, hit in ipairs(world) do near = math.min(near, hit(origin, direction)) end
	return near
end
while true do
	local lit = 0
	for y = -20, 20 do
		for x = -20, 20 do lit = lit + (trace(vec(0, 0, 0), vec(x / 20, y / 20, 1):unit()) < 100 and 1 or 0) end
	end
end
