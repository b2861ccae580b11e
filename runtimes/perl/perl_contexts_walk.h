/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Perl's contexts as the walker reads them: this thread's interpreter, its stacks of contexts (PERL_SI), a window over
 * the one that is being walked, and what a context's CV says.
 */
#ifndef YRT_PERL_CONTEXTS_WALK_H
#define YRT_PERL_CONTEXTS_WALK_H

#include "walk.h"
#include "perl.h"

#define PL_WINDOW 2048u /* bytes of a stack of contexts that are read at once */
#define PL_END    1ull  /* of the cursor: there are no more contexts */

/*
 * The cursor: at is the PERL_SI; more[0] its contexts; [1] the statement that the next frame runs; [3] the CV of the
 * last frame of a sub, [4] who it is, and [5] the generation of code (pl_generation()); [6] the op that the next frame
 * runs or goes on with (perl_op_bits()), or the line of its statement (PERL_LINE); [2] how many contexts are left on
 * this stack, its type, and:
 */
#define PL_SKIP   (1ull << 40) /* docatch() was passed: the next loop has none */
#define PL_RAN    (1ull << 41) /* a loop was passed */
#define PL_XS     (1ull << 42) /* a function in C was passed */
#define PL_PEEK   (1ull << 43) /* the context that was entered from C was taken; call_sv() may have one of its own */
#define PL_TOOK   (1ull << 44) /* a context was taken */
#define PL_BOTTOM (1ull << 45) /* the main program's own block was taken */
#define PL_ALL    (1ull << 46) /* all that is left belongs to this native frame */
#define PL_STACK  (1ull << 47) /* all that is left on this stack belongs to this native frame */
#define PL_CALLER (1ull << 48) /* the statement (more[1]) is a caller's: the sub whose frame is next ran it */
#define PL_UNWOUND                                                                                                     \
	(1ull << 49) /* an exception is leaving subs: of what the next loop ran, call_sv()'s eval may be left */
#define PL_COMPILES                                                                                                    \
	(1ull << 50) /* the parser was passed: the innermost context is the eval, or the file, that it compiles */
#define PL_ENDED (1ull << 51) /* the next loop has ended, though it is not the leaf or PL_op has its last op still */
#define PL_GROUP (PL_STACK | PL_PEEK | PL_TOOK | PL_BOTTOM | PL_ALL)

static inline struct walk_cursor *pl_cursor(struct walk *w, const struct perl_vm *vm)
{
	u32 i = walk_cursor(w, vm->identity);

	WALK_BARRIER(i);
	if (i >= WALK_CURSORS)
		return NULL;
	WALK_BARRIER(i); /* what is known of it may be lost in a spill: masked once more */
	return &w->cursor[i & (WALK_CURSORS - 1)];
}

static inline u64 pl_left(const struct walk_cursor *c)
{
	return (u32)c->more[2];
}

static inline u32 pl_type(const struct walk_cursor *c)
{
	return (u32)(c->more[2] >> 32) & 0xff;
}

static inline u32 pl_spot(const struct walk_cursor *c)
{
	return (u32)c->more[6] & (PERL_OP_RUNS | PERL_LINE | PERL_LINE_MAX);
}

static inline void pl_set_op(struct walk_cursor *c, u64 op, bool runs)
{
	c->more[6] = perl_op_bits(op, runs);
}

/* The statement of the next frame may be gone when it is named. */
WALK_GLOBAL int perl_set_line(struct walk *w, const struct perl_vm *vm, struct walk_cursor *c)
{
	u32 line;

	WALK_CHECK(w);
	WALK_CHECK(vm);
	WALK_CHECK(c);
	if (!walk_read(w, &line, sizeof(line), c->more[1] + vm->cop_line) || line > PERL_LINE_MAX)
		line = 0;
	c->more[6] = PERL_LINE | line;
	return STOP_NONE;
}

