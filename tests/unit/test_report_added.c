/* SPDX-License-Identifier: Apache-2.0 */
/* Where a program adds to a collection, by its source. */
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

#include "frontends/report/added.h"
#include "frontends/report/source_text.h"

static char folder[] = "/tmp/yrt-added-XXXXXX";

static void put(const char *name, const char *text)
{
	char path[128];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	out = fopen(path, "w");
	assert_non_null(out);
	fputs(text, out);
	fclose(out);
	assert_int_equal(chmod(path, 0644), 0);
}

/* What is said of a collection on this way, "@" being the folder, by the files that there are. */
static void expect(const char *way, const char *file, const char *expected)
{
	static const struct libraries none = {0};
	struct evidence e = {0};
	char by[256];

	snprintf(by, sizeof(by), "_: function f (%s/%s:1) > %s", folder, file, way);
	facts_set_text(&e.facts, "kept.by", by);
	facts_set(&e.facts, "kept.sure", 1);
	assert_null(added_find(&none, getpid(), &e));
	assert_non_null(facts_find(&e.facts, "kept.added"));
	assert_string_equal(facts_find(&e.facts, "kept.added")->text, expected);
	facts_free(&e.facts);
}

static void expect_line(const char *file, const char *line, bool adds)
{
	put(file, line);
	{
		char text[64];

		snprintf(text, sizeof(text), ", added in %s:1", file);
		expect("seen: dict", file, adds ? text : "");
	}
}

static void test_lines(void **state)
{
	static const char *const adding[] = {"self.seen[key] = 1", "seen[order['user']] = order", "seen.append(x)",
	        "app.seen.setdefault(u, []).append(x)", "seen[a + b].append(x)", "seen.extend(more)", "seen += [x]",
	        "list[#list + 1] = 0; seen[1] = x", "table.insert(self.seen, x)", "push @{$self->{seen}{$u}}, $o;",
	        "$seen{$_}{x} = 1;", "$self->{seen}->{$id} ||= 1;", "s.seen = append(s.seen, x)", "seen[id] = x",
	        "s.seen.Store(id, x)", "this.seen.computeIfAbsent(k, f).add(x);", "seen.put(key, value);",
	        "seen.push(x)", "seen.set(k, v)", "heapq.heappush(seen, x)"};
	static const char *const others[] = {"if seen[key] == 1:", "x = seen[key]", "seen = {}", "seen.pop(key)",
	        "unseen.append(x)", "seen_by.append(x)", "# seen.append(x)", "-- seen[1] = 2",
	        "for s in seen: out.append(s)", "out.append(seen)", "del seen[key]", "seen += 1",
	        "x = [seen[1] for y in z]", "f(seen), out.append(1)"};

	for (size_t i = 0; i < sizeof(adding) / sizeof(*adding); i++)
		expect_line("one.txt", adding[i], true);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		expect_line("one.txt", others[i], false);
	put("one.txt", "");
}

static void test_functions(void **state)
{
	put("a.py", "class Store:\n    def get(self):\n        return self.seen\n\n    async def keep(self, o):\n"
	            "        self.seen[o.id] = o\n");
	expect("seen: dict", "a.py", ", added in keep (a.py:6)");
	put("a.go", "func (s *Store) Keep(o *Order) {\n\ts.seen[o.ID] = o\n}\n\nvar x = 1\n");
	expect("seen: map", "a.go", ", added in Keep (a.go:2)");
	put("a.lua", "local seen = {}\nlocal function keep(o)\n\tseen[o.id] = o\nend\n");
	expect("seen: upvalue > seen: table", "a.lua", ", added in keep (a.lua:3)");
}

/* A neighbour's, the program's own name for a collection inside of a library's, too many, none. */
static void test_choice(void **state)
{
	put("b.pm", "1;\n");
	put("c.pm", "sub keep {\n\tpush @{$seen}, 1;\n}\n");
	expect("$seen: array", "b.pm", ", added in keep (c.pm:2)");
	expect("seen: Cache > .__data: dict", "b.pm", ", added in keep (c.pm:2)");
	put("b.pm", "$seen{1} = 1;\n$seen{2} = 2;\n$seen{3} = 3;\n");
	put("c.pm", "$seen{1} = 1;\n$seen{2} = 2;\n");
	expect("$seen: hash", "c.pm", ", added in c.pm:1 or c.pm:2");
	put("c.pm", "$seen{1} = 1;\n$seen{2} = 2;\n$seen{3} = 3;\n$seen{4} = 4;\n");
	expect("$seen: hash", "c.pm", "");
	expect("$other: hash", "c.pm", "");
	expect("[]: hash", "c.pm", "");
}

static int make(void **state)
{
	return !mkdtemp(folder);
}

static int remove_all(void **state)
{
	static const char *const names[] = {"one.txt", "a.py", "a.go", "a.lua", "b.pm", "c.pm"};
	char path[128];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		unlink(path);
	}
	return rmdir(folder);
}

/* The text of a path is that of the file which the program itself has there. */
static void test_root(void **state)
{
	struct evidence e = {0}, several = {0};
	char path[128], *text;
	pid_t pids[2] = {getpid()};
	int ready[2];
	char byte;

	if (geteuid())
		skip();
	put("main.py", "host");
	snprintf(path, sizeof(path), "%s/root", folder);
	mkdir(path, 0755);
	put("root/main.py", "container");
	assert_int_equal(pipe(ready), 0);
	pids[1] = fork();
	if (!pids[1]) {
		if (!chroot(path) && write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);

	snprintf(path, sizeof(path), "%s/main.py", folder);
	source_where(pids, 1, &e);
	text = source_text(&e, path, 1);
	assert_string_equal(text, "host");
	free(text);
	source_where(pids + 1, 1, &e);
	assert_null(source_text(&e, path, 1)); /* it has no such folder */
	text = source_text(&e, "/main.py", 1);
	assert_string_equal(text, "container");
	free(text);
	source_where(pids, 2, &several);
	assert_true(several.elsewhere);
	assert_null(source_text(&several, path, 1));

	kill(pids[1], SIGKILL);
	waitpid(pids[1], NULL, 0);
	assert_null(source_text(&e, "/main.py", 1)); /* it is gone */
	snprintf(path, sizeof(path), "%s/main.py", folder);
	unlink(path);
	snprintf(path, sizeof(path), "%s/root/main.py", folder);
	unlink(path);
	snprintf(path, sizeof(path), "%s/root", folder);
	rmdir(path);
	facts_free(&e.facts);
	facts_free(&several.facts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_lines), cmocka_unit_test(test_functions),
	        cmocka_unit_test(test_choice), cmocka_unit_test(test_root)};

	return cmocka_run_group_tests(tests, make, remove_all);
}
