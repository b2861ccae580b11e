/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* From the coroutine of the running task to those of the tasks that await it, which 3.14 and later record. */
#include "python_frames.h"

#define PY_TASKS_MAX  16
#define PY_AWAITS_MAX 32 /* coroutines of one task */
#define PY_SET_MAX    32 /* entries of a set that are looked at: one of one element has 8 */
/* Words of the window from here on: a code object and a position for each of these. */
#define PY_CHAIN (PY_ALONE + 32)
_Static_assert(PY_CHAIN + 2 * PY_AWAITS_MAX <= WALK_WINDOW_WORDS, "they are in the window");

enum { PY_NOBODY, PY_ONE, PY_SEVERAL, PY_UNREADABLE };

/* Notes a coroutine as number n of its task's, and puts what it awaits into scratch[0]; 0: nothing. PY_NOBODY: it is
 * none. */
WALK_GLOBAL int python_coroutine(struct walk *w, u64 coro, u32 n)
{
	const struct python_vm *vm;
	const struct python_awaits *a;
	u64 i = PY_CHAIN + 2 * (u64)n;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm || !walk_read(w, &w->vm.word[PY_ALONE], PYTHON_CORO_BYTES, coro))
		return PY_UNREADABLE;
	a = &vm->awaits;
	if (py_frame_word(w, PY_ALONE, vm->ob_type) != a->coro_type)
		return PY_NOBODY;
	w->vm.word[i & (WALK_WINDOW_WORDS - 1)] = py_frame_word(w, PY_ALONE, a->gen_frame + vm->f_code) & ~7ull;
	w->vm.word[(i + 1) & (WALK_WINDOW_WORDS - 1)] = py_frame_word(w, PY_ALONE, a->gen_frame + vm->f_instr);
	w->scratch[0] = 0;
	if (py_frame_byte(w, PY_ALONE, a->gen_state) != a->awaiting)
		return PY_ONE;
	if (!walk_read(
	            w, w->scratch, 8, py_frame_word(w, PY_ALONE, a->gen_frame + a->f_stackpointer) - a->awaited_below))
		return PY_UNREADABLE;
	w->scratch[0] &= ~7ull;
	return PY_ONE;
}

/* Pushes number n of them. */
WALK_GLOBAL int python_push_coroutine(struct walk *w, u32 n)
{
	const struct python_vm *vm;
	struct walk_cursor *c;
	u64 i = PY_CHAIN + 2 * (u64)n, code, instr;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	c = vm ? py_cursor(w, vm) : NULL;
	if (!c)
		return STOP_ARENA;
	code = w->vm.word[i & (WALK_WINDOW_WORDS - 1)];
	instr = w->vm.word[(i + 1) & (WALK_WINDOW_WORDS - 1)];
	return py_push(w, vm, c, code, (instr - code - vm->bytecode) / 2);
}

/* The coroutines of a task, which lead from the outermost to the innermost, are pushed the other way round. */
WALK_GLOBAL int python_coroutines(struct walk *w, u64 coro)
{
	int found = PY_ONE, stop = STOP_NONE;
	u32 n, i;

	WALK_CHECK(w);
	for (n = 0; n < PY_AWAITS_MAX && coro; n++) {
		found = python_coroutine(w, coro, n);
		if (found != PY_ONE)
			break;
		coro = w->scratch[0];
	}
	n = walk_launder(w, n);
	found = walk_launder(w, found);
	for (i = 0; i < PY_AWAITS_MAX && n && !stop; i++)
		stop = python_push_coroutine(w, --n);
	return !stop && found == PY_UNREADABLE ? STOP_VM_ABSENT : stop;
}

/* Is this entry of a set in use? Then its element is in scratch[0]. */
WALK_GLOBAL int python_entry(struct walk *w, u64 at)
{
	u64 *entry;

	WALK_CHECK(w);
	entry = w->scratch;
	if (!walk_read(w, entry, 16, at))
		return PY_UNREADABLE;
	return entry[0] && entry[1] != ~0ull ? PY_ONE : PY_NOBODY;
}