/* Goes on with the contexts of the PERL_SI at `si`; 0: there is none. */
WALK_GLOBAL int perl_stack_open(struct walk *w, u64 si)
{
	const struct perl_vm *vm;
	struct walk_cursor *c;
	u64 base;
	s32 cxix, type;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	c = vm ? pl_cursor(w, vm) : NULL;
	if (!c)
		return STOP_ARENA;
	if (!si) {
		c->at = PL_END;
		return STOP_NONE;
	}
	if (!walk_read(w, &base, sizeof(base), si + vm->si_cxstack) ||
	        !walk_read(w, &cxix, sizeof(cxix), si + vm->si_cxix) ||
	        !walk_read(w, &type, sizeof(type), si + vm->si_type))
		return STOP_VM_ABSENT;
	if (cxix < -1 || cxix >= 1 << 24 || type < -1 || type > 63 || base & 7)
		return STOP_VM_BROKEN;
	c->at = si;
	c->more[0] = base;
	c->more[2] = (c->more[2] & ~((1ull << 40) - 1)) | (u32)(cxix + 1) | (u64)(type & 0xff) << 32;
	w->vm.len = 0;
	return STOP_NONE;
}

WALK_GLOBAL int perl_stack_next(struct walk *w)
{
	const struct perl_vm *vm;
	struct walk_cursor *c;
	u64 si;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	c = vm ? pl_cursor(w, vm) : NULL;
	if (!c)
		return STOP_ARENA;
	if (!walk_read(w, &si, sizeof(si), c->at + vm->si_prev))
		return STOP_VM_ABSENT;
	return perl_stack_open(w, si);
}

/*
 * Memory can be absent for a moment: after fork(), samples cannot read a page while the kernel copies it for its first
 * write. That page is often the one with the thread's own block, which says what its interpreter is. So an earlier walk
 * stores that here.
 */
static inline struct walk_cache *pl_known_interpreter(struct walk *w, const struct perl_vm *vm)
{
	u64 key = walk_mix(vm->via, w->thread_pointer); /* a child has its parent's */
	struct walk_cache *cached = walk_cache(w, (u32)(key >> 32));

	if (cached && cached->key != key) {
		cached->value = 0;
		cached->key = key;
	}
	return cached;
}

/* Interpreters are passed on as an argument: native frames have theirs in a register. */
static inline bool pl_is_passed(const struct walk *w, u64 interpreter)
{
	u64 differ = 1; /* no branches: the verifier would follow both ways of each */

	for (u32 i = 0; i < ARCH_NREGS; i++) {
		u64 more = w->reg[i] - interpreter, less = interpreter - w->reg[i];

		WALK_BARRIER(less);
		differ &= (more | less) >> 63 | (~w->valid >> i & 1);
	}
	return !differ;
}

/* Puts the address of this thread's interpreter into scratch[0]; without MULTIPLICITY 0, and offsets are addresses. */
WALK_GLOBAL int perl_interpreter(struct walk *w)
{
	const struct perl_vm *vm;
	struct walk_cache *cached;
	u64 block;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm)
		return STOP_ARENA;
	w->scratch[0] = 0;
	if (!vm->multiple)
		return STOP_NONE;
	if (!vm->via) { /* the process has just begun */
		if (!walk_read(w, w->scratch, sizeof(u64), vm->first))
			return STOP_VM_UNKNOWN;
		return w->scratch[0] && pl_is_passed(w, w->scratch[0]) ? STOP_NONE : STOP_VM_UNKNOWN;
	}
	if (!w->thread_pointer)
		return STOP_VM_UNKNOWN;
	if (walk_read(w, &block, sizeof(block), w->thread_pointer + vm->via) &&
	        (!block || walk_read(w, w->scratch, sizeof(u64), block + (u64)(s64)vm->slot)))
		return w->scratch[0] ? STOP_NONE : STOP_VM_ABSENT;
	cached = pl_known_interpreter(w, vm);
	w->scratch[0] = cached ? cached->value : 0;
	return w->scratch[0] && pl_is_passed(w, w->scratch[0]) ? STOP_NONE : STOP_VM_ABSENT;
}

