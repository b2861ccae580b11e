/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout library: known builds of LuaJIT. Offsets were computed from the headers of the version named, bytecode and
 * numbers of builtin functions are those of its lj_bc.h and of its `jit.util.funcinfo`. A layout is taken only for a
 * file whose VM code uses the same offsets (luajit_blob.c).
 */
#include <string.h>

#include "luajit_image.h"

/* Operand A is a destination (D), the first of many (B), or something else (O). */
#define D(name, metamethod) {#name, metamethod, OPERAND_DST},
#define B(name, metamethod) {#name, metamethod, OPERAND_BASE},
#define O(name, metamethod) {#name, metamethod, OPERAND_OTHER},
/* clang-format off */
static const struct luajit_op ops_21[] = {
	O(ISLT, "__lt") O(ISGE, "__lt") O(ISLE, "__le") O(ISGT, "__le") O(ISEQV, "__eq") O(ISNEV, "__eq")
	O(ISEQS, "__eq") O(ISNES, "__eq") O(ISEQN, "__eq") O(ISNEN, "__eq") O(ISEQP, "__eq") O(ISNEP, "__eq")
	D(ISTC, NULL) D(ISFC, NULL) O(IST, NULL) O(ISF, NULL) O(ISTYPE, NULL) O(ISNUM, NULL) D(MOV, NULL)
	D(NOT, NULL) D(UNM, "__unm") D(LEN, "__len") D(ADDVN, "__add") D(SUBVN, "__sub") D(MULVN, "__mul")
	D(DIVVN, "__div") D(MODVN, "__mod") D(ADDNV, "__add") D(SUBNV, "__sub") D(MULNV, "__mul")
	D(DIVNV, "__div") D(MODNV, "__mod") D(ADDVV, "__add") D(SUBVV, "__sub") D(MULVV, "__mul")
	D(DIVVV, "__div") D(MODVV, "__mod") D(POW, "__pow") D(CAT, "__concat") D(KSTR, NULL) D(KCDATA, NULL)
	D(KSHORT, NULL) D(KNUM, NULL) D(KPRI, NULL) B(KNIL, NULL) D(UGET, NULL) O(USETV, NULL) O(USETS, NULL)
	O(USETN, NULL) O(USETP, NULL) O(UCLO, NULL) D(FNEW, "__gc") D(TNEW, "__gc") D(TDUP, "__gc")
	D(GGET, "__index") O(GSET, "__newindex") D(TGETV, "__index") D(TGETS, "__index") D(TGETB, "__index")
	D(TGETR, "__index") O(TSETV, "__newindex") O(TSETS, "__newindex") O(TSETB, "__newindex")
	B(TSETM, "__newindex") O(TSETR, "__newindex") B(CALLM, "call") B(CALL, "call") B(CALLMT, "call")
	B(CALLT, "call") B(ITERC, "call") B(ITERN, "call") B(VARG, NULL) B(ISNEXT, NULL) B(RETM, NULL)
	O(RET, NULL) O(RET0, NULL) O(RET1, NULL) B(FORI, NULL) B(JFORI, NULL) B(FORL, NULL) B(IFORL, NULL)
	B(JFORL, NULL) B(ITERL, NULL) B(IITERL, NULL) B(JITERL, NULL) O(LOOP, NULL) O(ILOOP, NULL)
	O(JLOOP, NULL) O(JMP, NULL) O(FUNCF, NULL) O(IFUNCF, NULL) O(JFUNCF, NULL) O(FUNCV, NULL)
	O(IFUNCV, NULL) O(JFUNCV, NULL) O(FUNCC, NULL) O(FUNCCW, NULL)
};
/* clang-format on */
#undef D
#undef B
#undef O

