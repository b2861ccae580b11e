/* SPDX-License-Identifier: Apache-2.0 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "request.h"
#include "request_envoy.h"
#include "request_rules.h"
#include "request_run.h"
#include "sample.skel.h"
#include "probes/capabilities.h"
#include "probes/cpu_ticks.h"
#include "probes/event.h"
#include "probes/hit/hit_exits.h"
#include "probes/hit/hit_find.h"
#include "probes/hit/hit_shifts.h"
#include "probes/object.h"
#include "probes/sampler.h"
#include "probes/targets.h"
#include "probes/uprobe.h"
#include "probes/wait/wait_reason.h"
#include "unwind/binary/proc_path.h"
#include "unwind/cleanup.h"
#include "unwind/error.h"
#include "unwind/grow.h"
#include "unwind/process/process.h"
#include "unwind/profile/collect.h"
#include "unwind/profile/names.h"
#include "unwind/runtime.h"
#include "unwind/symbols/symbols.h"

/* Servers whose requests are known without being told: the functions that begin, serve and end them. */

struct request_place {
	const char *function;
	u64 cookie;
	bool returns; /* the place is where it returns */
};

#define COOKIE(role, arg) (REQUEST_NGINX | (role) | (u64)(arg) << REQUEST_ARG)

/*
 * nginx and what is made of it (OpenResty, Tengine): places up to function NULL, those that begin requests last.
 * Sources: src/http/ngx_http_request.c, src/event/ngx_event.c and ngx_event_connect.c of nginx.
 * Each handler of an event ends with ngx_http_run_posted_requests(), whose argument's first member is the request.
 * Requests of HTTP/2 and HTTP/3 begin in ngx_http_create_request(), too.
 */
static const struct request_place request_nginx[] = {
        {"ngx_process_events_and_timers", COOKIE(REQUEST_RESTS, 0), false},
        {"ngx_http_core_run_phases", COOKIE(REQUEST_RUNS, 1), false},
        {"ngx_http_run_posted_requests", COOKIE(REQUEST_RUNS, 1) | REQUEST_BEHIND, false},
        {"ngx_event_connect_peer", COOKIE(REQUEST_PARKS, 0), false},
        {"ngx_http_free_request", COOKIE(REQUEST_ENDS, 1), false},
        {"ngx_http_create_request", COOKIE(REQUEST_BEGINS, 0), true},
        {0},
};

/* Functions that lead through a phase (src/http/ngx_http_core_module.c). */
static const struct {
	const char *checker, *phase;
} phases[] = {
        {"ngx_http_core_rewrite_phase", "rewrite"},
        {"ngx_http_core_find_config_phase", "find location"},
        {"ngx_http_core_post_rewrite_phase", "post rewrite"},
        {"ngx_http_core_generic_phase", "preaccess and others"},
        {"ngx_http_core_access_phase", "access"},
        {"ngx_http_core_post_access_phase", "post access"},
        {"ngx_http_core_try_files_phase", "try files"},
        {"ngx_http_core_content_phase", "content"},
};

/* The function that begins at this address; "" if it has no name. */
static void name_function(const struct process *p, u64 addr, char *ret, size_t size)
{
	const struct mapping *m = addr ? process_mapping(p, addr) : NULL;
	struct symbol sym;
	char root[64];

	*ret = '\0';
	if (!m || !m->image)
		return;
	snprintf(root, sizeof(root), "/proc/%d/root", p->pid);
	error_free(symbols_load(m->image, root));
	if (symbols_find(m->image, addr - m->bias, &sym) && sym.start == addr - m->bias)
		snprintf(ret, size, "%s", sym.name);
}

/* "access (ngx_http_access_handler)": a phase of a process's requests; malloc'd. NULL: out of memory. */
static char *request_phase_text(const struct process *p, const struct request_phase *phase)
{
	static const char *const without[] = {"not known", "reading the request", "other phases"};
	const char *word = "not known";
	char checker[128], handler[128] = "", *text = NULL;
	bool content;

	if (phase->checker <= REQUEST_OTHERS)
		return strdup(without[phase->checker]);
	name_function(p, phase->checker, checker, sizeof(checker));
	for (size_t i = 0; i < sizeof(phases) / sizeof(*phases); i++)
		if (!strcmp(phases[i].checker, checker))
			word = phases[i].phase;
	content = phase->content && !strcmp(word, "content");
	name_function(p, content ? phase->content : phase->handler, handler, sizeof(handler));
	if (asprintf(&text, "%s%s%s%s", word, *handler ? " (" : "", handler, *handler ? ")" : "") < 0)
		return NULL;
	return text;
}

