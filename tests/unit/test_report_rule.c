/* SPDX-License-Identifier: Apache-2.0 */
/* The language of rules: patterns on stacks of a known profile, expressions over known facts, what does not parse. */
#include <math.h>

#include "unit.h"

#include "frontends/report/expression.h"
#include "frontends/report/findings.h"
#include "frontends/report/holder.h"
#include "frontends/report/match.h"

static u32 function_of(struct profile *p, enum profile_kind kind, const char *name, const char *file)
{
	struct profile_function fn = {.name = name, .module = "program", .file = file, .kind = kind};
	u32 ret;

	assert_null(profile_function(p, 0, &fn, false, &ret));
	return ret;
}

/* "main;k:read;handle/app.py": native functions, k: of the kernel, s: of a script; behind a slash their file. */
static void add(struct profile *p, const char *path, u64 count)
{
	char *copy = strdup(path), *rest = copy, *part;
	u32 node = 0;

	while ((part = strsep(&rest, ";"))) {
		enum profile_kind kind = !strncmp(part, "k:", 2)   ? KIND_KERNEL
		                         : !strncmp(part, "s:", 2) ? KIND_SCRIPT
		                                                   : KIND_NATIVE;
		char *name = kind == KIND_NATIVE ? part : part + 2, *file = strchr(name, '/');

		if (file)
			*file++ = '\0';
		assert_null(profile_child(p, node, function_of(p, kind, name, file ? file : ""), &node));
	}
	profile_add(p, node, count);
	free(copy);
}

static int setup(void **state)
{
	struct profile *p;

	if (profile_create(&p))
		return 1;
	p->meta.unit = "samples";
	add(p, "main;s:handle/app.py;compile;malloc;k:fault", 30);
	add(p, "main;s:handle/app.py;compile;parse;match;malloc", 20);
	add(p, "main;s:other/lib.py;malloc", 10);
	add(p, "main;s:handle/app.py", 40);
	profile_finish(p);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	profile_destroy(*state);
	return 0;
}

static double share(struct profile *p, const char *text)
{
	struct stack_pattern pattern;
	double ret;

	assert_null(stack_pattern_parse(text, "test", &pattern));
	assert_null(match_share(&pattern, NULL, p, &ret));
	stack_pattern_free(&pattern);
	return ret;
}

