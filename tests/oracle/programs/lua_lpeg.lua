-- SPDX-License-Identifier: Apache-2.0
-- LPeg: a grammar of arithmetic, with captures that call back.
local lpeg = require("lpeg")
local P, R, S, V, C, Ct = lpeg.P, lpeg.R, lpeg.S, lpeg.V, lpeg.C, lpeg.Ct
local space = S(" \n\t") ^ 0
local number = C(R("09") ^ 1) / tonumber * space
local function eval(list)
	local value = list[1]
	for i = 2, #list, 2 do value = list[i] == "+" and value + list[i + 1] or list[i] == "-" and value - list[i + 1] or value * list[i + 1] end
	return value
end
local grammar = P{"exp",
	exp = Ct(V("term") * (C(S("+-")) * space * V("term")) ^ 0) / eval,
	term = Ct(V("factor") * (C(S("*")) * space * V("factor")) ^ 0) / eval,
	factor = number + "(" * space * V("exp") * ")" * space,
}
local text = ("(1 + 2 * 3) * (4 - 5) + "):rep(40) .. "7"
while true do assert(grammar:match(text)) end
