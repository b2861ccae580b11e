/* SPDX-License-Identifier: Apache-2.0 */
#include "python_check.h"

#include <unistd.h>

#include "python_names.h"
#include "python_threads.h"

#define TRIES          20
#define WAITED_TRIES   6 /* a target that lost its CPU amid a change stays torn until it runs again: 1 ... 32 ms */
#define LIST_MAX       4096
#define THREADS_MAX    64
#define FRAMES_MAX     256
#define FIRST_LINE_MAX 100000000
#define OWNERS         8 /* FRAME_OWNED_BY_…: fewer in each version */

struct checker {
	const struct python_image *image;
	const struct python_layout *l;
	struct memory *mem;
	u64 bias;
};

static bool word(const struct checker *c, u64 *ret, u64 addr)
{
	return memory_read(c->mem, ret, sizeof(*ret), addr);
}

/* type: a file address. References may have tags. */
static bool is(const struct checker *c, u64 object, u64 type)
{
	u64 found;

	return object && word(c, &found, (object & ~7ull) + c->l->ob_type.at) && found == type + c->bias;
}

static bool member_is(const struct checker *c, u64 object, struct layout_member m, u64 type)
{
	u64 found;

	return word(c, &found, object + m.at) && is(c, found, type);
}

/* PyTypeObject: tp_name and tp_basicsize stand behind its head. */
static bool has_size(const struct checker *c, u64 type, u64 size)
{
	u64 found;

	return word(c, &found, type + c->bias + c->l->ob_size.at + 16) && found == size;
}

static enum python_check_result check_types(struct checker *c)
{
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
		return PYTHON_CHECK_SILENT;
	return sizes && (compact == 16 || compact == 24) && is(c, i->code_type + c->bias, i->types.type)
	               ? PYTHON_CHECK_HOLDS
	               : PYTHON_CHECK_FAILS;
}

/* Each state is of its interpreter, and of a thread whose thread pointer points to itself (ABI of x86-64). */
static bool check_states(const struct checker *c, u64 interp)
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

static enum python_check_result check_lists(struct checker *c)
{
	u64 interp;

	if (!word(c, &interp, c->image->runtime + c->bias + c->l->runtime_interpreters.at))
		return PYTHON_CHECK_FAILS;
	if (!interp)
		return PYTHON_CHECK_SILENT;
	for (u32 n = 0; interp && n < LIST_MAX; n++)
		if (!check_states(c, interp) || !word(c, &interp, interp + c->l->interp_next.at))
			return PYTHON_CHECK_FAILS;
	return interp ? PYTHON_CHECK_FAILS : PYTHON_CHECK_HOLDS;
}

/* A str in ASCII ends with a NUL and has none before. */
static bool check_str(const struct checker *c, u64 str)
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

static bool check_code(const struct checker *c, u64 code)
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
static bool check_instr(const struct checker *c, u64 frame, u64 code, u64 instr)
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

static bool check_object(const struct checker *c, u64 frame, u64 *previous)
{
	u64 code, bytes, size;
	s32 lasti;

	return is(c, frame, c->image->frame_type) && word(c, &code, frame + c->l->fo_code.at) && check_code(c, code) &&
	       memory_read(c->mem, &lasti, sizeof(lasti), frame + c->l->fo_lasti.at) &&
	       word(c, &bytes, code + c->l->co_bytes.at) && word(c, &size, bytes + c->l->ob_size.at) && lasti >= -1 &&
	       (lasti < 0 || (u64)lasti < size) && word(c, previous, frame + c->l->fo_back.at);
}

/* The outermost frame is an entry, which from 3.12 on has no code. */
static bool check_frame(const struct checker *c, u64 frame, u64 *previous)
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

static bool first_frame(const struct checker *c, u64 state, u64 *ret)
{
	const struct python_layout *l = c->l;
	u64 cframe;

	if (l->ts_frame_object.size)
		return word(c, ret, state + l->ts_frame_object.at);
	if (!l->ts_cframe.size)
		return word(c, ret, state + l->ts_current_frame.at);
	return word(c, &cframe, state + l->ts_cframe.at) && word(c, ret, cframe + l->cf_frame.at);
}

static enum python_check_result check_frames(struct checker *c)
{
	struct python_thread threads[THREADS_MAX];
	u32 n = python_threads(c->mem, c->l, c->image->runtime + c->bias, threads, THREADS_MAX), seen = 0;
	u64 frame;

	for (u32 i = 0; i < n; i++) {
		if (!first_frame(c, threads[i].state, &frame))
			return PYTHON_CHECK_FAILS;
		for (u32 k = 0; frame && k < FRAMES_MAX; k++, seen++)
			if (!(c->l->ts_frame_object.size ? check_object(c, frame, &frame)
			                                 : check_frame(c, frame, &frame)))
				return PYTHON_CHECK_FAILS;
	}
	return seen ? PYTHON_CHECK_HOLDS : PYTHON_CHECK_SILENT;
}

void python_check(const struct python_image *image, const struct python_layout *l, u64 bias, struct memory *mem,
        struct python_check ret[PYTHON_CHECKS])
{
	static const struct {
		const char *name, *what;
		enum python_check_result (*check)(struct checker *c);
	} checks[PYTHON_CHECKS] = {
	        {"types", "sizes that they give for their instances", check_types},
	        {"threads", "states are of their interpreter and of a thread", check_lists},
	        {"frames", "frames have code, whose members have their types", check_frames},
	};
	struct checker c = {.image = image, .l = l, .mem = mem, .bias = bias};

	for (u32 i = 0; i < PYTHON_CHECKS; i++) {
		ret[i] = (struct python_check){checks[i].name, checks[i].what, PYTHON_CHECK_FAILS};
		for (u32 k = 0; k < TRIES && ret[i].result == PYTHON_CHECK_FAILS; k++) {
			if (k >= TRIES - WAITED_TRIES)
				usleep(1000u << (k - (TRIES - WAITED_TRIES)));
			ret[i].result = checks[i].check(&c);
		}
	}
}

struct error *python_check_process(const struct python_image *image, u64 bias, const struct runtime_process *p)
{
	struct python_check checks[PYTHON_CHECKS];

	python_check(image, image->layout, bias, p->memory, checks);
	for (u32 i = 0; i < PYTHON_CHECKS; i++)
		if (checks[i].result == PYTHON_CHECK_FAILS)
			return error_hint(
			        error_new(ERROR_UNSUPPORTED,
			                "process %d: the layout of Python that was found does not hold: %s (%s)",
			                p->pid, checks[i].name, checks[i].what),
			        "its Python frames are left out; run `yrt layout` on a build of it with -g and name "
			        "the folder of the result in YRT_LAYOUTS");
	return NULL;
}
