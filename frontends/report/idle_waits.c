/* SPDX-License-Identifier: Apache-2.0 */
#include "idle_waits.h"

#include <stdlib.h>
#include <string.h>

#include "unwind/cleanup.h"

#define WORK_NS  900000000u /* of those of a second some are cut off */
#define SLEEP_NS 400000000u
#define NEAR     7 /* calls, but for those of the C++ library and of what sleeps */

/* "[condition]", or "[condition CLASS]": of an object of a known class. */
static bool is_state(const struct profile_function *f, const char *state)
{
	size_t length = strlen(state);

	return f->kind == KIND_WAITING && !strncmp(f->name, state, length) &&
	       (f->name[length] == ']' || f->name[length] == ' ');
}

static bool waits_for_work(const struct profile *p, const struct profile_node *n)
{
	static const char *const states[] = {"[condition", "[select", "[poll", "[epoll", "[accept", "[join", NULL};

	for (u32 i = 0; n->more && n->self >= n->more * (u64)WORK_NS && states[i]; i++)
		if (is_state(&p->functions[n->function], states[i]))
			return true;
	return false;
}

static bool is_native(enum profile_kind kind)
{
	return kind == KIND_NATIVE || kind == KIND_CXX || kind == KIND_RUST;
}

static bool is_script(enum profile_kind kind)
{
	return kind == KIND_SCRIPT || kind == KIND_SCRIPT_BASELINE || kind == KIND_SCRIPT_JIT;
}

/* Of a stack with functions of a language only these count. */
static bool is_near_start(const struct profile *p, u32 node)
{
	u32 native = 0, script = 0;

	for (; node && native + script <= 64; node = p->nodes[node].parent) {
		const struct profile_function *f = &p->functions[p->nodes[node].function];

		if (strstr(f->name, "std::") || strstr(f->name, "sleep"))
			continue;
		native += is_native(f->kind);
		script += is_script(f->kind);
	}
	return !node && (script ? script : native) <= NEAR;
}

/* The kernel's functions below a call are several, by what the sample or the switch has seen. */
static struct error *mark_sleeps(const struct profile *p, bool *ret)
{
	cleanup(free) u32 *call = calloc(p->nnodes, sizeof(*call));
	cleanup(free) u64 *time = calloc(p->nnodes, sizeof(*time));
	cleanup(free) u64 *number = calloc(p->nnodes, sizeof(*number));

	if (!call || !time || !number)
		return &error_no_memory;
	for (u32 i = 1; i < p->nnodes; i++) {
		const struct profile_node *n = &p->nodes[i];
		const struct profile_function *f = &p->functions[n->function];
		bool within = f->kind == KIND_KERNEL || f->kind == KIND_WAITING;

		call[i] = within ? call[n->parent] : i;
		if (is_state(f, "[sleep")) {
			time[call[i]] += n->self;
			number[call[i]] += n->more;
		}
	}
	for (u32 i = 1; i < p->nnodes; i++)
		if (number[call[i]] && time[call[i]] >= number[call[i]] * (u64)SLEEP_NS &&
		        is_state(&p->functions[p->nodes[i].function], "[sleep"))
			ret[i] = is_near_start(p, call[i]);
	return NULL;
}

struct error *idle_waits(const struct profile *p, bool **ret)
{
	struct error *err;

	*ret = calloc(p->nnodes + 1, sizeof(**ret));
	if (!*ret)
		return &error_no_memory;
	if (!p->meta.more || !strcmp(p->meta.more, "bytes"))
		return NULL;
	for (u32 i = 1; i < p->nnodes; i++)
		(*ret)[i] = waits_for_work(p, &p->nodes[i]);
	err = mark_sleeps(p, *ret);
	if (err) {
		free(*ret);
		*ret = NULL;
	}
	return err;
}
