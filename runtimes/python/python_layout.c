/* SPDX-License-Identifier: Apache-2.0 */
#include "python_layout.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "layout/layout.h"
#include "symbols/symbols.h"

/* _Py_DebugOffsets: how CPython 3.13 and later describe their own layout, at the beginning of _PyRuntime. */

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

/*
 * Fills a layout from the initial content of _PyRuntime in the file. *ret stays NULL if that is not there or is of
 * another version than 3.13 to 3.15 (the order of its members is another in each).
 */
static struct error *python_debug_offsets(struct image *img, u32 version, struct layout **ret)
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

#define LAYOUT python_layout
static const struct layout_field fields[] = {PYTHON_MEMBERS(LAYOUT_MEMBER, LAYOUT_OPTIONAL)};

const struct layout_schema python_layout_schema = {.runtime = "python", LAYOUT_FIELDS(fields)};

static enum python_linkage linkage(const struct python_layout *l)
{
	if (l->ts_frame_object.size)
		return PYTHON_FRAME_OBJECT;
	if (l->f_is_entry.size)
		return PYTHON_ENTRY_FLAG;
	return l->ts_cframe.size ? PYTHON_ENTRY_FRAME : PYTHON_NO_CFRAME;
}

/* Of members that take each other's place from version to version the one that this version has. */
static struct layout_member one_of(struct layout_member a, struct layout_member b)
{
	return a.size ? a : b;
}

/* What a frame is called: by its qualified name, where there is one. */
struct layout_member python_layout_name(const struct python_layout *l)
{
	return one_of(l->co_qualname, l->co_name);
}

/* What is constant in the life of a code object, and never the same in two of another size. */
struct layout_member python_layout_code(const struct python_layout *l)
{
	return one_of(l->co_bytes, l->ob_size);
}

/* Where a generator keeps what it interrupted handling: in it, in 3.11 how far below its frame. 0: not looked at. */
static u8 gen_outer(const struct python_layout *l)
{
	if (!l->gen_outer.size)
		return 0;
	if (l->fo_gen.size)
		return (u8)l->gen_outer.at;
	return l->f_is_entry.size && l->gen_frame.size ? (u8)(l->gen_frame.at - l->gen_outer.at) : 0;
}

struct python_vm python_vm_of(const struct python_layout *l)
{
	bool object = l->ts_frame_object.size;

	return (struct python_vm){
	        .ts_frame = one_of(one_of(l->ts_frame_object, l->ts_current_frame), l->ts_cframe).at,
	        .cf_frame = l->cf_frame.at,
	        .f_code = object ? l->fo_code.at : one_of(l->f_code, l->f_executable).at,
	        .f_previous = object ? l->fo_back.at : l->f_previous.at,
	        .f_instr = object ? l->fo_lasti.at : one_of(l->f_prev_instr, l->f_instr_ptr).at,
	        .f_gen = (u8)l->fo_gen.at,
	        .gen_outer = gen_outer(l),
	        .f_entry = one_of(l->f_is_entry, l->f_owner).at,
	        .ob_type = l->ob_type.at,
	        .co_firstlineno = l->co_firstlineno.at,
	        .co_filename = l->co_filename.at,
	        .co_name = python_layout_name(l).at,
	        .co_code = python_layout_code(l).at,
	        .co_consts = l->co_consts.at,
	        .co_names = l->co_names.at,
	        .bytecode = l->co_code.at,
	        .f_tlbc = l->f_tlbc.at,
	        .co_tlbc = l->co_tlbc.at,
	        .ts_thread_id = l->ts_thread_id.at,
	        .ts_next = l->ts_next.at,
	        .interp_next = l->interp_next.at,
	        .interp_threads = one_of(l->interp_threads, l->interp_tstate_head).at,
	        .lasti_bytes = l->co_lnotab.size ? 2 : 1,
	        .linkage = linkage(l),
	};
}

static bool in_object(struct layout_member m, u32 start, u32 size, u32 width)
{
	return m.size == width && m.at >= start && m.at + width <= start + size && m.at % width == 0;
}

