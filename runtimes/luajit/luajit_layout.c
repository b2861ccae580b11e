/* SPDX-License-Identifier: Apache-2.0 */
#include "luajit_layout.h"

#include <stddef.h>
#include <string.h>

#include "binary/image.h"
#include "luajit_exits.h"
#include "luajit_facts.h"

#define LAYOUT luajit_layout
static const struct layout_field fields[] = {LUAJIT_MEMBERS(LAYOUT_MEMBER, LAYOUT_OPTIONAL) LUAJIT_LISTS(LAYOUT_LIST)};

const struct layout_schema luajit_layout_schema = {.runtime = "luajit", LAYOUT_FIELDS(fields)};

/* What fits a file by its code, of the library. */
struct choice {
	const struct layout_file *file;
	u32 rank;                        /* the lower, the better: enum below */
	const struct layout_file *rival; /* as good, and different */
};

/*
 * How well a layout fits whose members the code has: GG_State too; jit_State has its size, only global_State another.
 * If that differs as well, structures that no code reveals may have changed with it, as snapshots did in 2021: no fit.
 */
enum { RANK_EXACT, RANK_SAME_JIT, RANK_NONE };

static s32 trace_place(const struct layout *l)
{
	const struct luajit_layout *v = l->values;

	return v->gg_j.at + v->j_trace.at - v->gg_dispatch.at;
}

static struct error *rank(const struct layout_file *file, const struct luajit_facts *facts, u32 *ret)
{
	struct layout *l;
	struct error *err = layout_copy(file->layout, &l), *contradiction;

	*ret = RANK_NONE;
	if (err)
		return err;
	contradiction = luajit_facts_check(facts, l, file->name);
	if (!contradiction) {
		*ret = RANK_EXACT;
	} else if (trace_place(l) == facts->trace && luajit_facts_place(facts, l)) {
		error_free(contradiction);
		contradiction = luajit_facts_check(facts, l, file->name);
		if (!contradiction)
			*ret = RANK_SAME_JIT;
	}
	error_free(contradiction);
	layout_destroy(l);
	return NULL;
}

/*
 * GG_State's parts are put where the code has them, so they distinguish no layouts. Nor do IR's names: it grew behind
 * the constants, which are all that is used of it.
 */
static bool differ(const struct layout *a, const struct layout *b)
{
	for (u32 i = 0; i < a->schema->n; i++)
		if (strncmp(a->schema->fields[i].name, "GG_State.", 9) &&
		        strcmp(a->schema->fields[i].name, "enum IROp IR_") && !layout_equal_field(a, b, i))
			return true;
	return false;
}

static bool has_exits(const struct layout *l, const struct luajit_exits *exits)
{
	const struct luajit_layout *v = l->values;

	return luajit_exits_have(exits, v->trace_nsnap.at);
}

/* exits: of those only that have GCtrace.nsnap there; NULL: of all */
static struct error *choose(const struct layout_library *library, const struct luajit_facts *facts,
        const struct luajit_exits *exits, struct choice *ret)
{
	*ret = (struct choice){.rank = RANK_NONE};
	for (u32 i = 0; i < library->n; i++) {
		const struct layout_file *file = library->files[i];
		struct error *err;
		u32 r;

		if (exits && !has_exits(file->layout, exits))
			continue;
		err = rank(file, facts, &r);
		if (err)
			return err;
		if (r < ret->rank)
			*ret = (struct choice){.file = file, .rank = r};
		else if (r < RANK_NONE && r == ret->rank && differ(file->layout, ret->file->layout))
			ret->rival = file;
	}
	return NULL;
}

static struct error *unknown(const struct image *img, const char *version, const struct choice *choice)
{
	struct error *err;

	if (choice->rival)
		err = error_new(ERROR_UNSUPPORTED,
		        "%s holds \"%s\", whose code fits two layouts that differ: %s and %s", img->path, version,
		        choice->file->name, choice->rival->name);
	else
		err = error_new(ERROR_UNSUPPORTED,
		        "%s holds \"%s\", whose layout is not known: it has no debug information,"
		        " the library has neither its build-id nor a layout that its code uses",
		        img->path, version);
	return error_hint(err,
	        "its Lua frames are left out; install its debug package, or run `yrt layout` on a build of it"
	        " with -g and name the folder of the result in YRT_LAYOUTS");
}

struct error *luajit_layout_by_code(const struct layout_library *library, const struct image *img, const char *version,
        const struct luajit_facts *facts, struct layout **ret)
{
	struct luajit_exits exits;
	struct choice choice, closer;
	struct error *err = choose(library, facts, NULL, &choice);

	if (!err && choice.rival && luajit_exits_read(facts->img, &exits)) {
		err = choose(library, facts, &exits, &closer);
		if (closer.rank == choice.rank)
			choice = closer;
	}
	if (err)
		return err;
	if (!choice.file || choice.rival)
		return unknown(img, version, &choice);
	err = layout_copy(choice.file->layout, ret);
	if (!err)
		err = layout_detail(*ret, LAYOUT_LIBRARY, "%s, which its code fits", choice.file->name);
	if (!err && choice.rank != RANK_EXACT)
		luajit_facts_place(facts, *ret);
	return err;
}

static struct error *by_build_id(const struct layout_library *library, const struct image *img, struct layout **ret)
{
	for (u32 i = 0; i < library->n; i++) {
		const struct layout_file *file = library->files[i];
		struct error *err;

		if (!layout_file_has_build_id(file, img))
			continue;
		err = layout_copy(file->layout, ret);
		return err ? err : layout_detail(*ret, LAYOUT_LIBRARY, "%s, by build-id", file->name);
	}
	return NULL;
}

static struct error *find_in_library(
        struct image *img, const char *version, const struct luajit_facts *facts, struct layout **ret)
{
	struct layout_library library;
	struct error *err = layout_library_load(&luajit_layout_schema, &library);

	if (err)
		return err;
	err = by_build_id(&library, img, ret);
	if (!err && !*ret)
		err = luajit_layout_by_code(&library, img, version, facts, ret);
	layout_library_free(&library);
	return err;
}

static struct error *find(struct image *img, const char *version, const struct luajit_facts *facts, struct layout **ret)
{
	char origin[256];
	struct error *err = layout_whole_from_debug(&luajit_layout_schema, img, "", ret);

	if (!err && !*ret)
		err = find_in_library(img, version, facts, ret);
	if (err || !*ret)
		return err;
	err = luajit_facts_check(facts, *ret, layout_origin(*ret, 0, origin, sizeof(origin)));
	return err ? error_hint(err, "its Lua frames are left out") : NULL;
}

struct error *luajit_layout_find(struct image *img, const char *version, u64 start, u64 end, struct layout **ret)
{
	struct luajit_facts facts;
	struct error *err;

	*ret = NULL;
	err = luajit_facts_read(img, start, end, &facts);
	if (!err)
		err = find(img, version, &facts, ret);
	luajit_facts_free(&facts);
	if (err) {
		layout_destroy(*ret);
		*ret = NULL;
	}
	return err;
}