#define LIVES_MAX   16384
#define THREADS_MAX 4096
#define TICK_HZ     199
#define PLACES_MAX  32

struct looked { /* a process as it was looked at last */
	u32 process;
	u64 maps_hash;
	u64 found;  /* bit n: place n */
	bool envoy; /* its places are there */
};

struct wanted { /* a place in code */
	struct hit_spec spec;
	u64 cookie;
	bool returns; /* where the function returns */
};

struct request {
	const struct event_host *host;
	const struct request_options *options;
	struct wanted place[PLACES_MAX];
	u32 nplaces, optional; /* the first `optional` may be missing */
	struct bpf_link *on_switch;
	struct cpu_ticks ticks;
	struct hit_shifts *shifts;
	struct looked *looked;
	u32 nlooked;
	u32 serving;        /* processes whose requests can be seen */
	u64 found;          /* by any of them, as looked.found */
	struct wanted turn; /* of Envoy's event loop, in the C library */
	bool started;
	struct request_table table;
	struct request_summary summary;
};

static void prepare(struct object *o)
{
	static const char *const wanted[] = {"on_request", "on_request_park", "on_request_switch", "on_request_tick"};
	const struct request_options *options = object_of_event(o);
	struct sample *skel = object_skeleton(o);

	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
		object_want(o, wanted[i]);
	uprobe_prepare(skel->progs.on_request);
	uprobe_prepare(skel->progs.on_request_park);
	uprobe_prepare(skel->progs.on_request_park_walk);
	bpf_map__set_max_entries(skel->maps.request_lives, LIVES_MAX);
	bpf_map__set_max_entries(skel->maps.request_threads, THREADS_MAX);
	skel->bss->request_over_ns = options->over_ns;
	skel->bss->request_tick_ns = 1000000000ull / TICK_HZ;
}

static void destroy(void *event)
{
	struct request *r = event;

	if (!r)
		return;
	hit_shifts_destroy(r->shifts);
	cpu_ticks_close(&r->ticks);
	bpf_link__destroy(r->on_switch);
	request_table_free(&r->table);
	free(r->looked);
	free(r);
}

/* --- places --- */

static const struct bpf_program *program_of(const struct request *r, u64 cookie)
{
	const struct sample *skel = object_skeleton(r->host->object);

	return (cookie & REQUEST_ROLE) == REQUEST_PARKS ? skel->progs.on_request_park : skel->progs.on_request;
}

/* In a shift requests begin; the others stay until those are over. */
static struct error *place_at(
        struct request *r, const struct process *p, const struct image *img, const char *path, u64 offset, u64 cookie)
{
	const struct hit_uprobe u = {.program = program_of(r, cookie),
	        .at = {.offset = offset},
	        .cookie = cookie,
	        .exit = (cookie & REQUEST_ROLE) != REQUEST_BEGINS};

	return hit_shifts_place(r->shifts, p, img, path, &u);
}

/* What a hit at `addr` is to know: also where the key's virtual table is, if that is to be checked. */
static u64 with_table(u64 cookie, u64 table, u64 addr)
{
	return table ? cookie | (u64)(u32)(table - addr) << REQUEST_TABLE : cookie;
}

/* Where the function returns. table: of what it returns; 0: not known. */
static struct error *place_returns(struct request *r, const struct process *p, struct image *img, const char *path,
        u64 addr, u64 cookie, u64 table)
{
	cleanup(free) struct hit_exits *exits = calloc(1, sizeof(*exits));
	struct error *err = exits ? hit_exits_find("requests", img, addr, exits) : &error_no_memory;
	u64 offset;

	for (u32 i = 0; !err && i < exits->n; i++) {
		if (exits->of[i].again || exits->of[i].tail || exits->of[i].asks)
			err = error_new(ERROR_UNSUPPORTED, "requests: the function that begins them leaves by a jump: "
			                                   "what it returns is not known");
		else if (hit_offset(img, exits->of[i].jump.at, true, &offset))
			err = place_at(r, p, img, path, offset, with_table(cookie, table, exits->of[i].jump.at));
	}
	return err;
}

