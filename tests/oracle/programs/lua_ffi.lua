-- SPDX-License-Identifier: Apache-2.0
-- FFI: C functions and callbacks from them.
local ffi = require("ffi")
ffi.cdef("void qsort(void *, size_t, size_t, int (*)(const int *, const int *)); size_t strlen(const char *); int snprintf(char *, size_t, const char *, ...);")
local compare = ffi.cast("int (*)(const int *, const int *)", function(a, b) return a[0] - b[0] end)
local numbers, text = ffi.new("int[200]"), ffi.new("char[64]")
jit.off(true, true)
while true do
	for i = 0, 199 do numbers[i] = (i * 7919) % 200 end
	ffi.C.qsort(numbers, 200, 4, compare)
	for i = 0, 199 do
		ffi.C.snprintf(text, 64, "%d", numbers[i])
		assert(ffi.C.strlen(text) > 0)
	end
end