static void test_patterns(void **state)
{
	static const struct {
		const char *pattern;
		double share;
	} cases[] = {{"\"malloc\"", 0.6}, {"\"malloc\" leaf", 0.3}, {"\"malloc\" leaf 2", 0.6},
	        {"\"compile\" > \"malloc\"", 0.5}, {"\"compile\" >1 \"malloc\"", 0.3},
	        {"\"compile\" >2 \"malloc\"", 0.3}, {"\"compile\" >3 \"malloc\"", 0.5}, {"\"malloc\" > \"compile\"", 0},
	        {"kernel\"\" leaf", 0.3}, {"kernel", 0.3}, {"script\"\" leaf", 0.4},
	        {"\"malloc\" without \"compile\"", 0.1}, {"\"malloc\" without kernel", 0.3},
	        {"\"\"@\"lib\\.py$\"", 0.1}, {"code > \"malloc\" without \"\"@\"lib\"", 0.5},
	        {"\"^handle$\" > compiled leaf", 0.2}, {"\"nothing\"", 0},
	        {"\"main\" > \"handle\" > \"parse\" > \"malloc\"", 0.2}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (fabs(share(*state, cases[i].pattern) - cases[i].share) > 1e-9)
			fail_msg("%s: %g, not %g", cases[i].pattern, share(*state, cases[i].pattern), cases[i].share);
}

static void test_interval_is_binomial(void **state)
{
	struct rules rules = {0};
	struct match m;

	assert_null(rules_parse(&rules, "test",
	        "rule x\n\ttitle t\n\twhy w\n\tchange c\n\tshow s\n\tview clock\n\tstack \"malloc\"\n\twhen share > "
	        "0\n"));
	assert_null(match_stacks(&rules.all[0], *state, &m));
	assert_true(m.value == 60 && m.total == 100);
	assert_true(fabs(m.error - 1.96 * sqrt(0.6 * 0.4 / 100)) < 1e-3);
	match_free(&m);
	rules_free(&rules);
}

/* The site is the nearest code outside of what matched; with site and skip another one. */
static void test_sites(void **state)
{
	static const struct {
		const char *more, *site;
		u64 value;
	} cases[] = {{"", "handle", 50}, {"\tsite program\n", "compile", 30},
	        {"\tskip \"compile|match|parse|malloc\"\n", "handle", 50}, {"\tsite script\n", "handle", 50},
	        {"\tsite script\n\tskip \"handle\"\n", "other", 10}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct rules rules = {0};
		struct profile *p = *state;
		struct match m;
		char text[512];

		snprintf(text, sizeof(text),
		        "rule x\n\ttitle t\n\twhy w\n\tchange c\n\tshow s\n\tview clock\n\tstack \"malloc\"\n\twhen "
		        "share > 0\n%s"
		        "\tskip \"malloc\"\n",
		        cases[i].more);
		assert_null(rules_parse(&rules, "test", text));
		assert_null(match_stacks(&rules.all[0], p, &m));
		if (i == 4) { /* where nothing is left to name, it is what matched */
			bool found = false;

			for (u32 k = 0; k < m.nsites; k++)
				found |= !strcmp(p->functions[m.site[k].function].name, "other");
			assert_true(found);
		} else {
			assert_string_equal(p->functions[m.site[0].function].name, cases[i].site);
			assert_int_equal(m.site[0].value, cases[i].value);
		}
		match_free(&m);
		rules_free(&rules);
	}
}

/* What an except matches is no match of the rule, and names no site; of the total it stays a part. */
static void test_excepts(void **state)
{
	static const struct {
		const char *more, *site;
		u64 value;
	} cases[] = {{"\texcept \"compile\" >1 \"malloc\"\n", "handle", 30},
	        {"\texcept \"compile\" >1 \"malloc\"\n\texcept \"match\"\n", "other", 10},
	        {"\texcept \"compile\" >1 \"match\"\n", "handle", 60}, {"\texcept \"main\"\n", NULL, 0}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct rules rules = {0};
		struct profile *p = *state;
		struct match m;
		char text[512];

		snprintf(text, sizeof(text),
		        "rule x\n\ttitle t\n\twhy w\n\tchange c\n\tshow s\n\tview clock\n\tstack \"malloc\"\n\twhen "
		        "share > 0\n\tsite script\n%s",
		        cases[i].more);
		assert_null(rules_parse(&rules, "test", text));
		assert_null(match_stacks(&rules.all[0], p, &m));
		assert_int_equal(m.value, cases[i].value);
		assert_int_equal(m.total, 100);
		if (cases[i].site)
			assert_string_equal(p->functions[m.site[0].function].name, cases[i].site);
		else
			assert_int_equal(m.nsites, 0);
		match_free(&m);
		rules_free(&rules);
	}
}

static void test_expressions(void **state)
{
	static const struct {
		const char *text;
		double value; /* NAN: not known */
	} cases[] = {{"1 + 2 * 3", 7}, {"(1 + 2) * 3", 9}, {"50%", 0.5}, {"2k", 2048}, {"1m", 1048576}, {"20ms", 0.02},
	        {"cpu", 2}, {"cpu > 1.5 and threads = 4", 1}, {"cpu > 3 or threads = 4", 1}, {"not cpu > 3", 1},
	        {"unknown", NAN}, {"unknown > 1", NAN}, {"unknown > 1 and cpu > 3", 0}, {"unknown > 1 or cpu > 1", 1},
	        {"known unknown", 0}, {"known cpu", 1}, {"not unknown", NAN}, {"name", NAN}, {"-cpu + 3", 1},
	        {"cpu / 0 > 1", 1}, {"cpu >= 2 and cpu <= 2 and cpu != 3", 1}};
	static const char *const wrong[] = {"", "1 +", "(1", "1 2", "cpu >", "> 3", "1 ) 2", "cpu & 1", "a$b",
	        "((((((((((((((((((((((((((((((((((1))))))))))))))))))))))))))))))))))"};
	struct facts f = {0};

	facts_set(&f, "cpu", 2);
	facts_set(&f, "threads", 4);
	facts_set_text(&f, "name", "x");
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		double value;

		assert_null(expression_value(cases[i].text, &f, &value));
		if (isnan(cases[i].value) ? !isnan(value) : fabs(value - cases[i].value) > 1e-9)
			fail_msg("%s is %g, not %g", cases[i].text, value, cases[i].value);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct error *err = expression_check(wrong[i]);

		if (!err)
			fail_msg("\"%s\" is taken for an expression", wrong[i]);
		error_free(err);
	}
	facts_free(&f);
}

