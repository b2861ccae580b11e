/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout of a stripped build: by its build-id, and without that by its code; its builtin functions against what Lua
 * itself says. The build is the system's, or that of YRT_LUA_HOST (luajit_target.h).
 */
#include "luajit_target.h"

#include "runtimes/luajit/luajit_builtins.h"
#include "runtimes/luajit/luajit_facts.h"
#include "runtimes/luajit/luajit_image.h"

#define SYSTEM_LIBRARY "/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2"
#define BUILTINS_MIN   190 /* of beta3, without buffers */
#define CODE_TOLD_MIN  20  /* members that the code of every build shows */

struct build {
	struct image *img;
	u64 start, end;
	struct luajit_facts facts;
};

/* The file that holds LuaJIT: behind -l, or the host itself, which is the last word then. */
static const char *build_path(void)
{
	static char words[4096];
	const char *host = getenv("YRT_LUA_HOST"), *library = NULL, *last = NULL;
	char *rest = words, *word;

	if (!host)
		return SYSTEM_LIBRARY;
	snprintf(words, sizeof(words), "%s", host);
	while ((word = strsep(&rest, " "))) {
		if (last && !strcmp(last, "-l"))
			library = word;
		if (*word)
			last = word;
	}
	return library ? library : last;
}

static int setup(void **state)
{
	const struct cfi_options options = {0};
	struct build *b = calloc(1, sizeof(*b));
	const char *path = build_path();

	must(image_open(open(path, O_RDONLY | O_CLOEXEC), path, &b->img));
	must(cfi_load(b->img, &options, &b->img->cfi));
	must(luajit_blob_find(b->img, &b->start, &b->end));
	assert_true(b->end > b->start);
	must(luajit_facts_read(b->img, b->start, b->end, &b->facts));
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct build *b = *state;

	luajit_facts_free(&b->facts);
	image_put(b->img);
	free(b);
	return 0;
}

static struct layout *find(struct build *b)
{
	struct layout *l;

	must(luajit_layout_find(b->img, "", b->start, b->end, &l));
	return l;
}

static bool is_of_gg(const struct layout *l, u32 field)
{
	return !strncmp(l->schema->fields[field].name, "GG_State.", 9);
}

static bool is_listed(const struct build *b)
{
	struct layout_library library;
	bool listed = false;

	must(layout_library_load(&luajit_layout_schema, &library));
	for (u32 i = 0; i < library.n; i++)
		listed = listed || layout_file_has_build_id(library.files[i], b->img);
	layout_library_free(&library);
	return listed;
}

/* What was linked here, or is newer than the library, is not listed; the system's library is. */
static void test_by_build_id(void **state)
{
	struct build *b = *state;
	bool listed = is_listed(b);
	struct layout *l = find(b);
	char origin[256];

	assert_true(listed || getenv("YRT_LUA_HOST"));
	print_message("%s\n", layout_origin(l, 0, origin, sizeof(origin)));
	assert_non_null(strstr(origin, listed ? ", by build-id" : ", which its code fits"));
	layout_destroy(l);
}

/* The same layout is found without the build-id. In GG_State, wherever it lies in memory, only distances are known. */
static void test_by_code(void **state)
{
	struct build *b = *state;
	struct layout *known = find(b), *l;
	const struct luajit_layout *x = known->values, *y;
	u32 len = b->img->build_id_len;
	char origin[256];

	b->img->build_id_len = 0;
	l = find(b);
	b->img->build_id_len = len;
	y = l->values;
	assert_non_null(strstr(layout_origin(l, 0, origin, sizeof(origin)), "which its code fits"));
	for (u32 i = 0; i < l->schema->n; i++)
		if (!is_of_gg(l, i) && !layout_equal_field(known, l, i))
			fail_msg("%s", l->schema->fields[i].name);
	assert_int_equal(x->gg_dispatch.at - x->gg_g.at, y->gg_dispatch.at - y->gg_g.at);
	assert_int_equal(x->gg_j.at - x->gg_g.at, y->gg_j.at - y->gg_g.at);
	layout_destroy(known);
	layout_destroy(l);
}

