/* SPDX-License-Identifier: Apache-2.0 */
#include "unread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIES    6
#define FIRST_NS 100000000ull /* each later one after twice the time */

void unread_add(struct unread_list *l, const struct process *p, struct error *why, u64 now_ns)
{
	struct unread *u;

	for (u32 i = 0; i < l->kept; i++)
		if (l->first[i].number == p->number) {
			error_free(why);
			return;
		}
	l->n++;
	if (l->kept < UNREAD_KEPT) {
		u = &l->first[l->kept++];
		*u = (struct unread){.number = p->number, .pid = p->pid, .next_ns = now_ns + FIRST_NS};
		snprintf(u->comm, sizeof(u->comm), "%s", p->comm);
		if (asprintf(&u->why, why->hint ? "%s; %s" : "%s", why->message, why->hint) < 0)
			u->why = NULL;
	}
	error_free(why);
}

struct unread *unread_due(struct unread_list *l, u64 now_ns)
{
	for (u32 i = 0; i < l->kept; i++) {
		struct unread *u = &l->first[i];

		if (u->tries == TRIES || now_ns < u->next_ns)
			continue;
		u->next_ns = now_ns + (FIRST_NS << ++u->tries);
		return u;
	}
	return NULL;
}

void unread_drop(struct unread_list *l, struct unread *u)
{
	u32 i = (u32)(u - l->first);

	free(u->why);
	l->kept--;
	l->n--;
	memmove(u, u + 1, (l->kept - i) * sizeof(*u));
}

void unread_free(struct unread_list *l)
{
	for (u32 i = 0; i < l->kept; i++)
		free(l->first[i].why);
	*l = (struct unread_list){0};
}