/* *found: the file has it. */
static struct error *place(struct request *r, const struct process *p, struct image *img, const char *path,
        const struct wanted *w, bool *found)
{
	struct hit_found at;
	char root[64];
	struct error *err;

	proc_path(root, sizeof(root), p->pid, "root");
	err = hit_find(&w->spec, img, root, &at);
	*found = !err && at.n;
	for (u32 i = 0; !err && i < at.n; i++)
		err = w->returns ? place_returns(r, p, img, path, at.addr[i], w->cookie, 0)
		                 : place_at(r, p, img, path, at.place[i].offset, w->cookie);
	free(at.others);
	return err;
}

static void want_place(struct request *r, const struct hit_spec *spec, u64 cookie, bool returns)
{
	if (r->nplaces < PLACES_MAX)
		r->place[r->nplaces++] = (struct wanted){.spec = *spec, .cookie = cookie, .returns = returns};
}

static void want_function(struct request *r, const char *name, u64 cookie, bool returns)
{
	struct hit_spec spec = {.kind = HIT_FUNCTION};

	for (u32 i = 0; i < r->nplaces; i++)
		if (!strcmp(r->place[i].spec.name, name))
			return;
	snprintf(spec.name, sizeof(spec.name), "%s", name);
	snprintf(spec.text, sizeof(spec.text), "%s", name);
	want_place(r, &spec, cookie, returns);
}

/* What is looked for, as asked or of known servers. Where requests begin is the last: then all else is there. */
static void want_places(struct request *r)
{
	const struct request_options *o = r->options;
	u64 key = (u64)(o->key ? o->key : 1) << REQUEST_ARG;

	for (const struct runtime_ops *const *ops = runtimes; *ops; ops++)
		if ((*ops)->yield)
			want_function(r, (*ops)->yield, REQUEST_PARKS, false);
	r->optional = r->nplaces;
	for (u32 i = 0; !o->has_begin && request_nginx[i].function; i++)
		want_function(r, request_nginx[i].function, request_nginx[i].cookie, request_nginx[i].returns);
	if (!o->has_begin)
		return;
	for (u32 i = 0; i < o->nruns; i++)
		want_place(r, &o->run[i], REQUEST_RUNS | key, false);
	if (o->has_rest)
		want_place(r, &o->rest, REQUEST_RESTS, false);
	want_place(r, &o->end, REQUEST_ENDS | key, false);
	want_place(r, &o->begin, REQUEST_BEGINS | key, false);
}

static struct error *create(const struct event_host *host, void **ret)
{
	struct request *r = calloc(1, sizeof(*r));

	if (!r)
		return &error_no_memory;
	r->host = host;
	r->options = host->options->of_event;
	r->table.over_ns = r->options->over_ns;
	want_places(r);
	r->turn = (struct wanted){.spec = {.kind = HIT_FUNCTION, .name = "epoll_wait", .text = "epoll_wait"},
	        .cookie = REQUEST_ENVOY | REQUEST_RESTS};
	*ret = r;
	return hit_shifts_create(host, &r->shifts);
}

static bool is_code(const struct mapping *m)
{
	return m->image && m->prot & PROT_EXEC && m->image->fd >= 0;
}

/* In the first file of a process that has the place. */
static struct error *place_somewhere(struct request *r, const struct process *p, const struct wanted *w, bool *found)
{
	pid_t tid = living_thread(p->pid) ?: p->pid;
	struct error *err = NULL;
	char path[PROC_MAP_PATH];

	*found = false;
	for (u32 k = 0; !err && !*found && k < p->maps.nlines; k++) {
		const struct mapping *m = &p->mappings[k];

		if (!is_code(m))
			continue;
		proc_map_path(path, tid, m->start, m->end);
		err = place(r, p, m->image, path, w, found);
	}
	return err;
}

/* Places of one kind in the files of a process: one after the other, so that requests begin last. */
static struct error *look_for(struct request *r, const struct process *p, struct looked *l, u32 i)
{
	const struct wanted *w = &r->place[i];
	bool found = false;
	struct error *err = place_somewhere(r, p, w, &found);

	if (!err && found) {
		l->found |= 1ull << i;
		r->found |= 1ull << i;
	}
	if (!err && found && (w->cookie & REQUEST_ROLE) == REQUEST_BEGINS)
		r->serving++;
	return err;
}

