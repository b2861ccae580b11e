/* SPDX-License-Identifier: Apache-2.0 */
#include "python_threads.h"

#define INTERPRETERS_MAX 64
#define BLOCK_BYTES	 0x900 /* of struct pthread, that are searched */

static bool read_word(struct memory *mem, u64 *ret, u64 addr)
{
	return memory_read(mem, ret, sizeof(*ret), addr);
}

static u32 list(struct memory *mem, const struct python_layout *l, u64 interp, struct python_thread *ret, u32 max)
{
	u64 state, owner;
	u32 n = 0;

	if (!read_word(mem, &state, interp + l->interp_threads.at))
		return 0;
	for (u32 steps = 0; state && n < max && steps < max; steps++) {
		struct python_thread *t = &ret[n];

		t->state = state;
		if (!read_word(mem, &owner, state + l->ts_interp.at) || owner != interp ||
		        !read_word(mem, &t->pointer, state + l->ts_thread_id.at) ||
		        !read_word(mem, &state, state + l->ts_next.at))
			break;
		n += t->pointer != 0;
	}
	return n;
}

u32 python_threads(struct memory *mem, const struct python_layout *l, u64 runtime, struct python_thread *ret, u32 max)
{
	u64 interp;
	u32 n = 0;

	if (!read_word(mem, &interp, runtime + l->runtime_interpreters.at))
		return 0;
	for (u32 i = 0; interp && i < INTERPRETERS_MAX && n < max; i++) {
		n += list(mem, l, interp, ret + n, max - n);
		if (!read_word(mem, &interp, interp + l->interp_next.at))
			break;
	}
	return n;
}

static bool is_state_of(const struct python_thread *threads, u32 n, u64 pointer, u64 state)
{
	for (u32 i = 0; i < n; i++)
		if (threads[i].pointer == pointer && threads[i].state == state)
			return true;
	return false;
}

/*
 * Threads end and begin meanwhile, and one may have no key set yet: most must agree. A thread that has been in several
 * interpreters has a state for each, of which one is meant.
 */
static bool is_slot(struct memory *mem, const struct python_thread *threads, u32 n, u32 slot)
{
	u32 agree = 0;
	u64 word;

	for (u32 i = 0; i < n; i++)
		agree += read_word(mem, &word, threads[i].pointer + slot) &&
		         is_state_of(threads, n, threads[i].pointer, word);
	return agree * 2 > n;
}

/* Values of keys stand behind a sequence number, which is odd for a key in use; a TLS variable has none beside it. */
static bool is_keyed(struct memory *mem, const struct python_thread *thread, u32 slot)
{
	u64 sequence;

	return read_word(mem, &sequence, thread->pointer + slot - 8) && (sequence & 1) && sequence < 1u << 20;
}

u32 python_threads_slot(struct memory *mem, const struct python_thread *threads, u32 n)
{
	for (u32 i = 0; i < n; i++)
		for (u32 slot = 16; slot < BLOCK_BYTES; slot += 8) {
			u64 word;

			if (!read_word(mem, &word, threads[i].pointer + slot))
				break;
			if (word == threads[i].state && is_keyed(mem, &threads[i], slot) && is_slot(mem, threads, n, slot))
				return slot;
		}
	return 0;
}
