/* SPDX-License-Identifier: Apache-2.0 */
#include "python_debug_offsets.h"

#include <stddef.h>
#include <string.h>

#include "python_layout.h"
#include "symbols/symbols.h"

#define COOKIE       "xdebugpy"
#define WORDS_MAX    112
#define WORD_VERSION 1 /* PY_VERSION_HEX */
#define WORD_FREE    2 /* a free-threaded build */

/* struct _Py_DebugOffsets in 8-byte words: which one gives which member, by version; 0: none does. */
enum { IN_313, IN_314, IN_315, VERSIONS };
static const u32 versions[VERSIONS] = {0x030d, 0x030e, 0x030f};
static const u32 nwords[VERSIONS] = {73, 95, 111};
static const u32 word_ascii[VERSIONS] = {70, 80, 92}; /* sizeof PyASCIIObject */
static const u32 word_ob_size[VERSIONS] = {65, 75, 87};

static const struct {
	u16 slot, size;
	u8 words[VERSIONS];
} members[] = {
#define W(slot_, size_, ...)                                                                                           \
	{                                                                                                              \
		.slot = offsetof(struct python_layout, slot_), .size = size_, .words = { __VA_ARGS__ }                 \
	}
        W(runtime_interpreters, 8, 5, 5, 5),
        W(interp_next, 8, 8, 8, 8),
        W(interp_threads, 8, 9, 9, 9),
        W(interp_modules, 8, 11, 12, 12),
        W(interp_gil, 8, 14, 15, 15),
        W(ts_next, 8, 21, 24, 24),
        W(ts_interp, 8, 22, 25, 25),
        W(ts_current_frame, 8, 23, 26, 26),
        W(ts_thread_id, 8, 24, 27, 30),
        W(f_previous, 8, 29, 32, 40),
        W(f_executable, 8, 30, 33, 41),
        W(f_instr_ptr, 8, 31, 34, 42),
        W(f_owner, 1, 33, 36, 44),
        W(f_stackpointer, 8, 0, 37, 45),
        W(gen_frame, 8, 0, 85, 101),
        W(gen_state, 1, 0, 86, 102),
        W(set_used, 8, 0, 63, 75),
        W(set_table, 8, 0, 64, 76),
        W(set_mask, 8, 0, 65, 77),
        W(co_filename, 8, 35, 40, 48),
        W(co_name, 8, 36, 41, 49),
        W(co_qualname, 8, 37, 42, 50),
        W(co_linetable, 8, 38, 43, 51),
        W(co_firstlineno, 4, 39, 44, 52),
        W(co_code, 1, 43, 48, 56),
        W(ob_type, 8, 45, 51, 59),
        W(ob_size, 8, 65, 75, 87),
        W(bytes_data, 1, 66, 76, 88),
        W(str_state, 4, 68, 78, 90),
        W(str_length, 8, 69, 79, 91),
#undef W
};

/* Free-threaded builds from 3.14 on have bytecode for each thread. */
static const struct {
	u8 frame, code;
} word_tlbc[VERSIONS] = {[IN_314] = {38, 49}, [IN_315] = {46, 57}};

static u32 field_at(u16 slot)
{
	u32 i = 0;

	while (python_layout_schema.fields[i].slot != slot)
		i++;
	return i;
}

static struct error *set(struct layout *l, u16 slot, u64 at, u64 size)
{
	if (at > UINT16_MAX)
		return error_new(ERROR_UNSUPPORTED, "_Py_DebugOffsets has an offset of %lu bytes", at);
	layout_set(l, field_at(slot), (struct layout_member){(u16)at, (u16)size}, LAYOUT_PROCESS);
	return NULL;
}

static struct error *fill_tlbc(const u64 *words, u32 version, struct layout *l)
{
	struct error *err;

	if (!words[WORD_FREE] || !word_tlbc[version].frame)
		return NULL;
	err = set(l, offsetof(struct python_layout, f_tlbc), words[word_tlbc[version].frame], 4);
	return err ? err : set(l, offsetof(struct python_layout, co_tlbc), words[word_tlbc[version].code], 8);
}

/* What no word gives, but follows from one. */
static struct error *fill_derived(const u64 *words, u32 version, struct layout *l)
{
	u64 ob_size = words[word_ob_size[version]], ascii = words[word_ascii[version]], compact = ascii + 16;
	const struct {
		u16 slot;
		u64 at, size;
	} derived[] = {
	        /* behind the head of a code object, as from 3.11 on */
	        {offsetof(struct python_layout, co_consts), ob_size + 8, 8},
	        {offsetof(struct python_layout, co_names), ob_size + 16, 8},
	        {offsetof(struct python_layout, str_ascii), ascii, ascii},
	        {offsetof(struct python_layout, str_compact), compact, compact}, /* a length and a pointer more */
	};
	struct error *err = NULL;

	for (u32 i = 0; !err && i < sizeof(derived) / sizeof(*derived); i++)
		err = set(l, derived[i].slot, derived[i].at, derived[i].size);
	return err;
}

static struct error *fill(const u64 *words, u32 version, struct layout *l)
{
	struct error *err = fill_tlbc(words, version, l);

	for (u32 i = 0; !err && i < sizeof(members) / sizeof(*members); i++)
		if (members[i].words[version])
			err = set(l, members[i].slot, words[members[i].words[version]], members[i].size);
	if (!err)
		err = fill_derived(words, version, l);
	return err ? err : layout_detail(l, LAYOUT_PROCESS, "_Py_DebugOffsets");
}

static u32 find_version(u32 version)
{
	u32 i = 0;

	while (i < VERSIONS && versions[i] != version)
		i++;
	return i;
}

struct error *python_debug_offsets(struct image *img, u32 version, struct layout **ret)
{
	u32 which = find_version(version >> 8);
	struct symbol runtime;
	u64 words[WORDS_MAX];
	struct error *err;

	if (which == VERSIONS || !symbols_lookup(img, "_PyRuntime", &runtime) ||
	        !image_read(img, words, nwords[which] * sizeof(*words), runtime.start) || memcmp(words, COOKIE, 8) ||
	        words[WORD_VERSION] >> 16 != versions[which])
		return NULL;
	err = layout_create(&python_layout_schema, ret);
	if (!err)
		err = fill(words, which, *ret);
	return err;
}
