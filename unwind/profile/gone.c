/* SPDX-License-Identifier: Apache-2.0 */
#include "gone.h"

#include <stdlib.h>
#include <string.h>

#include "now.h"

#define STACKS_MAX 512
#define RETRIES    32 /* at once */
#define REST       9  /* times as long as that took */

struct stack {
	struct stack_record *record; /* with its frames; NULL: this place is free */
	struct frame *frames;
	u32 n;
};

struct gone {
	struct stack stack[STACKS_MAX];
	u32 next_kept, next_tried;
	u64 due_ns;
};

struct gone *gone_create(void)
{
	return calloc(1, sizeof(struct gone));
}

static void drop(struct stack *s)
{
	free(s->record);
	free(s->frames);
	*s = (struct stack){0};
}

void gone_destroy(struct gone *g)
{
	for (u32 i = 0; g && i < STACKS_MAX; i++)
		drop(&g->stack[i]);
	free(g);
}

struct error *gone_keep(struct gone *g, const struct stack_record *record, const struct frame *frames, u32 n)
{
	struct stack *s = &g->stack[g->next_kept++ % STACKS_MAX];

	drop(s);
	s->record = malloc(offsetof(struct stack_record, frame));
	s->frames = calloc(n, sizeof(*s->frames));
	if (!s->record || !s->frames) {
		drop(s);
		return &error_no_memory;
	}
	memcpy(s->record, record, offsetof(struct stack_record, frame));
	memcpy(s->frames, frames, n * sizeof(*frames));
	s->n = n;
	return NULL;
}

struct error *gone_retry(struct gone *g, gone_name *name, void *ctx)
{
	u64 begin_ns = now_ns();
	struct error *err = NULL;
	u32 tried = 0;

	for (u32 i = begin_ns < g->due_ns ? STACKS_MAX : 0; !err && i < STACKS_MAX && tried < RETRIES; i++) {
		struct stack *s = &g->stack[g->next_tried++ % STACKS_MAX];
		bool whole = false;

		if (!s->record)
			continue;
		tried++;
		err = name(ctx, s->record, s->frames, s->n, &whole);
		if (whole)
			drop(s);
	}
	if (tried)
		g->due_ns = now_ns() + REST * (now_ns() - begin_ns);
	return err;
}

void gone_forget(struct gone *g, u32 epoch)
{
	for (u32 i = 0; i < STACKS_MAX; i++)
		if (g->stack[i].record && (g->stack[i].record->epoch & 1) == (epoch & 1))
			drop(&g->stack[i]);
}
