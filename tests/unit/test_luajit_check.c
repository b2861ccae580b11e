/* SPDX-License-Identifier: Apache-2.0 */
/* A right layout passes all checks on a live process; one with any member off by its size fails in the code or there.
 */
#include "luajit_target.h"

#include "runtimes/luajit/luajit_check.h"
#include "runtimes/luajit/luajit_facts.h"
#include "runtimes/luajit/luajit_vms.h"

#define READS_MAX 7000

struct subject {
	struct target *target;
	const struct luajit_image *image;
	struct runtime_process view;
	u64 g;
	struct luajit_facts facts;
};

static int setup(void **state)
{
	struct subject *s = calloc(1, sizeof(*s));
	struct luajit_vms vms;

	s->target = target_start("layout.lua", "", NULL);
	assert_true(target_continue(s->target, 0));
	assert_int_equal(s->target->process->ninstances, 1);
	s->image = s->target->process->instances[0].loaded->runtime[RUNTIME_LUAJIT];
	s->view = process_view(s->target->process);
	must(luajit_vms_find(s->image, s->target->process->instances[0].bias, &s->view, LUAJIT_VMS_MEMORY, &vms));
	assert_int_equal(vms.n, 1);
	s->g = vms.g[0];
	free(vms.g);
	must(luajit_facts_read(
	        s->target->process->instances[0].loaded->image, s->image->blob.start, s->image->blob.end, &s->facts));
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct subject *s = *state;

	luajit_facts_free(&s->facts);
	target_end(s->target);
	free(s);
	return 0;
}

struct counting {
	struct memory memory;
	struct memory *under;
	u32 n;
};

static bool count_read(struct memory *memory, void *dst, size_t size, u64 addr)
{
	struct counting *c = (struct counting *)memory;

	c->n++;
	return memory_read(c->under, dst, size, addr);
}

/* Each process of the machine with a LuaJIT is checked once: what the checks are about is looked up once. */
static void test_cheap(void **state)
{
	struct subject *s = *state;
	struct counting c = {.memory = {.read = count_read}, .under = s->view.memory};
	struct runtime_process view = s->view;
	struct luajit_checked vm = {.l = s->image->layout, .p = &view, .g = s->g};
	int found[RUNTIME_CHECKS_MAX];

	view.memory = &c.memory;
	runtime_check(&luajit_checks, &vm, found);
	print_message("%u reads\n", c.n);
	assert_true(c.n > 100);
	assert_true(c.n < READS_MAX);
}

static void test_right(void **state)
{
	struct subject *s = *state;
	struct luajit_checked vm = {.l = s->image->layout, .p = &s->view, .g = s->g};
	int found[RUNTIME_CHECKS_MAX];

	runtime_check(&luajit_checks, &vm, found);
	for (u32 i = 0; i < luajit_checks.n; i++)
		if (found[i] <= 0)
			fail_msg("%s: %d: %s", luajit_checks.all[i].name, found[i], luajit_checks.all[i].what);
}

/* By which check; NULL: none. */
static const char *noticed_by(const struct subject *s, struct layout *l)
{
	struct error *err = luajit_facts_check(&s->facts, l, "test");
	struct luajit_checked vm = {.l = l->values, .p = &s->view, .g = s->g};
	const struct runtime_check *failed;

	error_free(err);
	if (err)
		return "code";
	failed = runtime_check_failed(&luajit_checks, &vm);
	return failed ? failed->name : NULL;
}

/*
 * What may go unnoticed, because the words beside hold what it might: bits and numbers that are only shown, the size of
 * a single code area, numbers of traces (a smaller bound is the next free number), a trace's link to itself, slots.
 */
static bool is_excused(const char *name)
{
	static const char *const names[] = {"jit_State.flags", "jit_State.state", "jit_State.szmcarea",
	        "jit_State.szallmcarea", "jit_State.sizetrace", "GCtrace.link", "SnapShot.nslots"};

	for (u32 i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

/* Each member further up, further down, by its size. */
static void test_wrong(void **state)
{
	struct subject *s = *state;
	struct layout *l;
	u32 unnoticed = 0;

	must(layout_copy(s->image->origins, &l));
	if (noticed_by(s, l))
		fail_msg("the right layout is refused: %s", noticed_by(s, l));
	for (u32 i = 0; i < l->schema->n; i++) {
		struct layout_member *m = layout_member(l, i), right = *m;

		if (l->schema->fields[i].list || !m->size)
			continue;
		for (int sign = -1; sign <= 1; sign += 2) {
			u16 step = right.size > 8 ? 8 : right.size;

			if (sign < 0 && right.at < step)
				continue;
			m->at = right.at + sign * step;
			if (noticed_by(s, l) || is_excused(l->schema->fields[i].name))
				continue;
			print_error("%s at %u, not %u: not noticed\n", l->schema->fields[i].name, m->at, right.at);
			unnoticed++;
		}
		*m = right;
	}
	layout_destroy(l);
	assert_int_equal(unnoticed, 0);
}

/* Layouts of other versions: either they are the same but for GG_State, which is then where it is not, or they fail. */
static void test_other_versions(void **state)
{
	struct subject *s = *state;
	struct layout_library library;
	u32 equal = 0;

	must(layout_library_load(&luajit_layout_schema, &library));
	for (u32 i = 0; i < library.n; i++) {
		struct layout *l = library.files[i]->layout;
		bool same = true;

		for (u32 k = 0; k < l->schema->n; k++)
			same = same && (l->schema->fields[k].list || is_excused(l->schema->fields[k].name) ||
			                       layout_equal_field(l, s->image->origins, k));
		equal += same;
		if (!noticed_by(s, l) != same)
			fail_msg("%s: %s", library.files[i]->name, same ? noticed_by(s, l) : "not noticed");
	}
	assert_true(equal >= 1);
	assert_true(library.n - equal >= 10);
	layout_library_free(&library);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_right, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_cheap, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_wrong, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_other_versions, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
