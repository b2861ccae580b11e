/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The traces of a process: for each VM a table of its live traces, sorted by their code, and copies of those that were
 * seen. A copy outlives its trace. Several may have had the same place; the cookie distinguishes them.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "luajit_trace.h"
#include "search.h"

#define VMS_MAX     64
#define TRACES_MAX  65536
#define COPIES_MAX  16384
#define COPIES_SIZE (8u << 20)
#define REFRESH_NS  1000000000ull /* a table that nothing contradicts is read again after that */
#define OVERLAP_MAX 64            /* copies that are looked at for one address */

struct live {
	u64 code, addr;
	u32 size;
};

struct vm {
	u64 g;
	u64 refreshed;        /* when all was read; 0: never */
	struct live *numbers; /* by number of the trace; addr 0: there is none */
	struct live *live;    /* the same, sorted by code; behind them */
	u32 nnumbers, nlive;
};

struct luajit_traces {
	const struct luajit_image *image;
	struct vm vm[VMS_MAX];
	u32 nvms, next_vm;
	struct luajit_trace **copies; /* sorted by code, later ones of one place first */
	u32 ncopies;
	u32 bytes;
};

struct luajit_traces *luajit_traces_create(const struct luajit_image *image)
{
	struct luajit_traces *traces = calloc(1, sizeof(*traces));

	if (!traces)
		return NULL;
	traces->image = image;
	traces->copies = calloc(COPIES_MAX, sizeof(*traces->copies));
	if (traces->copies)
		return traces;
	free(traces);
	return NULL;
}

static void forget_copies(struct luajit_traces *traces)
{
	for (u32 i = 0; i < traces->ncopies; i++)
		luajit_trace_free(traces->copies[i]);
	traces->ncopies = 0;
	traces->bytes = 0;
}

static void forget_vm(struct vm *vm)
{
	free(vm->numbers);
	*vm = (struct vm){0};
}

void luajit_traces_destroy(struct luajit_traces *traces)
{
	if (!traces)
		return;
	forget_copies(traces);
	for (u32 i = 0; i < traces->nvms; i++)
		forget_vm(&traces->vm[i]);
	free(traces->copies);
	free(traces);
}

/* The first copy whose code begins above pc. */
static u32 copies_above(const struct luajit_traces *traces, u64 pc)
{
	u32 at = SEARCH(traces->ncopies, k, traces->copies[k]->code <= pc);

	return at;
}

static const struct luajit_trace *find_copy(const struct luajit_traces *traces, u64 g, u64 pc, u32 cookie)
{
	u32 above = copies_above(traces, pc);

	for (u32 i = above; i > 0 && above - i < OVERLAP_MAX; i--) {
		const struct luajit_trace *t = traces->copies[i - 1];

		if (pc - t->code > LUAJIT_MCODE_MAX)
			break;
		if (t->g == g && luajit_trace_agrees(t, pc, cookie))
			return t;
	}
	return NULL;
}

static const struct luajit_trace *keep(struct luajit_traces *traces, struct luajit_trace *t)
{
	u32 at;

	if (traces->ncopies == COPIES_MAX || traces->bytes + t->size > COPIES_SIZE)
		forget_copies(traces);
	at = copies_above(traces, t->code);
	memmove(traces->copies + at + 1, traces->copies + at, (traces->ncopies - at) * sizeof(*traces->copies));
	traces->copies[at] = t;
	traces->ncopies++;
	traces->bytes += t->size;
	return t;
}

/* Copies the trace at addr if its code is what was seen at pc. */
static const struct luajit_trace *take(
        struct luajit_traces *traces, struct memory *mem, u64 g, u64 addr, u64 pc, u32 cookie)
{
	struct luajit_trace_head head;
	struct luajit_trace *t;

	if (!luajit_trace_head(traces->image->layout, mem, addr, &head) || pc - head.code >= head.code_size)
		return NULL;
	t = luajit_trace_read(traces->image, mem, g, addr);
	if (t && luajit_trace_agrees(t, pc, cookie))
		return keep(traces, t);
	luajit_trace_free(t);
	return NULL;
}

static u64 jit_state(const struct luajit_layout *l, u64 g)
{
	return g - l->gg_g.at + l->gg_j.at;
}

static u64 read_ref(struct memory *mem, u64 addr, u32 size)
{
	u64 value = 0;

	return size <= sizeof(value) && memory_read(mem, &value, size, addr) ? value : 0;
}

static const struct luajit_trace *take_hinted(
        struct luajit_traces *traces, struct memory *mem, u64 g, u32 hint, u64 pc, u32 cookie)
{
	const struct luajit_layout *l = traces->image->layout;
	u64 array = read_ref(mem, jit_state(l, g) + l->j_trace.at, l->j_trace.size);
	u32 size = (u32)read_ref(mem, jit_state(l, g) + l->j_sizetrace.at, 4), ref = luajit_gc64(l) ? 8 : 4;
	u64 addr = array && hint && hint < size ? read_ref(mem, array + (u64)hint * ref, ref) : 0;

	return addr ? take(traces, mem, g, addr, pc, cookie) : NULL;
}

static struct vm *vm_of(struct luajit_traces *traces, u64 g)
{
	struct vm *vm;

	for (u32 i = 0; i < traces->nvms; i++)
		if (traces->vm[i].g == g)
			return &traces->vm[i];
	if (traces->nvms < VMS_MAX)
		vm = &traces->vm[traces->nvms++];
	else
		vm = &traces->vm[traces->next_vm++ % VMS_MAX];
	forget_vm(vm);
	vm->g = g;
	return vm;
}

