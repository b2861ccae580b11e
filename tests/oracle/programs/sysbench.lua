-- SPDX-License-Identifier: Apache-2.0
-- sysbench's own random numbers and strings, by its FFI.
function event()
	local words = {}
	for i = 1, 100 do words[i] = sysbench.rand.string("###-@@@-###") .. sysbench.rand.uniform(1, 1000) end
	table.sort(words)
	assert(#table.concat(words, " ") > 0)
end
