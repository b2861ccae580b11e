/* SPDX-License-Identifier: Apache-2.0 */
#include "hit_find.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "hit_name.h"
#include "unwind/cleanup.h"
#include "unwind/binary/endbr64.h"
#include "unwind/symbols/symbols.h"

struct search {
	struct hit_name name;
	const char *pattern; /* in place of it: whose * stands for any letters */
	u32 matched, resolvers;
	struct hit_found *found;
	char *symbol[HIT_PLACES_MAX]; /* of each */
	bool indirect, too_many;
};

/* Names of C++ and Rust are compared without types. Parts that the compiler split off (.cold) never match. */
bool hit_matches(const char *pattern, const char *symbol)
{
	cleanup(free) char *name = symbol_is_mangled(symbol) ? hit_name_short(symbol) : NULL;

	return !strstr(symbol, ".cold") && !strstr(symbol, ".part.") && hit_name_fits(pattern, name ? name : symbol);
}

static bool take(void *ctx, const struct symbol_function *f)
{
	struct search *s = ctx;
	struct hit_found *found = s->found;

	if (s->pattern ? !hit_matches(s->pattern, f->name) : !hit_name_is(&s->name, f->name))
		return false;
	for (u32 i = 0; i < found->n; i++)
		if (found->addr[i] == f->addr)
			return false;
	if (s->pattern && f->indirect) { /* it runs once, when the file is loaded */
		s->resolvers++;
		return false;
	}
	s->indirect |= f->indirect;
	s->matched++;
	s->too_many = found->n == HIT_PLACES_MAX;
	if (s->too_many)
		return !s->pattern; /* of a pattern all are counted */
	s->symbol[found->n] = strdup(f->name);
	found->addr[found->n++] = f->addr;
	return false;
}

bool hit_offset(const struct image *img, u64 addr, bool code, u64 *ret)
{
	for (u32 i = 0; i < img->nsegments; i++) {
		const struct image_segment *seg = &img->segments[i];

		if ((code && !(seg->flags & 1)) || addr - seg->vaddr >= seg->filesz)
			continue;
		*ret = addr - seg->vaddr + seg->offset;
		return true;
	}
	return false;
}

/* Is each of them the same function to people? */
static bool are_one(const struct search *s)
{
	cleanup(free) char *first = s->symbol[0] ? symbol_demangle_whole(s->symbol[0]) : NULL;

	for (u32 i = 1; i < s->found->n; i++) {
		cleanup(free) char *name = s->symbol[i] ? symbol_demangle_whole(s->symbol[i]) : NULL;
		size_t len = first ? strcspn(first, "[") : 0;

		if (!first || !name || (!symbol_is_mangled(s->symbol[i]) && !strchr(s->symbol[i], '.')) ||
		        strncmp(first, name, len))
			return false;
	}
	return true;
}

