/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Python made of fake memory: native frames of C and of the eval loop on the stack of native_fake.h, interpreter
 * frames, code objects and strings above it. Offsets are those of CPython 3.9, 3.11, 3.12 or 3.13.
 */
#ifndef YRT_PYTHON_FAKE_H
#define YRT_PYTHON_FAKE_H

#include "native_fake.h"
#include "runtimes/python/python.h"
#include "runtimes/python/python_names.h"

#define PYTHON_STACK_BYTES (8 * FAKE_PAGE)
#define PYTHON_HEAP        (FAKE_STACK + PYTHON_STACK_BYTES)
#define PYTHON_C_BYTES     32
#define PYTHON_EVAL_BYTES  256
#define PYTHON_TYPE        (PYTHON_HEAP + 8)
#define PYTHON_FRAME_TYPE  (PYTHON_HEAP + 16)
#define PYTHON_CORO_TYPE   (PYTHON_HEAP + 24)
#define PYTHON_POINTER     (PYTHON_HEAP + 64) /* thread pointer */
#define PYTHON_SLOT        24
#define PYTHON_STATE       (PYTHON_HEAP + 128)
#define PYTHON_HEAP_FIRST  (PYTHON_HEAP + 512)

struct python_fake {
	struct fake *f;
	struct python_vm vm;
	struct python_layout layout;
	u64 root, c, eval, enter, link, jit, greenlet; /* functions */
	u64 heap, sp, pc, current;
};

static inline struct layout_member python_fake_member(u16 at, u16 size)
{
	return (struct layout_member){at, size};
}

static inline struct python_layout python_fake_layout_39(void)
{
	return (struct python_layout){.ts_frame_object = {24, 8},
	        .fo_back = {24, 8},
	        .fo_code = {32, 8},
	        .fo_lasti = {104, 4},
	        .fo_gen = {96, 8},
	        .gen_outer = {88, 8},
	        .co_firstlineno = {40, 4},
	        .co_bytes = {48, 8},
	        .co_consts = {56, 8},
	        .co_names = {64, 8},
	        .co_filename = {104, 8},
	        .co_name = {112, 8},
	        .co_lnotab = {120, 8},
	        .ob_type = {8, 8},
	        .ob_size = {16, 8},
	        .bytes_data = {32, 1},
	        .str_length = {16, 8},
	        .str_state = {32, 4},
	        .str_ascii = {48, 48},
	        .str_compact = {72, 72}};
}

static inline struct python_layout python_fake_layout(enum python_linkage linkage)
{
	struct python_layout l = {.f_previous = {48, 8},
	        .f_owner = {69, 1},
	        .co_firstlineno = {72, 4},
	        .co_filename = {112, 8},
	        .co_consts = {24, 8},
	        .co_names = {32, 8},
	        .co_name = {120, 8},
	        .co_qualname = {128, 8},
	        .co_linetable = {136, 8},
	        .co_code = {184, 1},
	        .ob_type = {8, 8},
	        .ob_size = {16, 8},
	        .bytes_data = {32, 1},
	        .str_length = {16, 8},
	        .str_state = {32, 4},
	        .str_ascii = {48, 48},
	        .str_compact = {72, 72}};

	if (linkage == PYTHON_FRAME_OBJECT)
		return python_fake_layout_39();
	if (linkage == PYTHON_ENTRY_FLAG) {
		l.f_code = python_fake_member(32, 8);
		l.f_prev_instr = python_fake_member(56, 8);
		l.f_is_entry = python_fake_member(68, 1);
		l.gen_outer = python_fake_member(56, 8);
		l.gen_frame = python_fake_member(80, 8);
	} else {
		l.f_executable = python_fake_member(0, 8);
		l.f_previous = python_fake_member(8, 8);
		l.f_instr_ptr = python_fake_member(56, 8);
		l.f_owner = python_fake_member(70, 1);
	}
	if (linkage == PYTHON_NO_CFRAME)
		l.ts_current_frame = python_fake_member(72, 8);
	else
		l.ts_cframe = python_fake_member(56, 8);
	l.cf_frame = python_fake_member(8, 8);
	return l;
}

static inline u64 python_fake_function(
        struct python_fake *p, const struct cfi_rule *rule, enum python_part part, u32 config)
{
	u64 start = fake_function(p->f, rule);
	struct region *r = &p->f->region[p->f->nregions - 1];

