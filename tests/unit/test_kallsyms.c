/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "unwind/symbols/symbols.h"

static struct kallsyms *load(const char *path)
{
	struct kallsyms *k = NULL;
	struct error *err = kallsyms_load(path, &k);

	if (err)
		print_message("%s\n", err->message);
	assert_null(err);
	return k;
}

static struct kallsyms *load_text(const char *text, size_t size)
{
	char path[] = "/tmp/yrt-kallsyms-XXXXXX";
	int fd = mkstemp(path);
	struct kallsyms *k;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, size), size);
	close(fd);
	k = load(path);
	unlink(path);
	return k;
}

static void expect(const struct kallsyms *k, u64 addr, const char *name)
{
	const char *found = kallsyms_find(k, addr);

	if (!name)
		assert_null(found);
	else
		assert_string_equal(found ? found : "(none)", name);
}

static void test_rules(void **state)
{
	static const char text[] = "0000000000000000 A fixed_percpu_data\n"
	                           "ffffffff81000000 T _stext\n"
	                           "ffffffff81000000 t _text_local\n"
	                           "ffffffff81000000 T startup\n"
	                           "ffffffff81000100 W weak_one\n"
	                           "ffffffff81000180 d not_code\n"
	                           "ffffffff81000200 t local.cold\n"
	                           "ffffffff81000300 T last\n"
	                           "ffffffffc0001000 t in_module\t[nf_tables]\n"
	                           "ffffffffc0000000 t earlier\t[ext4]\n"
	                           "ffffffffc0002000 t bpf_prog_6deef7357e7b4530_x\t[bpf]\n"
	                           "not a line at all\n"
	                           "ffffffff8100zzzz T no_address\n"
	                           "ffffffff81000400 T\n"
	                           "ffffffff81000500 T without_newline";
	struct kallsyms *k = load_text(text, sizeof(text) - 1);

	(void)state;
	expect(k, 0, NULL);
	expect(k, 0xffffffff80ffffff, NULL);
	expect(k, 0xffffffff81000000, "startup");
	expect(k, 0xffffffff810000ff, "startup");
	expect(k, 0xffffffff81000100, "weak_one");
	expect(k, 0xffffffff810001ff, "weak_one");
	expect(k, 0xffffffff81000234, "local.cold");
	expect(k, 0xffffffff81000500, "last"); /* a line without its end was not printed by a kernel */
	expect(k, 0xffffffff810ff000, "last");
	expect(k, 0xffffffff81200000, NULL);
	expect(k, 0xffffffffc0000010, "earlier [ext4]");
	expect(k, 0xffffffffc0001fff, "in_module [nf_tables]");
	expect(k, 0xffffffffc0002000, "bpf_prog_6deef7357e7b4530_x [bpf]");
	expect(k, 0xffffffffc0102000, NULL);
	expect(k, UINT64_MAX, NULL);
	kallsyms_destroy(k);
}

static void test_hidden(void **state)
{
	static const char text[] = "0000000000000000 T _stext\n0000000000000000 t f\t[m]\n";
	struct kallsyms *k = load_text(text, sizeof(text) - 1);

	(void)state;
	expect(k, 0, NULL);
	expect(k, 0xffffffff81000000, NULL);
	kallsyms_destroy(k);
	k = load_text("", 0);
	expect(k, 1, NULL);
	kallsyms_destroy(k);
	kallsyms_destroy(NULL);
}

/* A line longer than any buffer does not lose those behind it. */
static void test_long_line(void **state)
{
	const size_t size = 300000;
	char *text = malloc(size + 200), *p = text;
	struct kallsyms *k;

	(void)state;
	p += sprintf(p, "ffffffff81000000 T before\nffffffff81000010 T ");
	memset(p, 'x', size);
	p += size;
	p += sprintf(p, "\nffffffff81000020 T after\n");
	k = load_text(text, p - text);
	expect(k, 0xffffffff81000000, "before");
	expect(k, 0xffffffff81000020, "after");
	kallsyms_destroy(k);
	free(text);
}

static void test_no_file(void **state)
{
	struct kallsyms *k = NULL;
	struct error *err = kallsyms_load("/nonexistent/kallsyms", &k);

	(void)state;
	assert_non_null(err);
	assert_non_null(strstr(err->message, "/nonexistent/kallsyms"));
	assert_null(k);
	error_free(err);
}

/* Every text line of the running kernel is found by its own address, nearly all under their own name. */
static void test_kernel(void **state)
{
	struct kallsyms *k = load("/proc/kallsyms");
	FILE *f = fopen("/proc/kallsyms", "r");
	char line[1024], *tab;
	unsigned long checked = 0, same = 0, hidden = 0;
	const char *found;
	u64 addr;
	char kind;
	int at;

	(void)state;
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx %c %n", &addr, &kind, &at) != 2 || !strchr("TtWw", kind))
			continue;
		line[strcspn(line, "\n")] = 0;
		tab = strchr(line + at, '\t');
		if (tab)
			*tab = ' ';
		if (strstr(line + at, "[bpf]")) /* those come and go meanwhile */
			continue;
		found = kallsyms_find(k, addr);
		assert_true(!addr == !found);
		hidden += !addr;
		checked += !!addr;
		same += found && !strcmp(found, line + at);
	}
	fclose(f);
	print_message("%lu of %lu text symbols by their own name, %lu addresses hidden\n", same, checked, hidden);
	assert_true(checked + hidden > 1000);
	assert_true(same * 100 >= checked * 98); /* the rest are aliases */
	kallsyms_destroy(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_rules),
	        cmocka_unit_test(test_hidden),
	        cmocka_unit_test(test_long_line),
	        cmocka_unit_test(test_no_file),
	        cmocka_unit_test(test_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
