/* SPDX-License-Identifier: Apache-2.0 */
#include "python_check.h"

#include "python_names.h"
#include "python_threads.h"

#define LIST_MAX       4096
#define THREADS_MAX    64
#define FRAMES_MAX     256
#define FIRST_LINE_MAX 100000000
#define OWNERS         8 /* FRAME_OWNED_BY_…: fewer in each version */

static bool word(const struct python_checked *c, u64 *ret, u64 addr)
{
	return memory_read(c->mem, ret, sizeof(*ret), addr);
}

/* type: a file address. References may have tags. */
static bool is(const struct python_checked *c, u64 object, u64 type)
{
	u64 found;

	return object && word(c, &found, (object & ~7ull) + c->l->ob_type.at) && found == type + c->bias;
}

static bool member_is(const struct python_checked *c, u64 object, struct layout_member m, u64 type)
{
	u64 found;

	return word(c, &found, object + m.at) && is(c, found, type);
}

/* PyTypeObject: tp_name and tp_basicsize stand behind its head. */
static bool has_size(const struct python_checked *c, u64 type, u64 size)
{
	u64 found;

	return word(c, &found, type + c->bias + c->l->ob_size.at + 16) && found == size;
}

static int check_types(void *subject)
{
	const struct python_checked *c = subject;
	const struct python_layout *l = c->l;
	const struct python_image *i = c->image;
	u32 compact = l->str_compact.at - l->str_ascii.at;
	bool sizes =
	        has_size(c, i->types.bytes, l->bytes_data.at + 1u) && has_size(c, i->types.str, l->str_compact.at + 8u);
	u64 type;

	if (l->ts_frame_object.size)
		sizes &= has_size(c, i->frame_type, l->fo_size.size) && has_size(c, i->code_type, l->co_size.size);
	else
		sizes &= has_size(c, i->code_type, l->co_code.at);

	if (!word(c, &type, i->code_type + c->bias + l->ob_type.at) || !type) /* set when the interpreter begins */
		return 0;
	return sizes && (compact == 16 || compact == 24) && is(c, i->code_type + c->bias, i->types.type) ? 1
	                                                                                                 : CHECK_FAILS;
}

/* Each state is of its interpreter, and of a thread whose thread pointer points to itself (ABI of x86-64). */
static bool check_states(const struct python_checked *c, u64 interp)
{
	u32 head = c->l->interp_threads.size ? c->l->interp_threads.at : c->l->interp_tstate_head.at;
	u64 state, found, thread;

	if (!word(c, &state, interp + head))
		return false;
	for (u32 n = 0; state && n < LIST_MAX; n++) {
		if (!word(c, &found, state + c->l->ts_interp.at) || found != interp ||
		        !word(c, &thread, state + c->l->ts_thread_id.at) ||
		        (thread && (!word(c, &found, thread) || found != thread)) ||
		        !word(c, &state, state + c->l->ts_next.at))
			return false;
	}
	return !state;
}

static int check_lists(void *subject)
{
	const struct python_checked *c = subject;
	u64 interp;
	u32 n = 0;

	if (!word(c, &interp, c->image->runtime + c->bias + c->l->runtime_interpreters.at))
		return CHECK_FAILS;
	for (; interp && n < LIST_MAX; n++)
		if (!check_states(c, interp) || !word(c, &interp, interp + c->l->interp_next.at))
			return CHECK_FAILS;
	return interp ? CHECK_FAILS : (int)n;
}

/* A str in ASCII ends with a NUL and has none before. */
static bool check_str(const struct python_checked *c, u64 str)
{
	u64 length;
	u32 state;
	char last[2];

	if (!is(c, str, c->image->types.str) || !word(c, &length, str + c->l->str_length.at) ||
	        !memory_read(c->mem, &state, sizeof(state), str + c->l->str_state.at) || length > UINT32_MAX)
		return false;
	if (!length || !python_str_state(state).ascii)
		return true;
	return memory_read(c->mem, last, sizeof(last), str + c->l->str_ascii.at + length - 1) && last[0] && !last[1];
}

