-- SPDX-License-Identifier: Apache-2.0
-- SHA-1 by bit operations, qsort() that calls back through the FFI, the game of life.
local bit, ffi = require("bit"), require("ffi")
ffi.cdef[[ typedef struct { uint32_t h[5]; } sha; int qsort(void*, size_t, size_t, int (*)(const int*, const int*)); ]]
local function rol(x, n) return bit.bor(bit.lshift(x, n), bit.rshift(x, 32 - n)) end
local function sha1(s) local h = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0} local w = {} for i = 1, #s, 64 do for j = 0, 15 do w[j] = bit.bor(bit.lshift(s:byte(i + j * 4) or 0, 24), s:byte(i + j * 4 + 1) or 0) end for j = 16, 79 do w[j] = rol(bit.bxor(w[j-3], w[j-8], w[j-14], w[j-16]), 1) end local a, b, c, d, e = unpack(h) for j = 0, 79 do local f = j < 20 and bit.bor(bit.band(b, c), bit.band(bit.bnot(b), d)) or bit.bxor(b, c, d) local t = bit.tobit(rol(a, 5) + f + e + w[j]) e, d, c, b, a = d, c, rol(b, 30), a, t end h[1] = bit.tobit(h[1] + a) h[2] = bit.tobit(h[2] + b) end return bit.tohex(h[1]) end
local cmp = ffi.cast("int (*)(const int*, const int*)", function(a, b) return a[0] - b[0] end)
local function sort(n) local a = ffi.new("int[?]", n) for i = 0, n - 1 do a[i] = (i * 7919) % 1013 end ffi.C.qsort(a, n, 4, cmp) return a[0] end
jit.off(sort)
local function life(n) local g = {} for y = 1, n do g[y] = {} for x = 1, n do g[y][x] = (x * y) % 3 == 0 and 1 or 0 end end for _ = 1, 5 do local o = {} for y = 1, n do o[y] = {} for x = 1, n do local s = 0 for dy = -1, 1 do local r = g[y + dy] if r then for dx = -1, 1 do s = s + (r[x + dx] or 0) end end end o[y][x] = s == 3 and 1 or 0 end end g = o end return g end
while true do sha1(("text"):rep(500)) sort(300) life(40) end
