/* SPDX-License-Identifier: Apache-2.0 */
#include "wait_births.h"

#include <string.h>
#include <xxhash.h>

#include "unwind/profile/collect.h"
#include "wait_outside.h"
#include "wait_record.h"

void wait_births_free(struct wait_births *b)
{
	table_free(&b->ns);
	table_free(&b->waits);
}

static u64 hash_of(const struct wait_thread *t)
{
	return XXH3_64bits_withSeed(t->comm, sizeof(t->comm), t->instance) | 1;
}

struct error *wait_births_add(struct wait_births *b, struct wait_walker *w, const struct wait_record *r)
{
	struct wait_thread t = {.tgid = r->tgid,
	        .tid = r->tid,
	        .instance = r->instance,
	        .reason = wait_reason(WAIT_RUNNABLE, WAIT_NO_FILE, -1)};
	const u64 *ns, *waits;
	struct error *err;
	u64 hash;

	memcpy(t.comm, r->comm, sizeof(t.comm) - 1);
	hash = hash_of(&t);
	ns = table_get(&b->ns, hash);
	waits = table_get(&b->waits, hash);
	if (!ns)
		wait_put_birth(w, &t, hash);
	err = table_put(&b->ns, hash, (ns ? *ns : 0) + r->ns);
	return err ? err : table_put(&b->waits, hash, (waits ? *waits : 0) + 1);
}

u64 wait_births_drain(struct wait_births *b, struct collector *c, u32 epoch)
{
	u64 ret = 0;

	for (size_t i = 0; i < b->ns.capacity; i++) {
		const struct table_entry *entry = &b->ns.entries[i];
		const u64 *waits = entry->key ? table_get(&b->waits, entry->key) : NULL;

		if (!waits)
			continue;
		collector_count(c, epoch, entry->key, entry->value, *waits);
		ret += entry->value;
	}
	table_clear(&b->ns);
	table_clear(&b->waits);
	return ret;
}