/*
 * A number that changes when code is compiled: each block that was compiled raises PL_cop_seqmax at its end
 * (pad_leavemy(), pad.c of 5.16 to 5.42), so before any of its statements can run. 0: not known. A later interpreter
 * begins with the number of the one that it is a clone of, which is no proof where it is at a former one's address.
 */
static inline u64 pl_generation(struct walk *w, const struct perl_vm *vm, u64 interpreter)
{
	u32 seq;

	if (!vm->cop_seqmax || interpreter != vm->interpreter ||
	        !walk_read(w, &seq, sizeof(seq), interpreter + vm->cop_seqmax))
		return 0;
	return 1 + (u64)seq;
}

/* Starts on the contexts of this thread, if that was not done yet. */
WALK_GLOBAL int perl_open(struct walk *w)
{
	const struct perl_vm *vm;
	struct walk_cache *cached;
	struct walk_cursor *c;
	u64 si, op, interpreter;
	int stop;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	c = vm ? pl_cursor(w, vm) : NULL;
	if (!c)
		return STOP_ARENA;
	if (c->at)
		return STOP_NONE;
	c->at = PL_END;
	stop = perl_interpreter(w);
	if (stop)
		return stop;
	interpreter = w->scratch[0];
	cached = vm->multiple && vm->via ? pl_known_interpreter(w, vm) : NULL;
	if (cached && cached->value != interpreter)
		cached->value = interpreter;
	if (!walk_read(w, &op, sizeof(op), interpreter + vm->op))
		return STOP_VM_ABSENT;
	if (vm->curstackinfo - vm->curcop == 2 * sizeof(u64)) { /* as in all builds with MULTIPLICITY */
		if (!walk_read(w, w->scratch, 3 * sizeof(u64), interpreter + vm->curcop))
			return STOP_VM_ABSENT;
		c->more[1] = w->scratch[0];
		si = w->scratch[2];
	} else if (!walk_read(w, &si, sizeof(si), interpreter + vm->curstackinfo) ||
	           !walk_read(w, &c->more[1], sizeof(c->more[1]), interpreter + vm->curcop)) {
		return STOP_VM_ABSENT;
	}
	pl_set_op(c, op, true);
	if (c->more[1] - (interpreter + vm->compiling) < vm->compiling_size)
		perl_set_line(w, vm, c);
	c->more[5] = pl_generation(w, vm, interpreter);
	return perl_stack_open(w, si);
}

/* Is context number `i` in the window? Then *ret is its first word. */
static inline bool pl_in_window(const struct walk *w, const struct perl_vm *vm, u64 at, u64 *ret)
{
	u64 offset = at - w->vm.start;

	if (offset >= WALK_WINDOW || offset + vm->cx_size > w->vm.len)
		return false;
	*ret = offset / 8;
	return true;
}

/* Fills the window so that it ends with the innermost context that is left. If that fails with this context alone. */
WALK_GLOBAL int perl_window(struct walk *w, const struct perl_vm *vm, const struct walk_cursor *c)
{
	u64 end, size;

	WALK_CHECK(w);
	WALK_CHECK(vm);
	WALK_CHECK(c);
	size = pl_left(c) * vm->cx_size;
	end = c->more[0] + size;
	if (size > PL_WINDOW)
		size = PL_WINDOW;
	size &= 2 * PL_WINDOW - 8;
	w->vm.len = 0;
	w->vm.start = end - size;
	if (!walk_fill(w, w->vm.word, (u32)size, w->vm.start)) {
		size = vm->cx_size & (PERL_CX_BYTES_MAX * 2 - 8);
		w->vm.start = end - size;
		if (!walk_fill(w, w->vm.word, (u32)size, w->vm.start))
			return false;
	}
	w->vm.len = size;
	return true;
}