static bool check_code(const struct python_checked *c, u64 code)
{
	const struct python_layout *l = c->l;
	const struct python_image *i = c->image;
	u64 name, file;
	u32 line;

	return is(c, code, i->code_type) && word(c, &name, code + python_layout_name(l).at) && check_str(c, name) &&
	       word(c, &file, code + l->co_filename.at) && check_str(c, file) &&
	       member_is(c, code, l->co_consts, i->types.tuple) && member_is(c, code, l->co_names, i->types.tuple) &&
	       member_is(c, code, l->co_lnotab.size ? l->co_lnotab : l->co_linetable, i->types.bytes) &&
	       (!l->co_bytes.size || member_is(c, code, l->co_bytes, i->types.bytes)) &&
	       memory_read(c->mem, &line, sizeof(line), code + l->co_firstlineno.at) && line < FIRST_LINE_MAX;
}

/* Is the instruction one of the code object's? prev_instr may be before the first. */
static bool check_instr(const struct python_checked *c, u64 frame, u64 code, u64 instr)
{
	u64 units, array, start = code + c->l->co_code.at;
	u32 index = 0;

	if (c->l->co_tlbc.size && !memory_read(c->mem, &index, sizeof(index), frame + c->l->f_tlbc.at))
		return false;
	if (index && (!word(c, &array, code + c->l->co_tlbc.at) || !word(c, &start, array + 8 + 8 * (u64)index)))
		return false;
	return word(c, &units, code + c->l->ob_size.at) && instr + 2 >= start && instr <= start + 2 * units &&
	       instr % 2 == 0;
}

static bool check_object(const struct python_checked *c, u64 frame, u64 *previous)
{
	u64 code, bytes, size;
	s32 lasti;

	return is(c, frame, c->image->frame_type) && word(c, &code, frame + c->l->fo_code.at) && check_code(c, code) &&
	       memory_read(c->mem, &lasti, sizeof(lasti), frame + c->l->fo_lasti.at) &&
	       word(c, &bytes, code + c->l->co_bytes.at) && word(c, &size, bytes + c->l->ob_size.at) && lasti >= -1 &&
	       (lasti < 0 || (u64)lasti < size) && word(c, previous, frame + c->l->fo_back.at);
}

/* The outermost frame is an entry, which from 3.12 on has no code. */
static bool check_frame(const struct python_checked *c, u64 frame, u64 *previous)
{
	const struct python_vm *vm = &c->image->vm;
	u64 code, instr;
	u8 entry, owner;

	if (!word(c, &code, frame + vm->f_code) || !word(c, &instr, frame + vm->f_instr) ||
	        !word(c, previous, frame + c->l->f_previous.at) ||
	        !memory_read(c->mem, &owner, 1, frame + c->l->f_owner.at) || owner >= OWNERS)
		return false;
	if (c->l->f_is_entry.size) {
		if (!memory_read(c->mem, &entry, 1, frame + c->l->f_is_entry.at) || entry > 1 || (!*previous && !entry))
			return false;
	} else if (owner >= PYTHON_OWNER_NONE || !*previous) {
		return owner >= PYTHON_OWNER_NONE;
	}
	code &= ~7ull;
	return check_code(c, code) && check_instr(c, frame, code, instr);
}

static bool first_frame(const struct python_checked *c, u64 state, u64 *ret)
{
	const struct python_layout *l = c->l;
	u64 cframe;

	if (l->ts_frame_object.size)
		return word(c, ret, state + l->ts_frame_object.at);
	if (!l->ts_cframe.size)
		return word(c, ret, state + l->ts_current_frame.at);
	return word(c, &cframe, state + l->ts_cframe.at) && word(c, ret, cframe + l->cf_frame.at);
}

static int check_frames(void *subject)
{
	const struct python_checked *c = subject;
	struct python_thread threads[THREADS_MAX];
	u32 n = python_threads(c->mem, c->l, c->image->runtime + c->bias, threads, THREADS_MAX), seen = 0;
	u64 frame;

	for (u32 i = 0; i < n; i++) {
		if (!first_frame(c, threads[i].state, &frame))
			return CHECK_FAILS;
		for (u32 k = 0; frame && k < FRAMES_MAX; k++, seen++)
			if (!(c->l->ts_frame_object.size ? check_object(c, frame, &frame)
			                                 : check_frame(c, frame, &frame)))
				return CHECK_FAILS;
	}
	return (int)seen;
}

static const struct runtime_check checks[] = {
        {"types", "sizes that they give for their instances", check_types},
        {"threads", "states are of their interpreter and of a thread", check_lists},
        {"frames", "frames have code, whose members have their types", check_frames},
};

/* With pauses: a target that lost its CPU amid a change stays torn until it runs again. */
const struct runtime_checks python_checks = {
        .all = checks, .n = sizeof(checks) / sizeof(*checks), .attempts = 20, .pauses = 6};
