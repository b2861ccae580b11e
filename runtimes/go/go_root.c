/* SPDX-License-Identifier: Apache-2.0 */
#include "go_root.h"

#include <arch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "go_layout.h"
#include "go_release.h"

#define LABELS_ARE_A_LIST 24 /* since Go 1.24 */

#define LABEL_KEY   64
#define LABEL_VALUE 128

struct label {
	u64 words[GO_LABEL_WORDS];
	char key[LABEL_KEY], value[LABEL_VALUE];
};

static u32 tells_of(u32 features)
{
	return (features & FEATURE_CREATORS ? GO_TELL_CREATOR : 0) | (features & FEATURE_LABELS ? GO_TELL_LABELS : 0) |
	       (features & FEATURE_TASKS ? GO_TELL_NUMBER : 0);
}

struct error *go_root_configure(const struct runtime_process *p, struct go_table *t, struct go_config *ret)
{
	u32 tells = tells_of(p->features), minor;
	char release[GO_RELEASE_MAX];
	const struct go_layout *at;
	struct layout *layout;
	struct error *err;

	if (!tells)
		return NULL;
	if (!go_release(t, release) || !(minor = go_release_minor(release)))
		return error_new(ERROR_UNSUPPORTED,
		        "%s: creators, labels and numbers of its goroutines are not told: "
		        "no release of Go is in it",
		        t->file.img->path);
	err = go_layout_known(t->file.img, release, &layout);
	if (err)
		return err;
	at = layout->values;
	ret->g_gopc = at->g_gopc.at;
	ret->g_labels = at->g_labels.at;
	ret->g_goid = at->g_goid.at;
	ret->labels_map = minor < LABELS_ARE_A_LIST;
	ret->tells = tells;
	layout_destroy(layout);
	return NULL;
}

/* Text of the target, as far as it has room; nothing in it may steer a terminal. */
static bool read_text(const struct runtime_process *p, u64 addr, u64 len, char *ret, u32 room)
{
	u32 n = len < room ? (u32)len : room - 1;

	if (!memory_read(p->memory, ret, n, addr))
		return false;
	ret[n] = 0;
	for (u32 i = 0; i < n; i++)
		if ((unsigned char)ret[i] < ' ' || ret[i] == 0x7f || ret[i] == ';')
			ret[i] = '?';
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

/* The walker says that there are some, so it is known which of the two they are: of one that does not fit the mix will
 * not be the same. */
static u32 read_labels(const struct runtime_process *p, u64 addr, u32 map, struct label *ret, u64 *mix)
{
	u64 head[3], base, n;

	if (!memory_read(p->memory, head, map ? 8 : 16, addr))
		return 0;
	base = head[0];
	n = head[1];
	if (map) {
		if (!memory_read(p->memory, head, sizeof(head), base))
			return 0;
		n = head[0];
		base = head[2];
	}
	*mix = 0;
	for (u32 i = 0; i < n; i++) {
		if (i == GO_LABELS_MAX || !read_label(p, base, map, i, &ret[i]))
			return 0;
		*mix = go_label_mix(*mix, ret[i].words);
	}
	return (u32)n;
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct label *)a)->key, ((const struct label *)b)->key);
}

/* As frontends take it apart (unwind/runtime.h, suffix). ret has twice the room. */
static const char *escape(const char *text, const char *special, char *ret)
{
	char *at = ret;

	for (; *text; text++) {
		if (strchr(special, *text))
			*at++ = '\\';
		*at++ = *text;
	}
	*at = '\0';
	return ret;
}

static void name_labels(const struct runtime_process *p, const struct frame *f, char *ret, size_t room)
{
	char key[2 * LABEL_KEY], value[2 * LABEL_VALUE];
	struct label labels[GO_LABELS_MAX];
	u32 want = (u32)(f->detail >> 32), n = 0;
	u64 mix;
	int at;

	for (u32 map = 0; map < 2 && !n; map++) {
		n = read_labels(p, frame_addr(f), map, labels, &mix);
		n = n && (u32)mix == want ? n : 0;
	}
	at = snprintf(ret, room, n ? "labels: " : "labels: [gone]");
	qsort(labels, n, sizeof(*labels), by_key);
	for (u32 i = 0; i < n && (size_t)at < room; i++)
		at += snprintf(ret + at, room - (size_t)at, "%s%s=%s", i ? ", " : "",
		        escape(labels[i].key, "\\,=", key), escape(labels[i].value, "\\,", value));
}

static bool name_creator(struct go_table *t, u64 bias, const struct frame *f, char *ret, size_t room)
{
	char name[NAME_MAX_BYTES - 32];
	struct go_function fn;

	if (!go_function_find(t, frame_addr(f) - bias - ARCH_CALL_BACK, &fn))
		return false;
	go_function_name(t, &fn, name, sizeof(name));
	snprintf(ret, room, "created by %s", name);
	return true;
}

bool go_root_name(
        struct go_table *t, u64 bias, const struct runtime_process *p, const struct frame *f, struct frame_name *ret)
{
	switch ((u32)f->detail) {
	case GO_CREATED:
		if (!name_creator(t, bias, f, ret->name, sizeof(ret->name)))
			return false;
		break;
	case GO_LABELS:
		name_labels(p, f, ret->name, sizeof(ret->name));
		break;
	case GO_GOROUTINE:
		snprintf(ret->name, sizeof(ret->name), "goroutine %lu", frame_addr(f));
		break;
	default:
		return false;
	}
	ret->identity = XXH3_64bits(ret->name, strlen(ret->name));
	ret->qualified = true;
	ret->suffix = (u32)f->detail == GO_LABELS ? "label" : "class";
	return true;
}
