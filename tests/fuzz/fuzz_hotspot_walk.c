/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HotSpot's walker over a stack, headers and methods of any bytes, and its reading of machine code (hotspot_flow.h)
 * over the same input. The first bytes choose registers, which read fails, and whether a walk before has left what it
 * found; the rest overwrites a working JVM and what was left.
 */
#include "tests/unit/hotspot_fake.h"

#include "runtimes/hotspot/code/hotspot_flow.h"

static void overwrite(struct fake *f, const uint8_t *data, size_t size)
{
	u8 *const places[] = {f->stack + FAKE_BYTES - 4096 - 512, f->data + 32, f->data + 0x1000, f->heap + 0x1010,
	        f->java + 32, f->java + 512, f->java + 4096, f->java + 4096 + 64 + FAKE_CHUNK_WORDS * 8 - 512};

	while (size >= 3) {
		size_t at = (data[0] | data[1] << 8) % 512, n = data[2] & 15;
		u8 *to = (data[2] & 16 ? (u8 *)&f->caches[f->vm + 32] : places[data[2] >> 5]) + at / 4 * 4;

		data += 3;
		size -= 3;
		n = n < size ? n : size;
		memcpy(to, data, n);
		data += n;
		size -= n;
	}
}

static void read_code(const uint8_t *data, size_t size)
{
	struct flow_state entry = flow_entry(), framed = flow_framed();
	struct cfi_entry *entries;
	struct flow f = {0};
	u32 n;

	if (flow_read(data, 0x1000, size, &f))
		return;
	flow_follow(&f, 0, &framed);
	flow_follow_rest(&f, &entry);
	if (flow_rows(&f, 0, f.n, &entries, &n))
		abort();
	if (n > f.n)
		abort();
	free(entries);
	flow_free(&f);
}

/* A virtual thread, its callers in a chunk; it may be just about to be frozen or thawed. */
static void park(struct fake *f, u8 how)
{
	struct hotspot_vm *vm = arena_at(f->arena, f->vm, sizeof(*vm));
	struct fake_chunk c;

	fake_enter(f);
	c = fake_chunk(f, 1);
	fake_frozen_interpreted(f, &c, 0, 5);
	fake_frozen_compiled(f, &c, 1, 64);
	fake_chunk(f, 2);
	if ((how & 3) == HOTSPOT_OOP_COLOURED)
		fake_colour(f, how >> 6);
	vm->frozen.oops = how & 3;
	vm->frozen.klass_shift = how & 4 ? 32 : how >> 3 & 1;
	vm->frozen.bottom_is_args = how & 16;
	put64(f, FAKE_THREAD + fake_vm.frozen.last_java_sp, how & 32 ? f->sp : 0);
	f->pc = fake_vm.return_barrier;
}

/* Calls compiled methods, or is in the code that thaws. */
static void call(struct fake *f, u8 how)
{
	if (f->r15 && how & 64) {
		f->sp -= 8 * (how & 63);
		f->pc = fake_vm.thaw + how % 100;
		f->called = how & 128;
		return;
	}
	fake_compiled(f, 1, 64);
	fake_compiled(f, 2, 72);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fake *f;
	int stop;

	if (size < 4)
		return 0;
	f = fake_create();
	fake_interpreted(f, 0, 5);
	if (data[0] & 2)
		park(f, data[3]);
	call(f, data[1]);
	if (data[0] & 1)
		fake_interpreted(f, 1, 9);
	f->pc += (s8)data[1];
	f->sp += 8 * (s8)data[2] / 8;
	f->rbx = fake_method(data[0] >> 6);
	f->r13 = f->fp + 16;
	f->fail = data[3] & 128 ? data[3] & 127 : -1;
	if (data[0] & 2)
		fake_walk(f);
	overwrite(f, data + 4, size - 4);
	stop = fake_walk(f);
	if (stop <= STOP_NONE || stop >= STOP_MAX)
		abort();
	fake_destroy(f);
	read_code(data + 4, size - 4);
	return 0;
}
