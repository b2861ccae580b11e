/* SPDX-License-Identifier: Apache-2.0 */
/* What a JVM says of itself, its layout, its code, and the checks of both, on a JVM of fake memory. */
#include "look.h"

#include "hotspot_tables_fake.h"
#include "runtimes/hotspot/hotspot_check.h"

struct jvm {
	struct hotspot_fake f;
	struct vmstructs *v;
	struct layout *origins;
	const struct hotspot_layout *l;
	struct hotspot_code *code;
};

static void start(struct jvm *j, enum fake_shape shape)
{
	fake_jvm(&j->f, shape);
	must(vmstructs_read(&j->f.symbols, &j->f.memory, FAKE_BASE, &j->v));
	assert_non_null(j->v);
	must(hotspot_layout_find(j->v, &j->origins));
	j->l = j->origins->values;
	must(hotspot_code_create(j->v, j->l, &j->code));
}

static void stop(struct jvm *j)
{
	hotspot_code_destroy(j->code);
	layout_destroy(j->origins);
	vmstructs_destroy(j->v);
}

static void test_entries(void **state)
{
	static struct jvm j;
	const char *text;
	u64 value;
	s64 constant;

	start(&j, FAKE_25);
	assert_true(vmstructs_field(j.v, "CodeHeap", "_memory", &value, &text));
	assert_int_equal(value, 8);
	assert_string_equal(text, "VirtualSpace");
	assert_true(vmstructs_static(j.v, "CodeCache", "_heaps", &value));
	assert_true(vmstructs_type_size(j.v, "HeapBlock", &value));
	assert_int_equal(value, 8);
	assert_true(vmstructs_constant(j.v, "CodeBlobKind::Nmethod", &constant));
	assert_int_equal(constant, FAKE_KIND);
	/* a static one is no field, and the other way round */
	assert_false(vmstructs_field(j.v, "CodeCache", "_heaps", &value, NULL));
	assert_false(vmstructs_static(j.v, "CodeHeap", "_memory", &value));
	assert_false(vmstructs_type_size(j.v, "NoSuchType", &value));
	assert_false(vmstructs_constant(j.v, "no_such_constant", &constant));
	stop(&j);
}

/* Each member of a CodeHeap lies within it, as far as vmStructs can be believed. */
static void test_members_of_heap(void **state)
{
	static struct jvm j;
	struct hotspot_layout l;
	struct layout_member *const members[] = {&l.heap_memory, &l.heap_segmap, &l.heap_log2_segment, &l.space_low,
	        &l.space_high, &l.space_low_boundary, &l.space_high_boundary};
	struct hotspot_code *code;
	struct error *err;

	start(&j, FAKE_25);
	for (u32 i = 0; i < sizeof(members) / sizeof(*members); i++) {
		l = *j.l;
		members[i]->at = l.heap_size.at - 1;
		err = hotspot_code_create(j.v, &l, &code);
		assert_non_null(err);
		assert_null(code);
		error_free(err);
	}
	stop(&j);
}

/* Its static constructors have not run: no error, but nothing either. */
static void test_not_ready(void **state)
{
	static struct hotspot_fake f;
	struct vmstructs *v = (void *)1;

	fake_jvm(&f, FAKE_17);
	fake_poke(&f, FAKE_BASE + f.symbols.stride[0], 0, 8);
	must(vmstructs_read(&f.symbols, &f.memory, FAKE_BASE, &v));
	assert_null(v);
}

static void assert_refused(struct hotspot_fake *f, const char *words)
{
	struct vmstructs *v;
	struct error *err = vmstructs_read(&f->symbols, &f->memory, FAKE_BASE, &v);

	assert_non_null(err);
	assert_null(v);
	if (!strstr(err->message, words))
		fail_msg("\"%s\" does not say \"%s\"", err->message, words);
	error_free(err);
}

