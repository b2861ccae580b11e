/* SPDX-License-Identifier: Apache-2.0 */
/* What is known about a file that holds LuaJIT: its layout, and its VM's code. */
#ifndef YRT_LUAJIT_IMAGE_H
#define YRT_LUAJIT_IMAGE_H

#include "cfi/cfi.h"
#include "error.h"
#include "binary/image.h"
#include "luajit_builtins.h"
#include "luajit_gc.h"
#include "luajit_layout.h"

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
	/* Behind calls in the standard frame of the interpreter, and in the handler of trace exits; 0: there are none.
	 */
	u64 behind_call, behind_exit;
};

#define LUAJIT_VERSION_MAX 64

struct luajit_image {
	char version[LUAJIT_VERSION_MAX]; /* "LuaJIT 2.1.0-beta3", as it calls itself */
	const struct luajit_layout *layout;
	struct layout *origins; /* owns it, and records where each member is from */
	struct luajit_vm vm;    /* of the layout, for the walker */
	struct luajit_builtins builtins;
	struct luajit_blob blob;
	struct luajit_gc gc;
};

/* What the walker needs of a layout. */
struct luajit_vm luajit_vm_of(const struct luajit_layout *l);

#define LUAJIT_BLOB_SEARCH "luajit vm 2" /* its cached result: where the blob begins, or nothing (cfi_search_cache.h) */

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
struct luajit_names *luajit_names_create(const struct luajit_image *image); /* NULL: out of memory */
void luajit_names_destroy(struct luajit_names *names);
bool luajit_name_frame(struct luajit_names *names, const struct runtime_process *p, const struct frame *frames, u32 i,
        u32 n, struct frame_name *ret);

#endif
