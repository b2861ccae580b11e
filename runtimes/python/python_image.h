/* SPDX-License-Identifier: Apache-2.0 */
/* What is known about a file that holds CPython: its version, its layout, and where its eval loop is. */
#ifndef YRT_PYTHON_IMAGE_H
#define YRT_PYTHON_IMAGE_H

#include "binary/image.h"
#include "python_layout.h"
#include "python_tls.h"
#include "runtime.h"

struct python_range {
	u64 start, end;
};

#define PYTHON_RANGES_MAX  48
#define PYTHON_TORN_MAX    256
#define PYTHON_INLINED_MAX 128
#define PYTHON_BARE_MAX    1024

/* In this stretch the innermost frame's link is in a register yet, or still. */
struct python_torn {
	u64 start, end;
	u8 reg; /* DWARF number */
};

/* Code of a copy of the function in another one, where it has frames; number of its entry frame's place in
 * python_eval.below. */
struct python_inlined {
	u64 start, end;
	u8 place;
};

/* Code whose return address is depth words above the stack pointer, though the file says otherwise. */
struct python_bare {
	u64 start, end;
	u8 depth;
};

struct python_eval {
	struct python_range ranges[PYTHON_RANGES_MAX]; /* the function, then its cold parts; file addresses */
	u32 n;
	bool dispatches; /* some jump goes to where a table says: it is a loop; else it calls bytecodes
	                    (--with-tail-call-interp) */
	/* its beginning, up to where the thread state is changed, up to where all is linked (the same but for 3.13) */
	u64 enter_end, link_end;
	u16 cframe_below, entry_below; /* see struct python_vm */
	/* up to 3.10: where a native frame has no Python frame linked, or no more */
	struct python_range outside[PYTHON_RANGES_MAX];
	u32 noutside;
	struct python_torn torn[PYTHON_TORN_MAX]; /* 3.11, 3.12 */
	u32 ntorn;
	struct python_inlined inlined[PYTHON_INLINED_MAX]; /* builds with tail calls */
	u32 ninlined, nplaces, ncopies;
	struct python_bare bare[PYTHON_BARE_MAX];
	u32 nbare;
	u16 below[PYTHON_PLACES]; /* see struct python_vm */
};

/* The JIT compiler of 3.14 and 3.15, if the build has one. */
struct python_jit {
	u64 ret;    /* struct python_vm's jit_return, file address */
	u32 locals; /* its jit_locals */
};

struct python_image {
	u32 version; /* PY_VERSION_HEX: 3.11.2 is 0x030b02f0 */
	const struct python_layout *layout;
	struct layout *origins; /* owns it, and records where each member is from */
	struct python_eval eval;
	struct python_jit jit;
	struct python_vm vm;   /* without addresses in a process */
	struct python_tls tls; /* from 3.15 on */
	u64 key;               /* address of the key of thread states, up to 3.14; 0: not known */
	u64 runtime;           /* _PyRuntime, file address; in 3.6 of what points to the first interpreter */
	u64 current;           /* what points to the thread state that has the GIL, up to 3.10; 0: unknown */
	u64 code_type;         /* PyCode_Type */
	u64 frame_type;        /* PyFrame_Type, up to 3.10 */
	u64 coro_type;         /* PyCoro_Type */
	struct {
		u64 type, tuple, bytes, str, function, integer, boolean, real, list, dict;
	} types; /* PyType_Type … */
};

/* Operations of the runtime: is the file CPython, and of a build that is understood? */
struct error *python_image_probe(struct image *img, void **ret);
void python_image_destroy(void *image);
/*
 * A program that is linked with libpython may have some of its variables (process/copies.h). *ret: the image with these
 * where they are in this process, less the bias; it lives at most as long as image, and is released by free(). NULL:
 * the program has none of them.
 */
struct error *python_image_copied(
        const struct python_image *image, u64 bias, const struct runtime_process *p, struct python_image **ret);

struct python_jit python_jit_find(struct image *img, u64 eval);
/*
 * Was it started so that it will make code? This reads its environment and command line, so once is enough. A build
 * that compiles by default, or a program that asks for trampolines later, is recognised only by its first code.
 */
bool python_jit_expected(const struct python_image *image, pid_t pid);
/*
 * Claims code that the process made itself, and, if there is any or it is expected, memory where it may make more
 * later. Other programs' code there is stepped out of as such.
 */
struct error *python_jit_regions(const struct python_image *image, const struct runtime_process *p, u32 config,
        bool expected, struct error *(*add)(void *ctx, const struct runtime_region *r), void *ctx);

/*
 * The code of _PyEval_EvalFrameDefault, which is at [start, end), with the cold parts that a compiler splits off and
 * for which a stripped file has no symbol. They are the targets of conditional jumps, or of jumps into the middle of an
 * FDE's range.
 */
struct error *python_eval_find(struct image *img, u64 start, u64 end, struct python_eval *ret);

/*
 * Follows the beginning of the function to where it links itself: the stores to its _PyCFrame, to its entry frame, to
 * the frame for which it is called, and to the thread state. Fills the rest of ret. An error says that they are not as
 * in any known version.
 */
struct error *python_entry_find(struct image *img, const struct python_vm *vm, u16 ts_cframe, struct python_eval *ret);

/*
 * The same of a copy that a compiler has put into the function that begins at start: what precedes the call of its
 * first bytecode. gen_frame: PyGenObject.gi_iframe, as a function that runs a generator names its frame by that. False:
 * no copy, or not understood. below: how far its entry frame is below the CFA; linked: from where on all is linked.
 */
bool python_entry_inlined(
        struct image *img, const struct python_vm *vm, u16 gen_frame, u64 start, u64 call, u16 *below, u64 *linked);

/*
 * Builds with --with-tail-call-interp: there the function is so short that compilers put copies of it into those that
 * call it (clang, -flto). Fills ret->inlined. The copies call the first bytecode by the same table of functions as it
 * does. Bytecodes' functions jump to the next one by it; fills ret->bare with what the file says wrongly of these.
 */
struct error *python_inlined_find(
        struct image *img, const struct python_vm *vm, u16 gen_frame, struct python_eval *ret);

/*
 * 3.11, 3.12: fills eval->torn, by pairs of stores: to _PyCFrame.current_frame and then to the link of the frame that
 * was stored, and from a generator's link, which is set to NULL, to current_frame. What is found is kept
 * (cfi_search_cache.h) under a name with the offsets that it depends on.
 */
#define PYTHON_TORN_SEARCH "python torn 1 %ld %ld"
void python_torn_find(struct image *img, const struct python_vm *vm, struct python_eval *eval);

#endif