/* The VM treats base as maxstack, status as ffid, numparams as framesize: distinguished on the process only. */
static bool has_double(const char *name)
{
	return !strcmp(name, "lua_State.maxstack") || !strcmp(name, "GCfuncC.ffid") ||
	       !strcmp(name, "GCproto.framesize");
}

/* What the code shows it shows exactly: the member's place, and no other near it. */
static void test_facts(void **state)
{
	struct build *b = *state;
	struct layout *l = find(b);
	u32 told = 0;

	for (u32 i = 0; i < l->schema->n; i++) {
		struct layout_member *m = layout_member(l, i), right = *m;

		if (l->schema->fields[i].list || luajit_facts_ask(&b->facts, l->values, i) == LUAJIT_SILENT)
			continue;
		told++;
		assert_int_equal(luajit_facts_ask(&b->facts, l->values, i), LUAJIT_AGREES);
		for (int step = -16; step <= 16; step += right.size < 8 ? right.size : 8) {
			m->at = right.at + step;
			if (step && !has_double(l->schema->fields[i].name) &&
			        luajit_facts_ask(&b->facts, l->values, i) == LUAJIT_AGREES)
				fail_msg("%s: the code seems to have it at %u, too", l->schema->fields[i].name, m->at);
		}
		*m = right;
	}
	assert_true(told >= CODE_TOLD_MIN);
	layout_destroy(l);
}

/* GG_State of a build that nobody knows: put where the code has it, and said so. */
static void test_place(void **state)
{
	struct build *b = *state;
	struct layout *l = find(b), *right;
	struct luajit_layout *v = l->values;
	const struct luajit_layout *known;
	u32 placed = 0;

	must(layout_copy(l, &right));
	known = right->values;
	v->gg_j.at += 24;
	v->gg_dispatch.at += 40;
	assert_true(luajit_facts_place(&b->facts, l));
	assert_int_equal(v->gg_dispatch.at, known->gg_dispatch.at);
	assert_int_equal(v->gg_j.at, known->gg_j.at);
	for (u32 i = 0; i < l->schema->n; i++)
		placed += l->fills[i].source == LAYOUT_CODE;
	assert_int_equal(placed, 2);
	layout_destroy(l);
	layout_destroy(right);
}

static void write_layout(const char *path, const struct build *b, const struct layout *l)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs("runtime luajit\nbuild-id ", f);
	for (u32 i = 0; i < b->img->build_id_len; i++)
		fprintf(f, "%02x", b->img->build_id[i]);
	fputc('\n', f);
	layout_print(l, f);
	fclose(f);
}

/* A user's file comes first; one that lies about a member is refused by name, not used. */
static void test_lying_file(void **state)
{
	char dir[] = "/tmp/yrt-lying-XXXXXX", path[64];
	struct build *b = *state;
	struct layout *l = find(b), *found;
	struct luajit_layout *v = l->values;
	struct error *err;
	char origin[256];

	if (!b->img->build_id_len) {
		memset(b->img->build_id, 0xab, 20);
		b->img->build_id_len = 20;
	}
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/a.layout", dir);
	setenv("YRT_LAYOUTS", dir, 1);
	write_layout(path, b, l);
	found = find(b);
	assert_non_null(strstr(layout_origin(found, 0, origin, sizeof(origin)), path));
	layout_destroy(found);
	v->g_cur_l.at += v->g_cur_l.size;
	write_layout(path, b, l);
	err = luajit_layout_find(b->img, "", b->start, b->end, &found);
	assert_non_null(err);
	assert_int_equal(err->kind, ERROR_UNSUPPORTED);
	assert_non_null(strstr(err->message, path));
	assert_non_null(strstr(err->message, "global_State.cur_L"));
	assert_non_null(err->hint);
	assert_null(found);
	error_free(err);
	unsetenv("YRT_LAYOUTS");
	unlink(path);
	rmdir(dir);
	layout_destroy(l);
}