/* The element of a set that has just one, to scratch[0]. An entry: the element, its hash, which is -1 where one was
 * taken out. */
WALK_GLOBAL int python_only_one(struct walk *w, u64 set)
{
	const struct python_vm *vm;
	u64 used, mask, table;
	int found = PY_NOBODY;
	u32 i;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm || !walk_read(w, &used, sizeof(used), set + vm->awaits.set_used) ||
	        !walk_read(w, &mask, sizeof(mask), set + vm->awaits.set_mask) ||
	        !walk_read(w, &table, sizeof(table), set + vm->awaits.set_table))
		return PY_UNREADABLE;
	if (used != 1)
		return used ? PY_SEVERAL : PY_NOBODY;
	for (i = 0; i < PY_SET_MAX && i <= mask && found == PY_NOBODY; i++)
		found = python_entry(w, table + 16 * (u64)i);
	return found == PY_NOBODY ? PY_UNREADABLE : found;
}

/* Which task or future awaits this one? It goes to scratch[0]. */
WALK_GLOBAL int python_awaiter(struct walk *w, u64 task)
{
	const struct python_vm *vm;
	u8 is_set;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm || !walk_read(w, w->scratch, 8, task + vm->awaits.task_awaited_by) ||
	        !walk_read(w, &is_set, sizeof(is_set), task + vm->awaits.task_awaited_by_is_set))
		return PY_UNREADABLE;
	if (!w->scratch[0])
		return PY_NOBODY;
	return is_set ? python_only_one(w, w->scratch[0]) : PY_ONE;
}

/* The coroutines of a task; of a future there are none. */
WALK_GLOBAL int python_task(struct walk *w, const struct python_vm *vm, u64 task)
{
	u8 is_task;
	u64 coro;

	WALK_CHECK(w);
	WALK_CHECK(vm);
	if (!walk_read(w, &is_task, sizeof(is_task), task + vm->awaits.task_is_task) ||
	        !walk_read(w, &coro, sizeof(coro), task + vm->awaits.task_coro))
		return STOP_VM_ABSENT;
	return is_task ? python_coroutines(w, coro) : STOP_NONE;
}

/* The tasks that await `task`, one after the other. */
static inline __attribute__((always_inline)) int py_tasks(struct walk *w, const struct python_vm *vm, u64 task)
{
	int found = PY_ONE, stop = STOP_NONE;
	u32 i;

	for (i = 0; i < PY_TASKS_MAX && !stop; i++) {
		found = python_awaiter(w, task);
		if (found != PY_ONE)
			break;
		task = w->scratch[0];
		stop = python_task(w, vm, task);
	}
	if (found == PY_SEVERAL && !walk_push(w, frame_where(FRAME_SCRIPT, RUNTIME_PYTHON, 0, PYTHON_SEVERAL_TASKS), 0))
		return STOP_DEPTH;
	return found == PY_UNREADABLE ? STOP_VM_ABSENT : stop ? stop : i == PY_TASKS_MAX ? STOP_VM_BROKEN : STOP_NONE;
}

WALK_STEP int python_awaiters(struct walk *w)
{
	const struct python_vm *vm;
	struct walk_cursor *c;
	u64 task, coro;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm || !vm->awaits.ts_task)
		return STOP_NONE;
	c = py_cursor(w, vm);
	if (!c || !walk_read(w, &task, sizeof(task), c->more[1] + vm->awaits.ts_task))
		return STOP_VM_ABSENT;
	if (!task)
		return STOP_NONE;
	if (!walk_read(w, &coro, sizeof(coro), task + vm->awaits.task_coro))
		return STOP_VM_ABSENT;
	if (coro + vm->awaits.gen_frame != c->more[2])
		return STOP_NONE;
	if (w->vm.len > PY_WINDOW)
		w->vm.len = 0;
	return py_tasks(w, vm, task);
}
