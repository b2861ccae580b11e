/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The LuaJIT walker and its naming over a heap of any bytes. Of the input the first bytes choose registers and where a
 * working heap is overwritten; the rest overwrites it.
 */
#include "tests/unit/luajit_fake.h"

#include "runtimes/luajit/luajit_image.h"
#include "runtime.h"

#define MARGIN 4096 /* the heap begins here, a page in */

static void name_all(struct fake *f)
{
	static struct luajit_layout layout;
	static struct luajit_image image = {.layout = &layout};
	struct runtime_process p = {.memory = &f->memory};
	struct luajit_names *names;
	struct frame_name name;

	layout = fake_layout();
	names = luajit_names_create(&image);
	if (!names)
		abort();
	for (u32 i = 0; i < f->walk.nframes; i++)
		if (frame_kind(&f->frames[i]) == FRAME_SCRIPT)
			luajit_name_frame(names, &p, f->frames, i, f->walk.nframes, &name);
	luajit_names_destroy(names);
}

/* Two threads with a coroutine between, for which another one waits as a host arranges it, and a trace's roots, as a
 * heap to damage. */
static void build(struct fake *f, struct fake_registers *regs)
{
	u64 one = fake_lua_function(f, 1), two = fake_lua_function(f, 2), c = fake_c_function(f, 1, CODE_C);
	struct fake_thread t = fake_thread(f), co = fake_thread(f), waiting = fake_thread(f);

	fake_link(f, &waiting, one, 5);
	fake_yield(f, &waiting);
	fake_record(f, &co, fake_record(f, &waiting, 0, 3, FAKE_NORMAL), (u32)-2, FAKE_RUNNING);
	fake_native(f);
	fake_cframe(f, &t, t.l, 1);
	fake_link(f, &t, one, 1);
	fake_continuation(f, &t, two, fake_pc(f, one, 3), 5);
	fake_call(f, &t, c, fake_pc(f, two, 5));
	fake_cframe(f, &co, 0, 0);
	fake_link(f, &co, two, 5);
	fake_call(f, &co, one, fake_pc(f, two, 2));
	put64(f, f->g + fake_vm.g_cur_l, co.l);
	put64(f, f->g + FAKE_JIT_BASE, co.base);
	regs->rbx = fake_pc(f, one, 4);
	regs->rdx = co.base;
	regs->r14 = f->g + fake_vm.g2disp;
}

static void overwrite(struct fake *f, const uint8_t *data, size_t size)
{
	while (size >= 3) {
		size_t at = (data[0] | data[1] << 8) % (FAKE_BYTES - MARGIN), n = data[2] & 15;

		data += 3;
		size -= 3;
		n = n < size ? n : size;
		memcpy(f->lua + MARGIN + (at < f->free ? at : at % f->free) / 8 * 8 % (FAKE_BYTES - MARGIN - 16), data,
		        n);
		data += n;
		size -= n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const u64 codes[] = {CODE_C + 8, CODE_INTERP + 8, CODE_TRACE + 8, CODE_INTERP};
	static struct fake *f;
	static u8 *clean;
	static struct fake_registers base;
	struct fake_registers regs;
	int stop;

	if (!f) {
		f = fake_create();
		clean = malloc(FAKE_BYTES);
		build(f, &base);
		memcpy(clean, f->lua, FAKE_BYTES);
	}
	if (size < 4)
		return 0;
	memcpy(f->lua, clean, FAKE_BYTES);
	regs = base;
	regs.pc = codes[data[0] & 3];
	regs.rbx += (s8)data[1];
	regs.rdx += 8 * (s8)data[2];
	f->fail = data[3] & 128 ? data[3] & 127 : -1;
	overwrite(f, data + 4, size - 4);
	stop = fake_walk(f, regs);
	if (stop <= STOP_NONE || stop >= STOP_MAX)
		abort();
	f->fail = -1;
	name_all(f);
	return 0;
}