/* OpenResty's 2.1-20230119: by ffid */
static const char *const builtins_openresty_20230119[] = {
        "",
        "",
        "assert",
        "type",
        "next",
        "pairs",
        "ipairs_aux",
        "ipairs",
        "getmetatable",
        "setmetatable",
        "getfenv",
        "setfenv",
        "rawget",
        "rawset",
        "rawequal",
        "unpack",
        "select",
        "tonumber",
        "tostring",
        "error",
        "pcall",
        "xpcall",
        "loadfile",
        "load",
        "loadstring",
        "dofile",
        "gcinfo",
        "collectgarbage",
        "newproxy",
        "print",
        "coroutine.status",
        "coroutine.running",
        "coroutine.isyieldable",
        "coroutine.create",
        "coroutine.yield",
        "coroutine.resume",
        "coroutine.wrap_aux",
        "coroutine.wrap",
        "thread.exdata",
        "thread.exdata2",
        "math.abs",
        "math.floor",
        "math.ceil",
        "math.sqrt",
        "math.log10",
        "math.exp",
        "math.sin",
        "math.cos",
        "math.tan",
        "math.asin",
        "math.acos",
        "math.atan",
        "math.sinh",
        "math.cosh",
        "math.tanh",
        "math.frexp",
        "math.modf",
        "math.log",
        "math.atan2",
        "math.pow",
        "math.fmod",
        "math.ldexp",
        "math.min",
        "math.max",
        "math.random",
        "math.randomseed",
        "bit.tobit",
        "bit.bnot",
        "bit.bswap",
        "bit.lshift",
        "bit.rshift",
        "bit.arshift",
        "bit.rol",
        "bit.ror",
        "bit.band",
        "bit.bor",
        "bit.bxor",
        "bit.tohex",
        "string.byte",
        "string.char",
        "string.sub",
        "string.rep",
        "string.reverse",
        "string.lower",
        "string.upper",
        "string.dump",
        "string.find",
        "string.match",
        "string.gmatch_aux",
        "string.gmatch",
        "string.gsub",
        "string.format",
        "table.maxn",
        "table.insert",
        "table.concat",
        "table.clone",
        "table.isarray",
        "table.nkeys",
        "table.isempty",
        "table.sort",
        "table.new",
        "table.clear",
        "file:close",
        "file:read",
        "file:write",
        "file:flush",
        "file:seek",
        "file:setvbuf",
        "file:lines",
        "file:__gc",
        "file:__tostring",
        "io.open",
        "io.popen",
        "io.tmpfile",
        "io.close",
        "io.read",
        "io.write",
        "io.flush",
        "io.input",
        "io.output",
        "io.lines",
        "io.type",
        "os.execute",
        "os.remove",
        "os.rename",
        "os.tmpname",
        "os.getenv",
        "os.exit",
        "os.clock",
        "os.date",
        "os.time",
        "os.difftime",
        "os.setlocale",
        "debug.getregistry",
        "debug.getmetatable",
        "debug.setmetatable",
        "debug.getfenv",
        "debug.setfenv",
        "debug.getinfo",
        "debug.getlocal",
        "debug.setlocal",
        "debug.getupvalue",
        "debug.setupvalue",
        "debug.upvalueid",
        "debug.upvaluejoin",
        "debug.sethook",
        "debug.gethook",
        "debug.debug",
        "debug.traceback",
        "jit.on",
        "jit.off",
        "jit.flush",
        "jit.status",
        "jit.security",
        "jit.attach",
        "jit.prngstate",
        "jit.util.funcinfo",
        "jit.util.funcbc",
        "jit.util.funck",
        "jit.util.funcuvname",
        "jit.util.traceinfo",
        "jit.util.traceir",
        "jit.util.tracek",
        "jit.util.tracesnap",
        "jit.util.tracemc",
        "jit.util.traceexitstub",
        "jit.util.ircalladdr",
        "jit.opt.start",
        "jit.profile.start",
        "jit.profile.stop",
        "jit.profile.dumpstack",
        "cdata.__index",
        "cdata.__newindex",
        "cdata.__eq",
        "cdata.__len",
        "cdata.__lt",
        "cdata.__le",
        "cdata.__concat",
        "cdata.__call",
        "cdata.__add",
        "cdata.__sub",
        "cdata.__mul",
        "cdata.__div",
        "cdata.__mod",
        "cdata.__pow",
        "cdata.__unm",
        "cdata.__tostring",
        "cdata.__pairs",
        "cdata.__ipairs",
        "ffi.clib:__index",
        "ffi.clib:__newindex",
        "ffi.clib:__gc",
        "ffi.callback:free",
        "ffi.callback:set",
        "ffi.cdef",
        "ffi.new",
        "ffi.cast",
        "ffi.typeof",
        "ffi.typeinfo",
        "ffi.istype",
        "ffi.sizeof",
        "ffi.alignof",
        "ffi.offsetof",
        "ffi.errno",
        "ffi.string",
        "ffi.copy",
        "ffi.fill",
        "ffi.abi",
        "ffi.metatype",
        "ffi.gc",
        "ffi.load",
        "buffer:free",
        "buffer:reset",
        "buffer:skip",
        "buffer:set",
        "buffer:put",
        "buffer:putf",
        "buffer:get",
        "buffer:putcdata",
        "buffer:reserve",
        "buffer:commit",
        "buffer:ref",
        "buffer:encode",
        "buffer:decode",
        "buffer:__gc",
        "buffer:tostring",
        "buffer:__len",
        "string.buffer.new",
        "string.buffer.encode",
        "string.buffer.decode",
};

