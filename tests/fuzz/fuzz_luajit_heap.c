/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of LuaJIT in memory of any bytes: the input again and again, with a root at every 64 bytes.
 */
#include "tests/unit/luajit_fake.h"

#include "runtimes/luajit/luajit_heap_internal.h"
#include "unwind/heap/heap.h"

#define AT   0x100000ull
#define SIZE 0x800u

struct any {
	struct memory memory;
	u8 bytes[SIZE];
};

static bool any_read(struct memory *mem, void *dst, size_t size, uint64_t addr)
{
	const struct any *a = (struct any *)mem;

	if (addr < AT || addr - AT > SIZE || size > SIZE - (addr - AT))
		return false;
	memcpy(dst, a->bytes + (addr - AT), size);
	return true;
}

static struct luajit_heap reader;

static struct error *any_open(void *instance, const struct runtime_process *p, struct heap *h, void **ret)
{
	reader.h = h;
	reader.p = p;
	for (u32 i = GCT_STRING; i < GCT_TYPES; i++)
		reader.types[i] = heap_type(h, i, "type");
	*ret = instance;
	return NULL;
}

static void any_close(void *data)
{
}

static struct error *any_roots(void *data)
{
	u32 root = heap_root(reader.h, 0, HEAP_LASTING, "root");

	for (u64 at = AT; at < AT + SIZE; at += 64)
		heap_root_ref(reader.h, root, HEAP_ITEM, at);
	return NULL;
}

static const struct runtime_heap_ops ops = {.objects = "objects",
        .open = any_open,
        .close = any_close,
        .roots = any_roots,
        .object = luajit_heap_object,
        .blocks = luajit_heap_own};

static void use(struct any *a, struct luajit_layout *layout)
{
	static struct luajit_image image;
	static struct luajit_heap_vm vm;
	struct runtime_process p = {.memory = &a->memory};
	struct heap_options options = {.memory = 64 << 20, .references = true};
	struct heap *h = NULL;
	bool found;

	image.layout = layout;
	image.vm = fake_vm;
	vm = (struct luajit_heap_vm){.g = AT + 256, .globals = AT + 64, .main_thread = AT + 128, .ctypes = AT + 512};
	reader = (struct luajit_heap){.image = &image, .layout = layout, .vms = &vm, .nvms = 1};
	luajit_heap_shape(&reader);
	reader.names = luajit_names_create(&image);
	if (!reader.names || heap_create(&a->memory, 0, &options, &h))
		abort();
	error_free(heap_read(h, &ops, &reader, &p, &found));
	error_free(heap_settle(h));
	heap_destroy(h);
	luajit_names_destroy(reader.names);
}

/* What walking needs not: of a build of 2017 with references of 8 bytes. */
static void complete(struct luajit_layout *l)
{
	l->l_base = (struct layout_member){32, 8};
	l->l_top = (struct layout_member){40, 8};
	l->l_maxstack = (struct layout_member){48, 8};
	l->l_stack = (struct layout_member){56, 8};
	l->l_cframe = (struct layout_member){80, 8};
	l->fn_ffid = (struct layout_member){10, 1};
	l->fn_pc = (struct layout_member){32, 8};
	l->trace_size = (struct layout_member){120, 0};
	l->trace_nins = (struct layout_member){12, 4};
	l->trace_nk = (struct layout_member){40, 4};
	l->trace_nsnap = (struct layout_member){44, 2};
	l->trace_nsnapmap = (struct layout_member){46, 2};
	l->trace_startpt = (struct layout_member){64, 8};
	l->snap_size = (struct layout_member){8, 0};
	l->gg_g = (struct layout_member){96, 512};
	l->gg_j = (struct layout_member){608, 512};
	l->j_sizetrace = (struct layout_member){8, 4};
	l->g_jit_base = (struct layout_member){352, 8};
	l->g_gc_total = (struct layout_member){32, 8};
	fake_vm.gc64 = true;
	fake_vm.bc_patched = 80;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct luajit_layout layout = fake_layout();
	struct any *a = calloc(1, sizeof(*a));

	if (!a || !size) {
		free(a);
		return 0;
	}
	complete(&layout);
	a->memory.read = any_read;
	for (u32 at = 0; at < SIZE; at += (u32)size)
		memcpy(a->bytes + at, data, size < SIZE - at ? size : SIZE - at);
	use(a, &layout);
	free(a);
	return 0;
}
