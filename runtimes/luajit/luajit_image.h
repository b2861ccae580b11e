/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a file that holds LuaJIT: its layout, and its VM's code. */
#ifndef YRT_LUAJIT_IMAGE_H
#define YRT_LUAJIT_IMAGE_H

#include "cfi.h"
#include "error.h"
#include "image.h"
#include "luajit.h"

/* What operand A of an instruction is, as far as names of functions are told by it. */
enum luajit_operand { OPERAND_OTHER, OPERAND_DST, OPERAND_BASE };

struct luajit_op {
	const char *name;
	const char *metamethod; /* "__index"; "call" for calls; NULL */
	enum luajit_operand a;
};

/*
 * The layout of a build. The offsets are data: this is filled from the library in luajit_layout.c, and may be filled
 * from DWARF or by disassembly.
 */
struct luajit_layout {
	struct luajit_vm vm;
	/* GCproto, besides vm.proto_* */
	u16 proto_k, proto_sizept, proto_sizeuv, proto_chunkname, proto_firstline, proto_numline, proto_lineinfo,
	        proto_uvinfo, proto_varinfo;
	u16 proto_framesize;
	u16 str_len, str_size; /* GCstr: the bytes follow it */
	u16 j_trace;           /* jit_State.trace, from the dispatch table down */
	u16 g2j;
	const struct luajit_op *ops;
	u32 nops;
	const char *const *builtins; /* names by ffid */
	u32 nbuiltins;
};

/* A stretch of the VM's code of one part, in file addresses. */
struct luajit_stretch {
	u64 start, end;
	enum luajit_part part;
};

struct luajit_blob {
	u64 start, end;
	struct cfi_entry *entries; /* cover all of it */
	u32 nentries;
	struct luajit_stretch *stretches; /* sorted; what they leave out is LUAJIT_INTERP */
	u32 nstretches;
};

struct luajit_image {
	const struct luajit_layout *layout;
	const char *origin; /* of the layout, for people */
	struct luajit_blob blob;
};

/* The layout for a file, or NULL. *origin says where it is from. */
const struct luajit_layout *luajit_layout_find(struct image *img, const char *version, const char **origin);

/*
 * Finds the VM's code in a file and makes its rows. blob->end is 0 if there is none: not LuaJIT. An error says that the
 * code contradicts the layout.
 */
struct error *luajit_blob_find(struct image *img, u64 *start, u64 *end);
struct error *luajit_blob_analyse(
        struct image *img, u64 start, u64 end, const struct luajit_layout *layout, struct luajit_blob *ret);
void luajit_blob_free(struct luajit_blob *blob);

/* Naming, luajit_names.c: what was read of the functions of a process. */
struct luajit_names;
struct runtime_process;
struct frame_name;
struct luajit_names *luajit_names_create(const struct luajit_layout *layout); /* NULL: out of memory */
void luajit_names_destroy(struct luajit_names *names);
bool luajit_name_frame(struct luajit_names *names, const struct runtime_process *p, const struct frame *frames, u32 i,
        u32 n, struct frame_name *ret);

#endif
