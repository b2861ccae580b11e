/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the VMs of a process: in memory made by hand, and in this process, which makes some of the real library. */
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include "look.h"

#include "process/process.h"
#include "runtimes/luajit/luajit_vms.h"

#define PAGE     4096ull
#define PAGES    64
#define BASE     0x10000000ull
#define CODE     0x7f0000401000ull /* in the process */
#define BIAS     0x7f0000000000ull
#define TABLE    240 /* pointers */
#define GG_SIZE  (OF_TABLE + 8 * TABLE + 228)
#define OF_G     96
#define OF_TABLE 1024

struct target {
	struct memory memory;
	u8 bytes[PAGES * PAGE];
	u64 absent; /* address of a page that can not be read; 0: none */
	u64 reads;
	struct mapping mapping;
	struct luajit_layout layout;
	struct luajit_image image;
	struct runtime_process process;
};

static bool read_target(struct memory *mem, void *dst, size_t size, uint64_t addr)
{
	struct target *t = (struct target *)mem;

	t->reads++;
	if (addr < BASE || addr - BASE > sizeof(t->bytes) || size > sizeof(t->bytes) - (addr - BASE))
		return false;
	if (t->absent && addr < t->absent + PAGE && addr + size > t->absent)
		return false;
	memcpy(dst, t->bytes + (addr - BASE), size);
	return true;
}

static void put(struct target *t, u64 addr, u64 value)
{
	memcpy(t->bytes + (addr - BASE), &value, sizeof(value));
}