static void test_garbage_tables(void **state)
{
	static struct hotspot_fake f;

	fake_jvm(&f, FAKE_17);
	fake_poke(&f, FAKE_BASE + f.symbols.stride[0], 1 << 20, 8);
	assert_refused(&f, "makes no sense");
	fake_jvm(&f, FAKE_17);
	fake_poke(&f, FAKE_BASE + f.symbols.column[0][5], 41, 8); /* reaches out of the entry */
	assert_refused(&f, "makes no sense");
	fake_jvm(&f, FAKE_17);
	fake_poke(&f, FAKE_BASE + f.symbols.table[1], 0xdead0000, 8);
	assert_refused(&f, "no end");
	fake_jvm(&f, FAKE_17);
	memset(f.bytes + f.put[0], 1, FAKE_BYTES - f.put[0]); /* up to where nothing can be read */
	assert_refused(&f, "no end");
}

/* Names that can not be read are none: their entries are never found. */
static void test_garbage_names(void **state)
{
	static struct hotspot_fake f;
	struct layout *origins;
	struct vmstructs *v;
	struct error *err;

	fake_jvm(&f, FAKE_17);
	memset(f.bytes + FAKE_NAMES, 'x', f.names - FAKE_NAMES);
	must(vmstructs_read(&f.symbols, &f.memory, FAKE_BASE, &v));
	err = hotspot_layout_find(v, &origins);
	assert_non_null(err);
	assert_null(origins);
	assert_non_null(strstr(err->message, "sizeof CodeHeap"));
	error_free(err);
	vmstructs_destroy(v);
}

static void test_layout(void **state)
{
	static struct jvm j;
	char origin[64];

	start(&j, FAKE_17);
	assert_int_equal(j.l->blob_name.size, 8);
	assert_int_equal(j.l->nm_level.size, 4);
	assert_int_equal(j.l->symbol_body.size, 1);
	assert_int_equal(j.l->block_size.at, 16);
	assert_int_equal(j.l->blob_kind.size, 0);
	assert_int_equal(j.l->nm_immutable_data.size, 0);
	assert_int_not_equal(j.l->nm_metadata_offset.size, 0);
	assert_string_equal(layout_origin(j.origins, 0, origin, sizeof(origin)), "process vmStructs");
	stop(&j);
	start(&j, FAKE_25);
	assert_int_equal(j.l->blob_code_begin.size, 0);
	assert_int_equal(j.l->kind_nmethod.at, FAKE_KIND);
	stop(&j);
}

/* The second name of a field that moved; types with qualifiers. */
static void test_moved(void **state)
{
	static struct jvm j;

	start(&j, FAKE_17);
	stop(&j);
	fake_jvm(&j.f, FAKE_17);
	for (u8 *p = j.f.bytes + FAKE_NAMES; p < j.f.bytes + j.f.names; p += strlen((char *)p) + 1)
		if (!strcmp((char *)p, "nmethod") && !strcmp((char *)p + 8, "_method"))
			memcpy(p, "nmethoX", 7);
	fake_field(&j.f, "CompiledMethod", "_method", "Method* const volatile", 72);
	fake_field(&j.f, "ConstMethod", "_flags._flags", "volatile unsigned char", 6);
	must(vmstructs_read(&j.f.symbols, &j.f.memory, FAKE_BASE, &j.v));
	must(hotspot_layout_find(j.v, &j.origins));
	j.l = j.origins->values;
	assert_int_equal(j.l->nm_method.at, 72);
	assert_int_equal(j.l->nm_method.size, 8);
	layout_destroy(j.origins);
	vmstructs_destroy(j.v);
}

static bool count(void *ctx, const struct hotspot_blob *blob)
{
	u32 *kinds = ctx;

	kinds[blob->kind]++;
	return true;
}