static char *text_of(const struct search *s)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (u32 i = 0; out && i < s->found->n; i++) {
		cleanup(free) char *name = s->symbol[i] ? symbol_demangle(s->symbol[i]) : NULL;

		fprintf(out, "%s%s at 0x%lx", i ? ", " : "", name ? name : "", s->found->addr[i]);
	}
	if (out && fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

static struct error *check(const struct hit_spec *s, struct image *img, struct search *search)
{
	struct hit_found *ret = search->found;

	if (search->indirect)
		return error_hint(error_new(ERROR_UNSUPPORTED,
		                          "-e %s: this symbol is a resolver (IFUNC), not the function", s->text),
		        "give the resolved function: a profile shows its name");
	if (search->too_many && search->pattern)
		return error_hint(
		        error_new(ERROR_USAGE, "-e %s: %u functions of %s match, and %u can be probed at a time",
		                s->text, search->matched, img->path, HIT_PLACES_MAX),
		        "`yrt functions -p PID '%s:%s'` lists them; make the pattern narrower",
		        *s->file ? s->file : "*", s->name);
	if (search->pattern && !ret->n && search->resolvers)
		return error_hint(error_new(ERROR_UNSUPPORTED,
		                          "-e %s: all that match are resolvers (IFUNC), not functions", s->text),
		        "give a resolved function: a profile shows its name");
	if (search->too_many)
		return error_hint(error_new(ERROR_USAGE, "-e %s: %s has more than %u functions of that name", s->text,
		                          img->path, HIT_PLACES_MAX),
		        "give its arguments, or FILE:ADDRESS");
	if (search->pattern && ret->n && search->resolvers) {
		if (asprintf(&ret->others, "; %u resolvers (IFUNC) are not", search->resolvers) < 0)
			ret->others = NULL;
	} else if (search->pattern && ret->n) {
		ret->others = strdup("");
	} else if (!search->pattern && ret->n > 1 && !are_one(search)) {
		ret->others = text_of(search);
	}
	for (u32 i = 0; i < ret->n; i++)
		if (!hit_offset(img, probed_entry(img, ret->addr[i]), true, &ret->place[i].offset))
			return error_new(
			        ERROR_USAGE, "-e %s: 0x%lx is not in the code of %s", s->text, ret->addr[i], img->path);
	return NULL;
}

static struct error *find_function(const struct hit_spec *s, struct image *img, const char *root, struct hit_found *ret)
{
	struct search search = {.found = ret, .pattern = hit_is_pattern(s) ? s->name : NULL};
	struct error *err = symbols_load(img, root);

	if (err)
		return err;
	hit_name_set(&search.name, s->name);
	symbols_each(img, take, &search);
	if (!ret->n) {
		err = symbols_use_languages(img);
		if (err)
			return err;
		symbols_each(img, take, &search);
	}
	err = check(s, img, &search);
	for (u32 i = 0; i < ret->n; i++)
		free(search.symbol[i]);
	return err;
}

struct near_search {
	const struct hit_spec *spec;
	struct hit_near *near;
};

static bool take_near(void *ctx, const struct symbol_function *f)
{
	struct near_search *s = ctx;
	cleanup(free) char *name = symbol_is_mangled(f->name) ? hit_name_short(f->name) : NULL;

	hit_near(s->near, s->spec->name, name ? name : f->name);
	return false;
}

static u64 word(const u8 *at)
{
	u64 value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static u32 rounded(u32 n)
{
	return (n + 3) & ~3u;
}

struct usdt_list {
	void (*each)(void *ctx, const char *name);
	void *ctx;
};

/* A note of <sys/sdt.h>: address, base and semaphore, provider, name, arguments. The base moves where a file was
 * prelinked. */
static void take_note(const struct hit_spec *s, struct image *img, const u8 *desc, u32 size, u64 base,
        struct hit_found *ret, struct hit_near *near, const struct usdt_list *list)
{
	const char *provider = (const char *)desc + 24, *name, *end = (const char *)desc + size;
	struct hit_place place = {0};
	u64 moved;

	if (size < 26 || !memchr(provider, 0, (size_t)(end - provider)))
		return;
	name = provider + strlen(provider) + 1;
	if (name >= end || !memchr(name, 0, (size_t)(end - name)))
		return;
	if (near)
		hit_near(near, s->name, name);
	if (list) {
		char both[2 * HIT_NAME_MAX];

		snprintf(both, sizeof(both), "%.500s:%.500s", provider, name);
		list->each(list->ctx, both);
	}
	if (!ret)
		return;
	moved = base ? base - word(desc + 8) : 0;
	if (strcmp(name, s->name) != 0 || (*s->file && strcmp(provider, s->file) != 0 && !hit_is_file(s, img->path)) ||
	        ret->n == HIT_PLACES_MAX || !hit_offset(img, word(desc) + moved, true, &place.offset))
		return;
	if (word(desc + 16) && !hit_offset(img, word(desc + 16) + moved, false, &place.counter))
		return;
	name += strlen(name) + 1;
	place.arguments = name < end && memchr(name, 0, (size_t)(end - name)) ? name : NULL;
	ret->place[ret->n++] = place;
	ret->usdt = true;
}

/* ret, near, list: NULL: not wanted. */
static void find_usdt(const struct hit_spec *s, struct image *img, struct hit_found *ret, struct hit_near *near,
        const struct usdt_list *list)
{
	Elf_Data *notes = image_section(img, ".note.stapsdt", NULL);
	u64 base = 0;

	if (!notes)
		return;
	image_section(img, ".stapsdt.base", &base);
	for (size_t at = 0; at + 12 <= notes->d_size;) {
		const u8 *note = (const u8 *)notes->d_buf + at;
		u32 head[3];
		u64 desc;

		memcpy(head, note, sizeof(head)); /* sizes of owner and contents, type */
		desc = at + 12 + rounded(head[0]);
		if (head[0] > notes->d_size || head[1] > notes->d_size || desc + head[1] > notes->d_size)
			break;
		if (head[2] == 3 && head[0] == 8 && !memcmp(note + 12, "stapsdt", 8))
			take_note(s, img, (const u8 *)notes->d_buf + desc, head[1], base, ret, near, list);
		at = desc + rounded(head[1]);
	}
}

void hit_find_near(const struct hit_spec *s, struct image *img, struct hit_near *near)
{
	struct near_search search = {.spec = s, .near = near};

	if (s->kind != HIT_USDT && hit_is_file(s, img->path))
		symbols_each(img, take_near, &search);
	if (s->kind != HIT_FUNCTION)
		find_usdt(s, img, NULL, near, NULL);
}

void hit_each_usdt(struct image *img, void (*each)(void *ctx, const char *name), void *ctx)
{
	static const struct hit_spec any;
	const struct usdt_list list = {each, ctx};

	find_usdt(&any, img, NULL, NULL, &list);
}

struct error *hit_find(const struct hit_spec *s, struct image *img, const char *root, struct hit_found *ret)
{
	struct error *err = NULL;

	*ret = (struct hit_found){.n = 0};
	if (s->by_addr) {
		struct error *err = hit_is_file(s, img->path) ? symbols_load(img, root) : NULL;

		if (err || !hit_is_file(s, img->path))
			return err;
		ret->addr[0] = s->addr;
		ret->n = hit_offset(img, s->addr, true, &ret->place[0].offset);
		return ret->n ? NULL
		              : error_new(ERROR_USAGE, "-e %s: 0x%lx is not in the code of %s", s->text, s->addr,
		                        img->path);
	}
	if (s->kind != HIT_USDT && hit_is_file(s, img->path))
		err = find_function(s, img, root, ret);
	if (!err && !ret->n && s->kind != HIT_FUNCTION)
		find_usdt(s, img, ret, NULL, NULL);
	return err;
}

bool hit_is_own(const struct image *img)
{
	struct stat st;

	return !stat("/proc/self/exe", &st) && st.st_dev == img->dev && st.st_ino == img->ino;
}

bool hit_leads_to_program(const char *symbol)
{
	return !strncmp(symbol, "bpf_", 4) || !strncmp(symbol, "__bpf_", 6) || !strncmp(symbol, "__traceiter_", 12);
}
