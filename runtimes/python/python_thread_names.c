/* SPDX-License-Identifier: Apache-2.0 */
#include "python_thread_names.h"

#include "python_names.h"
#include "python_threads.h"

#define THREADS_MAX 65536 /* remembered */
#define STATES_MAX  1024

void python_thread_names_free(struct python_thread_names *names)
{
	table_free(&names->objects);
}

static u64 key_of(u64 native)
{
	return (native + 1) * 0x9e3779b97f4a7c15ull;
}

static bool native_id(const struct python_reader *r, u64 thread, u64 *ret)
{
	return python_int(r, python_attribute(r, thread, "_native_id"), ret);
}

static bool name_of(const struct python_reader *r, u64 thread, char *ret, size_t size)
{
	u64 name = python_attribute(r, thread, "_name");

	return name && python_str(r->mem, r->l, name, ret, size);
}

/* Is this object still the one of its number? */
static u64 *recall(struct python_thread_names *names, const struct python_reader *r, u64 native)
{
	u64 *known = table_get(&names->objects, key_of(native)), id;

	return known && native_id(r, *known, &id) && id == native ? known : NULL;
}

/* What an older interpreter calls a thread stays. */
static void remember(struct python_thread_names *names, const struct python_reader *r, u64 native, u64 thread)
{
	if (recall(names, r, native))
		return;
	if (names->objects.used >= THREADS_MAX)
		table_clear(&names->objects);
	error_free(table_put(&names->objects, key_of(native), thread));
}

/* An interpreter's threading, NULL: none; modules stay where they are, so it is looked for once. */
static struct python_threading *module_of(struct python_thread_names *names, const struct python_reader *r, u64 interp)
{
	struct python_threading *module;
	u64 dict;

	for (u32 i = 0; i < names->nmodules; i++)
		if (names->modules[i].interp == interp)
			return &names->modules[i];
	dict = names->nmodules < PYTHON_INTERPRETERS_MAX ? python_module(r, interp, "threading") : 0;
	if (!dict)
		return NULL;
	module = &names->modules[names->nmodules++];
	*module = (struct python_threading){.interp = interp, .dict = dict};
	return module;
}

static u64 hash_of(const struct python_reader *r, struct python_dict *active)
{
	struct python_entry entry;
	u64 hash = 1;

	for (u32 i = 0; i < active->n && python_dict_entry(r, active, i, &entry); i++)
		hash = (hash ^ entry.value) * 0x9e3779b97f4a7c15ull + entry.key;
	return hash;
}

/*
 * The Thread object of a number in one interpreter; 0: none. The newest are looked at first, and all the first time.
 * Where nobody came since all were looked at, a thread that is none of Python's costs little. not: no object that
 * counts.
 */
static u64 look_in(struct python_thread_names *names, const struct python_reader *r, struct python_threading *module,
        u64 native, u64 not )
{
	struct python_entry entry;
	struct python_dict active;
	u64 id, found = 0, hash;

	if (!python_dict_open(r, python_dict_find(r, module->dict, "_active"), &active))
		return 0;
	hash = hash_of(r, &active);
	if (hash == module->seen)
		return 0;
	for (u32 i = active.n; i-- > 0 && !(found && names->listed);) {
		if (!python_dict_entry(r, &active, i, &entry) || !entry.value || entry.value == not ||
		        !native_id(r, entry.value, &id))
			continue;
		remember(names, r, id, entry.value);
		if (id == native)
			found = entry.value;
	}
	if (!found)
		module->seen = hash;
	return found;
}

/* The Thread object of a pthread_self(), whose hash, as that of a small int, is itself. */
static u64 by_pointer(const struct python_reader *r, u64 module, u64 pointer)
{
	struct python_entry entry;
	struct python_dict active;

	if (!python_dict_open(r, python_dict_find(r, module, "_active"), &active))
		return 0;
	for (u32 i = 0; i < active.n && python_dict_entry(r, &active, i, &entry); i++)
		if (entry.value && entry.hash == pointer)
			return entry.value;
	return 0;
}

/*
 * After a fork threading still has the number that the only thread had in the parent; before its own hooks ran also the
 * parent's other threads, and its main thread. The thread states are gone by then but for one: the oldest.
 */
static u64 main_thread(const struct python_reader *r, u64 runtime, u64 module)
{
	struct python_thread states[STATES_MAX];
	u32 n = python_threads(r->mem, r->l, runtime, states, STATES_MAX);
	u64 thread = n && n < STATES_MAX ? by_pointer(r, module, states[n - 1].pointer) : 0;

	return thread ? thread : python_dict_find(r, module, "_main_thread");
}

/* In other interpreters than the main one MainThread is whatever thread imported threading first: that is no name. */
static u64 look(struct python_thread_names *names, const struct python_reader *r, u64 runtime, u64 native, bool main)
{
	u64 interp[PYTHON_INTERPRETERS_MAX], thread = 0, first = 0;
	u32 n = python_interpreters(r, runtime, interp);

	for (u32 i = 0; i < n && !thread; i++) {
		struct python_threading *module = module_of(names, r, interp[i]);

		if (!module)
			continue;
		thread = look_in(names, r, module, native, i ? python_dict_find(r, module->dict, "_main_thread") : 0);
		first = first ? first : module->dict;
	}
	names->listed = names->listed || first;
	return !thread && main && first ? main_thread(r, runtime, first) : thread;
}

bool python_thread_name(struct python_thread_names *names, const struct python_reader *r, u64 runtime, u64 native,
        bool main, char *ret, size_t size)
{
	u64 *known = recall(names, r, native);

	if (known)
		return name_of(r, *known, ret, size);
	return name_of(r, look(names, r, runtime, native, main), ret, size);
}