static void check_code(enum fake_shape shape)
{
	static struct jvm j;
	struct hotspot_heap heaps[HOTSPOT_HEAPS_MAX];
	struct hotspot_blob blob;
	struct hotspot_nmethod n;
	u32 kinds[3] = {0};
	u64 begin, end;

	start(&j, shape);
	assert_int_equal(hotspot_heaps(j.code, &j.f.memory, heaps), 1);
	assert_int_equal(heaps[0].low, FAKE_BASE + FAKE_CODE);
	assert_int_equal(heaps[0].high, FAKE_BASE + FAKE_CODE_END);
	assert_string_equal(heaps[0].name, "CodeCache");
	hotspot_each_blob(j.code, &j.f.memory, &heaps[0], count, kinds);
	assert_int_equal(kinds[BLOB_NMETHOD], 2);
	assert_int_equal(kinds[BLOB_STUB], 1);
	assert_int_equal(kinds[BLOB_BUFFER], 1);
	assert_true(hotspot_interpreter(j.code, &j.f.memory, &begin, &end));
	assert_int_equal(end - begin, 512);
	assert_true(hotspot_blob_at(j.code, &j.f.memory, end - 1, &blob));
	assert_string_equal(blob.name, "Interpreter");
	/* each byte of the second nmethod's code leads to it */
	for (u32 i = 0; i < FAKE_BODY; i++) {
		assert_true(hotspot_blob_at(j.code, &j.f.memory, j.f.nmethod[1] + FAKE_HEAD + i, &blob));
		assert_int_equal(blob.at, j.f.nmethod[1]);
	}
	assert_int_equal(blob.code, j.f.nmethod[1] + FAKE_HEAD);
	assert_int_equal(blob.code_end - blob.code, FAKE_BODY);
	assert_int_equal(blob.frame_size, 6);
	assert_int_equal(blob.frame_complete, 12);
	assert_false(hotspot_blob_at(j.code, &j.f.memory, heaps[0].high - 1, &blob)); /* free */
	assert_false(hotspot_blob_at(j.code, &j.f.memory, heaps[0].high, &blob));     /* not committed */
	assert_true(hotspot_nmethod_read(j.code, &j.f.memory, j.f.nmethod[1], 101, &n));
	assert_int_equal(n.method, j.f.method[1]);
	assert_int_equal(n.level, 4);
	assert_int_equal(n.entry_bci, -1);
	assert_int_equal(n.orig_pc_offset, 24);
	assert_int_equal((n.pcs_end - n.pcs) / j.l->pc_desc_size.at, FAKE_PCS);
	assert_int_equal(n.scopes_end - n.scopes, FAKE_SCOPES);
	assert_int_equal((n.metadata_end - n.metadata) / 8, 2);
	assert_int_equal(fake_peek(&j.f, n.metadata, 8), j.f.method[1]);
	assert_false(hotspot_nmethod_read(j.code, &j.f.memory, j.f.nmethod[1], 100, &n)); /* another one by now */
	assert_false(hotspot_nmethod_read(j.code, &j.f.memory, j.f.stub, 0, &n));
	stop(&j);
}

static void test_code(void **state)
{
	check_code(FAKE_17);
	check_code(FAKE_25);
}

/* A segment map that runs in circles, or back before the heap. */
static void test_segments(void **state)
{
	static struct jvm j;
	struct hotspot_blob blob;
	u64 map = FAKE_BASE + FAKE_CODE_END, pc;

	start(&j, FAKE_17);
	pc = j.f.nmethod[0] + FAKE_HEAD;
	for (u32 i = 0; i < (FAKE_CODE_END - FAKE_CODE) >> FAKE_SEGMENT; i++)
		fake_poke(&j.f, map + i, 1, 1);
	assert_false(hotspot_blob_at(j.code, &j.f.memory, pc, &blob));
	fake_poke(&j.f, map, 0, 1);
	assert_true(hotspot_blob_at(j.code, &j.f.memory, FAKE_BASE + FAKE_CODE + 200, &blob));
	for (u32 i = 0; i < (FAKE_CODE_END - FAKE_CODE) >> FAKE_SEGMENT; i++)
		fake_poke(&j.f, map + i, 200, 1);
	assert_false(hotspot_blob_at(j.code, &j.f.memory, pc, &blob));
	stop(&j);
}

static void assert_all_hold(enum fake_shape shape)
{
	int found[RUNTIME_CHECKS_MAX];
	static struct jvm j;
	bool conclusive;

	start(&j, shape);
	hotspot_check(j.v, j.l, j.code, &j.f.memory, found);
	for (u32 i = 0; i < hotspot_checks.n; i++)
		if (found[i] <= 0)
			fail_msg("%s: %d", hotspot_checks.all[i].name, found[i]);
	must(hotspot_check_process(j.v, j.l, j.code, &j.f.memory, &conclusive));
	assert_true(conclusive);
	stop(&j);
}

