/* SPDX-License-Identifier: Apache-2.0 */
#include "idle.h"

#include <string.h>

#include "locks.h"
#include "rules.h"

/* Event loops and pools in native code, of whatever program. */
static const struct idle_rule native_rules[] = {
        {.frame = "ngx_process_events_and_timers", .within = 4}, /* its epoll module may have no symbols */
        {.frame = "ngx_thread_pool_cycle", .within = 5},
        {.frame = "run_poll_loop", .within = 4},   /* HAProxy */
        {.frame = "event_base_loop", .within = 4}, /* libevent: Envoy, memcached */
        {.frame = "ev_run", .within = 4},          /* libev: gevent */
        {.frame = "uv__io_poll", .within = 3},     /* libuv: Node.js, uvloop, luv */
        {.frame = "uv_run", .within = 3},          /* the same without that symbol */
        {.frame = "aeMain", .within = 4},          /* Redis */
        {.frame = "bioProcessBackgroundJobs", .within = 5},
        {.frame = "g_main_loop_run", .within = 5},
        {.frame = "boost::asio::detail::epoll_reactor::run", .within = 3},
        {.frame = "boost::asio::detail::scheduler::do_run_one", .within = 6},
        {.frame = "listener_thread", .within = 5}, /* Apache */
        {.frame = "ap_queue_pop_something", .within = 6},
        {.frame = "ap_queue_pop_info", .within = 6},
        {.frame = "node::(anonymous namespace)::PlatformWorkerThread", .within = 6},
        {.frame = "node::inspector::(anonymous namespace)::StartIoThreadMain", .within = 6},
        {.frame = "pq_getbyte", .within = 6}, /* PostgreSQL 15: a backend without a command; its background processes */
        {.frame = "PostmasterMain", .within = 4},
        {.frame = "StartAutoVacLauncher", .within = 5},
        {.frame = "WaitLatch", .within = 4, .caller = "AutoVacLauncherMain"},
        {.frame = "WaitLatch", .within = 4, .caller = "ApplyLauncherMain"},
        {.frame = "WaitLatch", .within = 4, .caller = "BackgroundWriterMain"},
        {.frame = "WaitLatch", .within = 4, .caller = "CheckpointerMain"},
        {.frame = "WaitLatch", .within = 4, .caller = "WalWriterMain"},
        {.frame = "my_net_read_packet", .within = 9, .caller = "do_command"}, /* MariaDB: the same */
        {.frame = "handle_connections_sockets", .within = 3},
        {0},
};

/*
 * A thread that waits for a condition so near its start serves others: workers of pools, whatever their names are. A
 * program's first thread does not. In a process with a language that is said of threads without frames of it, and which
 * do not wait for what the language knows, as its lock.
 */
#define SERVICE_FRAMES 6 /* the C library's and the language's own, and three of the program's */
static const struct idle_rule conditions[] = {
        {.frame = "pthread_cond_wait", .within = 6},
        {.frame = "pthread_cond_timedwait", .within = 6},
        {.frame = "pthread_cond_clockwait", .within = 6},
        {.frame = "__io_uring_get_cqe", .within = 2}, /* liburing and libaio: for the end of what others began */
        {.frame = "io_getevents", .within = 2},
        {.frame = "io_getevents_0_4", .within = 2},
        {0},
};
static const struct idle_rule first_thread[] = {
        {.frame = "__libc_start_main", .within = 0xff},
        {.frame = "__libc_start_call_main", .within = 0xff},
        {.frame = "main", .within = 0xff},
        {0},
};

static const char *word(const struct idle_rule *rule)
{
	return rule->frame ? rule->frame : rule->thread;
}

static bool is_thread(const struct rule_stack *s, const struct idle_rule *rule)
{
	return rule->thread && !s->scripts && !strncmp(s->comm, rule->thread, strlen(rule->thread));
}

/* scripts: runtime the rules are of; native code alone is looked at if there is none. */
static struct error *match_rules(
        const struct rule_stack *s, const struct idle_rule *rules, const struct runtime_ops *ops, const char **ret)
{
	struct error *err = NULL;
	u32 depth[2] = {0};
	bool is = false;

	for (const struct idle_rule *r = rules; !*ret && (r->frame || r->thread); r++)
		*ret = is_thread(s, r) ? word(r) : NULL;
	for (u32 i = 0; !err && !*ret && i < s->n; i++) {
		bool script = frame_kind(&s->frames[i]) == FRAME_SCRIPT;

		if (!rule_is_code(&s->frames[i]))
			continue;
		if (script && (!ops || frame_runtime(&s->frames[i]) != ops->id))
			break;
		for (const struct idle_rule *r = rules; !err && !*ret && (r->frame || r->thread); r++) {
			err = rule_matches(s, i, depth[script], r, &is);
			*ret = !err && is ? word(r) : NULL;
		}
		depth[script]++;
	}
	return err;
}

static struct error *find_any(
        const struct rule_stack *s, u32 i, u32 depth, const struct idle_rule *rules, const char **ret)
{
	struct error *err = NULL;
	bool is = false;

	for (*ret = NULL; !err && !*ret && rules->frame; rules++) {
		err = rule_matches(s, i, depth, rules, &is);
		*ret = !err && is ? word(rules) : NULL;
	}
	return err;
}

static struct error *find_service(const struct rule_stack *s, const char **ret)
{
	const char *waits = NULL, *first = NULL;
	u32 depth = 0, outside = 0;
	struct error *err = NULL;
	bool known = false;

	for (u32 i = 0; !err && !first && outside <= SERVICE_FRAMES && i < s->n; i++) {
		const char *is = NULL;

		if (!rule_is_code(&s->frames[i]))
			continue;
		err = find_any(s, i, depth++, conditions, &is);
		outside = is ? 0 : outside + !!waits;
		waits = is ? is : waits;
		if (!err && waits)
			err = find_any(s, i, 0, first_thread, &first);
	}
	if (err || !waits || first || outside > SERVICE_FRAMES)
		return err;
	err = locks_any_of_runtime(s, &known);
	*ret = err || known ? NULL : waits;
	return err;
}

/* A reason that is idle whatever the frames are: "accept". */
static struct error *find_reason(const struct rule_stack *s, const char **ret)
{
	struct named named;
	struct error *err = names_frame(s->names, s->p, s->frames, 0, s->n, &named);

	if (!err)
		*ret = s->profile->functions[named.function].name;
	return err;
}

struct error *idle_find(struct names *names, const struct profile *profile, const struct process *p,
        const struct frame *frames, u32 n, const char *comm, bool whole, enum idle_chance (*chance)(u32 reason),
        const char **ret)
{
	struct rule_stack s = {
	        .names = names, .profile = profile, .p = p, .frames = frames, .n = n, .comm = comm, .whole = whole};
	struct error *err = NULL;
	enum idle_chance c = n && frame_kind(&frames[0]) == FRAME_REASON ? chance((u32)frames[0].detail) : IDLE_NEVER;

	*ret = NULL;
	if (c == IDLE_ALWAYS)
		return find_reason(&s, ret);
	if (c != IDLE_MAYBE || !p)
		return NULL;
	for (u32 i = 0; i < n; i++)
		s.scripts |= frame_kind(&frames[i]) == FRAME_SCRIPT;
	for (u32 k = 0; !err && !*ret && k < p->ninstances; k++)
		if (p->instances[k].ops->idle)
			err = match_rules(&s, p->instances[k].ops->idle, p->instances[k].ops, ret);
	if (!err && !*ret)
		err = match_rules(&s, native_rules, NULL, ret);
	return err || *ret || s.scripts || !whole ? err : find_service(&s, ret);
}