#define WHOLE "\ttitle t\n\twhy w\n\tchange c\n\tshow s\n\twhen cpu > 0\n\tweight cpu\n"

static void test_what_does_not_parse(void **state)
{
	static const struct {
		const char *text, *line, *expected;
	} cases[] = {{"title x\n", "f:1:", "rule NAME"}, {"rule A\n", "f:1:", "small letters"},
	        {"rule a\n\ttitle t\n", "f:2:", "title, why, change and show"},
	        {"rule a\n" WHOLE "\nrule a\n" WHOLE, "f:9:", "another name"},
	        {"rule a\n" WHOLE "\tview clock\n", "f:8:", "view and stack"},
	        {"rule a\n" WHOLE "\tstack \"x\" >0 \"y\"\n", "f:8:", "from 1 on"},
	        {"rule a\n" WHOLE "\tstack \"x\" \"y\"\n", "f:8:", "the end of the pattern"},
	        {"rule a\n" WHOLE "\tdoubt cpu > 1\n", "f:8:", "EXPRESSION : TEXT"},
	        {"rule a\n" WHOLE "\tadvice cpu > 1\n", "f:8:", "EXPRESSION : TEXT"},
	        {"rule a\n" WHOLE "\tword pool \"x\"\n", "f:8:", "NAME TERM : TEXT"},
	        {"rule a\n" WHOLE "\ttitle again\n", "f:8:", "only once"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct rules rules = {0};
		struct error *err = rules_parse(&rules, "f", cases[i].text);

		assert_non_null(err);
		if (!strstr(err->message, cases[i].line) || !strstr(err->message, cases[i].expected))
			fail_msg("%s: %s", cases[i].text, err->message);
		error_free(err);
		rules_free(&rules);
	}
}

static void conclude(const char *rule, struct findings *ret)
{
	struct evidence e = {0};
	struct rules rules = {0};
	void *p = NULL;

	assert_int_equal(setup(&p), 0);
	e.view[0] = (struct evidence_view){.name = strdup("clock"), .profile = p};
	e.nviews = 1;
	facts_set(&e.facts, "calls", 7);
	assert_null(rules_parse(&rules, "test", rule));
	assert_null(findings_make(&rules, &e, ret));
	evidence_free(&e);
	rules_free(&rules);
}

/* What is there, but too little for a finding, is told with its share, and nobody says that there is none. */
static void test_little(void **state)
{
#define RULE(stack, when)                                                                                              \
	"rule x\n\ttitle malloc: {share:%}\n\twhy w\n\tchange c\n\tshow s\n\thealthy none\n\tview clock\n\tstack "     \
	"\"" stack "\"\n\twhen " when "\n"
	static const struct {
		const char *rule, *seen;
		u32 findings;
		bool healthy;
	} cases[] = {{RULE("malloc", "share.low > 90%"), "malloc: 60 %", 0, false},
	        {RULE("malloc", "share.low > 20%"), NULL, 1, false}, {RULE("gone", "share.low > 20%"), NULL, 0, true},
	        {RULE("malloc", "share.low > 90%\n\twhen calls > 5"), "malloc: 60 %", 0, false},
	        {RULE("malloc", "share.low > 20%\n\twhen calls > 8"), NULL, 0, false},
	        {RULE("malloc", "share.low > 20%\n\tunless calls > 5"), NULL, 0, false},
	        {RULE("malloc", "calls > 8"), NULL, 0, true}};
#undef RULE

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct findings f = {0};

		conclude(cases[i].rule, &f);
		if (f.n != cases[i].findings || f.nseen != !!cases[i].seen || f.nhealthy != cases[i].healthy ||
		        (f.nseen && strcmp(f.seen[0], cases[i].seen) != 0))
			fail_msg("%s: %u findings, %u healthy, seen %s", cases[i].rule, f.n, f.nhealthy,
			        f.nseen ? f.seen[0] : "nothing");
		findings_free(&f);
	}
}