static void test_checks_hold(void **state)
{
	assert_all_hold(FAKE_17);
	assert_all_hold(FAKE_25);
}

static void assert_fails(struct jvm *j, const char *name)
{
	bool conclusive;
	struct error *err = hotspot_check_process(j->v, j->l, j->code, &j->f.memory, &conclusive);
	char quoted[64];

	snprintf(quoted, sizeof(quoted), "\"%s\"", name);
	if (!err || !strstr(err->message, quoted))
		fail_msg("not %s but: %s", quoted, err ? err->message : "all holds");
	error_free(err);
	stop(j);
}

/* A few nmethods that their methods do not run prove nothing yet. */
static void test_checks_open(void **state)
{
	static struct jvm j;
	bool conclusive;

	start(&j, FAKE_17);
	fake_set(&j.f, j.f.method[0], j.l->method_code, 0);
	fake_set(&j.f, j.f.method[1], j.l->method_code, 0);
	must(hotspot_check_process(j.v, j.l, j.code, &j.f.memory, &conclusive));
	assert_false(conclusive);
	stop(&j);
}

/* nmethods that an agent's redefinition made not entrant say nothing about the layout, however many there are. */
static void test_checks_of_old_code(void **state)
{
	int found[RUNTIME_CHECKS_MAX];
	static struct jvm j;

	start(&j, FAKE_17);
	for (u32 i = 0; i < 14; i++)
		fake_set(&j.f, fake_nmethod(&j.f, j.l, j.f.method[i & 1], 100 + i, 3), j.l->nm_state, 2);
	for (u32 i = 0; i < 2; i++) {
		fake_set(&j.f, j.f.nmethod[i], j.l->nm_state, 2); /* not_entrant */
		fake_set(&j.f, j.f.method[i], j.l->method_code, 0);
	}
	hotspot_check(j.v, j.l, j.code, &j.f.memory, found);
	assert_string_equal(hotspot_checks.all[4].name, "methods");
	assert_int_equal(found[4], 0);
	fake_nmethod(&j.f, j.l, j.f.method[0], 200, 4);
	hotspot_check(j.v, j.l, j.code, &j.f.memory, found);
	assert_int_equal(found[4], 1);
	stop(&j);
}

static void test_checks_fail(void **state)
{
	static struct jvm j;
	struct hotspot_nmethod n;

	start(&j, FAKE_25);
	fake_set(&j.f, j.f.heap + j.l->heap_memory.at, j.l->space_high, FAKE_BASE + FAKE_CODE + (2 << 20));
	fake_set(&j.f, j.f.heap + j.l->heap_memory.at, j.l->space_high_boundary, FAKE_BASE + FAKE_CODE + (2 << 20));
	assert_fails(&j, "code heaps");
	start(&j, FAKE_17);
	fake_set(&j.f, j.f.stub, j.l->blob_name, j.f.stub);
	assert_fails(&j, "blobs");
	start(&j, FAKE_17);
	fake_poke(&j.f, FAKE_BASE + FAKE_CODE_END + 9, 1, 1);
	assert_fails(&j, "segment map");
	start(&j, FAKE_17);
	fake_set(&j.f, j.f.interpreter, j.l->blob_name, fake_text(&j.f, "Interrupter"));
	assert_fails(&j, "interpreter");
	start(&j, FAKE_25);
	fake_set(&j.f, j.f.method[0], j.l->method_const, 8);
	fake_set(&j.f, j.f.method[1], j.l->method_const, 8);
	assert_fails(&j, "methods");
	start(&j, FAKE_25);
	assert_true(hotspot_nmethod_read(j.code, &j.f.memory, j.f.nmethod[0], 0, &n));
	fake_poke(&j.f, n.pcs + 2 * j.l->pc_desc_size.at + j.l->pc_desc_pc.at, 19, 4);
	assert_fails(&j, "PcDescs");
	start(&j, FAKE_25);
	assert_true(hotspot_nmethod_read(j.code, &j.f.memory, j.f.nmethod[0], 0, &n));
	fake_poke(&j.f, n.metadata, 0, 8);
	assert_fails(&j, "metadata");
	start(&j, FAKE_17);
	fake_set(&j.f, j.f.thread + j.l->tlab.at, j.l->tlab_top, FAKE_BASE + 513);
	assert_fails(&j, "threads");
}

