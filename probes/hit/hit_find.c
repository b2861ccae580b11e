/* SPDX-License-Identifier: Apache-2.0 */
#include "hit_find.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/cleanup.h"
#include "unwind/binary/endbr64.h"
#include "unwind/symbols/symbols.h"

#define ADDRS_MAX 8

struct search {
	const char *name;
	u64 addr[ADDRS_MAX];
	u32 n;
	bool indirect;
	struct hit_near *near;
};

/* Is it the function's name in the language? Arguments need not be given. */
static bool is_demangled(const char *symbol, const char *wanted)
{
	const char *part = strrchr(wanted, ':');
	size_t len = strlen(wanted);
	cleanup(free) char *name = NULL;

	if (!symbol_is_mangled(symbol) || !strstr(symbol, part ? part + 1 : wanted))
		return false;
	name = symbol_demangle(symbol);
	return name && !strncmp(name, wanted, len) && (!name[len] || name[len] == '(');
}

static bool take(void *ctx, const struct symbol_function *f)
{
	struct search *s = ctx;

	hit_near(s->near, s->name, f->name);
	if (strcmp(f->name, s->name) != 0 && !is_demangled(f->name, s->name))
		return false;
	s->indirect |= f->indirect;
	for (u32 i = 0; i < s->n; i++)
		if (s->addr[i] == f->addr)
			return false;
	if (s->n < ADDRS_MAX)
		s->addr[s->n++] = f->addr;
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

static struct error *several(const struct hit_spec *s, const struct image *img, const struct search *found)
{
	char text[ADDRS_MAX * 24] = "";
	size_t len = 0;

	for (u32 i = 0; i < found->n; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s0x%lx", i ? ", " : "", found->addr[i]);
	return error_hint(
	        error_new(ERROR_USAGE, "-e %s: %s has %u functions of that name", s->text, img->path, found->n),
	        "FILE:ADDRESS takes one of them: %s", text);
}

static struct error *find_function(const struct hit_spec *s, struct image *img, const char *root, struct hit_found *ret)
{
	struct search found = {.name = s->name, .near = &ret->near};
	struct error *err = symbols_load(img, root);

	if (err)
		return err;
	symbols_each(img, take, &found);
	if (!found.n) {
		err = symbols_use_languages(img);
		if (err)
			return err;
		symbols_each(img, take, &found);
	}
	if (found.n && found.indirect)
		return error_hint(error_new(ERROR_UNSUPPORTED,
		                          "-e %s: this symbol is a resolver (IFUNC), not the function", s->text),
		        "give the resolved function: a profile shows its name");
	if (found.n > 1)
		return several(s, img, &found);
	ret->addr = found.addr[0];
	ret->n = found.n && hit_offset(img, probed_entry(img, found.addr[0]), true, &ret->place[0].offset);
	return NULL;
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

/* A note of <sys/sdt.h>: address, base and semaphore, provider, name, arguments. The base moves where a file was
 * prelinked. */
static void take_note(
        const struct hit_spec *s, struct image *img, const u8 *desc, u32 size, u64 base, struct hit_found *ret)
{
	const char *provider = (const char *)desc + 24, *name, *end = (const char *)desc + size;
	struct hit_place place = {0};
	u64 moved;

	if (size < 26 || !memchr(provider, 0, (size_t)(end - provider)))
		return;
	name = provider + strlen(provider) + 1;
	if (name >= end || !memchr(name, 0, (size_t)(end - name)))
		return;
	hit_near(&ret->near, s->name, name);
	moved = base ? base - word(desc + 8) : 0;
	if (strcmp(name, s->name) != 0 || (*s->file && strcmp(provider, s->file) != 0 && !hit_is_file(s, img->path)) ||
	        ret->n == HIT_PLACES_MAX || !hit_offset(img, word(desc) + moved, true, &place.offset))
		return;
	if (word(desc + 16) && !hit_offset(img, word(desc + 16) + moved, false, &place.counter))
		return;
	ret->place[ret->n++] = place;
	ret->usdt = true;
}

static void find_usdt(const struct hit_spec *s, struct image *img, struct hit_found *ret)
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
			take_note(s, img, (const u8 *)notes->d_buf + desc, head[1], base, ret);
		at = desc + rounded(head[1]);
	}
}

struct error *hit_find(const struct hit_spec *s, struct image *img, const char *root, struct hit_found *ret)
{
	struct error *err = NULL;

	*ret = (struct hit_found){.n = 0};
	if (s->by_addr) {
		struct error *err = hit_is_file(s, img->path) ? symbols_load(img, root) : NULL;

		if (err || !hit_is_file(s, img->path))
			return err;
		ret->addr = s->addr;
		ret->n = hit_offset(img, s->addr, true, &ret->place[0].offset);
		return ret->n ? NULL
		              : error_new(ERROR_USAGE, "-e %s: 0x%lx is not in the code of %s", s->text, s->addr,
		                        img->path);
	}
	if (s->kind != HIT_USDT && hit_is_file(s, img->path))
		err = find_function(s, img, root, ret);
	if (!err && !ret->n && s->kind != HIT_FUNCTION)
		find_usdt(s, img, ret);
	return err;
}
