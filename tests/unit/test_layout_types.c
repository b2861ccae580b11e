/* SPDX-License-Identifier: Apache-2.0 */
/* Types made of a text and a layout: where C puts members, where the layout has them, what a build does not have. */
#include "unit.h"

#include "layout/layout_types.h"

struct pond_layout {
	struct layout_member depth, size;
};

#define LAYOUT pond_layout
static const struct layout_field fields[] = {LAYOUT_MEMBER(depth, "pond.depth") LAYOUT_MEMBER(size, "sizeof pond")};
static const struct layout_schema schema = {.runtime = "water", LAYOUT_FIELDS(fields)};

static const struct layout_type texts[] = {
        {LAYOUT_STRUCT, "fish", "u8 age; u16 scales; fish *next; char name[5]; s32 weight", NULL},
        {LAYOUT_UNION, "being", "fish one; u64 word; @4 u32 high", NULL},
        {LAYOUT_STRUCT, "pond", "u32 area; u64 depth; u8 weeds; @here being first; @gone u64 never; void *end", NULL},
        {LAYOUT_STRUCT, "lake", "u8 a; @40 u8 b", "lake_size"},
        {LAYOUT_TYPEDEF, "pondptr", "pond *", NULL},
        {LAYOUT_END, NULL, NULL, NULL},
};

static s64 place(const void *values, const char *name)
{
	const struct pond_layout *l = values;

	return !strcmp(name, "here") ? l->depth.at + 24 : !strcmp(name, "lake_size") ? 64 : -1;
}

static struct layout *make_layout(void)
{
	struct layout *l;

	assert_null(layout_create(&schema, &l));
	layout_set(l, 0, (struct layout_member){16, 8}, LAYOUT_CODE);
	layout_set(l, 1, (struct layout_member){104, 104}, LAYOUT_CODE);
	return l;
}

static u64 offset(const struct layout_types *t, const char *name, const char *member)
{
	struct type_member m;

	return type_member(layout_types_find(t, TYPES_PLAIN, name), member, &m) ? m.offset : 9999;
}

static void test_offsets(void **state)
{
	struct layout *l = make_layout();
	struct layout_types *t;
	struct type_member m;

	assert_null(layout_types_make(texts, l, place, &t));
	assert_int_equal(offset(t, "fish", "age"), 0);
	assert_int_equal(offset(t, "fish", "scales"), 2);
	assert_int_equal(offset(t, "fish", "next"), 8);
	assert_int_equal(offset(t, "fish", "name"), 16);
	assert_int_equal(offset(t, "fish", "weight"), 24);
	assert_int_equal(layout_types_find(t, TYPES_STRUCT, "fish")->size, 32);
	assert_int_equal(offset(t, "being", "word"), 0);
	assert_int_equal(offset(t, "being", "high"), 4);
	assert_int_equal(layout_types_find(t, TYPES_UNION, "being")->size, 32);
	assert_int_equal(offset(t, "pond", "depth"), 16); /* not 8: the layout says so */
	assert_int_equal(offset(t, "pond", "weeds"), 24);
	assert_int_equal(offset(t, "pond", "first"), 40);
	assert_int_equal(offset(t, "pond", "never"), 9999);
	assert_int_equal(offset(t, "pond", "end"), 72);
	assert_int_equal(layout_types_find(t, TYPES_STRUCT, "pond")->size, 104);
	assert_int_equal(layout_types_find(t, TYPES_STRUCT, "lake")->size, 64);
	assert_true(type_member(layout_types_find(t, TYPES_STRUCT, "pond"), "depth", &m));
	assert_string_equal(m.from, "the layout of water: code");
	assert_true(type_member(layout_types_find(t, TYPES_STRUCT, "pond"), "end", &m));
	assert_string_equal(m.from, "what yrt knows of water");
	layout_types_free(t);
	layout_destroy(l);
}

static void test_types(void **state)
{
	struct layout *l = make_layout();
	struct layout_types *t;
	struct type_member m;
	const struct type *fish;

	assert_null(layout_types_make(texts, l, place, &t));
	fish = layout_types_find(t, TYPES_STRUCT, "fish");
	assert_true(type_member(fish, "next", &m));
	assert_int_equal(m.type->kind, TYPE_POINTER);
	assert_ptr_equal(m.type->to, fish);
	assert_true(type_member(fish, "name", &m));
	assert_int_equal(m.type->kind, TYPE_ARRAY);
	assert_int_equal(m.type->count, 5);
	assert_true(type_member(fish, "weight", &m));
	assert_true(m.type->is_signed);
	assert_ptr_equal(layout_types_find(t, TYPES_PLAIN, "pondptr")->to, layout_types_find(t, TYPES_STRUCT, "pond"));
	assert_null(layout_types_find(t, TYPES_STRUCT, "being"));
	assert_null(layout_types_find(t, TYPES_STRUCT, "pondptr"));
	assert_null(layout_types_find(t, TYPES_PLAIN, "sea"));
	assert_true(layout_types_name(texts, "pondptr") && !layout_types_name(texts, "sea"));
	layout_types_free(t);
	layout_destroy(l);
}

static void test_wrong_texts(void **state)
{
	static const struct layout_type wrong[][2] = {{{LAYOUT_STRUCT, "a", "sea b", NULL}, {0}},
	        {{LAYOUT_STRUCT, "a", "a", NULL}, {0}}, {{LAYOUT_TYPEDEF, "a", "*", NULL}, {0}}};
	struct layout *l = make_layout();
	struct layout_types *t;

	for (u32 i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct error *err = layout_types_make(wrong[i], l, NULL, &t);

		assert_null(t);
		assert_non_null(err);
		assert_non_null(strstr(err->message, "water"));
		error_free(err);
	}
	layout_destroy(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_offsets), cmocka_unit_test(test_types), cmocka_unit_test(test_wrong_texts)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