	r->runtime = RUNTIME_PYTHON;
	r->part = (u8)part;
	r->vm = config;
	return start;
}

static inline void python_fake_put(struct python_fake *p, u64 addr, const void *bytes, size_t size)
{
	memcpy(p->f->stack + (addr - FAKE_STACK), bytes, size);
}

static inline u64 python_fake_alloc(struct python_fake *p, u64 size)
{
	u64 at = p->heap;

	p->heap += (size + 15) & ~15ull;
	if (p->heap > FAKE_STACK + FAKE_BYTES)
		abort();
	return at;
}

static inline struct python_fake *python_fake_create(enum python_linkage linkage)
{
	struct cfi_rule root = fake_rule(CFI_ROOT, DWREG_RSP, 8), c = fake_rule(CFI_REG, DWREG_RSP, PYTHON_C_BYTES),
	                eval = fake_rule(CFI_REG, DWREG_RSP, PYTHON_EVAL_BYTES);
	struct python_fake *p = calloc(1, sizeof(*p));
	u32 config;

	if (!p)
		abort();
	p->f = fake_create();
	p->layout = python_fake_layout(linkage);
	p->vm = python_vm_of(&p->layout);
	p->vm.code_type = PYTHON_TYPE;
	p->vm.frame_type = PYTHON_FRAME_TYPE;
	p->vm.slot = PYTHON_SLOT;
	p->vm.cframe_below = 64;
	p->vm.entry_below = 160;
	if (arena_alloc(p->f->arena, sizeof(p->vm), &config))
		abort();
	memcpy(arena_at(p->f->arena, config, sizeof(p->vm)), &p->vm, sizeof(p->vm));
	p->root = fake_function(p->f, &root);
	p->c = fake_function(p->f, &c);
	p->eval = python_fake_function(p, &eval, PYTHON_EVAL, config);
	p->enter = python_fake_function(p, &eval, PYTHON_ENTER, config);
	p->link = python_fake_function(p, &eval, PYTHON_LINK, config);
	p->jit = python_fake_function(p, &c, PYTHON_JIT, config);
	p->greenlet = python_fake_function(p, &c, PYTHON_GREENLET, config);
	p->heap = PYTHON_HEAP_FIRST;
	p->sp = PYTHON_HEAP - 64;
	p->pc = p->root + FAKE_RETURN;
	fake_put(p->f, PYTHON_POINTER + PYTHON_SLOT, PYTHON_STATE);
	return p;
}

static inline void python_fake_destroy(struct python_fake *p)
{
	fake_destroy(p->f);
	free(p);
}

/* A str: kind bytes a character. */
static inline u64 python_fake_str(struct python_fake *p, u32 kind, bool ascii, const void *chars, u32 n)
{
	u32 state = kind << 2 | 1u << 5 | (u32)ascii << 6;
	u64 at = python_fake_alloc(p, 72 + (u64)n * kind);

	fake_put(p->f, at + p->layout.str_length.at, n);
	python_fake_put(p, at + p->layout.str_state.at, &state, sizeof(state));
	python_fake_put(p, at + (ascii ? p->layout.str_ascii.at : p->layout.str_compact.at), chars, (size_t)n * kind);
	return at;
}

static inline u64 python_fake_ascii(struct python_fake *p, const char *text)
{
	return python_fake_str(p, 1, true, text, (u32)strlen(text));
}

static inline u64 python_fake_bytes(struct python_fake *p, const void *bytes, u32 n)
{
	u64 at = python_fake_alloc(p, 32 + n);

	fake_put(p->f, at + p->layout.ob_size.at, n);
	python_fake_put(p, at + p->layout.bytes_data.at, bytes, n);
	return at;
}

