/* SPDX-License-Identifier: Apache-2.0 */
#include "wakers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"

struct error *wakers_keep(struct wakers *w, const struct stack_record *record, const struct frame *frames, u32 n)
{
	struct error *err = NULL;
	struct waker *new;

	if (wakers_find(w, record->hash) || w->n == WAKERS_MOST)
		return NULL;
	new = calloc(1, sizeof(*new) + n * sizeof(*frames));
	if (new)
		err = grow(&w->all, w->n, sizeof(*w->all));
	if (new && !err)
		err = table_put(&w->index, record->hash, w->n);
	if (!new || err) {
		free(new);
		return err ? err : &error_no_memory;
	}
	new->instance = record->instance;
	new->n = n;
	memcpy(new->comm, record->comm, sizeof(new->comm) - 1);
	memcpy(new->frames, frames, n * sizeof(*frames));
	w->all[w->n++] = new;
	return NULL;
}

const struct waker *wakers_find(const struct wakers *w, u64 hash)
{
	const u64 *known = table_get(&w->index, hash);

	return known ? w->all[*known] : NULL;
}

void wakers_free(struct wakers *w)
{
	for (u32 i = 0; i < w->n; i++)
		free(w->all[i]);
	free(w->all);
	table_free(&w->index);
	*w = (struct wakers){0};
}

static bool begins_with_any(const char *symbol, const char *const *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strncmp(symbol, all[i], strlen(all[i])))
			return true;
	return false;
}

/* Linux 5.15 to 6.18, x86: arch/x86/include/asm/idtentry.h, kernel/softirq.c, net/core/dev.c. */
bool waker_is_interrupt(const char *symbol, const char *caller, bool *sends)
{
	static const char *const hard[] = {"asm_sysvec_", "sysvec_", "__sysvec_", "asm_common_interrupt",
	        "common_interrupt", "__irq_exit_rcu", "asm_exc_nmi"};
	static const char *const soft[] = {"handle_softirqs", "__do_softirq", "__softirqentry_text_start"};

	*sends |= !strcmp(symbol, "process_backlog");
	if (begins_with_any(symbol, soft, sizeof(soft) / sizeof(*soft)))
		return !*sends || strncmp(caller, "do_softirq", strlen("do_softirq"));
	return begins_with_any(symbol, hard, sizeof(hard) / sizeof(*hard));
}

struct error *waker_function(struct profile *p, const char *comm, bool lock, u32 *ret)
{
	char text[COMM_LEN + 16];
	struct profile_function fn = {.name = text, .module = "", .file = "", .kind = KIND_WAITING};

	snprintf(text, sizeof(text), "[%s by %s]", lock && comm ? "released" : "woken", comm ? comm : "an interrupt");
	return profile_function(p, 0, &fn, false, ret);
}