/* A JVM with a code heap that reaches too far until it was read so often. */
struct healing {
	struct memory memory;
	struct jvm *jvm;
	u64 high;
	u32 reads, heals;
};

static void reach(struct jvm *j, u64 high)
{
	fake_set(&j->f, j->f.heap + j->l->heap_memory.at, j->l->space_high, high);
	fake_set(&j->f, j->f.heap + j->l->heap_memory.at, j->l->space_high_boundary, high);
}

static bool read_healing(struct memory *m, void *dst, size_t size, uint64_t addr)
{
	struct healing *h = (struct healing *)m;

	if (++h->reads > h->heals)
		reach(h->jvm, h->high);
	return memory_read(&h->jvm->f.memory, dst, size, addr);
}

/* The number of reads of all attempts. */
static u32 check_healing(struct jvm *j, u32 heals, bool holds)
{
	u64 high_at = j->f.heap + j->l->heap_memory.at + j->l->space_high.at;
	struct healing h = {{.read = read_healing}, j, fake_peek(&j->f, high_at, 8), 0, heals};
	int found[RUNTIME_CHECKS_MAX];

	reach(j, FAKE_BASE + FAKE_CODE + (2 << 20));
	hotspot_check(j->v, j->l, j->code, &h.memory, found);
	assert_int_equal(found[0] > 0, holds);
	reach(j, h.high);
	return h.reads;
}

/* What is checked again is read again: one attempt more is enough. */
static void test_checks_again(void **state)
{
	static struct jvm j;
	u32 good, five;

	start(&j, FAKE_25);
	good = check_healing(&j, 0, true);
	five = check_healing(&j, UINT32_MAX, false);
	assert_int_equal(check_healing(&j, five / 5, true), five / 5 + good);
	stop(&j);
}

/* Any read may fail: the JVM exits. The result then is an error or nothing, and never a crash. */
static void test_reads_fail(void **state)
{
	static struct jvm j;
	bool conclusive;
	u32 reads;

	start(&j, FAKE_25);
	j.f.reads = 0;
	must(hotspot_check_process(j.v, j.l, j.code, &j.f.memory, &conclusive));
	reads = j.f.reads;
	assert_in_range(reads, 10, 5000); /* by the page */
	for (u32 i = 1; i <= reads; i++) {
		j.f.reads = 0;
		j.f.fail = i;
		error_free(hotspot_check_process(j.v, j.l, j.code, &j.f.memory, &conclusive));
	}
	stop(&j);
	fake_jvm(&j.f, FAKE_25);
	for (u32 i = 1; i < 200; i++) {
		struct vmstructs *v = NULL;

		j.f.reads = 0;
		j.f.fail = i;
		error_free(vmstructs_read(&j.f.symbols, &j.f.memory, FAKE_BASE, &v));
		vmstructs_destroy(v);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_entries),
	        cmocka_unit_test(test_members_of_heap),
	        cmocka_unit_test(test_not_ready),
	        cmocka_unit_test(test_garbage_tables),
	        cmocka_unit_test(test_garbage_names),
	        cmocka_unit_test(test_layout),
	        cmocka_unit_test(test_moved),
	        cmocka_unit_test(test_code),
	        cmocka_unit_test(test_segments),
	        cmocka_unit_test(test_checks_hold),
	        cmocka_unit_test(test_checks_open),
	        cmocka_unit_test(test_checks_of_old_code),
	        cmocka_unit_test(test_checks_fail),
	        cmocka_unit_test(test_checks_again),
	        cmocka_unit_test(test_reads_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