/* Of two rules of which there is too little, only the one that says more than the other. */
static void test_little_of_two(void **state)
{
#define RULE(name, more)                                                                                               \
	"rule " name "\n\ttitle " name "\n\twhy w\n\tchange c\n\tshow s\n\tview clock\n\tstack \"malloc\"\n" more      \
	"\twhen share.low > 90%\n"
	struct findings f = {0};

	conclude(RULE("a", "") RULE("b", "\treplaces a\n"), &f);
	assert_int_equal(f.nseen, 1);
	assert_string_equal(f.seen[0], "b");
	findings_free(&f);
	conclude(RULE("a", "") RULE("b", ""), &f);
	assert_int_equal(f.nseen, 2);
	findings_free(&f);
#undef RULE
}

/* Where a finding only names the place, no rule says that what it knows does not occur in the same view. */
static void test_unexplained(void **state)
{
#define RULE(name, stack, more)                                                                                        \
	"rule " name "\n\ttitle " name "\n\twhy w" more "\n\tchange c\n\tshow s\n\thealthy no " name                   \
	"\n\tview clock\n\tstack \"" stack "\"\n\twhen share.low > 20%\n"
	static const struct {
		const char *rules;
		u32 healthy;
	} cases[] = {{RULE("a", "gone", "") RULE("b", "malloc", "\n\tgeneral yes"), 0},
	        {RULE("a", "gone", "") RULE("b", "malloc", "{about}"), 0},
	        {RULE("a", "gone", "") RULE("b", "malloc", "\n\tgeneral last"), 1},
	        {RULE("a", "gone", "") RULE("b", "malloc", ""), 1},
	        {RULE("a", "gone", "") RULE("b", "gone", "\n\tgeneral yes"), 2},
	        {"rule a\n\ttitle a\n\twhy w\n\tchange c\n\tshow s\n\thealthy no a\n\tweight 1\n\twhen calls > "
	         "8\n" RULE("b", "malloc", "\n\tgeneral yes"),
	                1}};
#undef RULE

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct findings f = {0};

		conclude(cases[i].rules, &f);
		if (f.nhealthy != cases[i].healthy)
			fail_msg("%s: %u healthy", cases[i].rules, f.nhealthy);
		findings_free(&f);
	}
}

static void test_views_that_are_asked_for(void **state)
{
	static const char *const asked[] = {"wall", "io", "net"};
	struct rules rules = {0};

	assert_null(rules_parse(&rules, "f",
	        "rule a\n" WHOLE "rule b\n\ttitle t\n\twhy w\n\tchange c\n\tshow s\n\truntime python\n\tholder "
	        "yes\n\tview wall\n\tstack "
	        "\"x\"\n\tlet l io \"x\"\n\tblame net \"x\"\n\twhen l > 1\n"));
	for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++)
		assert_true(findings_ask_for(&rules, 1u << RUNTIME_PYTHON, asked[i]));
	assert_false(findings_ask_for(&rules, 0, "io"));
	assert_false(findings_ask_for(&rules, ~0u, "clock"));
	assert_false(findings_ask_for(&rules, ~0u, "fault"));
	assert_false(findings_ask_for(&rules, ~0u, "lock")); /* only once a finding wants it */
	rules_free(&rules);
}

