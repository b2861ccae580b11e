/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of a live Python at known points: names, files, lines and order are those that Python itself reports. */
#include "python_target.h"

#define STOPS_MIN  55
#define LINE_BYTES 8192

struct expected {
	char name[LINE_BYTES], file[LINE_BYTES];
	u32 line;
};

/* Fields are separated by tabs, names may hold anything else; a file name with a newline spans two lines. */
static bool read_expected(struct target *t, struct expected *ret)
{
	char text[LINE_BYTES] = "", *tab, *end;
	size_t len = 0;

	do {
		if (!fgets(text + len, (int)(sizeof(text) - len), t->out))
			fail_msg("the script wrote no more");
		len = strlen(text);
		if (!strcmp(text, "\n"))
			return false;
		tab = strchr(text, '\t');
		end = tab ? strchr(tab + 1, '\t') : NULL;
	} while (!end);
	*tab = *end = '\0';
	snprintf(ret->name, sizeof(ret->name), "%s", text);
	snprintf(ret->file, sizeof(ret->file), "%s", tab + 1);
	ret->line = (u32)strtoul(end + 1, NULL, 10);
	return true;
}

/* Names are cut to what a frame_name holds, at a whole character. */
static bool same_text(const char *seen, const char *expected)
{
	size_t len = strlen(seen);

	return !strcmp(seen, expected) || (len + 5 > NAME_MAX_BYTES && !strncmp(seen, expected, len));
}

static u32 check_stop(struct target *t)
{
	struct expected e;
	struct frame_name name;
	int stop = target_walk(t);
	u32 i = target_script(t, 0), n = 0;

	if (stop != STOP_ROOT)
		fail_msg("the walk ended after %u frames for reason %d", t->nframes, stop);
	assert_true(i < t->nframes);
	assert_true(target_name(t, i, &name));
	assert_string_equal(name.name, "stop");
	while (read_expected(t, &e)) {
		i = target_script(t, i + 1);
		if (i == t->nframes)
			fail_msg("%s (%s:%u) is missing", e.name, e.file, e.line);
		if (!target_name(t, i, &name))
			fail_msg("%s (%s:%u) has no name", e.name, e.file, e.line);
		if (!same_text(name.name, e.name) || !same_text(name.file, e.file) || name.line != e.line)
			fail_msg("frame %u is %s (%s:%u), not %s (%s:%u)", n, name.name, name.file, name.line, e.name,
			        e.file, e.line);
		n++;
	}
	if (target_script(t, i + 1) != t->nframes) {
		target_name(t, target_script(t, i + 1), &name);
		fail_msg("%s (%s:%u) is one frame too many", name.name, name.file, name.line);
	}
	return n;
}

static void test_frames(void **state)
{
	struct target *t = target_start("oracle.py");
	u32 stops = 0, frames = 0, deepest = 0;

	while (target_continue(t, 0)) {
		u32 n = check_stop(t);

		stops++;
		frames += n;
		deepest = n > deepest ? n : deepest;
	}
	print_message("%u stops, %u frames, the deepest stack %u\n", stops, frames, deepest);
	assert_true(stops >= STOPS_MIN);
	assert_true(deepest >= 4500);
	target_end(t);
}

/* One interpreter within another's call, which each have a state of this thread. */
static void test_interpreters(void **state)
{
	struct target *t = target_start("interpreters.py");
	char line[LINE_BYTES];
	struct frame_name name;
	u32 i, n = 0;

	assert_true(target_continue(t, 0));
	assert_int_equal(target_walk(t), STOP_ROOT);
	for (i = target_script(t, 0); fgets(line, sizeof(line), t->out) && line[0] != '\n';
	        i = target_script(t, i + 1)) {
		line[strcspn(line, "\n")] = '\0';
		if (i == t->nframes || !target_name(t, i, &name))
			fail_msg("%s is missing", line);
		assert_string_equal(name.name, line);
		n++;
	}
	assert_int_equal(i, t->nframes);
	print_message("%u frames of two interpreters\n", n);
	assert_true(n > 10);
	target_end(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_frames),
	        cmocka_unit_test(test_interpreters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
