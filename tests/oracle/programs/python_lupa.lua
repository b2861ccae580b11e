-- SPDX-License-Identifier: Apache-2.0
-- Two functions of Python that one function in C calls, each on a line of its own; traces end at calls of string.format and string.find.
return function(first_callback, second_callback, n)
	local sum, list = 0, {}
	for i = 1, n do
		sum = sum + first_callback(i)
		sum = sum + second_callback(i)
	end
	for i = 1, n * 10 do
		list[#list + 1] = {i}
		if i % 3 == 0 then sum = sum + #string.format("%d", i) end
		if i % 100 == 0 then sum = sum + (string.find(sum .. i, "[0-9]x") or 0) end
	end
	return sum
end
