-- SPDX-License-Identifier: Apache-2.0
-- Of each file given, what each line of each function can call. Lines of output, separated by tabs:
--   F file | P first last | L line (one that has an instruction) | C line kind name | D name (of a field or global that a function is stored to)
-- kind: call, tail, iter, meta (an operator whose metamethod may run). name: "?" if only the running program knows it.
local util, bcnames = require("jit.util"), require("jit.vmdef").bcnames
local band, rshift = bit.band, bit.rshift

local calls = {CALL = "call", CALLM = "call", CALLT = "tail", CALLMT = "tail", ITERC = "iter", ITERN = "iter"}
local quiet = {MOV = 1, NOT = 1, KSTR = 1, KCDATA = 1, KSHORT = 1, KNUM = 1, KPRI = 1, KNIL = 1, UGET = 1, USETV = 1, USETS = 1, USETN = 1, USETP = 1,
	JMP = 1, LOOP = 1, FORI = 1, JFORI = 1, FORL = 1, IFORL = 1, IST = 1, ISF = 1, ISTC = 1, ISFC = 1, VARG = 1, ITERL = 1, IITERL = 1, ISNEXT = 1,
	FUNCF = 1, FUNCV = 1, RET = 1, RET0 = 1, RET1 = 1, RETM = 1, UCLO = 1, ISEQP = 1, ISNEP = 1, ISEQS = 1, ISNES = 1, ISEQN = 1, ISNEN = 1, ISTYPE = 1, ISNUM = 1}

local function op(f, pc)
	local ins = util.funcbc(f, pc)
	if not ins then return end
	local at = band(ins, 0xff) * 6
	return (bcnames:sub(at + 1, at + 6):gsub(" ", "")), band(rshift(ins, 8), 0xff), band(rshift(ins, 24), 0xff),
		band(rshift(ins, 16), 0xff), rshift(ins, 16)
end

-- What was put into a slot before pc, if that is a field or a global.
local function name_of(f, pc, slot)
	for at = pc - 1, math.max(1, pc - 200), -1 do
		local name, a, b, c, d = op(f, at)
		if a == slot and (name == "TGETS" or name == "GGET") then
			local k = util.funck(f, -(name == "TGETS" and c or d) - 1)
			return type(k) == "string" and k:gsub("[\t\n]", " ") or "?"
		elseif a == slot then
			return "?"
		end
	end
	return "?"
end

local function walk(f)
	local info = util.funcinfo(f)
	print("P", info.linedefined, info.lastlinedefined)
	local pc, made = 1, {}
	while true do
		local name, a, b, c, d = op(f, pc)
		if not name then break end
		local line = util.funcinfo(f, pc).currentline
		print("L", line)
		if calls[name] then
			print("C", line, calls[name], calls[name] == "iter" and "?" or name_of(f, pc, a))
		elseif not quiet[name] then
			print("C", line, "meta", "?")
		end
		if name == "FNEW" then
			made[a] = true
		elseif made[a] and (name == "TSETS" or name == "GSET") then
			local k = util.funck(f, -(name == "TSETS" and c or d) - 1)
			print("D", type(k) == "string" and k:gsub("[\t\n]", " ") or "?")
		end
		pc = pc + 1
	end
	for i = 1, info.children and math.huge or 0 do
		local ok, k = pcall(util.funck, f, -i)
		if not ok or k == nil then break end
		if type(k) == "proto" then walk(k) end
	end
end

for i = 1, #arg do
	local f = loadfile(arg[i])
	if f then
		print("F", arg[i])
		walk(f)
	end
end