/* Where the event loops of a process begin a turn. */
static struct error *place_turns(struct request *r, const struct process *p)
{
	bool found;
	struct error *err = place_somewhere(r, p, &r->turn, &found);

	if (!err && !found)
		err = error_new(ERROR_UNSUPPORTED, "requests: Envoy's C library has no symbol %s", r->turn.spec.name);
	return err;
}

/* An Envoy's places, those where requests begin last. */
static struct error *place_envoy(
        struct request *r, const struct process *p, struct image *img, const char *path, const struct request_envoy *e)
{
	struct error *err = NULL;
	u64 offset;

	for (u32 i = 0; !err && i < e->n; i++) {
		u64 addr = e->place[i].addr, table = e->place[i].table, cookie = e->place[i].cookie;

		if (i + 1 == e->n)
			err = place_returns(r, p, img, path, addr, cookie, table);
		else if (hit_offset(img, addr, true, &offset))
			err = place_at(r, p, img, path, offset, with_table(cookie, table, addr));
	}
	return err;
}

/* Is this process an Envoy? It is the program itself then: the first file that is mapped. */
static struct error *look_for_envoy(struct request *r, const struct process *p, struct looked *l)
{
	struct request_envoy envoy = {0};
	const struct mapping *m = NULL;
	struct error *err;
	char path[PROC_MAP_PATH];

	for (u32 k = 0; k < p->maps.nlines && !m; k++)
		if (is_code(&p->mappings[k]))
			m = &p->mappings[k];
	err = m ? request_envoy_find(m->image, &envoy) : NULL;
	if (err || !envoy.n)
		return err;
	proc_map_path(path, living_thread(p->pid) ?: p->pid, m->start, m->end);
	err = place_turns(r, p);
	if (!err)
		err = place_envoy(r, p, m->image, path, &envoy);
	if (err)
		return err;
	l->envoy = true;
	r->serving++;
	return NULL;
}

static struct looked *looked_at(struct request *r, const struct process *p)
{
	for (u32 i = 0; i < r->nlooked; i++)
		if (r->looked[i].process == p->number)
			return &r->looked[i];
	if (grow(&r->looked, r->nlooked, sizeof(*r->looked)))
		return NULL;
	r->looked[r->nlooked] = (struct looked){.process = p->number};
	return &r->looked[r->nlooked++];
}

/* Processes that are new, or have other mappings than before. */
static struct error *look(struct request *r)
{
	const struct targets *t = r->host->targets;
	struct error *err = NULL;

	for (u32 i = 0; !err && i < t->nprocesses; i++) {
		const struct process *p = t->processes[i];
		struct looked *l = p->dead ? NULL : looked_at(r, p);

		if (!l || l->maps_hash == p->maps_hash)
			continue;
		l->maps_hash = p->maps_hash;
		for (u32 k = 0; !err && k < r->nplaces; k++)
			if (!(l->found & 1ull << k))
				err = look_for(r, p, l, k);
		if (!err && !r->options->has_begin && !l->envoy)
			err = look_for_envoy(r, p, l);
	}
	return err;
}

static void find_near(const struct request *r, const struct hit_spec *spec, struct hit_near *near)
{
	const struct modules *m = r->host->targets->modules;

	for (u32 i = 0; i < m->nloaded; i++)
		if (m->loaded[i]->image && m->loaded[i]->image->fd >= 0)
			hit_find_near(spec, m->loaded[i]->image, near);
}

/* What is missing in all targets; NULL: nothing. */
static struct error *missing(const struct request *r)
{
	struct hit_near near = {0};
	char text[HIT_NEAR_TEXT];
	u32 i = r->optional;

	if (!r->options->has_begin)
		return r->serving || r->options->both ? NULL : request_rules_none();
	while (i < r->nplaces && r->found & 1ull << i)
		i++;
	if (i == r->nplaces)
		return NULL;
	find_near(r, &r->place[i].spec, &near);
	hit_near_text(&near, text);
	return error_hint(error_new(ERROR_USAGE, "%s: there is no such function in the targets", r->place[i].spec.text),
	        near.n ? "near: %s" : "FILE:FUNCTION, as profiles show them%s", near.n ? text : "");
}

/* --- the run --- */