static inline u64 pl_word(const struct walk *w, u64 i, u32 offset)
{
	return w->vm.word[(i + (offset >> 3)) & (WALK_WINDOW_WORDS - 1)];
}

/* Reads the innermost context that is left; its first word of the window, or -1: unreadable. */
static inline int pl_context(struct walk *w, const struct perl_vm *vm, const struct walk_cursor *c)
{
	u64 at = c->more[0] + (pl_left(c) - 1) * vm->cx_size, i;

	if (pl_in_window(w, vm, at, &i))
		return (int)i;
	return perl_window(w, vm, c) && pl_in_window(w, vm, at, &i) ? (int)i : -1;
}

/*
 * The identity of a frame of a CV: address:48 | cookie:5 | kind:4. For a sub that calls itself it is that of the frame
 * before.
 *
 * What identifies a CV is in its body. The CV says where the body is, or the last walk that saw this CV at this
 * statement has stored it. The stored address is valid if the body still has the same code, because another CV would
 * not run a statement of this code. It must be a statement that the sub itself ran, so this does not work for the
 * innermost frame: the first statement of a sub that was just entered is its caller's.
 *
 * If no code was compiled since (pl_generation()), no other code has this statement, and the identity that was found
 * holds. What else changes it, a new name, is noticed by the eighth walk. A renamed closure may change with each call.
 */
#define PL_WHO_COOKIE   48
#define PL_WHO_USES     53 /* of a stored identity: how often it may still be used */
#define PL_WHO_CHECK    56 /* 4 bits, which say that it belongs to its key */
#define PL_WHO_KIND     60
#define PL_WHO_ONE_USE  (1ull << PL_WHO_USES)
#define PL_WHO          (~(127ull << PL_WHO_USES))
#define PL_CACHE_TAG    19 /* bits of a cached's value; the others: the body's address / 8 */
#define PL_CACHE_BODIES (1ull << (64 - PL_CACHE_TAG + 3))

static inline u64 pl_cache_value(u64 key, u64 body, const u64 *words)
{
	u64 tag = walk_mix(walk_mix(walk_mix(walk_mix(key, body), words[0]), words[1]), words[2]);

	return body >> 3 << PL_CACHE_TAG | (tag & ((1ull << PL_CACHE_TAG) - 1));
}

static inline bool pl_read_body(struct walk *w, const struct perl_vm *vm, u64 body)
{
	return walk_read(w, w->scratch, 8 * PERL_CV_WORDS, body + vm->cv_words);
}

/* Puts the words of a CV's body into scratch; the body's address, or 0: unreadable. */
static inline u64 pl_find_body(struct walk *w, const struct perl_vm *vm, u64 cv, u64 key)
{
	struct walk_cache *cached = key ? walk_cache(w, (u32)(key >> 32)) : NULL;
	u64 body;

	if (cached && cached->key == key) {
		body = cached->value >> PL_CACHE_TAG << 3;
		if (pl_read_body(w, vm, body) && cached->value == pl_cache_value(key, body, w->scratch))
			return body;
	}
	if (!walk_read(w, &body, sizeof(body), cv + vm->sv_any) || !pl_read_body(w, vm, body))
		return 0;
	if (cached && !(body & 7) && body < PL_CACHE_BODIES) {
		cached->key = key;
		cached->value = pl_cache_value(key, body, w->scratch);
	}
	return body;
}

static inline u64 pl_who(const struct perl_vm *vm, u64 cv, u64 body, const u64 *words, bool sub)
{
	u32 flags = (u32)(words[(vm->cv_flags >> 3) & 7] >> (vm->cv_flags & 4) * 8);
	u32 kind = sub ? perl_kind_of_cv(flags) : PERL_KIND_SUB;
	bool closure = kind == PERL_KIND_CLOSURE;

	return ((closure ? words[0] : cv) & FRAME_ADDR_MASK) |
	       (u64)perl_cookie(closure ? 0 : body, words, kind) << PL_WHO_COOKIE | (u64)kind << PL_WHO_KIND;
}