/* A fork that keeps something else in L than any known build: not guessed. */
static void test_foreign(void **state)
{
	struct build *b = *state, other = *b;
	struct layout_library library;

	other.facts.glref.at += 8;
	other.facts.g2disp += 8;
	must(layout_library_load(&luajit_layout_schema, &library));
	for (u32 i = 0; i < library.n; i++) {
		struct layout *l = library.files[i]->layout;
		struct error *err;

		luajit_facts_place(&other.facts, l);
		err = luajit_facts_check(&other.facts, l, "it");
		assert_non_null(err);
		assert_non_null(strstr(err->message, "lua_State.glref"));
		error_free(err);
	}
	assert_true(library.n >= 20);
	layout_library_free(&library);
}

/* Takes out of the library what has the same GG_State as l. */
static void forget(struct layout_library *library, const struct layout *l)
{
	const struct luajit_layout *known = l->values;
	u32 n = 0;

	for (u32 i = 0; i < library->n; i++) {
		const struct luajit_layout *v = library->files[i]->layout->values;

		if (v->gg_dispatch.at - v->gg_g.at == known->gg_dispatch.at - known->gg_g.at &&
		        v->l_glref.at == known->l_glref.at)
			layout_file_destroy(library->files[i]);
		else
			library->files[n++] = library->files[i];
	}
	assert_true(n < library->n);
	library->n = n;
}

/* A build that is not in the library: what is found is right, or nothing is. */
static void test_unknown_build(void **state)
{
	struct build *b = *state;
	struct layout *known = find(b), *l = NULL;
	struct layout_library library;
	struct error *err;

	must(layout_library_load(&luajit_layout_schema, &library));
	forget(&library, known);
	err = luajit_layout_by_code(&library, b->img, "LuaJIT 2.1.1", &b->facts, &l);
	if (err) {
		print_message("%s\n", err->message);
		assert_int_equal(err->kind, ERROR_UNSUPPORTED);
		assert_non_null(err->hint);
		error_free(err);
	} else {
		print_message("%s\n", l->details[LAYOUT_LIBRARY]);
		for (u32 k = 0; k < l->schema->n; k++)
			if (!is_of_gg(l, k) && !l->schema->fields[k].list && !layout_equal_field(known, l, k))
				fail_msg("%s", l->schema->fields[k].name);
		assert_null(luajit_facts_check(&b->facts, l, "it"));
	}
	layout_destroy(l);
	layout_library_free(&library);
	layout_destroy(known);
}

/* One function may be found under several names; the file has one of them. */
static void check_builtins(const struct luajit_builtins *builtins, const char *path)
{
	bool told[LUAJIT_BUILTINS_MAX] = {0}, right[LUAJIT_BUILTINS_MAX] = {0};
	FILE *f = fopen(path, "r");
	char name[64];
	u32 number, n = 0;

	assert_non_null(f);
	while (fscanf(f, "%u %63s", &number, name) == 2) {
		assert_true(number < builtins->n);
		told[number] = true;
		right[number] = right[number] || (builtins->names[number] && !strcmp(builtins->names[number], name));
	}
	fclose(f);
	for (number = 0; number < LUAJIT_BUILTINS_MAX; number++) {
		if (told[number] && !right[number])
			fail_msg("Lua has another name for %u than %s", number, builtins->names[number]);
		n += told[number];
	}
	if (n < BUILTINS_MIN)
		fail_msg("Lua tells %u builtin functions only", n);
	print_message("%u builtin functions of %u numbers\n", n, builtins->n - 2);
}

static void test_builtins(void **state)
{
	struct build *b = *state;
	char path[] = "/tmp/yrt-builtins-XXXXXX";
	struct luajit_builtins builtins;
	struct target *t;
	int status;

	close(mkstemp(path));
	must(luajit_builtins_read(b->img, &builtins));
	t = target_start("builtin_numbers.lua", path, NULL);
	assert_int_equal(ptrace(PTRACE_DETACH, t->pid, 0, 0), 0);
	assert_int_equal(waitpid(t->pid, &status, 0), t->pid);
	assert_int_equal(status, 0);
	check_builtins(&builtins, path);
	unlink(path);
	luajit_builtins_free(&builtins);
	target_end(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_by_build_id, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_by_code, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_facts, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_place, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_lying_file, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_foreign, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_unknown_build, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_builtins, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
