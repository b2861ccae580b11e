/* SPDX-License-Identifier: Apache-2.0 */
#include "go_labels.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "grow.h"

struct label {
	u64 words[GO_LABEL_WORDS];
	char key[GO_LABEL_KEY], value[GO_LABEL_VALUE];
};

/* Text of the target, as far as it has room. */
static bool read_text(const struct runtime_process *p, u64 addr, u64 len, char *ret, u32 room)
{
	u32 n = len < room ? (u32)len : room - 1;

	if (!memory_read(p->memory, ret, n, addr))
		return false;
	ret[n] = 0;
	return true;
}

static bool read_label(const struct runtime_process *p, u64 base, u32 map, u32 i, struct label *ret)
{
	u64 *word = ret->words;

	memset(ret, 0, sizeof(*ret));
	if (!memory_read(p->memory, word, 16, go_label_key(base, map, i)) ||
	        !memory_read(p->memory, word + 2, 16, go_label_value(base, map, i)))
		return false;
	return memory_read(p->memory, word + 4, word[3] < GO_LABEL_BYTES ? word[3] : GO_LABEL_BYTES, word[2]) &&
	       read_text(p, word[0], word[1], ret->key, sizeof(ret->key)) &&
	       read_text(p, word[2], word[3], ret->value, sizeof(ret->value));
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct label *)a)->key, ((const struct label *)b)->key);
}

/* How many there are, and where. False: gone. */
static bool read_head(const struct runtime_process *p, u64 addr, bool map, u64 *base, u64 *n)
{
	u64 head[3];

	if (!memory_read(p->memory, head, map ? 8 : 16, addr))
		return false;
	*base = head[0];
	*n = head[1];
	if (!map)
		return true;
	if (!memory_read(p->memory, head, sizeof(head), *base))
		return false;
	*n = head[0];
	*base = head[2];
	return true;
}

u32 go_labels_read(const struct runtime_process *p, u64 addr, bool map, u32 max, char *ret, u32 *size, u64 *mix)
{
	struct label labels[GO_LABELS_READ];
	u64 base, n;
	char *at = ret;

	if (mix)
		*mix = 0;
	if (!read_head(p, addr, map, &base, &n) || n > max || (map && n > GO_LABELS_MAX))
		return 0;
	for (u32 i = 0; i < n; i++) {
		if (!read_label(p, base, map, i, &labels[i]))
			return 0;
		if (mix)
			*mix = go_label_mix(*mix, labels[i].words);
	}
	qsort(labels, n, sizeof(*labels), by_key);
	for (u32 i = 0; i < n; i++) {
		at = stpcpy(at, labels[i].key) + 1;
		at = stpcpy(at, labels[i].value) + 1;
	}
	*size = (u32)(at - ret);
	return (u32)n;
}

static const char *behind(const char *text)
{
	return text + strlen(text) + 1;
}

/* As frontends take it apart (FORM_LABEL); nothing in it may steer a terminal. ret has twice the room. */
static const char *escape(const char *text, const char *special, char *ret)
{
	char *at = ret;

	for (; *text; text++) {
		bool plain = (unsigned char)*text >= ' ' && *text != 0x7f && *text != ';';

		if (strchr(special, *text))
			*at++ = '\\';
		*at++ = plain ? *text : '?';
	}
	*at = '\0';
	return ret;
}

void go_labels_name(u32 n, const char *packed, char *ret, size_t room)
{
	char key[2 * GO_LABEL_KEY], value[2 * GO_LABEL_VALUE];
	int at = snprintf(ret, room, n ? "labels: " : "labels: [gone]");

	for (u32 i = 0; i < n && (size_t)at < room; i++) {
		const char *text = behind(packed);

		at += snprintf(ret + at, room - (size_t)at, "%s%s=%s", i ? ", " : "", escape(packed, "\\,=", key),
		        escape(text, "\\,", value));
		packed = behind(text);
	}
}

/* A string of Go. Bytes of other languages stay. */
static void print_quoted(const char *text, FILE *out)
{
	fputc('"', out);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		const char *at = strchr("\a\b\f\n\r\t\v\"\\", c);

		if (at)
			fprintf(out, "\\%c", "abfnrtv\"\\"[at - "\a\b\f\n\r\t\v\"\\"]);
		else if (c < ' ' || c == 0x7f)
			fprintf(out, "\\x%02x", c);
		else
			fputc(c, out);
	}
	fputc('"', out);
}

/* Without quotes where none are needed. */
static void print_bare(const char *text, FILE *out)
{
	for (const char *at = text; *at; at++)
		if (!isalnum((unsigned char)*at) && !strchr("./_", *at)) {
			print_quoted(text, out);
			return;
		}
	fputs(text, out);
}

static void print_set(
        const struct go_label_set *set, void (*print)(const char *text, FILE *out), const char *between, FILE *out)
{
	const char *at = set->packed;

	if (!set->n) {
		fputs("[gone]", out);
		return;
	}
	fputc('{', out);
	for (u32 i = 0; i < set->n; i++) {
		fputs(i ? ", " : "", out);
		print(at, out);
		fputs(between, out);
		at = behind(at);
		print(at, out);
		at = behind(at);
	}
	fputc('}', out);
}

void go_labels_print(const struct go_label_set *set, FILE *out)
{
	print_set(set, print_quoted, ":", out);
}

void go_labels_print_trace(const struct go_label_set *set, FILE *out)
{
	print_set(set, print_bare, ": ", out);
}

struct error *go_label_sets_add(struct go_label_sets *all, u32 n, const char *packed, u32 size, u32 *ret)
{
	u64 hash = XXH3_64bits_withSeed(packed, size, n) | 1, *known = table_get(&all->known, hash);
	struct error *err;
	char *copy;

	if (known) {
		*ret = (u32)*known;
		return NULL;
	}
	err = grow(&all->sets, all->n, sizeof(*all->sets));
	if (!err)
		err = table_put(&all->known, hash, all->n + 1);
	copy = err ? NULL : malloc((size_t)size + 1);
	if (!copy)
		return err ? err : &error_no_memory;
	memcpy(copy, packed, size);
	all->sets[all->n] = (struct go_label_set){n, copy};
	*ret = ++all->n;
	return NULL;
}

void go_label_sets_free(struct go_label_sets *all)
{
	for (u32 i = 0; i < all->n; i++)
		free(all->sets[i].packed);
	free(all->sets);
	table_free(&all->known);
	*all = (struct go_label_sets){0};
}
