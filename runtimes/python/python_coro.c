/* SPDX-License-Identifier: Apache-2.0 */
#include "python_coro.h"

#include <string.h>

#define V3_10 0x030a0000
#define V3_11 0x030b0000
#define V3_12 0x030c0000
#define V3_13 0x030d0000
#define V3_14 0x030e0000
#define V3_15 0x030f0000

#define YIELD_FROM       72 /* opcode up to 3.10 */
#define RESUME_AFTER     2  /* oparg of RESUME from here on: behind yield from or await (3.11, 3.12) */
#define STACK_MAX        (1 << 20)
#define TYPE_NAME_BYTES  40
#define KINDS_MAX        4096
#define NOT_STARTED      (-1) /* f_lasti */
#define FRAME_YIELD_FROM (-1) /* gi_frame_state of 3.13 and 3.14 */
#define FRAME_EXECUTING  0

/* One that was read. */
struct coro {
	enum python_coro_state state;
	u64 code, pos;
	u64 top; /* address of the word that it awaits; 0: it awaits nothing */
};

static const struct {
	const char *name;
	enum python_kind kind;
} kinds[] = {
        {"coroutine", PYTHON_CORO},
        {"generator", PYTHON_CORO},
        {"async_generator", PYTHON_CORO},
        {"async_generator_asend", PYTHON_STEP},
        {"async_generator_athrow", PYTHON_STEP},
        {"coroutine_wrapper", PYTHON_STEP},
        {"FutureIter", PYTHON_FUTURE_ITER},
        {"_asyncio.FutureIter", PYTHON_FUTURE_ITER},
};

static enum python_kind kind_of_type(const struct python_reader *r, u64 type)
{
	u64 at = python_word(r, type + python_head(r) + 8); /* tp_name, behind ob_size */
	char name[TYPE_NAME_BYTES];

	if (!at || !python_read(r, name, sizeof(name), at))
		return PYTHON_OTHER;
	for (u32 i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strncmp(name, kinds[i].name, sizeof(name)))
			return kinds[i].kind;
	return PYTHON_OTHER;
}

enum python_kind python_kind_of(struct python_coros *c, u64 object)
{
	u64 type = object ? python_word(c->r, object + c->r->l->ob_type.at) : 0, *known;
	enum python_kind kind;

	if (!type)
		return PYTHON_OTHER;
	known = table_get(&c->kinds, type);
	if (known)
		return (enum python_kind) * known;
	kind = kind_of_type(c->r, type);
	if (c->kinds.used < KINDS_MAX)
		error_free(table_put(&c->kinds, type, kind));
	return kind;
}

/* Up to 3.10: gi_frame leads to a PyFrameObject; f_valuestack and what says how much is on it follow f_code. */
static bool read_object(const struct python_reader *r, u64 coro, struct coro *ret)
{
	const struct python_layout *l = r->l;
	bool depth = r->version >= V3_10;
	u64 frame, bytes, values;
	s32 lasti, n = 0;
	u16 next;
	s8 running;

	if (!python_read(r, &frame, sizeof(frame), coro + python_head(r)))
		return false;
	ret->state = PYTHON_ENDED;
	if (!frame)
		return true;
	ret->code = python_word(r, frame + l->fo_code.at);
	if (!ret->code || !python_read(r, &lasti, sizeof(lasti), frame + l->fo_lasti.at) ||
	        !python_read(r, &running, 1, depth ? frame + l->fo_lasti.at + 12 : coro + python_head(r) + 8))
		return false;
	ret->state = lasti == NOT_STARTED                             ? PYTHON_CREATED
	             : (depth ? running == FRAME_EXECUTING : running) ? PYTHON_RUNNING
	                                                              : PYTHON_SUSPENDED;
	ret->pos = lasti < 0 ? PYTHON_NO_POS : (u64)lasti / (depth ? 1 : 2);
	if (ret->state != PYTHON_SUSPENDED)
		return true;
	bytes = python_word(r, ret->code + l->co_bytes.at);
	if (!bytes || !python_read(r, &next, sizeof(next), bytes + l->bytes_data.at + 2 * (ret->pos + 1)))
		return false;
	if ((next & 0xff) != YIELD_FROM)
		return true;
	values = python_word(r, frame + l->fo_code.at + (depth ? 32 : 40));
	if (depth && (!python_read(r, &n, sizeof(n), frame + l->fo_code.at + 48) || n <= 0 || n > STACK_MAX))
		return false;
	ret->top = values + 8 * (u64)n - 8;
	return values;
}

/* Where gi_iframe, and gi_frame_state, lie in a generator of 3.11 to 3.13: 3.11 has gi_code before them. */
static u32 frame_at(const struct python_reader *r)
{
	if (r->version >= V3_14)
		return r->l->gen_frame.at;
	return python_head(r) + (r->version < V3_12 ? 64 : 56);
}