static bool frames_fit(const struct python_layout *l)
{
	u32 head = l->ob_type.at;

	if (l->ts_frame_object.size)
		return in_object(l->fo_code, head, PYTHON_OBJECT_BYTES, 8) &&
		       in_object(l->fo_back, head, PYTHON_OBJECT_BYTES, 8) &&
		       in_object(l->fo_lasti, head, PYTHON_OBJECT_BYTES, 4) &&
		       (!l->fo_gen.size || in_object(l->fo_gen, head, PYTHON_OBJECT_BYTES, 8));
	return in_object(one_of(l->f_code, l->f_executable), 0, PYTHON_FRAME_BYTES, 8) &&
	       in_object(one_of(l->f_prev_instr, l->f_instr_ptr), 0, PYTHON_FRAME_BYTES, 8) &&
	       in_object(l->f_previous, 0, PYTHON_FRAME_BYTES, 8) && in_object(l->f_owner, 0, PYTHON_FRAME_BYTES, 1) &&
	       (!l->co_tlbc.size || in_object(l->f_tlbc, 0, PYTHON_FRAME_BYTES, 4));
}

static bool generators_fit(const struct python_layout *l)
{
	if (!l->gen_outer.size)
		return true;
	return in_object(l->gen_outer, 0, PYTHON_CORO_BYTES, 8) &&
	       (!l->gen_frame.size || in_object(l->gen_frame, l->gen_outer.at, PYTHON_CORO_BYTES, 8));
}

static bool code_fits(const struct python_layout *l)
{
	const struct layout_member words[] = {
	        l->co_consts, l->co_names, l->co_filename, python_layout_name(l), python_layout_code(l)};
	bool fits = in_object(l->co_firstlineno, l->ob_type.at, PYTHON_OBJECT_BYTES, 4) &&
	            one_of(l->co_lnotab, l->co_linetable).size && one_of(l->co_bytes, l->co_code).size;

	for (u32 i = 0; i < sizeof(words) / sizeof(*words); i++)
		fits &= in_object(words[i], l->ob_type.at, PYTHON_OBJECT_BYTES, 8);
	return fits;
}

static bool threads_fit(const struct python_layout *l)
{
	if (!one_of(l->interp_tstate_head, l->interp_threads).size)
		return false;
	if (l->ts_frame_object.size || !l->ts_cframe.size)
		return one_of(l->ts_frame_object, l->ts_current_frame).size == 8;
	return l->ts_cframe.size == 8 && l->cf_frame.size == 8;
}

/* What the walker reads at once must be there, and what the version needs of members that not each has. */
static struct error *check(const struct python_layout *l, const char *origin)
{
	const char *wrong = NULL;

	if (l->ob_size.at != l->ob_type.at + 8 || l->ob_type.at % 8 || l->ob_type.at > PYTHON_HEAD_MAX)
		wrong = "PyObject (a build with Py_TRACE_REFS?)";
	else if (!frames_fit(l))
		wrong = "a frame";
	else if (!generators_fit(l))
		wrong = "PyGenObject";
	else if (!code_fits(l))
		wrong = "PyCodeObject";
	else if (!threads_fit(l))
		wrong = "PyThreadState";
	if (!wrong)
		return NULL;
	return error_new(ERROR_UNSUPPORTED, "%s: the layout of %s is none that is supported", origin, wrong);
}

static struct error *find(struct image *img, u32 version, struct layout **ret)
{
	char word[16];
	struct error *err = python_debug_offsets(img, version, ret);

	snprintf(word, sizeof(word), "%u.%u", version >> 16 & 0xff, version >> 8 & 0xff);
	if (!err && !*ret)
		err = layout_library_find(&python_layout_schema, img, NULL, "build-id", ret);
	if (!err && !*ret)
		err = layout_whole_from_debug(&python_layout_schema, img, "", ret);
	if (!err && !*ret)
		err = layout_library_find(&python_layout_schema, img, word, "version", ret);
	if (err || *ret)
		return err;
	return error_hint(error_new(ERROR_UNSUPPORTED,
	                          "%s holds Python %s, whose layout is not known: it has no debug information, and the "
	                          "library has neither its build-id nor its version",
	                          img->path, word),
	        "its Python frames are left out; install its debug package, or run `yrt layout` on a build of it with "
	        "-g "
	        "and name the folder of the result in YRT_LAYOUTS");
}

struct error *python_layout_find(struct image *img, u32 version, struct layout **ret)
{
	char origin[256];
	struct error *err;

	*ret = NULL;
	err = find(img, version, ret);
	if (!err)
		err = check((*ret)->values, layout_origin(*ret, 0, origin, sizeof(origin)));
	if (err) {
		layout_destroy(*ret);
		*ret = NULL;
		return err == &error_no_memory ? err : error_hint(err, "Python frames of %s are left out", img->path);
	}
	return NULL;
}
