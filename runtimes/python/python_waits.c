/* SPDX-License-Identifier: Apache-2.0 */
#include "python_waits.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime.h"

#define GIL_CONDITION 32 /* in struct _gil_runtime_state, behind interval, last_holder, locked, switch_number */
#define GIL_END       120
#define STACK_BYTES   4096
#define WORDS         (STACK_BYTES / 8)
#define OBJECT_BYTES  64
#define PARKED        3 /* _Py_LOCKED | _Py_HAS_PARKED */
#define LEVELS_MAX    (1u << 20)

struct rlock {
	u64 lock, owner, level;
};

static bool waits_for_gil(const struct python_image *image, u64 gil, const struct runtime_process *p,
        const struct runtime_thread *t, struct runtime_wait *ret)
{
	u64 holder;
	s32 locked;

	if (!gil || t->futex < gil + GIL_CONDITION || t->futex >= gil + GIL_END ||
	        !memory_read(p->memory, &holder, 8, gil + PYTHON_GIL_HOLDER) ||
	        !memory_read(p->memory, &locked, 4, gil + PYTHON_GIL_HOLDER + 8))
		return false;
	*ret = (struct runtime_wait){.kind = LOCK_VM, .at = gil, .type = "GIL"};
	if (locked != 1 || !memory_read(p->memory, &ret->holder_pointer, 8, holder + image->layout->ts_thread_id.at))
		ret->holder_pointer = 0;
	return true;
}

/* Each of its interpreters may have one of its own (3.12). */
static bool waits_for_a_gil(const struct python_image *image, u64 bias, const struct runtime_process *p,
        const struct runtime_thread *t, struct runtime_wait *ret)
{
	const struct python_layout *l = image->layout;
	u64 runtime = bias + image->runtime, interp, gil;

	if (!l->interp_gil.size)
		return l->runtime_gil.size && waits_for_gil(image, runtime + l->runtime_gil.at, p, t, ret);
	if (!memory_read(p->memory, &interp, 8, runtime + l->runtime_interpreters.at))
		return false;
	for (u32 i = 0; interp && i < PYTHON_GILS_MAX; i++) {
		if (memory_read(p->memory, &gil, 8, interp + l->interp_gil.at) && waits_for_gil(image, gil, p, t, ret))
			return true;
		if (!memory_read(p->memory, &interp, 8, interp + l->interp_next.at))
			break;
	}
	return false;
}

/* Words of the stack that may be pointers to objects; the same one once. */
static u32 candidates(const struct runtime_process *p, const u64 *words, u32 n, u64 *ret)
{
	u64 last = 0;
	u32 found = 0;

	for (u32 i = 0; i < n; i++) {
		const struct mapping *m =
		        words[i] & 7 || words[i] == last ? NULL : mapping_find(p->mappings, p->nmappings, words[i]);

		if (m && m->prot & PROT_WRITE && m->end - words[i] >= OBJECT_BYTES)
			ret[found++] = last = words[i];
	}
	return found;
}

static bool is_rlock_type(const struct python_layout *l, struct memory *m, u64 type, u64 *known)
{
	char name[16];
	u64 text;

	if (type && type == *known)
		return true;
	if (!type || type & 7 || !memory_read(m, &text, 8, type + l->ob_size.at + 8) ||
	        !memory_string(m, name, sizeof(name), text) || strcmp(name, "_thread.RLock"))
		return false;
	*known = type;
	return true;
}

static bool is_waited_for(const struct rlock *r, const struct runtime_thread *t)
{
	bool parked = t->futex >= t->sp && t->futex < t->sp + STACK_BYTES;

	if (r->lock == t->futex)
		return true;
	return parked && (r->lock & PARKED) == PARKED && r->owner && r->owner != t->pointer && r->level < LEVELS_MAX;
}

static bool waits_for_rlock(const struct python_image *image, u64 *type, const struct runtime_process *p,
        const struct runtime_thread *t, struct runtime_wait *ret)
{
	const struct python_layout *l = image->layout;
	u8 objects[WORDS][OBJECT_BYTES];
	struct memory_piece pieces[WORDS];
	u64 words[WORDS], at[WORDS], of;
	struct rlock r;
	u32 n;

	if (l->ob_size.at + sizeof(r) > OBJECT_BYTES || l->ob_type.at + 8 > OBJECT_BYTES ||
	        !memory_read(p->memory, words, sizeof(words), t->sp))
		return false;
	n = candidates(p, words, WORDS, at);
	for (u32 i = 0; i < n; i++)
		pieces[i] = (struct memory_piece){.dst = objects[i], .addr = at[i], .size = OBJECT_BYTES};
	n = (u32)memory_read_pieces(p->memory, pieces, n);
	for (u32 i = 0; i < n; i++) {
		memcpy(&r, objects[i] + l->ob_size.at, sizeof(r));
		memcpy(&of, objects[i] + l->ob_type.at, sizeof(of));
		if (!is_waited_for(&r, t) || !is_rlock_type(l, p->memory, of, type))
			continue;
		*ret = (struct runtime_wait){
		        .kind = LOCK_OBJECT, .at = at[i], .type = "threading.RLock", .holder_pointer = r.owner};
		return true;
	}
	return false;
}

bool python_waits_for(const struct python_image *image, u64 bias, u64 *rlock_type, const struct runtime_process *p,
        const struct runtime_thread *t, struct runtime_wait *ret)
{
	return waits_for_a_gil(image, bias, p, t, ret) || waits_for_rlock(image, rlock_type, p, t, ret);
}
