/* SPDX-License-Identifier: Apache-2.0 */
/* Where objects that die were copied. */
#include "unit.h"

#include "frontends/report/copies.h"

#define STRING "std::__cxx11::basic_string<char, std::char_traits<char> >"
#define VECTOR "std::vector<" STRING ", std::allocator<" STRING " > >"

static void test_names(void **state)
{
	static const struct {
		const char *name;
		size_t copied, destroyed;
	} cases[] = {
	        {"Config::Config(Config const&)", 6, 0},
	        {"Config::Config(Config const&) [clone .isra.0]", 6, 0},
	        {"Config::Config(Config&&)", 0, 0},
	        {"Config::Config(Other const&)", 0, 0},
	        {"Config::Config(Configs const&)", 0, 0},
	        {"Config::set(Config const&)", 0, 0},
	        {"Config::operator=(Config const&)", 6, 0},
	        {"Config::operator==(Config const&) const", 0, 0},
	        {"Config::~Config()", 0, 6},
	        {VECTOR "::vector(" VECTOR " const&)", sizeof(VECTOR) - 1, 0},
	        {VECTOR "::~vector()", 0, sizeof(VECTOR) - 1},
	        {VECTOR "::vector(unsigned long)", 0, 0},
	        {"(anonymous namespace)::Page::Page((anonymous namespace)::Page const&)", 27, 0},
	        {"(anonymous namespace)::Page::~Page()", 0, 27},
	        {"void run<Config::~Config>()", 0, 0},
	        {"<std::collections::hash::map::HashMap<K,V,S,A> as core::clone::Clone>::clone:1398", 36, 0},
	        {"<catalog::Article as core::clone::Clone>::clone", 16, 0},
	        {"core::ptr::drop_in_place<catalog::Article>:805", 0, 16},
	        {"core::ptr::drop_in_place::<alloc::vec::Vec::<u8>>", 0, 15},
	        {"core::ptr::drop_in_place", 0, 0},
	        {"<catalog::Article as core::fmt::Debug>::fmt", 0, 0},
	        {"<", 0, 0},
	        {"", 0, 0},
	        {"::", 0, 0},
	        {"::~", 0, 0},
	        {"a::", 0, 0},
	        {"a::(", 0, 0},
	        {"a::a", 0, 0},
	        {"a::a(a", 0, 0},
	        {"a<b::c", 0, 0},
	        {">::>::>", 0, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *name = strdup(cases[i].name); /* its end is seen by sanitizers */

		const char *type;
		size_t copied = copies_copied(name, &type), destroyed = copies_destroyed(name, &type);

		if (copied != cases[i].copied || destroyed != cases[i].destroyed)
			fail_msg("%s: %zu, %zu", name, copied, destroyed);
		free(name);
	}
}

static u32 function_of(struct profile *p, const char *name, u32 line)
{
	struct profile_function f = {.name = name, .module = "program", .file = "a.cc", .kind = KIND_CXX, .line = line};
	u32 ret;

	assert_null(profile_function(p, 0, &f, false, &ret));
	return ret;
}

/* FUNCTION:LINE;FUNCTION... */
static u32 add(struct profile *p, const char *path, u64 value)
{
	char *copy = strdup(path), *rest = copy, *part;
	u32 node = 0;

	while ((part = strsep(&rest, ";"))) {
		char *at = strrchr(part, '@');
		u32 line = at ? (u32)atoi(at + 1) : 0;

		if (at)
			*at = '\0';
		assert_null(profile_child(p, node, function_of(p, part, line), &node));
	}
	profile_add(p, node, value);
	free(copy);
	return node;
}

static u32 site_of(const struct profile *p, const char *name, u32 line)
{
	for (u32 i = 1; i < p->nfunctions; i++)
		if (!strcmp(p->functions[i].name, name) && p->functions[i].line == line)
			return i;
	return 0;
}

static struct libraries *std_only(void)
{
	static struct term library;
	static u64 known[OWN_KNOWN];
	static struct libraries l = {.all = &library, .n = 1, .known = known};

	if (!library.name.set)
		assert_null(pattern_compile("^(std::|operator )", &library.name));
	return &l;
}

static void assert_site(
        const struct profile *p, const struct copies *c, u32 node, const char *in, u32 line, const char *to, u32 at)
{
	u32 site = copies_site(c, node, site_of(p, in, line));

	if (site != site_of(p, to, at))
		fail_msg("%s:%u, not %s:%u", p->functions[site].name, p->functions[site].line, to, at);
}

static void test_sites(void **state)
{
	struct profile *p;
	struct copies *c;
	u32 same, far, others, own, text;

	assert_null(profile_create(&p));
	p->meta.unit = "nanoseconds";
	/* in one function: a loop that copies, and ends elsewhere */
	add(p, "count@10;" VECTOR "::vector(" VECTOR " const&);operator new", 30);
	add(p, "count@11;" VECTOR "::vector(" VECTOR " const&)", 10);
	same = add(p, "count@15;" VECTOR "::~vector();operator delete", 80);
	/* a copy that is given back, and dies at the caller's end; what it consists of is none of its own */
	add(p, "find@20;Config::Config(Config const&);std::copy;Page::Page(Page const&)", 30);
	far = add(p, "answer@33;Config::~Config();Page::~Page();operator delete", 50);
	own = add(p, "finish@50;Page::~Page()", 5);
	/* dies far more than it is copied: it is made in other ways */
	add(p, "read@40;Row::Row(Row const&)", 3);
	others = add(p, "close@41;Row::~Row()", 60);
	/* texts are made everywhere */
	add(p, "name@60;" STRING "::basic_string(" STRING " const&)", 50);
	text = add(p, "print@61;" STRING "::~basic_string()", 50);
	profile_finish(p);
	assert_null(copies_find(std_only(), p, &c));
	assert_non_null(c);
	assert_site(p, c, same, "count", 15, "count", 10);
	assert_site(p, c, far, "answer", 33, "find", 20);
	assert_site(p, c, far, "Config::~Config()", 0, "find", 20);
	assert_site(p, c, own, "finish", 50, "finish", 50);
	assert_site(p, c, others, "close", 41, "close", 41);
	assert_site(p, c, text, "print", 61, "print", 61);
	copies_free(c);
	profile_destroy(p);
}

static void test_none(void **state)
{
	struct profile *p;
	struct copies *c;

	assert_null(profile_create(&p));
	add(p, "close;Row::~Row()", 60);
	profile_finish(p);
	assert_null(copies_find(std_only(), p, &c));
	assert_null(c);
	assert_int_equal(copies_site(NULL, 1, 7), 7);
	copies_free(NULL);
	profile_destroy(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_names),
	        cmocka_unit_test(test_sites),
	        cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
