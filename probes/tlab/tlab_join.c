/* SPDX-License-Identifier: Apache-2.0 */
#include "tlab_join.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "grow.h"
#include "unwind/cleanup.h"
#include "unwind/now.h"
#include "unwind/table.h"

#define WAIT_NS    2000000000ULL /* longer than classes are looked for: then the other was lost */
#define FRAMES_MAX (33 * CHUNK_FRAMES)

struct waiting { /* a stack */
	u64 since_ns;
	struct stack_record *record; /* its own frames are none: */
	struct frame *frames;
	u32 n;
};

struct found_class {
	u64 since_ns;
	struct tlab_class class;
};

struct tlab_join {
	struct tlab_join_options options;
	struct waiting *waiting;
	u32 nwaiting;
	struct found_class *classes;
	u32 nclasses;
	struct table by_id; /* of records: index in classes */
};

struct error *tlab_join_create(const struct tlab_join_options *options, struct tlab_join **ret)
{
	struct tlab_join *j = calloc(1, sizeof(*j));

	if (!j)
		return &error_no_memory;
	j->options = *options;
	*ret = j;
	return NULL;
}

static void forget(struct waiting *w)
{
	free(w->record);
	free(w->frames);
}

void tlab_join_destroy(struct tlab_join *j)
{
	if (!j)
		return;
	for (u32 i = 0; i < j->nwaiting; i++)
		forget(&j->waiting[i]);
	free(j->waiting);
	free(j->classes);
	table_free(&j->by_id);
	free(j);
}

struct error *tlab_join_stack(struct tlab_join *j, const struct stack_record *record, const struct frame *frames, u32 n)
{
	struct waiting w = {.since_ns = now_ns(), .n = n};
	struct error *err = n <= FRAMES_MAX ? grow((void **)&j->waiting, j->nwaiting, sizeof(*j->waiting)) : NULL;

	if (err || n > FRAMES_MAX)
		return err;
	w.record = malloc(offsetof(struct stack_record, frame));
	w.frames = malloc((n + 1) * sizeof(*w.frames));
	if (!w.record || !w.frames) {
		forget(&w);
		return &error_no_memory;
	}
	memcpy(w.record, record, offsetof(struct stack_record, frame));
	memcpy(w.frames, frames, n * sizeof(*w.frames));
	j->waiting[j->nwaiting++] = w;
	return NULL;
}

static u64 key_of(u64 id)
{
	return XXH3_64bits(&id, sizeof(id)) | 1;
}

/* Those whose stack has come, or never will. */
static void drop_classes(struct tlab_join *j, u64 now)
{
	u32 left = 0;

	for (u32 i = 0; i < j->nclasses; i++)
		if (j->classes[i].class.record.id && now - j->classes[i].since_ns < WAIT_NS)
			j->classes[left++] = j->classes[i];
	j->nclasses = left;
}

static struct error *take_class(struct tlab_join *j, const struct tlab_class *class, u64 now)
{
	struct error *err;

	if (class->record.how == ALLOC_BY_SURVEY)
		return j->options.counted(j->options.ctx, class);
	err = grow((void **)&j->classes, j->nclasses, sizeof(*j->classes));
	if (!err)
		j->classes[j->nclasses++] = (struct found_class){.class = *class, .since_ns = now};
	return err;
}

/* What was found out since, beside what still waits for its stack. */
static struct error *take_classes(struct tlab_join *j, u64 now)
{
	cleanup(free) struct tlab_class *found = NULL;
	u32 n = tlab_classes_take(j->options.classes, &found);
	struct error *err = NULL;

	drop_classes(j, now);
	for (u32 i = 0; i < n && !err; i++)
		err = take_class(j, &found[i], now);
	table_clear(&j->by_id);
	for (u32 i = 0; i < j->nclasses && !err; i++)
		err = table_put(&j->by_id, key_of(j->classes[i].class.record.id), i);
	return err;
}

struct error *tlab_join_poll(struct tlab_join *j, bool last)
{
	u64 now = now_ns();
	struct error *err = take_classes(j, now);
	u32 left = 0;

	for (u32 i = 0; i < j->nwaiting; i++) {
		struct waiting *w = &j->waiting[i];
		u64 *at = err ? NULL : table_get(&j->by_id, key_of(w->record->hash));

		if (!err && !at && !last && now - w->since_ns < WAIT_NS) {
			j->waiting[left++] = *w;
			continue;
		}
		if (at) {
			struct found_class *found = &j->classes[*at];

			err = j->options.both(j->options.ctx, &found->class, w->record, w->frames, w->n);
			found->class.record.id = 0;
		}
		forget(w);
	}
	j->nwaiting = left;
	return err;
}