static struct error *start(void *event, bool at_exec)
{
	struct request *r = event;
	struct error *err = cpu_ticks_open(&r->ticks, TICK_HZ, object_program(r->host->object, "on_request_tick"));

	if (!err) {
		r->on_switch = bpf_program__attach(object_skeleton(r->host->object)->progs.on_request_switch);
		err = r->on_switch ? NULL : error_errno(errno, "cannot attach to the scheduler's tracepoints");
	}
	if (!err && !at_exec)
		err = look(r);
	if (err && r->options->both)
		err = event_goes_on(r->host, err);
	if (!err && !at_exec && !r->host->options->selection)
		err = missing(r);
	r->started = !err;
	if (!err)
		object_take_ticks(r->host->object, at_exec ? TICKS_AT_EXEC : TICKS_TAKEN);
	return err;
}

static void name_phases(const struct request *r, struct request_slow *s)
{
	const struct targets *t = r->host->targets;

	for (u32 i = 0; i < t->nprocesses; i++) {
		const struct process *p = t->processes[i];

		if (p->dead || (u32)p->pid != s->record.tgid)
			continue;
		for (u32 k = 0; k < REQUEST_PHASES && s->record.phase[k].ns; k++)
			if (!s->phase[k])
				s->phase[k] = request_phase_text(p, &s->record.phase[k]);
	}
}

static void name_slow(struct request *r)
{
	for (u32 i = 0; i < r->table.nslow; i++)
		name_phases(r, r->table.slow[i]);
	request_table_name(&r->table, r->host->collector);
}

/* A process that came later: what cannot be in it is reported, and the run goes on. */
static struct error *poll(void *event, u64 now)
{
	struct request *r = event;
	struct error *err = look(r);

	hit_shifts_steer(r->shifts, now);
	name_slow(r);
	return event_goes_on(r->host, err);
}

static struct error *drain(void *event, u32 epoch)
{
	name_slow(event);
	return NULL;
}

static struct error *stop(void *event)
{
	struct request *r = event;
	struct error *err;

	object_take_ticks(r->host->object, TICKS_IGNORED);
	hit_shifts_end(r->shifts);
	err = r->started ? missing(r) : NULL;
	if (err)
		r->host->options->warn(r->host->options->ctx, err);
	return NULL;
}

static struct error *finish(void *event)
{
	struct request *r = event;

	name_slow(r);
	return NULL;
}

static struct error *record(void *event, const void *data, size_t size)
{
	struct request *r = event;

	return size < sizeof(struct request_record) ? NULL : request_table_add(&r->table, data, NULL, NULL);
}

static void stats(void *event, struct sampler_stats *st)
{
	struct request *r = event;
	struct object *o = r->host->object;

	error_free(object_sum(
	        o, object_skeleton(o)->maps.request_counters, (u64 *)&r->summary.counts, sizeof(r->summary.counts)));
	request_table_sort(&r->table);
	r->summary.table = &r->table;
	r->summary.over_ns = r->options->over_ns;
	r->summary.watched = hit_shifts_part(r->shifts);
	st->of_event = &r->summary;
}

struct request_table *request_table_of(void *event)
{
	return &((struct request *)event)->table;
}

bool request_serves(const void *event)
{
	return ((const struct request *)event)->serving;
}

void request_reason(u32 reason, char *text)
{
	if (reason == REQUEST_WAITS)
		snprintf(text, REASON_LEN, "waits for an event");
	else
		wait_reason_text(reason, text);
}

enum profile_kind request_kind(u32 reason)
{
	return reason == REQUEST_WAITS ? KIND_WAITING : wait_kind(reason);
}

bool request_leads_to_program(const char *symbol)
{
	return hit_leads_to_program(symbol) || wait_leads_to_program(symbol);
}

const struct event_ops request_event = {
        .name = "request",
        .command = "requests",
        .topic = TOPIC_CALLS,
        .summary = "requests of a server by route: how long, on what, and where the slowest waited",
        .unit = "nanoseconds",
        .slots = 4,
        .prepare = prepare,
        .create = create,
        .destroy = destroy,
        .start = start,
        .poll = poll,
        .drain = drain,
        .stop = stop,
        .finish = finish,
        .record = record,
        .stats = stats,
        .reason = request_reason,
        .kind = request_kind,
        .leads_to_program = request_leads_to_program,
        .command_line = &request_command,
        .words = &request_words,
};
