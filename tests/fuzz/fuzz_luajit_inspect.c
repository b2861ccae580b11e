/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `yrt inspect` on a LuaJIT process of any bytes: finding VMs, reading their state, checking the layout. The first byte
 * of the input chooses a layout of the library; the rest overwrites a VM that stands, piece by piece: offset in words,
 * length, bytes.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "process/module.h"
#include "runtimes/luajit/luajit_inspect.h"

#define BYTES (128u << 10)
#define BASE  0x10000000ull /* references of 32 bits reach it */
#define CODE  0x20000000ull
#define TABLE 240

struct target {
	struct memory memory;
	u8 bytes[BYTES];
};

static bool read_target(struct memory *mem, void *dst, size_t size, uint64_t addr)
{
	const struct target *t = (const struct target *)mem;

	if (addr < BASE || addr - BASE > BYTES || size > BYTES - (addr - BASE))
		return false;
	memcpy(dst, t->bytes + (addr - BASE), size);
	return true;
}

static void put(struct target *t, u64 addr, struct layout_member m, u64 value)
{
	memcpy(t->bytes + (addr + m.at - BASE), &value, m.size);
}

static void build(struct target *t, const struct luajit_layout *l)
{
	u64 gg = BASE + 4096, g = gg + l->gg_g.at, j = gg + l->gg_j.at, area[2] = {0, 4096};

	memset(t->bytes, 0, BYTES);
	put(t, gg, l->l_gct, 6);
	put(t, gg, l->l_glref, g);
	put(t, gg, l->l_stack, BASE + 32768);
	put(t, gg, l->l_maxstack, BASE + 34000);
	put(t, gg, l->l_base, BASE + 32784);
	put(t, g, l->g_mainthref, gg);
	put(t, g, l->g_cur_l, gg);
	put(t, g, l->g_gc_total, 100000);
	put(t, j, l->j_trace, BASE + 65536);
	put(t, j, l->j_sizetrace, 64);
	put(t, BASE + 65536 + l->l_glref.size, (struct layout_member){0, l->l_glref.size}, BASE + 70000);
	put(t, j, l->j_mcarea, BASE + 98304);
	memcpy(t->bytes + 98304, area, sizeof(area));
	for (u32 i = 0; i < TABLE; i++)
		put(t, gg + l->gg_dispatch.at + 8 * i, (struct layout_member){0, 8}, CODE + 16 * i);
}

static void overwrite(struct target *t, const uint8_t *data, size_t size)
{
	while (size >= 3) {
		size_t at = (data[0] | data[1] << 8) * 8ul % BYTES, n = data[2] & 31;

		data += 3;
		size -= 3;
		n = n < size ? n : size;
		n = n < BYTES - at ? n : BYTES - at;
		memcpy(t->bytes + at, data, n);
		data += n;
		size -= n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct layout_library library;
	static struct target t = {.memory.read = read_target};
	struct mapping m = {
	        .start = BASE, .end = BASE + BYTES, .prot = PROT_READ | PROT_WRITE, .anonymous = true, .name = ""};
	struct runtime_process p = {.pid = -1, .memory = &t.memory, .mappings = &m, .nmappings = 1};
	struct luajit_image image = {.version = "LuaJIT", .blob = {.start = CODE, .end = CODE + 0x4000}};
	struct report out = {0};

	if (!library.n && (layout_library_load(&luajit_layout_schema, &library) || !library.n))
		abort();
	if (!size)
		return 0;
	image.origins = library.files[data[0] % library.n]->layout;
	image.layout = image.origins->values;
	build(&t, image.layout);
	overwrite(&t, data + 1, size - 1);
	if (luajit_inspect(&image, 0, &p, &out))
		abort();
	report_free(&out);
	return 0;
}
