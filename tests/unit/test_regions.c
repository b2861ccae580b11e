/* SPDX-License-Identifier: Apache-2.0 */
/* From a real process's mappings to its regions: what is covered, and what runtimes claim. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

#include "unwind/process/process.h"

#define PAGE     4096u
#define USER_END (1ull << 47)
#define CLAIMS   4000u

static struct arena *arena;
static struct modules *modules;

/* --- a runtime that claims what a test says --- */

static struct runtime_region claims[CLAIMS];
static u32 nclaims, detached;

static void fake_detach(void *instance, const struct runtime_process *p)
{
	detached++;
}

static struct error *fake_regions(void *instance, const struct runtime_process *p,
        struct error *(*add)(void *ctx, const struct runtime_region *r), void *ctx)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < nclaims; i++)
		err = add(ctx, &claims[i]);
	return err;
}

static const struct runtime_ops fake_runtime = {
        .name = "fake", .id = RUNTIME_MAX - 1, .detach = fake_detach, .regions = fake_regions};

/* --- a child with mappings of its own, waiting --- */

static struct {
	pid_t pid;
	u64 jit; /* four pages of anonymous code, between two that are not there */
} child;

static int setup(void **state)
{
	u8 *at = mmap(NULL, 6 * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	munmap(at, PAGE);
	munmap(at + 5 * PAGE, PAGE);
	child.jit = (uintptr_t)at + PAGE;
	child.pid = fork();
	if (!child.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	assert_true(child.pid > 0);
	assert_null(arena_create(NULL, &arena));
	assert_null(modules_create(arena, NULL, &modules));
	return 0;
}

static int teardown(void **state)
{
	kill(child.pid, SIGKILL);
	waitpid(child.pid, NULL, 0);
	modules_destroy(modules);
	arena_destroy(arena);
	return 0;
}

static struct process *look(void)
{
	struct process *p;

	assert_null(process_create(modules, child.pid, 1, &p));
	return p;
}

static const struct region *regions_of(const struct process *p)
{
	const struct region *r = arena_at(arena, p->entry.regions, p->entry.nregions * sizeof(*r));

	assert_non_null(r);
	return r;
}

static const struct region *region_at(const struct process *p, u64 addr)
{
	const struct region *r = regions_of(p);

	for (u32 i = 0; i < p->entry.nregions; i++)
		if (addr >= r[i].start && addr < r[i].end)
			return &r[i];
	return NULL;
}

static void check_sorted(const struct process *p)
{
	const struct region *r = regions_of(p);

	for (u32 i = 0; i < p->entry.nregions; i++) {
		assert_true(r[i].start < r[i].end && r[i].end <= USER_END);
		assert_true(!i || r[i - 1].end <= r[i].start);
	}
}

/* Each byte of executable mappings is in a region, and nothing else is. */
static void check_covered(const struct process *p)
{
	u64 code = 0, covered = 0;
	struct maps maps;

	assert_null(maps_read(p->pid, &maps));
	for (u32 i = 0; i < maps.nlines; i++) {
		const struct map_line *line = &maps.lines[i];

		if (!(line->prot & PROT_EXEC) || line->end > USER_END)
			continue;
		code += line->end - line->start;
		for (u64 at = line->start; at < line->end; at = region_at(p, at)->end)
			assert_non_null(region_at(p, at));
	}
	for (u32 i = 0; i < p->entry.nregions; i++)
		covered += regions_of(p)[i].end - regions_of(p)[i].start;
	assert_true(code > 0);
	assert_int_equal(covered, code);
	maps_free(&maps);
}

static void check_tables(const struct process *p)
{
	const struct region *r = regions_of(p);

	for (u32 i = 0; i < p->entry.nregions; i++) {
		const struct cfi_table *t = arena_at(arena, r[i].table, sizeof(*t));

		if (!r[i].table)
			continue;
		assert_non_null(t);
		assert_true(r[i].origin <= r[i].start);
		assert_true((r[i].end - 1 - r[i].origin) >> CFI_PAGE_BITS < t->npages);
		assert_non_null(arena_at(arena, r[i].table, t->rules + t->nrules * sizeof(struct cfi_rule)));
	}
}

static void check_regions(const struct process *p)
{
	check_sorted(p);
	check_covered(p);
	check_tables(p);
}

static void test_mappings(void **state)
{
	struct process *p = look();
	const struct region *own = region_at(p, (uintptr_t)test_mappings), *jit = region_at(p, child.jit);
	bool changed = true, vdso = false;
	char path[256] = "";

	check_regions(p);
	assert_true(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
	assert_non_null(own);
	assert_true(own->table && own->module);
	assert_string_equal(module_at(modules, own->module)->loaded->path, path);
	assert_true(jit && !jit->table && !jit->module && jit->runtime == RUNTIME_NATIVE);
	for (u32 i = 0; i < p->maps.nlines; i++)
		if (!strcmp(p->maps.lines[i].path, "[vdso]")) {
			const struct region *r = region_at(p, p->maps.lines[i].start + PAGE / 2);

			vdso = r && r->module && r->table;
		}
	assert_true(vdso);
	assert_null(process_rescan(p, &changed));
	assert_false(changed);
	process_destroy(p);
}

/* --- claims --- */

static void build_with(struct process *p, u32 n)
{
	nclaims = n;
	if (!p->ninstances) {
		p->instances = calloc(1, sizeof(*p->instances));
		p->instances[p->ninstances++] = (struct instance){.ops = &fake_runtime, .data = claims};
	}
	assert_null(regions_build(p));
	check_sorted(p);
	check_tables(p);
}

static void claim(struct process *p, u32 n)
{
	build_with(p, n);
	check_covered(p);
}

static void check_claimed(const struct process *p, u64 start, u64 end, u8 part)
{
	const struct region *r = region_at(p, start);

	assert_non_null(r);
	assert_int_equal(r->start, start);
	assert_int_equal(r->end, end);
	assert_int_equal(r->part, part);
	assert_int_equal(r->runtime, part ? fake_runtime.id : RUNTIME_NATIVE);
}

static void test_claim_split(void **state)
{
	struct process *p = look();
	u64 jit = child.jit;

	claims[0] = (struct runtime_region){.start = jit + PAGE, .end = jit + 2 * PAGE, .part = 3, .vm = 64};
	claim(p, 1);
	check_claimed(p, jit, jit + PAGE, 0);
	check_claimed(p, jit + PAGE, jit + 2 * PAGE, 3);
	assert_int_equal(region_at(p, jit + PAGE)->vm, 64);
	check_claimed(p, jit + 2 * PAGE, jit + 4 * PAGE, 0);
	claims[1] = (struct runtime_region){.start = jit, .end = jit + PAGE + 16, .part = 4}; /* over part of it */
	claim(p, 2);
	check_claimed(p, jit, jit + PAGE, 4);
	check_claimed(p, jit + PAGE, jit + PAGE + 16, 4);
	check_claimed(p, jit + PAGE + 16, jit + 2 * PAGE, 3);
	detached = 0;
	process_destroy(p);
	assert_int_equal(detached, 1);
}

/* Claims of nothing, in reverse, and beyond what is mapped. */
static void test_claim_bad(void **state)
{
	struct process *p = look();
	u64 jit = child.jit;
	u32 before = p->entry.nregions;

	claims[0] = (struct runtime_region){.start = jit + 16, .end = jit + 16, .part = 1};
	claims[1] = (struct runtime_region){.start = jit + 3 * PAGE, .end = jit + PAGE, .part = 1};
	claims[2] = (struct runtime_region){.start = PAGE, .end = 2 * PAGE, .part = 1};
	claim(p, 3);
	assert_int_equal(p->entry.nregions, before);
	check_claimed(p, jit, jit + 4 * PAGE, 0);
	claims[0] = (struct runtime_region){.start = jit - PAGE, .end = jit + 5 * PAGE, .part = 1};
	claim(p, 1);
	assert_int_equal(p->entry.nregions, before);
	check_claimed(p, jit, jit + 4 * PAGE, 1);
	claims[0] = (struct runtime_region){.start = 0, .end = UINT64_MAX, .part = 2};
	claim(p, 1);
	assert_int_equal(region_at(p, (uintptr_t)test_claim_bad)->part, 2);
	process_destroy(p);
}

/* What is no code yet can be claimed too, up to the code on both sides; where one claim stands, a later one gets the
 * rest. */
static void test_claim_unmapped(void **state)
{
	struct process *p = look();
	u64 jit = child.jit, start = jit - 64 * PAGE, end = jit + 64 * PAGE;
	u64 covered = 0, mapped = 0;

	claims[0] = (struct runtime_region){.start = start, .end = end, .part = 5, .unmapped = true};
	claims[1] = (struct runtime_region){.start = start, .end = end, .part = 6, .unmapped = true};
	build_with(p, 1);
	for (u32 i = 0; i < p->entry.nregions; i++) {
		const struct region *r = &regions_of(p)[i];
		u64 from = r->start > start ? r->start : start, to = r->end < end ? r->end : end;

		if (from >= to)
			continue;
		covered += to - from;
		mapped += r->part == 5 ? 0 : to - from;
	}
	assert_int_equal(covered, end - start);
	assert_true(mapped >= 4 * PAGE);
	check_claimed(p, jit, jit + 4 * PAGE, 0);
	build_with(p, 2);
	for (u32 i = 0; i < p->entry.nregions; i++)
		assert_int_not_equal(regions_of(p)[i].part, 6);
	process_destroy(p);
}

/* A runtime's own rows: one table, kept when the regions are built again, given back at the end. */
static void test_claim_entries(void **state)
{
	struct process *p = look();
	u64 jit = child.jit;
	struct cfi_entry entry = {.addr = jit, .rule = {.kind = CFI_REG, .cfa_reg = REG_SP, .cfa_off = 16}};
	u32 table;

	claims[0] = (struct runtime_region){
	        .start = jit, .end = jit + 2 * PAGE, .part = 1, .entries = &entry, .nentries = 1};
	claim(p, 1);
	check_claimed(p, jit, jit + 2 * PAGE, 1);
	table = region_at(p, jit)->table;
	assert_int_not_equal(table, 0);
	assert_int_equal(region_at(p, jit)->origin, jit);
	claim(p, 1);
	assert_int_equal(region_at(p, jit)->table, table);
	assert_int_equal(region_at(p, jit + 3 * PAGE)->table, 0);
	process_destroy(p);
}

static void keep_complaint(void *ctx, struct error *err)
{
	char *text = ctx;

	strcat(text, err->message);
	error_free(err);
}

/* More regions than an array may have: files stay, and what is lost is said once. */
static void test_claim_many(void **state)
{
	char said[512] = "", *number = NULL;
	struct process *p = look();

	for (u32 i = 0; i < CLAIMS; i++)
		claims[i] =
		        (struct runtime_region){.start = child.jit + 4 * i, .end = child.jit + 4 * i + 2, .part = 1};
	modules->complain = keep_complaint;
	modules->complain_ctx = said;
	build_with(p, CLAIMS);
	build_with(p, CLAIMS);
	modules->complain = NULL;
	assert_int_equal(p->entry.nregions, REGIONS_MAX);
	assert_non_null(number = strstr(said, "more than the 5000 that yrt looks up"));
	assert_null(strstr(number + 1, "more than"));
	assert_true(region_at(p, (u64)strlen)->module);
	process_destroy(p);
}

/* What processes take of the arena, they give back. */
static void test_arena_given_back(void **state)
{
	u64 size;

	process_destroy(look());
	size = arena_size(arena);
	for (u32 i = 0; i < 50; i++) {
		struct process *p = look();

		claims[0] = (struct runtime_region){.start = child.jit, .end = child.jit + PAGE, .part = 1};
		claim(p, 1);
		claim(p, 1);
		process_destroy(p);
	}
	assert_int_equal(arena_size(arena), size);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_mappings),
	        cmocka_unit_test(test_claim_split),
	        cmocka_unit_test(test_claim_bad),
	        cmocka_unit_test(test_claim_unmapped),
	        cmocka_unit_test(test_claim_entries),
	        cmocka_unit_test(test_claim_many),
	        cmocka_unit_test(test_arena_given_back),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