static void test_continued_lines(void **state)
{
	struct rules rules = {0};

	assert_null(rules_parse(&rules, "f",
	        "# a comment\n\nrule a\n\ttitle one\n\t\ttwo\n\twhy w\n\n\t# within\n\tchange c\n\tshow s\n\twhen cpu "
	        "> 0\n\t\tand "
	        "cpu < 9\n\tweight cpu\n\nrule b\n" WHOLE));
	assert_int_equal(rules.n, 2);
	assert_string_equal(rules.all[0].title, "one two");
	assert_string_equal(rules.all[0].when[0], "cpu > 0 and cpu < 9");
	assert_string_equal(rules.all[1].source, "f:15");
	assert_non_null(strstr(rules.all[0].text, "weight cpu"));
	rules_free(&rules);
}

static void test_builtin_rules(void **state)
{
	struct rules rules = {0};

	assert_null(rules_builtin(&rules));
	assert_true(rules.n > 20);
	rules_free(&rules);
}

/* Integer.toString() is no string that is put together; the same digits in a concatenation are. */
static void test_strings(void **state)
{
	struct rules rules = {0};
	const struct rule *rule;
	struct profile *p;
	double sum = 0, part;

	assert_null(rules_builtin(&rules));
	rule = rules_find(&rules, "java-string-building");
	assert_non_null(rule);
	assert_null(profile_create(&p));
	p->meta.unit = "samples";
	add(p, "s:Shop.price;s:java.lang.Integer.toString;s:java.lang.Integer.getChars", 75);
	add(p, "s:Shop.name;s:java.lang.StringConcatHelper.prepend;s:java.lang.Integer.getChars", 25);
	profile_finish(p);
	for (u32 i = 0; i < rule->nstacks; i++) {
		assert_null(match_share(&rule->stacks[i], NULL, p, &part));
		sum += part;
	}
	assert_true(fabs(sum - 0.25) < 1e-9);
	profile_destroy(p);
	rules_free(&rules);
}

/* What was inlined at a position that is not certain counts as the holder's work, too: only its name is no evidence. */
static void test_work_at_approximate_positions(void **state)
{
	const struct profile_function jit = {.module = "", .file = "A.java", .kind = KIND_SCRIPT_JIT};
	struct profile_function stack[] = {jit, jit, jit};
	struct rule rule = {0};
	struct profile *p;
	struct match m;
	u32 node = 0, function;

	stack[0].name = "A.serve:3";
	stack[1].name = "A.allow:9";
	stack[2].name = "java.util.HashMap$HashIterator.nextNode:1601";
	stack[1].flags = stack[2].flags = FRAME_APPROX;
	assert_null(profile_create(&p));
	p->meta.unit = "samples";
	for (u32 i = 0; i < 3; i++) {
		assert_null(profile_function(p, 0, &stack[i], false, &function));
		assert_null(profile_child(p, node, function, &node));
		profile_add(p, node, i ? 4 : 2);
	}
	profile_finish(p);
	assert_null(holder_works(&rule, p, &stack[1], &m));
	assert_int_equal(m.total, 10);
	assert_int_equal(m.value, 8);
	match_free(&m);
	profile_destroy(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_patterns, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_interval_is_binomial, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_sites, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_excepts, setup, teardown),
	        cmocka_unit_test(test_expressions),
	        cmocka_unit_test(test_what_does_not_parse),
	        cmocka_unit_test(test_little),
	        cmocka_unit_test(test_little_of_two),
	        cmocka_unit_test(test_unexplained),
	        cmocka_unit_test(test_views_that_are_asked_for),
	        cmocka_unit_test(test_continued_lines),
	        cmocka_unit_test(test_builtin_rules),
	        cmocka_unit_test(test_strings),
	        cmocka_unit_test(test_work_at_approximate_positions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
