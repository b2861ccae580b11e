/* SPDX-License-Identifier: Apache-2.0 */
#include "go_root.h"

#include <arch.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "go_labels.h"
#include "go_view.h"

static u32 details_of(u32 features)
{
	return (features & FEATURE_CREATORS ? GO_DETAIL_CREATOR : 0) |
	       (features & FEATURE_LABELS ? GO_DETAIL_LABELS : 0) | (features & FEATURE_TASKS ? GO_DETAIL_NUMBER : 0);
}

/* What the code that switches stacks reads is where the layout has it. */
static bool agrees(const struct go_layout *at, const struct go_config *code)
{
	return at->g_m.at == code->g_m && at->g_sp.at == code->g_sched && at->m_curg.at == code->m_curg;
}

static struct error *configure(const struct go_view *v, u32 details, struct go_config *ret)
{
	unsigned long minor = go_release_minor(v->release);

	if (!agrees(v->at, ret))
		return error_new(ERROR_UNSUPPORTED, "%s of %s: its code contradicts the layout of that release",
		        v->table->file.img->path, v->release);
	ret->g_gopc = v->at->g_gopc.at;
	ret->g_labels = v->at->g_labels.at;
	ret->g_goid = v->at->g_goid.at;
	ret->labels_map = minor && minor < GO_LABELS_BY_LIST;
	ret->details = details;
	return NULL;
}

/* Takes err. */
static struct error *not_shown(struct error *err)
{
	struct error *ret =
	        error_new(err->kind, "%s; creators, labels and numbers of goroutines are not shown", err->message);

	if (err->hint)
		ret = error_hint(ret, "%s", err->hint);
	error_free(err);
	return ret;
}

struct error *go_root_configure(
        const struct runtime_process *p, struct go_table *t, u64 bias, struct go_config *ret, bool *starting)
{
	u32 details = details_of(p->features);
	struct go_view *v = NULL;
	struct error *err = details ? go_view_open(p, t, bias, &v) : NULL;

	*starting = v && !v->allgs;
	ret->details = 0;
	if (v)
		err = configure(v, details, ret);
	go_view_close(v);
	return err ? not_shown(err) : NULL;
}

/* The walker says that there are some, so it is known which of the two they are: of one that does not fit the mix will
 * not be the same. */
static void name_labels(const struct runtime_process *p, const struct frame *f, char *ret, size_t room)
{
	u32 want = (u32)(f->detail >> 32), n = 0, size;
	char packed[GO_LABELS_PACKED];
	u64 mix;

	for (u32 map = 0; map < 2 && !n; map++) {
		n = go_labels_read(p, frame_addr(f), map, GO_LABELS_MAX, packed, &size, &mix);
		n = n && (u32)mix == want ? n : 0;
	}
	go_labels_name(n, packed, ret, room);
}

static bool name_creator(struct go_table *t, u64 bias, const struct frame *f, char *ret, size_t room)
{
	char name[NAME_MAX_BYTES - 32];
	struct go_function fn;

	if (!go_function_find(t, frame_addr(f) - bias - ARCH_CALL_BACK, &fn))
		return false;
	go_short_name(t, fn.name, name, sizeof(name));
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
	ret->form = (u32)f->detail == GO_LABELS ? FORM_LABEL : FORM_CLASS;
	return true;
}
