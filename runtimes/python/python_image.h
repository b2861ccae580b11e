/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a file that holds CPython: its version, its layout, and where its eval loop is. */
#ifndef YRT_PYTHON_IMAGE_H
#define YRT_PYTHON_IMAGE_H

#include "image.h"
#include "python_layout.h"

struct python_range {
	u64 start, end;
};

#define PYTHON_RANGES_MAX 16

struct python_eval {
	struct python_range ranges[PYTHON_RANGES_MAX]; /* the function, then its cold parts; file addresses */
	u32 n;
	/* its beginning, up to where the thread state is changed, up to where all is linked (the same but for 3.13) */
	u64 enter_end, link_end;
	u16 cframe_below, entry_below; /* see struct python_vm */
};

struct python_image {
	u32 version; /* PY_VERSION_HEX: 3.11.2 is 0x030b02f0 */
	const struct python_layout *layout;
	struct layout *origins; /* owns it, and tells where each member is from */
	struct python_eval eval;
	struct python_vm vm; /* without addresses in a process */
	u64 runtime;   /* _PyRuntime, file address */
	u64 code_type; /* PyCode_Type */
};

/*
 * The code of _PyEval_EvalFrameDefault, which is at [start, end): a compiler splits off cold parts, which a stripped
 * file has no symbol for. They are what conditional jumps lead to, or jumps into the middle of what an FDE covers.
 */
struct error *python_eval_find(struct image *img, u64 start, u64 end, struct python_eval *ret);

/*
 * Follows the beginning of the function to where it links itself: the stores to its _PyCFrame, to its entry frame, to the
 * frame that it is called for, and to the thread state. Fills the rest of ret. An error says that they are not as in any
 * version that is known.
 */
struct error *python_entry_find(struct image *img, const struct python_vm *vm, u16 ts_cframe, struct python_eval *ret);

#endif