static u32 state_at(const struct python_reader *r)
{
	if (r->version >= V3_14)
		return r->l->gen_state.at;
	return python_head(r) + (r->version < V3_12 ? 59 : 51);
}

/* Up to 3.10 f_gen lies before f_lasti. */
u64 python_coro_of(const struct python_reader *r, u64 frame)
{
	return r->version < V3_11 ? python_word(r, frame + r->l->fo_lasti.at - 8) : frame - frame_at(r);
}

/* gi_frame_state: 3.13 put one more before those that run, 3.15 counts from 0. */
static enum python_coro_state state_of(const struct python_reader *r, s8 state, bool *awaits)
{
	if (r->version >= V3_15) {
		*awaits = state == 2;
		return state == 0   ? PYTHON_CREATED
		       : state <= 3 ? PYTHON_SUSPENDED
		       : state == 4 ? PYTHON_RUNNING
		                    : PYTHON_ENDED;
	}
	*awaits = r->version < V3_13 ? state == -1 : state == FRAME_YIELD_FROM;
	if (state == (r->version < V3_13 ? -2 : -3))
		return PYTHON_CREATED;
	if (state < 0)
		return PYTHON_SUSPENDED;
	return state == FRAME_EXECUTING ? PYTHON_RUNNING : PYTHON_ENDED;
}

/* The innermost word of its stack. */
static bool find_top(const struct python_reader *r, u64 frame, u64 *ret)
{
	u64 stacktop = frame + (r->l->f_owner.at & ~7u);
	s32 n;

	if (r->version >= V3_14) {
		*ret = python_word(r, frame + r->l->f_stackpointer.at);
		*ret -= *ret ? (r->version >= V3_15 ? 16 : 8) : 0;
		return *ret;
	}
	if (!python_read(r, &n, sizeof(n), stacktop) || n <= 0 || n > STACK_MAX)
		return false;
	*ret = stacktop + 8 + 8 * (u64)n - 8;
	return true;
}

static bool read_inline(const struct python_reader *r, u64 coro, struct coro *ret)
{
	const struct python_layout *l = r->l;
	u64 frame = coro + frame_at(r), instr;
	bool awaits;
	u16 next;
	s8 state;

	if (!python_read(r, &state, sizeof(state), coro + state_at(r)))
		return false;
	ret->state = state_of(r, state, &awaits);
	if (ret->state == PYTHON_ENDED)
		return true;
	ret->code = python_word(r, frame + (l->f_code.size ? l->f_code.at : l->f_executable.at)) & ~7ull;
	instr = python_word(r, frame + (l->f_prev_instr.size ? l->f_prev_instr.at : l->f_instr_ptr.at));
	if (!ret->code || !instr)
		return false;
	ret->pos = ret->state == PYTHON_CREATED ? PYTHON_NO_POS : (instr - ret->code - l->co_code.at) / 2;
	if (ret->state != PYTHON_SUSPENDED || !awaits)
		return true;
	if (r->version < V3_13) {
		if (!python_read(r, &next, sizeof(next), instr + 2))
			return false;
		if ((next >> 8 & 3) < RESUME_AFTER)
			return true;
	}
	return find_top(r, frame, &ret->top);
}

/* Through what only stands for another: to a coroutine, or to what has no frame. */
static u64 behind_steps(struct python_coros *c, u64 object, enum python_kind *kind)
{
	*kind = python_kind_of(c, object);
	for (u32 i = 0; i < 4 && *kind == PYTHON_STEP; i++) {
		object = python_word(c->r, object + python_head(c->r)); /* ags_gen, agt_gen, cw_coroutine */
		*kind = python_kind_of(c, object);
	}
	return object;
}

/* The future of an iterator, which names it first. */
static u64 without_frame(struct python_coros *c, u64 object, enum python_kind kind)
{
	return kind == PYTHON_FUTURE_ITER ? python_word(c->r, object + python_head(c->r)) : object;
}

bool python_chain(struct python_coros *c, u64 coro, struct python_chain *ret)
{
	enum python_kind kind;

	*ret = (struct python_chain){.state = PYTHON_UNREADABLE};
	for (coro = behind_steps(c, coro, &kind); kind == PYTHON_CORO; coro = behind_steps(c, coro, &kind)) {
		struct coro at = {0};

		if (ret->n == PYTHON_CORO_DEPTH) {
			ret->cut = true;
			return true;
		}
		if (!(c->r->version < V3_11 ? read_object : read_inline)(c->r, coro, &at))
			return false;
		ret->state = at.state;
		if (at.state == PYTHON_ENDED)
			return !ret->n;
		if (!python_code_frame(c->names, c->r->mem, at.code, at.pos, &ret->frames[ret->n++]))
			return false;
		if (!at.top)
			return true;
		if (!python_read(c->r, &coro, sizeof(coro), at.top))
			return false;
		coro &= c->r->version >= V3_14 ? ~7ull : ~0ull;
	}
	ret->awaits = without_frame(c, coro, kind);
	return ret->n;
}