static u64 now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * 1000000000ull + (u64)ts.tv_nsec;
}

static int by_code(const void *a, const void *b)
{
	const struct live *x = a, *y = b;

	return x->code < y->code ? -1 : x->code > y->code;
}

/* jit_State.trace as it is; NULL: unreadable. *n: how many. Free with free(). */
static u8 *read_refs(const struct vm *vm, const struct luajit_layout *l, struct memory *mem, u32 *n)
{
	u64 array = read_ref(mem, jit_state(l, vm->g) + l->j_trace.at, l->j_trace.size);
	size_t ref = luajit_gc64(l) ? 8 : 4;
	u8 *refs;

	*n = (u32)read_ref(mem, jit_state(l, vm->g) + l->j_sizetrace.at, 4);
	refs = array && *n && *n <= TRACES_MAX ? malloc(*n * ref) : NULL;
	if (refs && !memory_read(mem, refs, *n * ref, array)) {
		free(refs);
		refs = NULL;
	}
	return refs;
}

void luajit_traces_each(const struct luajit_image *image, struct memory *mem, u64 g,
        void (*each)(void *ctx, const struct luajit_trace *t), void *ctx)
{
	const struct vm vm = {.g = g};
	u32 n, ref = luajit_gc64(image->layout) ? 8 : 4;
	u8 *refs = read_refs(&vm, image->layout, mem, &n);

	for (u32 i = 0; refs && i < n; i++) {
		struct luajit_trace *t;
		u64 addr = 0;

		memcpy(&addr, refs + (size_t)i * ref, ref);
		t = addr ? luajit_trace_read(image, mem, g, addr) : NULL;
		if (t)
			each(ctx, t);
		luajit_trace_free(t);
	}
	free(refs);
}

/* The trace of a number, of which the table knew `before`. */
static struct live read_live(const struct luajit_layout *l, struct memory *mem, u64 addr, const struct live *before)
{
	struct luajit_trace_head head;

	if (before && before->addr == addr)
		return *before;
	if (!addr || !luajit_trace_head(l, mem, addr, &head))
		return (struct live){0};
	return (struct live){.code = head.code, .addr = addr, .size = head.code_size};
}

/*
 * Reads the heads of traces that are new in the VM's array, and of all if that was long ago: an address may have got
 * another trace since. False: nothing new.
 */
static bool refresh(struct vm *vm, const struct luajit_layout *l, struct memory *mem)
{
	u64 time = now();
	bool old = !vm->refreshed || time - vm->refreshed > REFRESH_NS, changed = old;
	u32 n, ref = luajit_gc64(l) ? 8 : 4;
	u8 *refs = read_refs(vm, l, mem, &n);
	struct live *numbers = refs ? calloc(2 * (size_t)n, sizeof(*numbers)) : NULL;

	for (u32 i = 0; numbers && i < n; i++) {
		const struct live *before = i < vm->nnumbers && !old ? &vm->numbers[i] : NULL;
		u64 addr = 0;

		memcpy(&addr, refs + (size_t)i * ref, ref);
		changed = changed || !before || before->addr != addr;
		numbers[i] = read_live(l, mem, addr, before);
	}
	free(refs);
	if (!numbers || !changed) {
		free(numbers);
		return false;
	}
	free(vm->numbers);
	vm->numbers = numbers;
	vm->nnumbers = n;
	vm->live = numbers + n;
	vm->nlive = 0;
	for (u32 i = 0; i < n; i++)
		if (numbers[i].addr)
			vm->live[vm->nlive++] = numbers[i];
	qsort(vm->live, vm->nlive, sizeof(*vm->live), by_code);
	if (old)
		vm->refreshed = time;
	return true;
}

static const struct live *find_live(const struct vm *vm, u64 pc)
{
	u32 at = SEARCH(vm->nlive, k, vm->live[k].code <= pc);

	return at && pc - vm->live[at - 1].code < vm->live[at - 1].size ? &vm->live[at - 1] : NULL;
}

bool luajit_traces_own(struct luajit_traces *traces, struct memory *mem, u64 g)
{
	const struct luajit_layout *l = traces->image->layout;
	u64 main, owner;

	for (u32 i = 0; i < traces->nvms; i++)
		if (traces->vm[i].g == g)
			return true;
	main = read_ref(mem, g + l->g_mainthref.at, l->g_mainthref.size);
	owner = main ? read_ref(mem, main + l->l_glref.at, l->l_glref.size) : 0;
	if (owner != g)
		return false;
	vm_of(traces, g);
	return true;
}

const struct luajit_trace *luajit_traces_find(
        struct luajit_traces *traces, struct memory *mem, u64 g, u64 pc, u32 hint, u32 cookie)
{
	const struct luajit_trace *t = find_copy(traces, g, pc, cookie);
	const struct live *live;
	struct vm *vm;

	if (!t)
		t = take_hinted(traces, mem, g, hint, pc, cookie);
	if (t)
		return t;
	vm = vm_of(traces, g);
	live = find_live(vm, pc);
	t = live ? take(traces, mem, g, live->addr, pc, cookie) : NULL;
	if (!t && refresh(vm, traces->image->layout, mem)) {
		live = find_live(vm, pc);
		t = live ? take(traces, mem, g, live->addr, pc, cookie) : NULL;
	}
	return t;
}