/* A code object of 8 units, one line each. */
static inline u64 python_fake_code_of(struct python_fake *p, const char *file, const char *name, u32 firstlineno)
{
	static const u8 table[] = {0xd8, 0, 0, 0xd8, 1, 0, 0xe0, 0, 0, 0xe0, 0, 0, 0xe8, 2, 0xf0, 1, 0, 0, 0};
	const struct python_layout *l = &p->layout;
	u64 at = python_fake_alloc(p, 256);

	fake_put(p->f, at, 1); /* reference */
	fake_put(p->f, at + 8, PYTHON_TYPE);
	fake_put(p->f, at + p->vm.co_code, 8);
	python_fake_put(p, at + p->layout.co_firstlineno.at, &firstlineno, sizeof(firstlineno));
	fake_put(p->f, at + p->layout.co_filename.at, python_fake_ascii(p, file));
	fake_put(p->f, at + p->vm.co_name, python_fake_ascii(p, name));
	fake_put(p->f, at + (l->co_lnotab.size ? l->co_lnotab.at : l->co_linetable.at),
	        python_fake_bytes(p, table, sizeof(table)));
	return at;
}

static inline u64 python_fake_code(struct python_fake *p, const char *name, u32 firstlineno)
{
	return python_fake_code_of(p, "fake.py", name, firstlineno);
}

/* A native frame of size bytes calls the next one; returns its CFA. */
static inline u64 python_fake_call(struct python_fake *p, u64 function, u32 size)
{
	u64 cfa = p->sp;

	p->sp -= size;
	fake_put(p->f, cfa - 8, p->pc);
	p->pc = function + FAKE_RETURN;
	return cfa;
}

/* Makes an interpreter frame at `at`, and the current one. */
static inline u64 python_fake_link(struct python_fake *p, u64 at, u64 code, u64 pos, u8 entry)
{
	fake_put(p->f, at + p->vm.f_code, code);
	fake_put(p->f, at + p->vm.f_previous, p->current);
	fake_put(p->f, at + p->vm.f_instr, code + p->vm.bytecode + 2 * pos);
	python_fake_put(p, at + p->vm.f_entry, &entry, 1);
	p->current = at;
	return at;
}

/* An interpreter frame above the current one. */
static inline u64 python_fake_frame(struct python_fake *p, u64 code, u64 pos, u8 entry)
{
	return python_fake_link(p, python_fake_alloc(p, 96), code, pos, entry);
}

/* That frame is a generator's. */
static inline void python_fake_generator(struct python_fake *p, u64 at)
{
	python_fake_put(p, at + p->vm.f_entry + (p->vm.linkage == PYTHON_ENTRY_FLAG), &(u8){1}, 1);
}

/* What asyncio of 3.14 says of itself. */
static inline void python_fake_awaits(struct python_fake *p, u32 config)
{
	p->vm.awaits = (struct python_awaits){.coro_type = PYTHON_CORO_TYPE,
	        .ts_task = 80,
	        .task_awaited_by = 96,
	        .task_is_task = 108,
	        .task_awaited_by_is_set = 109,
	        .task_coro = 136,
	        .gen_frame = 72,
	        .gen_state = 67,
	        .f_stackpointer = 80,
	        .set_used = 24,
	        .set_table = 40,
	        .set_mask = 32,
	        .awaiting = 0xff,
	        .awaited_below = 8};
	((struct python_vm *)arena_at(p->f->arena, config, sizeof(p->vm)))->awaits = p->vm.awaits;
}

/* A coroutine that awaits another one; 0: none. */
static inline u64 python_fake_coroutine(struct python_fake *p, u64 code, u64 awaited)
{
	const struct python_awaits *a = &p->vm.awaits;
	u64 at = python_fake_alloc(p, 192), current = p->current;

	fake_put(p->f, at + p->vm.ob_type, PYTHON_CORO_TYPE);
	python_fake_link(p, at + a->gen_frame, code, 2, 1);
	p->current = current;
	fake_put(p->f, at + a->gen_frame + a->f_stackpointer, at + 176);
	fake_put(p->f, at + 176 - a->awaited_below, awaited);
	python_fake_put(p, at + a->gen_state, &a->awaiting, 1);
	return at;
}

/* A task that another one awaits, or those of a set. */
static inline u64 python_fake_task(struct python_fake *p, u64 coro, u64 awaiter, u8 is_set)
{
	const struct python_awaits *a = &p->vm.awaits;
	u64 at = python_fake_alloc(p, 160);

	fake_put(p->f, at + a->task_coro, coro);
	fake_put(p->f, at + a->task_awaited_by, awaiter);
	python_fake_put(p, at + a->task_awaited_by_is_set, &is_set, 1);
	python_fake_put(p, at + a->task_is_task, &(u8){1}, 1);
	return at;
}