static inline u64 pl_who_check(u64 key, u64 who)
{
	return walk_mix(key, who) >> 60 << PL_WHO_CHECK;
}

/* Who this is, as a walk of this generation found; 0: not known. key: of a CV at a statement, and the generation */
static inline u64 pl_known_who(struct walk_cache *known, u64 key)
{
	u64 value = known->value;

	if (known->key != key || !(value & 7 * PL_WHO_ONE_USE) ||
	        (value & 15ull << PL_WHO_CHECK) != pl_who_check(key, value & PL_WHO))
		return 0;
	known->value = value - PL_WHO_ONE_USE;
	return value & PL_WHO;
}

/*
 * Can it be a CV? This is asked if its body cannot be read. After fork() its head often cannot be read either; then
 * naming decides.
 */
static inline bool pl_may_be_sub(struct walk *w, const struct perl_vm *vm, u64 cv)
{
	u64 body;
	u32 flags;

	if (!walk_read(w, &body, sizeof(body), cv + vm->sv_any))
		return !(cv & 7) && cv <= FRAME_ADDR_MASK;
	return body && !(body & 7) && walk_read(w, &flags, sizeof(flags), cv + vm->sv_flags) &&
	       (flags & PERL_SV_TYPE) == PERL_SV_CV;
}

/* Who a CV is; 0: it could not be read. cop: a statement that it ran, 0 if that is not certain */
static inline u64 pl_find_who(
        struct walk *w, const struct perl_vm *vm, const struct walk_cursor *c, u64 cv, u64 cop, bool sub)
{
	u64 key = cop ? walk_mix(walk_mix(vm->attachment, cv), cop) : 0, key_now = walk_mix(key, c->more[5]), body, who;
	struct walk_cache *known = cop && c->more[5] ? walk_cache(w, (u32)(key >> 32) ^ 1) : NULL;

	who = known ? pl_known_who(known, key_now) : 0;
	if (who)
		return who;
	body = pl_find_body(w, vm, cv, key);
	if (!body)
		return 0;
	who = pl_who(vm, cv, body, w->scratch, sub);
	if (known && who >> PL_WHO_KIND != PERL_KIND_RENAMED) {
		known->key = key_now;
		known->value = who | 7 * PL_WHO_ONE_USE | pl_who_check(key_now, who);
	}
	return who;
}

/* Pushes a frame of a CV. detail: perl_detail() without a cookie. */
WALK_GLOBAL int perl_push_cv(struct walk *w, const struct perl_vm *vm, struct walk_cursor *c, u64 cv, u64 detail)
{
	bool sub = perl_kind(detail) == PERL_KIND_SUB;
	u64 who;
	u32 op;

	WALK_CHECK(w);
	WALK_CHECK(vm);
	WALK_CHECK(c);
	op = perl_kind(detail) == PERL_KIND_XS ? 0 : pl_spot(c);
	who = c->more[4];
	if (!sub || c->more[3] != cv) {
		who = pl_find_who(w, vm, c, cv, sub && c->more[2] & PL_CALLER ? perl_cop(detail) : 0, sub);
		if (!who && (!sub || !pl_may_be_sub(w, vm, cv)))
			return STOP_VM_ABSENT;
		if (!who)
			who = (cv & FRAME_ADDR_MASK) | (u64)PERL_KIND_UNREAD << PL_WHO_KIND;
	}
	if (sub) {
		c->more[3] = cv;
		c->more[4] = who;
		detail += (who >> PL_WHO_KIND) << PERL_KIND_SHIFT;
	}
	if (!sub || !(op & PERL_LINE))
		detail |= who >> PL_WHO_COOKIE << PERL_COOKIE_SHIFT;
	return walk_push(w, perl_where(who, op), detail) ? STOP_NONE : STOP_DEPTH;
}
#endif
