/* SPDX-License-Identifier: Apache-2.0 */
#include "python_threads.h"

#define INTERPRETERS_MAX 64
#define BLOCK_BYTES      0x900 /* of struct pthread, that are searched */
#define VALUES           128   /* words of values that it may point to: musl has 128 keys */
#define DTV_POINTER      8     /* from the thread pointer, in the ABI of x86-64 */

static bool read_word(struct memory *mem, u64 *ret, u64 addr)
{
	return memory_read(mem, ret, sizeof(*ret), addr);
}

static u32 list(struct memory *mem, const struct python_layout *l, u64 interp, struct python_thread *ret, u32 max)
{
	u32 head = l->interp_threads.size ? l->interp_threads.at : l->interp_tstate_head.at, n = 0;
	u64 state, owner;

	if (!read_word(mem, &state, interp + head))
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

bool python_threads_state(struct memory *mem, const struct python_vm *vm, u64 pointer, u64 *ret)
{
	for (u32 i = 0; i < vm->nvia; i++)
		if (!read_word(mem, &pointer, pointer + vm->via[i]))
			return false;
	return read_word(mem, ret, pointer + (u64)(s64)vm->slot);
}

/* A thread that has been in several interpreters has a state for each, of which one is meant. */
static u32 agreeing(struct memory *mem, const struct python_thread *threads, u32 n, const struct python_vm *vm)
{
	u32 agree = 0;
	u64 state;

	for (u32 i = 0; i < n; i++)
		agree += python_threads_state(mem, vm, threads[i].pointer, &state) &&
		         is_state_of(threads, n, threads[i].pointer, state);
	return agree;
}

/* Threads end and begin meanwhile, and one may have no state set yet. */
static bool most_agree(struct memory *mem, const struct python_thread *threads, u32 n, const struct python_vm *vm)
{
	return agreeing(mem, threads, n, vm) * 2 > n;
}

static void use(struct python_vm *vm, s32 slot, u8 nvia, u16 first, u16 second)
{
	vm->slot = slot;
	vm->nvia = nvia;
	vm->via[0] = first;
	vm->via[1] = second;
}

/* glibc: values of keys stand behind a sequence number, which is odd for a key in use; a TLS variable has none beside
 * it. */
static bool is_keyed(struct memory *mem, const struct python_thread *thread, u32 slot)
{
	u64 sequence;

	return read_word(mem, &sequence, thread->pointer + slot - 8) && (sequence & 1) && sequence < 1u << 20;
}

static bool find_key(struct memory *mem, const struct python_thread *threads, u32 n, u32 i, struct python_vm *vm)
{
	for (u16 slot = 16; slot < BLOCK_BYTES; slot += 8) {
		u64 word;

		if (!read_word(mem, &word, threads[i].pointer + slot))
			return false;
		use(vm, slot, 0, 0, 0);
		if (word == threads[i].state && is_keyed(mem, &threads[i], slot) && most_agree(mem, threads, n, vm))
			return true;
	}
	return false;
}

/* The values of all keys are in the block that the thread pointer leads to. */
static bool find_value(struct memory *mem, const struct python_thread *threads, u32 n, u16 values, struct python_vm *vm)
{
	u64 state;

	for (u16 k = 0; k < VALUES; k++) {
		use(vm, 8 * k, 1, values, 0);
		for (u32 i = 0; i < n; i++)
			if (python_threads_state(mem, vm, threads[i].pointer, &state) && state == threads[i].state &&
			        most_agree(mem, threads, n, vm))
				return true;
	}
	return false;
}

/*
 * glibc for later keys, and a stripped static musl: the values are in a block of their own. What else points to a
 * thread state (the argument of a thread's function did) is not in every thread, so all must agree.
 */
static bool find_key_block(struct memory *mem, const struct python_thread *threads, u32 n, struct python_vm *vm)
{
	u64 words[VALUES], block;

	for (u16 via = 16; via < BLOCK_BYTES; via += 8) {
		u32 size = sizeof(words);

		if (!read_word(mem, &block, threads[0].pointer + via))
			return false;
		while (size && (!block || (block & 7) || !memory_read(mem, words, size, block)))
			size = block && !(block & 7) ? size / 2 & ~7u : 0;
		for (u16 k = 0; k < size / 8; k++) {
			use(vm, 8 * k, 1, via, 0);
			if (words[k] == threads[0].state && agreeing(mem, threads, n, vm) == n)
				return true;
		}
	}
	return false;
}

/* By the dynamic thread vector: of pairs in glibc, of pointers in musl. */
static bool find_module(
        struct memory *mem, const struct python_thread *threads, u32 n, u64 got, s32 offset, struct python_vm *vm)
{
	static const u8 sizes[] = {16, 8};
	u64 words[2]; /* module and offset */

	if (!memory_read(mem, words, sizeof(words), got) || !words[0] || words[0] > UINT16_MAX / 16 ||
	        words[1] > INT32_MAX / 2)
		return false;
	for (u32 i = 0; i < sizeof(sizes); i++) {
		use(vm, (s32)words[1] + offset, 2, DTV_POINTER, (u16)(words[0] * sizes[i]));
		if (most_agree(mem, threads, n, vm))
			return true;
	}
	return false;
}

/* Of descriptors glibc and musl have two kinds: of variables at a constant distance from the thread pointer, and of
 * others. */
static bool find_described(
        struct memory *mem, const struct python_thread *threads, u32 n, u64 got, s32 offset, struct python_vm *vm)
{
	u64 word;

	if (!read_word(mem, &word, got + 8))
		return false;
	if ((s64)word >= 0)
		return find_module(mem, threads, n, word, offset, vm);
	if ((s64)word < INT32_MIN / 2)
		return false;
	use(vm, (s32)word + offset, 0, 0, 0);
	return most_agree(mem, threads, n, vm);
}

static bool find(struct memory *mem, const struct python_tls *tls, u64 bias, u16 values,
        const struct python_thread *threads, u32 n, struct python_vm *vm)
{
	u64 word;

	switch (tls->model) {
	case PYTHON_TLS_LOCAL:
		use(vm, tls->offset, 0, 0, 0);
		return true;
	case PYTHON_TLS_GOT:
		if (!read_word(mem, &word, bias + tls->got) || (s64)word >= 0 || (s64)word < INT32_MIN)
			return false;
		use(vm, (s32)word, 0, 0, 0);
		return true;
	case PYTHON_TLS_MODULE:
		return find_module(mem, threads, n, bias + tls->got, tls->offset, vm);
	case PYTHON_TLS_DESCRIPTOR:
		return find_described(mem, threads, n, bias + tls->got, tls->offset, vm);
	case PYTHON_TLS_NONE:
		break;
	}
	if (values)
		return find_value(mem, threads, n, values, vm);
	for (u32 i = 0; i < n; i++)
		if (find_key(mem, threads, n, i, vm))
			return true;
	return n && find_key_block(mem, threads, n, vm);
}

bool python_threads_find(struct memory *mem, const struct python_tls *tls, u64 bias, u16 values,
        const struct python_thread *threads, u32 n, struct python_vm *vm)
{
	if (find(mem, tls, bias, values, threads, n, vm))
		return true;
	use(vm, 0, 0, 0, 0);
	return false;
}