/* A set whose table has this element at number i of 8, behind one that was taken out. */
static inline u64 python_fake_set(struct python_fake *p, u64 element, u32 i, u64 used)
{
	const struct python_awaits *a = &p->vm.awaits;
	u64 at = python_fake_alloc(p, 64), table = python_fake_alloc(p, 128);

	fake_put(p->f, at + a->set_used, used);
	fake_put(p->f, at + a->set_mask, 7);
	fake_put(p->f, at + a->set_table, table);
	fake_put(p->f, table, PYTHON_TYPE);
	fake_put(p->f, table + 8, ~0ull);
	fake_put(p->f, table + 16 * i, element);
	fake_put(p->f, table + 16 * i + 8, element >> 4);
	return at;
}

/* The native frame of the eval loop that was called last runs a coroutine in place of its frame. */
static inline void python_fake_runs(struct python_fake *p, u64 coro, u64 code, u64 task)
{
	u64 at = coro + p->vm.awaits.gen_frame, previous;

	memcpy(&previous, fake_at(p->f, p->current + p->vm.f_previous, 8), 8);
	p->current = previous;
	python_fake_link(p, at, code, 2, 1);
	fake_put(p->f, PYTHON_STATE + p->vm.ts_frame, at);
	fake_put(p->f, PYTHON_STATE + p->vm.awaits.ts_task, task);
}

/* A native frame of the eval loop that runs n frames of these code objects, the outermost first. */
static inline void python_fake_eval(struct python_fake *p, const u64 *codes, u32 n)
{
	u64 cfa = python_fake_call(p, p->eval, PYTHON_EVAL_BYTES), entry = cfa - p->vm.entry_below;
	u8 owner = PYTHON_OWNER_NONE;
	bool flag = p->vm.linkage == PYTHON_ENTRY_FLAG;

	if (!flag) {
		fake_put(p->f, entry + p->vm.f_previous, p->current);
		python_fake_put(p, entry + p->vm.f_entry, &owner, 1);
		p->current = entry;
	}
	for (u32 i = 0; i < n; i++)
		python_fake_frame(p, codes[i], 2 + i, flag && !i);
	fake_put(p->f, cfa - p->vm.cframe_below + p->vm.cf_frame, p->current);
	if (p->vm.linkage == PYTHON_NO_CFRAME)
		fake_put(p->f, PYTHON_STATE + p->vm.ts_frame, p->current);
}

/* A frame object that no native frame runs (up to 3.10). */
static inline u64 python_fake_object_only(struct python_fake *p, u64 code, u32 lasti)
{
	u64 at = python_fake_alloc(p, 144);

	fake_put(p->f, at + p->vm.ob_type, PYTHON_FRAME_TYPE);
	fake_put(p->f, at + p->vm.f_code, code);
	fake_put(p->f, at + p->vm.f_previous, p->current);
	python_fake_put(p, at + p->vm.f_instr, &lasti, sizeof(lasti));
	fake_put(p->f, PYTHON_STATE + p->vm.ts_frame, at);
	p->current = at;
	return at;
}

/* A native frame of the eval loop that runs one. */
static inline u64 python_fake_object(struct python_fake *p, u64 code, u32 lasti)
{
	python_fake_call(p, p->eval, PYTHON_EVAL_BYTES);
	return python_fake_object_only(p, code, lasti);
}

/* That frame object is a generator's; outer: what it interrupted handling, 0 while it is not run. */
static inline void python_fake_object_generator(struct python_fake *p, u64 at, u64 outer)
{
	u64 gen = python_fake_alloc(p, PYTHON_CORO_BYTES);

	fake_put(p->f, at + p->vm.f_gen, gen);
	fake_put(p->f, gen + p->vm.gen_outer, outer);
}

/* Walks from the native frame that was called last. */
static inline int python_fake_walk(struct python_fake *p)
{
	u64 reg[ARCH_NREGS] = {0};
	int stop = STOP_NONE;

	reg[REG_PC] = p->pc;
	reg[REG_SP] = p->sp;
	fake_start(p->f, reg);
	p->f->walk.thread_pointer = PYTHON_POINTER;
	for (u32 i = 0; i < walk_steps_max(&p->f->walk) && stop == STOP_NONE; i++)
		stop = walk_step(&p->f->walk);
	return (int)walk_end(&p->f->walk, (u32)stop);
}

#endif
