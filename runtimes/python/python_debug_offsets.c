/* SPDX-License-Identifier: Apache-2.0 */
#include "python_debug_offsets.h"

#include <stddef.h>
#include <string.h>

#include "python_layout.h"
#include "symbols.h"

#define COOKIE	    "xdebugpy"
#define WORDS_313   73 /* struct _Py_DebugOffsets of 3.13, in 8-byte words (Include/internal/pycore_runtime.h) */
#define WORD_HEX    1  /* PY_VERSION_HEX */
#define WORD_FREE   2  /* a free-threaded build */

/* Which word of it tells which member, and how large that is. */
static const struct {
	u16 slot, word, size;
} members_313[] = {
#define W(slot_, word_, size_) {.slot = offsetof(struct python_layout, slot_), .word = word_, .size = size_}
        W(runtime_interpreters, 5, 8), W(interp_next, 8, 8), W(interp_threads, 9, 8), W(ts_next, 21, 8),
        W(ts_interp, 22, 8), W(ts_current_frame, 23, 8), W(ts_thread_id, 24, 8), W(f_previous, 29, 8),
        W(f_executable, 30, 8), W(f_instr_ptr, 31, 8), W(f_owner, 33, 1), W(co_filename, 35, 8), W(co_qualname, 37, 8),
        W(co_linetable, 38, 8), W(co_firstlineno, 39, 4), W(co_code, 43, 1), W(ob_type, 45, 8), W(ob_size, 65, 8),
        W(bytes_data, 66, 1), W(str_state, 68, 4), W(str_length, 69, 8),
#undef W
};

static u32 field_at(u16 slot)
{
	u32 i = 0;

	while (python_layout_schema.fields[i].slot != slot)
		i++;
	return i;
}

static struct error *fill(const u64 *words, struct layout *l)
{
	u64 ascii = words[70]; /* sizeof PyASCIIObject; a compact object has a length and a pointer more */

	for (u32 i = 0; i < sizeof(members_313) / sizeof(*members_313); i++) {
		u64 at = words[members_313[i].word];

		if (at > UINT16_MAX && members_313[i].slot != offsetof(struct python_layout, interp_threads))
			return error_new(ERROR_UNSUPPORTED, "_Py_DebugOffsets tells an offset of %lu bytes", at);
		layout_set(l, field_at(members_313[i].slot),
		        (struct layout_member){.at = (u16)at, .size = members_313[i].size}, LAYOUT_PROCESS);
	}
	layout_set(l, field_at(offsetof(struct python_layout, str_ascii)), (struct layout_member){(u16)ascii, (u16)ascii},
	        LAYOUT_PROCESS);
	layout_set(l, field_at(offsetof(struct python_layout, str_compact)),
	        (struct layout_member){(u16)(ascii + 16), (u16)(ascii + 16)}, LAYOUT_PROCESS);
	return layout_detail(l, LAYOUT_PROCESS, "_Py_DebugOffsets");
}

struct error *python_debug_offsets(struct image *img, u32 version, struct layout **ret)
{
	struct symbol runtime;
	u64 words[WORDS_313];
	struct error *err;

	if (version >> 8 != 0x30d || !symbols_lookup(img, "_PyRuntime", &runtime) ||
	        !image_read(img, words, sizeof(words), runtime.start) || memcmp(words, COOKIE, 8) ||
	        words[WORD_HEX] >> 16 != 0x30d)
		return NULL;
	if (words[WORD_FREE])
		return error_new(ERROR_UNSUPPORTED, "%s is a free-threaded build of Python", img->path);
	err = layout_create(&python_layout_schema, ret);
	if (!err)
		err = fill(words, *ret);
	return err;
}
