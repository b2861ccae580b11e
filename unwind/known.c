/* SPDX-License-Identifier: Apache-2.0 */
#include "known.h"

static u32 bucket(u64 object, u64 owner)
{
	return (object ^ owner << 1) * 0x9e3779b97f4a7c15ull >> 52 & (KNOWN_BUCKETS - 1);
}

struct known *known_find(const struct known_objects *all, u64 object, u64 owner)
{
	struct known *k = all->buckets[bucket(object, owner)];

	while (k && (k->object != object || k->owner != owner))
		k = k->next;
	return k;
}

void known_keep(struct known_objects *all, struct known *k)
{
	struct known **head = &all->buckets[bucket(k->object, k->owner)];

	if (all->n >= KNOWN_MAX)
		known_forget(all);
	all->n++;
	k->next = *head;
	*head = k;
}

void known_forget(struct known_objects *all)
{
	for (u32 i = 0; i < KNOWN_BUCKETS; i++)
		while (all->buckets[i]) {
			struct known *k = all->buckets[i];

			all->buckets[i] = k->next;
			all->destroy(k);
		}
	all->n = 0;
}