static int setup(void **state)
{
	struct target *t = calloc(1, sizeof(*t));

	t->memory.read = read_target;
	t->mapping = (struct mapping){.start = BASE,
	        .end = BASE + sizeof(t->bytes),
	        .prot = PROT_READ | PROT_WRITE,
	        .anonymous = true,
	        .name = ""};
	t->layout = (struct luajit_layout){.l_gct = {9, 1},
	        .l_glref = {16, 8},
	        .gg_g = {OF_G, 0},
	        .gg_dispatch = {OF_TABLE, 0},
	        .g_mainthref = {200, 8},
	        .g_gc_total = {16, 8}};
	t->image.layout = &t->layout;
	t->image.blob.start = CODE - BIAS;
	t->image.blob.end = CODE - BIAS + 0x4000;
	t->process = (struct runtime_process){.pid = -1, .memory = &t->memory, .mappings = &t->mapping, .nmappings = 1};
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

/* A VM whose GG_State is at gg; returns the address of its global_State. */
static u64 put_vm(struct target *t, u64 gg)
{
	u64 g = gg + OF_G;

	t->bytes[gg - BASE + 9] = 6;
	put(t, gg + 16, g);
	put(t, g + 200, gg);
	put(t, g + 16, GG_SIZE + 20000);
	for (u64 i = 0; i < TABLE; i++)
		put(t, gg + OF_TABLE + 8 * i, CODE + 16 * i);
	return g;
}

static struct luajit_vms find(struct target *t, u64 memory)
{
	struct luajit_vms vms;

	assert_null(luajit_vms_find(&t->image, BIAS, &t->process, memory, &vms));
	return vms;
}

static void test_several(void **state)
{
	struct target *t = *state;
	u64 g[] = {put_vm(t, BASE + 8), put_vm(t, BASE + 8 * PAGE - 1200), put_vm(t, BASE + (PAGES - 1) * PAGE + 512)};
	struct luajit_vms vms = find(t, 1 << 30);

	assert_int_equal(vms.n, 3);
	for (u32 i = 0; i < 3; i++) {
		assert_int_equal(vms.g[i], g[i]);
		assert_true(luajit_vms_is_vm(&t->image, BIAS, &t->memory, g[i]));
		assert_false(luajit_vms_is_vm(&t->image, BIAS, &t->memory, g[i] + 8));
	}
	assert_int_equal(vms.searched, sizeof(t->bytes));
	assert_int_equal(vms.left, 0);
	free(vms.g);
}

/* Every position that a table can have. */
static void test_anywhere(void **state)
{
	struct target *t = *state;

	for (u64 gg = BASE + 2 * PAGE; gg < BASE + 2 * PAGE + 1024; gg += 8) {
		u64 g = put_vm(t, gg);
		struct luajit_vms vms = find(t, 1 << 30);

		assert_int_equal(vms.n, 1);
		assert_int_equal(vms.g[0], g);
		free(vms.g);
		memset(t->bytes, 0, sizeof(t->bytes));
	}
}

static void expect_none(struct target *t)
{
	struct luajit_vms vms = find(t, 1 << 30);

	assert_int_equal(vms.n, 0);
	free(vms.g);
}

static void test_none(void **state)
{
	struct target *t = *state;
	u64 gg = BASE + 3 * PAGE, g = put_vm(t, gg);

	put(t, g + 16, GG_SIZE); /* closed: nothing is in use but itself */
	expect_none(t);
	put_vm(t, gg);
	put(t, gg + 16, g + 8);
	expect_none(t);
	put_vm(t, gg);
	put(t, g + 200, gg + 8);
	expect_none(t);
	put_vm(t, gg);
	t->bytes[gg - BASE + 9] = 0xff; /* the heap reused it */
	expect_none(t);
	put_vm(t, gg);
	put(t, gg + OF_TABLE + 8 * 64, 1); /* a copy of a part */
	expect_none(t);
}

/* Where nothing can be, nothing is read. */
static void test_elsewhere(void **state)
{
	struct target *t = *state;

	put_vm(t, BASE + PAGE);
	t->mapping.prot = PROT_READ | PROT_EXEC;
	expect_none(t);
	t->mapping.prot = PROT_READ | PROT_WRITE;
	t->mapping.anonymous = false;
	expect_none(t);
	assert_int_equal(t->reads, 0);
	t->mapping.anonymous = true;
	t->layout.l_glref.size = 4;
	t->mapping.start = 1ull << 33;
	t->mapping.end = (1ull << 33) + PAGE;
	expect_none(t);
	assert_int_equal(t->reads, 0);
}

static void test_absent(void **state)
{
	struct target *t = *state;
	struct luajit_vms vms;
	u64 g = put_vm(t, BASE + 9 * PAGE);

	t->absent = BASE + 8 * PAGE;
	vms = find(t, 1 << 30);
	assert_int_equal(vms.n, 1);
	assert_int_equal(vms.g[0], g);
	free(vms.g);
	t->absent = BASE + 9 * PAGE;
	expect_none(t);
}

static void test_limit(void **state)
{
	struct target *t = *state;
	struct luajit_vms vms;

	put_vm(t, BASE + 9 * PAGE);
	vms = find(t, PAGE);
	assert_int_equal(vms.n, 0);
	assert_int_equal(vms.searched, 0);
	assert_int_equal(vms.left, sizeof(t->bytes));
	free(vms.g);
}

/* Memory full of pointers into the code: work is bounded, and said to be. */
static void test_hostile(void **state)
{
	struct target *t = *state;
	struct luajit_vms vms;

	for (u64 at = 0; at < sizeof(t->bytes); at += 8)
		put(t, BASE + at, CODE);
	vms = find(t, sizeof(t->bytes) * 4);
	assert_int_equal(vms.n, 0);
	assert_true(t->reads < 20 * PAGES);
	free(vms.g);
	for (u64 at = 0; at < sizeof(t->bytes); at += 8)
		if (at % 512)
			put(t, BASE + at, 0);
	t->reads = 0;
	vms = find(t, sizeof(t->bytes) * 4);
	assert_int_equal(vms.n, 0);
	assert_true(t->reads < 20 * PAGES);
	free(vms.g);
}

static void put_area(struct target *t, u64 area, u64 next, u64 size)
{
	put(t, area, next);
	put(t, area + 8, size);
}

/* A list of areas, which is as long as the caller lets it be if it has no end. */
static void test_areas(void **state)
{
	struct target *t = *state;
	struct luajit_area areas[8];
	u64 gg = BASE + PAGE, g = put_vm(t, gg), last = BASE + 20 * PAGE;

	t->layout.gg_j.at = 400;
	t->layout.j_mcarea = (struct layout_member){8, 8};
	assert_int_equal(luajit_vms_areas(&t->image, &t->memory, g, areas, 8), 0);
	put(t, gg + 408, BASE + 10 * PAGE);
	put_area(t, BASE + 10 * PAGE, last, 2 * PAGE);
	put_area(t, last, 0, PAGE);
	assert_int_equal(luajit_vms_areas(&t->image, &t->memory, g, areas, 8), 2);
	assert_int_equal(areas[0].start, BASE + 10 * PAGE);
	assert_int_equal(areas[0].end, BASE + 12 * PAGE);
	assert_int_equal(areas[1].end, last + PAGE);
	put_area(t, last, 8, PAGE); /* the next one can not be read */
	assert_int_equal(luajit_vms_areas(&t->image, &t->memory, g, areas, 8), 2);
	put_area(t, last, 0, 0);
	assert_int_equal(luajit_vms_areas(&t->image, &t->memory, g, areas, 8), 1);
	put_area(t, last, 0, ~0ull);
	assert_int_equal(luajit_vms_areas(&t->image, &t->memory, g, areas, 8), 1);
	put_area(t, last, BASE + 10 * PAGE, PAGE);
	assert_int_equal(luajit_vms_areas(&t->image, &t->memory, g, areas, 8), 8);
}

/* --- this process --- */

#define LIBRARY "libluajit-5.1.so.2"
#define VMS     5

struct library {
	void *(*create)(void);
	void *(*create_with)(void *(*alloc)(void *, void *, size_t, size_t), void *);
	void (*close)(void *);
	struct arena *arena;
	struct modules *modules;
	struct process *process;
};

/* A host's allocator that leaves freed memory as it was: what is in it must not be taken for a VM. */
struct heap {
	u8 *bytes;
	size_t used, frees;
};
#define HEAP_BYTES (8u << 20)

static void *host_alloc(void *data, void *block, size_t old, size_t size)
{
	struct heap *heap = data;
	u8 *grown = heap->bytes + heap->used;

	if (!size) {
		heap->frees += block != NULL;
		return NULL;
	}
	if (block && size <= old)
		return block;
	if (size > HEAP_BYTES - heap->used)
		return NULL;
	heap->used += (size + 15) & ~15ul;
	if (block)
		memcpy(grown, block, old);
	return grown;
}

static void open_library(struct library *lib)
{
	void *handle = dlopen(LIBRARY, RTLD_NOW);

	if (!handle)
		fail_msg("%s (fixtures/setup.sh installs it)", dlerror());
	*(void **)&lib->create = dlsym(handle, "luaL_newstate");
	*(void **)&lib->create_with = dlsym(handle, "lua_newstate");
	*(void **)&lib->close = dlsym(handle, "lua_close");
	look_begin(&lib->arena, &lib->modules);
	look_at(lib->modules, getpid(), &lib->process);
}

static void close_library(struct library *lib)
{
	look_end(lib->arena, lib->modules, lib->process);
}

/* The search through the mappings of this moment: the library's code has not moved, but its heaps are new. */
static struct luajit_vms search(struct library *lib)
{
	const struct instance *instance = lib->process->instances;
	struct luajit_vms vms;
	struct runtime_process view;
	bool changed;

	assert_int_equal(lib->process->ninstances, 1);
	lib->process->maps_hash = lib->process->text_hash = 0;
	assert_null(process_rescan(lib->process, &changed));
	view = process_view(lib->process);
	assert_null(luajit_vms_find(
	        instance->loaded->runtime[RUNTIME_LUAJIT], instance->bias, &view, LUAJIT_VMS_MEMORY, &vms));
	return vms;
}

static bool has(const struct luajit_vms *vms, const struct luajit_layout *l, void *L)
{
	u64 g = luajit_gc64(l) ? *(u64 *)((u8 *)L + l->l_glref.at) : *(u32 *)((u8 *)L + l->l_glref.at);

	for (u32 i = 0; i < vms->n; i++)
		if (vms->g[i] == g)
			return true;
	return false;
}

static void expect(struct library *lib, void *const *live, u32 n)
{
	const struct luajit_image *image = lib->process->instances[0].loaded->runtime[RUNTIME_LUAJIT];
	struct luajit_vms vms = search(lib);

	if (vms.n != n)
		fail_msg("%u VMs were found of %u", vms.n, n);
	for (u32 i = 0; i < n; i++)
		assert_true(has(&vms, image->layout, live[i]));
	assert_true(vms.searched > 0);
	free(vms.g);
}

static void test_live(void **state)
{
	struct library lib = {0};
	struct heap heap = {
	        .bytes = mmap(NULL, HEAP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)};
	void *L[VMS];

	assert_ptr_not_equal(heap.bytes, MAP_FAILED);
	open_library(&lib);
	expect(&lib, NULL, 0);
	for (u32 i = 0; i < VMS; i++) {
		L[i] = i % 2 ? lib.create_with(host_alloc, &heap) : lib.create();
		assert_non_null(L[i]);
	}
	expect(&lib, L, VMS);
	for (u32 n = VMS; n-- > 0;) {
		lib.close(L[n]);
		expect(&lib, L, n);
	}
	assert_true(heap.frees > 0);
	close_library(&lib);
	munmap(heap.bytes, HEAP_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_several, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_anywhere, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_none, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_elsewhere, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_absent, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_limit, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_hostile, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_areas, setup, teardown),
	        cmocka_unit_test(test_live),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
