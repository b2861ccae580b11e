/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of a layout on a live Python: the right one holds, stopped and running; one with any wrong offset does not. */
#include "python_target.h"
#include "runtimes/python/python_check.h"

#define RUNNING 300

struct fixture {
	struct target *t;
	struct python_image *image;
	struct memory *mem;
	u64 bias;
};

static struct fixture start(void)
{
	struct fixture f = {.t = target_start("calls.py")};
	struct runtime_process view;

	assert_true(target_continue(f.t, 0));
	view = process_view(f.t->process);
	f.mem = view.memory;
	for (u32 i = 0; i < view.nmappings && !f.image; i++)
		if (view.mappings[i].image) {
			must(python_image_probe(view.mappings[i].image, (void **)&f.image));
			f.bias = view.mappings[i].bias;
		}
	assert_non_null(f.image);
	return f;
}

static void end(struct fixture *f)
{
	python_image_destroy(f->image);
	target_end(f->t);
}

static u32 count(const struct fixture *f, const struct python_layout *l, bool fail)
{
	struct python_checked subject = {.image = f->image, .l = l, .mem = f->mem, .bias = f->bias};
	int found[RUNTIME_CHECKS_MAX];
	u32 n = 0;

	runtime_check(&python_checks, &subject, found);
	for (u32 i = 0; i < python_checks.n; i++)
		n += fail ? found[i] == CHECK_FAILS : found[i] > 0;
	return n;
}

static void test_holds(void **state)
{
	struct fixture f = start();

	assert_int_equal(count(&f, f.image->layout, false), python_checks.n);
	ptrace(PTRACE_CONT, f.t->pid, 0, 0);
	for (u32 i = 0; i < RUNNING; i++)
		while (count(&f, f.image->layout, true)) /* a layout that never holds ends in ctest's limit */
			usleep(1000);
	end(&f);
}

static bool holds(struct fixture *f, const struct python_layout *l)
{
	struct python_vm vm = f->image->vm;
	bool ret;

	f->image->vm = python_vm_of(l);
	ret = count(f, l, false) == python_checks.n;
	f->image->vm = vm;
	return ret;
}

/* Versions whose layouts are the same for a walk are as good. */
static void test_other_versions(void **state)
{
	struct fixture f = start();
	struct python_vm own = python_vm_of(f.image->layout);
	struct layout_library library;
	u32 wrong = 0;

	must(layout_library_load(&python_layout_schema, &library));
	for (u32 i = 0; i < library.n; i++) {
		const struct python_layout *l = library.files[i]->layout->values;
		struct python_vm vm = python_vm_of(l);

		if (!memcmp(&vm, &own, sizeof(vm)))
			continue;
		if (holds(&f, l))
			fail_msg("%s holds", library.files[i]->name);
		wrong++;
	}
	layout_library_free(&library);
	print_message("%u wrong layouts\n", wrong);
	assert_true(wrong >= 4);
	end(&f);
}

/* One member 8 bytes off; beside some is one of the same type, or nothing that a check can distinguish from it. */
static void test_wrong_offsets(void **state)
{
	struct fixture f = start();
	u32 wrong = 0, seen = 0;

	for (u32 i = 0; i < python_layout_schema.n; i++) {
		struct python_layout l = *f.image->layout;
		struct layout_member *m = (struct layout_member *)((u8 *)&l + python_layout_schema.fields[i].slot);

		if (!m->size)
			continue;
		m->at += 8;
		wrong++;
		seen += !holds(&f, &l);
	}
	print_message("%u of %u wrong offsets seen\n", seen, wrong);
	assert_true(seen * 2 > wrong);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_holds),
	        cmocka_unit_test(test_other_versions),
	        cmocka_unit_test(test_wrong_offsets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
