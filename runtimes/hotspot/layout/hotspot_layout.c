/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_layout.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define LAYOUT hotspot_layout
static const struct layout_field fields[] = {HOTSPOT_MEMBERS(LAYOUT_MEMBER, LAYOUT_OPTIONAL)};

const struct layout_schema hotspot_layout_schema = {.runtime = "hotspot", LAYOUT_FIELDS(fields)};

static const char *without(const char *text, size_t *len, const char *word)
{
	size_t n = strlen(word);

	if (*len > n && !strncmp(text, word, n)) {
		*len -= n;
		return text + n;
	}
	if (*len > n && !strncmp(text + *len - n, word, n))
		*len -= n;
	return text;
}

/* Types that vmTypes do not list, as C++ has them on Linux. */
static u32 known_size(const char *type)
{
	static const struct {
		const char *type;
		u32 size;
	} known[] = {{"OSThread::thread_id_t", 4}, {"pid_t", 4}, {"pthread_t", 8}, {"short", 2}, {"int16_t", 2},
	        {"uint16_t", 2}, {"long", 8}, {"address", 8}, {"size_t", 8}, {"u4", 4}, {"uint", 4}, {"jlong", 8},
	        {"uint32_t", 4}, {"uint64_t", 8}};

	for (u32 i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (!strcmp(type, known[i].type))
			return known[i].size;
	return 1;
}

/* The size of a type in words: "volatile signed char", "JavaThread *const *const". */
static u32 size_of(const struct vmstructs *v, const char *text)
{
	static const char *const words[] = {"const ", "volatile ", " const", " volatile", "*const", "* volatile"};
	size_t len = strlen(text);
	char type[96];
	u64 size;

	if (strchr(text, '*'))
		return 8;
	for (u32 i = 0; i < sizeof(words) / sizeof(*words); i++)
		text = without(text, &len, words[i]);
	snprintf(type, sizeof(type), "%.*s", (int)len, text);
	if (vmstructs_type_size(v, type, &size) && size && size <= UINT16_MAX)
		return size;
	return known_size(type);
}

static bool read_sizeof(const struct vmstructs *v, const char *type, struct layout_member *ret)
{
	u64 size;

	if (!vmstructs_type_size(v, type, &size) || !size || size > UINT16_MAX)
		return false;
	*ret = (struct layout_member){size, size};
	return true;
}

static bool read_constant(const struct vmstructs *v, const char *name, struct layout_member *ret)
{
	s64 value;

	if (!vmstructs_constant(v, name, &value) || value < INT16_MIN || value > UINT16_MAX)
		return false;
	*ret = (struct layout_member){(u16)value, 2};
	return true;
}

static bool read_field(const struct vmstructs *v, const char *name, struct layout_member *ret)
{
	const char *dot = strchr(name, '.'), *text;
	char type[96];
	u64 offset;

	if (!dot)
		return false;
	snprintf(type, sizeof(type), "%.*s", (int)(dot - name), name);
	if (!vmstructs_field(v, type, dot + 1, &offset, &text) || offset > UINT16_MAX)
		return false;
	*ret = (struct layout_member){offset, size_of(v, text)};
	return true;
}

/* One of the alternatives of a name. */
static bool read_name(const struct vmstructs *v, const char *name, struct layout_member *ret)
{
	if (!strncmp(name, "sizeof ", 7))
		return read_sizeof(v, name + 7, ret);
	if (!strncmp(name, "constant ", 9))
		return read_constant(v, name + 9, ret);
	return read_field(v, name, ret);
}

static bool read_member(const struct vmstructs *v, const char *names, struct layout_member *ret)
{
	char name[192];

	for (size_t len; *names; names += len + (names[len] == '|')) {
		len = strcspn(names, "|");
		snprintf(name, sizeof(name), "%.*s", (int)len, names);
		if (read_name(v, name, ret))
			return true;
	}
	return false;
}

struct error *hotspot_layout_find(const struct vmstructs *v, struct layout **ret)
{
	struct error *err = layout_create(&hotspot_layout_schema, ret);
	struct layout_member member;

	if (err)
		return err;
	for (u32 i = 0; i < hotspot_layout_schema.n; i++)
		if (read_member(v, fields[i].name, &member))
			layout_set(*ret, i, member, LAYOUT_PROCESS);
	err = layout_detail(*ret, LAYOUT_PROCESS, "vmStructs");
	if (!err)
		err = layout_complete(*ret, "its vmStructs");
	if (err) {
		layout_destroy(*ret);
		*ret = NULL;
	}
	return err;
}
