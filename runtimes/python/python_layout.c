/* SPDX-License-Identifier: Apache-2.0 */
#include "python_layout.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "python_debug_offsets.h"

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
