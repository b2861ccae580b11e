/* SPDX-License-Identifier: Apache-2.0 */
#include "thread_names.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* A thread that no runtime knows is asked about at its first stacks, then ever more rarely: a language may be loaded
 * late. */
#define ASKED_AT_FIRST 8
#define STACKS_MAX     (1u << 24)

/* What is known of a thread, in one word of a table. */
struct known {
	u32 comm; /* hash of the kernel's name in its first stack */
	bool named;
	u32 stacks; /* that arrived, up to STACKS_MAX */
};

static u64 pack(struct known k)
{
	return k.comm | (u64)k.named << 32 | (u64)k.stacks << 36;
}

static struct known unpack(u64 word)
{
	return (struct known){.comm = (u32)word, .named = word >> 32 & 1, .stacks = (u32)(word >> 36)};
}

static bool ask(const struct process *p, pid_t tid, char *ret, size_t size)
{
	struct runtime_process view;

	if (!p || p->dead)
		return false;
	view = process_view(p);
	for (u32 i = 0; i < p->ninstances; i++) {
		const struct instance *instance = &p->instances[i];

		if (instance->data && instance->ops->thread_name &&
		        instance->ops->thread_name(instance->data, &view, tid, ret, size) && *ret)
			return true;
	}
	return false;
}

static bool is_time(const struct known *k)
{
	return !k->named && k->stacks < STACKS_MAX && (k->stacks < ASKED_AT_FIRST || !(k->stacks & (k->stacks - 1)));
}

/* While only the kernel names a thread, each of the names that it gives it is a function of its own. */
static u64 function_key(u64 thread, const struct known *k, u32 comm)
{
	return k->named || comm == k->comm ? thread : thread ^ ((u64)comm << 1 | 1) * 0x9e3779b97f4a7c15ull;
}

struct error *thread_function(struct table *known, struct profile *profile, const struct process *p,
        const struct stack_record *record, u32 *ret)
{
	const struct {
		u64 process, tid;
	} id = {record->instance, record->tid};
	char name[NAME_MAX_BYTES], text[NAME_MAX_BYTES + 32];
	struct profile_function fn = {.name = text, .module = "", .file = "", .kind = KIND_THREAD};
	u64 key = XXH3_64bits(&id, sizeof(id)) | 1, *word = table_get(known, key);
	u32 comm = (u32)XXH3_64bits(record->comm, strnlen(record->comm, COMM_LEN));
	struct known k = word ? unpack(*word) : (struct known){.comm = comm};
	bool has_name = is_time(&k) && ask(p, (pid_t)record->tid, name, sizeof(name));
	struct error *err;

	if (!has_name)
		snprintf(name, sizeof(name), "%.*s", COMM_LEN, record->comm);
	snprintf(text, sizeof(text), "%s (tid %u)", name, record->tid);
	k.stacks += k.stacks < STACKS_MAX;
	k.named = k.named || has_name;
	err = table_put(known, key, pack(k));
	return err ? err : profile_function(profile, function_key(key, &k, comm), &fn, has_name, ret);
}

static bool number_of(const struct profile_function *fn, const char *word, u32 *number, size_t *len)
{
	const char *at = NULL;
	char *end;

	for (const char *next = fn->name; fn->kind == KIND_THREAD && (next = strstr(next, word)); next++)
		at = next;
	if (!at)
		return false;
	*len = (size_t)(at - fn->name);
	*number = (u32)strtoul(at + strlen(word), &end, 10);
	return !strcmp(end, ")");
}

bool thread_of_function(const struct profile_function *fn, u32 *tid, size_t *len)
{
	return number_of(fn, " (tid ", tid, len);
}

struct error *task_function(struct profile *profile, const char *name, u32 number, u32 *ret)
{
	char text[NAME_MAX_BYTES];
	struct profile_function fn = {.name = text, .module = "", .file = "", .kind = KIND_THREAD};

	snprintf(text, sizeof(text), "%.*s (task %u)", NAME_MAX_BYTES - 32, name, number);
	return profile_function(profile, 0, &fn, false, ret);
}

bool task_of_function(const struct profile_function *fn, u32 *number)
{
	size_t len;

	return number_of(fn, " (task ", number, &len);
}