static const struct luajit_layout openresty_20230119 = {
        .vm =
                {
                        .l_glref = 16,
                        .l_base = 32,
                        .l_maxstack = 48,
                        .l_stack = 56,
                        .l_cframe = 80,
                        .l_gct = 9,
                        .g_cur_l = 368,
                        .g_jit_base = 376,
                        .g2disp = 4008,
                        .fn_ffid = 10,
                        .fn_pc = 32,
                        .fn_f = 40,
                        .proto_size = 104,
                        .proto_sizebc = 12,
                        .cf_nres = 8,
                        .cf_l = 16,
                        .cf_pc = 24,
                        .cf_prev = 32,
                        .bc_patched = 69, /* ITERC: from there on instructions are specialised, or replaced by J* and I*
                                             forms */
                },
        .proto_k = 32,
        .proto_sizept = 56,
        .proto_sizeuv = 60,
        .proto_chunkname = 64,
        .proto_firstline = 72,
        .proto_numline = 76,
        .proto_lineinfo = 80,
        .proto_uvinfo = 88,
        .proto_varinfo = 96,
        .proto_framesize = 11,
        .str_len = 20,
        .str_size = 24,
        .j_trace = 384,
        .g2j = 736,
        .ops = ops_21,
        .nops = sizeof(ops_21) / sizeof(*ops_21),
        .builtins = builtins_openresty_20230119,
        .nbuiltins = sizeof(builtins_openresty_20230119) / sizeof(*builtins_openresty_20230119),
};

struct known_build {
	const char *build_id; /* NULL: any build that calls itself so, if its code agrees */
	const char *version;
	const struct luajit_layout *layout;
	const char *origin;
};

static const struct known_build library[] = {
        {"0a6563c55d870716908fd332f88bf7cdd9bc6a71", "LuaJIT 2.1.0-beta3", &openresty_20230119,
                "library: Debian libluajit2-5.1-2 2.1-20230119-1"},
        {"3e3d615119e82f1b42bd151e94701750bfd15a9d", "LuaJIT 2.1.0-beta3", &openresty_20230119,
                "library: Debian luajit2 2.1-20230119-1"},
        {NULL, "LuaJIT 2.1.0-beta3", &openresty_20230119,
                "library: by version LuaJIT 2.1.0-beta3, agrees with its code"},
};

static void build_id_text(const struct image *img, char *text)
{
	static const char digit[] = "0123456789abcdef";
	u32 n = img->build_id_len < BUILD_ID_MAX ? img->build_id_len : BUILD_ID_MAX;

	for (u32 i = 0; i < n; i++) {
		text[2 * i] = digit[img->build_id[i] >> 4];
		text[2 * i + 1] = digit[img->build_id[i] & 15];
	}
	text[2 * n] = '\0';
}

const struct luajit_layout *luajit_layout_find(struct image *img, const char *version, const char **origin)
{
	char text[2 * BUILD_ID_MAX + 1];

	build_id_text(img, text);
	for (u32 i = 0; i < sizeof(library) / sizeof(*library); i++) {
		const struct known_build *known = &library[i];

		if (known->build_id ? strcmp(known->build_id, text) : strcmp(known->version, version))
			continue;
		*origin = known->origin;
		return known->layout;
	}
	return NULL;
}
