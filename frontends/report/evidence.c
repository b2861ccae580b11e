/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "blockers.h"
#include "kept.h"
#include "dump_facts.h"
#include "frontends/format/input.h"
#include "idle_waits.h"
#include "probes/event.h"
#include "unwind/clean_text.h"
#include "unwind/cleanup.h"
#include "unwind/ends_with.h"
#include "unwind/profile/profile_unnamed.h"
#include "unwind/runtime.h"
#include "unwind/runtime_tasks.h"

#define LEAK_IN_USE 65536 /* bytes a second */

const struct profile *evidence_view(const struct evidence *e, const char *name)
{
	for (u32 i = 0; i < e->nviews; i++)
		if (!strcmp(e->view[i].name, name))
			return e->view[i].profile;
	return NULL;
}

void evidence_step(struct evidence *e, bool missing, const char *format, ...)
{
	va_list arguments;
	char *text = NULL, *clean;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	va_end(arguments);
	clean = clean_text(text);
	free(text);
	if (clean && e->nsteps < EVIDENCE_STEPS)
		e->step[e->nsteps++] = (struct evidence_step){clean, missing};
	else
		free(clean);
}

/* Waits with the stacks of who ended them are a view of their own: their leaves are another thread's. */
static bool has_wakers(const struct profile *p)
{
	for (u32 i = 1; i < p->nfunctions; i++)
		if (!strncmp(p->functions[i].name, "[woken by ", strlen("[woken by ")))
			return true;
	return false;
}

static bool counts_tasks(const struct profile *p)
{
	for (const struct runtime_ops *const *r = runtimes; p->meta.unit && *r; r++)
		if ((*r)->tasks && !strcmp((*r)->tasks->kinds, p->meta.unit))
			return true;
	return false;
}

/* "DIR/io.yrt" is one of the event io. */
static const char *event_of_path(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char event[64];
	const struct event_ops *found;

	snprintf(event, sizeof(event), "%.*s", (int)strcspn(name, "."), name);
	found = event_find(event);
	return found ? found->name : NULL;
}

/*
 * The event that a profile was made of: its statistics say so; where they are lost, the file's name. Of others the unit
 * tells.
 */
static char *name_of(const struct profile *p, const char *path)
{
	json_t *stats = p->meta.stats ? json_loads(p->meta.stats, 0, NULL) : NULL;
	const char *event = counts_tasks(p) ? "tasks"
	                    : has_wakers(p) ? "wakers"
	                                    : json_string_value(json_object_get(stats, "event"));
	char *ret;

	if (!event || !*event || event[strspn(event, "abcdefghijklmnopqrstuvwxyz-")])
		event = event_of_path(path);
	ret = strdup(event ? event : "clock");
	json_decref(stats);
	return ret;
}

/* Languages whose code is in it. */
static u32 runtimes_in(const struct profile *p)
{
	u32 ret = 0;

	for (u32 i = 1; i < p->nfunctions; i++)
		for (const struct runtime_ops *const *r = runtimes; *r; r++)
			if (!strcmp(p->functions[i].module, (*r)->name))
				ret |= 1u << (*r)->id;
	return ret;
}

struct error *evidence_add(struct evidence *e, const char *path, struct profile *p)
{
	char *name = name_of(p, path);
	struct error *err = name ? NULL : &error_no_memory;

	if (!err && e->nviews == EVIDENCE_VIEWS)
		err = error_new(ERROR_USAGE, "%s: a report takes %d recordings at most", path, EVIDENCE_VIEWS);
	if (!err && evidence_view(e, name))
		err = error_new(ERROR_USAGE, "%s is a second recording of the event %s", path, name);
	if (err) {
		free(name);
		profile_destroy(p);
		return err;
	}
	e->runtimes |= runtimes_in(p);
	if (!e->target && p->meta.target && *p->meta.target)
		e->target = clean_text(p->meta.target);
	if (!e->start_unix_ns)
		e->start_unix_ns = p->meta.start_unix_ns;
	e->view[e->nviews++] = (struct evidence_view){name, p};
	return NULL;
}

struct error *evidence_replace(struct evidence *e, const char *path, struct profile *p, bool *better)
{
	char *name = name_of(p, path);

	*better = true;
	if (!name) {
		profile_destroy(p);
		return &error_no_memory;
	}
	for (u32 i = 0; i < e->nviews; i++) {
		if (strcmp(e->view[i].name, name) != 0)
			continue;
		free(name);
		*better = p->nodes[0].total > e->view[i].profile->nodes[0].total;
		if (*better) {
			struct profile *old = e->view[i].profile;

			e->view[i].profile = p;
			p = old;
		}
		profile_destroy(p);
		return NULL;
	}
	free(name);
	return evidence_add(e, path, p);
}

static void read_runtimes(struct evidence *e, const json_t *list)
{
	size_t i;
	json_t *name;

	json_array_foreach(list, i, name)
	{
		for (const struct runtime_ops *const *r = runtimes; json_is_string(name) && *r; r++)
			if (!strcmp(json_string_value(name), (*r)->name))
				e->runtimes |= 1u << (*r)->id;
	}
}

static void read_steps(struct evidence *e, const json_t *list, bool missing)
{
	size_t i;
	json_t *text;

	json_array_foreach(list, i, text)
	{
		if (json_is_string(text))
			evidence_step(e, missing, "%s", json_string_value(text));
	}
}

static json_t *steps_of(const struct evidence *e, bool missing)
{
	json_t *ret = json_array();

	for (u32 i = 0; i < e->nsteps; i++)
		if (e->step[i].missing == missing)
			json_array_append_new(ret, json_string(e->step[i].text));
	return ret;
}

static struct error *read_counters(struct evidence *e, const char *path)
{
	json_error_t where;
	json_t *root = json_load_file(path, 0, &where);
	const char *target;
	struct error *err;

	if (!root)
		return error_new(ERROR_INPUT, "%s:%d: %s", path, where.line, where.text);
	err = facts_from_json(json_object_get(root, "facts"), path, &e->facts);
	target = json_string_value(json_object_get(root, "target"));
	if (!err && target && !e->target)
		e->target = clean_text(target);
	read_runtimes(e, json_object_get(root, "runtimes"));
	read_steps(e, json_object_get(root, "steps"), false);
	read_steps(e, json_object_get(root, "not_looked_at"), true);
	json_decref(root);
	return err;
}

bool evidence_is_empty(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !st.st_size;
}

static struct error *read_recording(struct evidence *e, const char *path)
{
	struct filter_options options = {0};
	struct recording cut;
	struct profile *p = NULL;
	struct error *err;

	if (evidence_is_empty(path)) {
		evidence_step(e, true, "%s is empty", path);
		return NULL;
	}
	err = input_load(path, &options, &p, &cut);
	if (err)
		return err;
	if (cut.cut)
		evidence_step(e, true, "%s ends early: it has what is whole", path);
	return evidence_add(e, path, p);
}

static struct error *read_one(struct evidence *e, const char *path)
{
	if (ends_with(path, "dump.json"))
		return dump_facts_read(e, path);
	return ends_with(path, ".json") ? read_counters(e, path) : read_recording(e, path);
}

static int is_evidence(const struct dirent *d)
{
	return ends_with(d->d_name, ".yrt") || !strcmp(d->d_name, "counters.json") || !strcmp(d->d_name, "dump.json");
}

static struct error *read_folder(struct evidence *e, const char *folder)
{
	struct dirent **files;
	int n = scandir(folder, &files, is_evidence, alphasort);
	struct error *err = NULL;
	char path[PATH_MAX];

	if (n < 0)
		return error_new(ERROR_INPUT, "cannot read the folder %s: %s", folder, strerror(errno));
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, files[i]->d_name);
		if (!err)
			err = read_one(e, path);
		free(files[i]);
	}
	free(files);
	return err || n ? err
	                : error_hint(error_new(ERROR_INPUT, "%s has neither recordings nor counters.json", folder),
	                          "`yrt report -p PID --keep DIR` writes such a folder");
}

struct error *evidence_read(struct evidence *e, const char *path)
{
	struct stat st;
	struct error *err = !stat(path, &st) && S_ISDIR(st.st_mode) ? read_folder(e, path) : read_one(e, path);

	e->elsewhere = facts_number(&e->facts, "root.other") > 0;
	if (err || e->nviews || e->facts.n)
		return err;
	return error_new(ERROR_INPUT, "%s is empty: there is nothing to report on", path);
}

struct error *evidence_write_counters(const struct evidence *e, const char *folder)
{
	json_t *names = json_array(), *root = json_object();
	struct error *err = NULL;
	char path[PATH_MAX];

	for (const struct runtime_ops *const *r = runtimes; *r; r++)
		if (e->runtimes & 1u << (*r)->id)
			json_array_append_new(names, json_string((*r)->name));
	if (e->target)
		json_object_set_new(root, "target", json_string(e->target));
	json_object_set_new(root, "runtimes", names);
	json_object_set_new(root, "steps", steps_of(e, false));
	json_object_set_new(root, "not_looked_at", steps_of(e, true));
	json_object_set_new(root, "facts", facts_to_json(&e->facts));
	snprintf(path, sizeof(path), "%s/counters.json", folder);
	if (json_dump_file(root, path, JSON_INDENT(2) | JSON_SORT_KEYS | JSON_REAL_PRECISION(6)))
		err = error_new(ERROR_OUTPUT, "cannot write %s: %s", path, strerror(errno));
	json_decref(root);
	return err;
}

/* By the state's name: what waits in futex(2), and is not known to wait for something else than a lock. */
static bool is_for_lock(const char *state)
{
	static const char *const words[] = {"[futex", "[mutex", "[monitor", "[lock", "[read lock", "[write lock"};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (!strncmp(state, words[i], strlen(words[i])))
			return true;
	return false;
}

/* The average number of threads that ran, were runnable, and waited; idle ones (by design) do not count. */
static void conclude_states(struct evidence *e, const struct profile *p)
{
	double s = (double)p->meta.duration_ns, running = 0, queued = 0, waiting = 0, locked = 0, idle = 0;
	cleanup(free) bool *is_idle = NULL;
	struct error *err = idle_waits(p, &is_idle);

	for (u32 i = 1; !err && i < p->nnodes; i++) {
		const struct profile_function *f = &p->functions[p->nodes[i].function];
		double self = (double)p->nodes[i].self;

		if (is_idle[i]) {
			idle += self;
			continue;
		}
		*(f->kind == KIND_RUNNING ? &running : f->kind == KIND_RUNNABLE ? &queued : &waiting) += self;
		locked += f->kind == KIND_WAITING && is_for_lock(f->name) ? self : 0;
	}
	error_free(err);
	if (err || s <= 0)
		return;
	facts_set(&e->facts, "wall.idle", facts_number(&e->facts, "wall.idle") + idle / s);
	facts_set(&e->facts, "wall.running", running / s);
	facts_set(&e->facts, "wall.queued", queued / s);
	facts_set(&e->facts, "wall.waiting", waiting / s);
	facts_set(&e->facts, "wall.threads", (running + queued + waiting) / s);
	facts_set(&e->facts, "wall.locked", locked / s);
}

/*
 * What malloc's blocks grow by, bytes a second; and what is in use, or free, in its heap. Where that is used more and
 * more, and no stack was caught at it, nothing is known of what grows.
 */
static void conclude_leak(struct evidence *e, const json_t *leak)
{
	const json_t *heap = json_object_get(leak, "heap");
	const json_t *first = json_array_get(heap, 0), *last = json_array_get(heap, json_array_size(heap) - 1);
	double s = json_number_value(json_array_get(last, 0)) - json_number_value(json_array_get(first, 0));
	double high = json_number_value(json_object_get(leak, "growth_high")) / 60;

	for (size_t i = 1; s > 0 && i <= 2; i++)
		facts_set(&e->facts, i == 1 ? "leak.in.use" : "leak.free",
		        (json_number_value(json_array_get(last, i)) - json_number_value(json_array_get(first, i))) / s);
	if (high <= 0 && facts_number(&e->facts, "leak.in.use") > LEAK_IN_USE)
		return;
	facts_set(&e->facts, "leak.low", json_number_value(json_object_get(leak, "growth_low")) / 60);
	facts_set(&e->facts, "leak.high", high);
}

/* Of the view that most of the report is about: CPU time, or if there was hardly any, wall-clock time. */
static void conclude_unnamed(struct evidence *e)
{
	const struct profile *clock = evidence_view(e, "clock"), *p = clock ? clock : evidence_view(e, "wall");
	double share = 0;
	u32 image = p ? profile_unnamed(p, &share) : 0;
	char text[512];

	if (!p)
		return;
	facts_set(&e->facts, "unnamed.share", share);
	facts_set_text(&e->facts, "unnamed.file", image ? p->images[image].path : "");
	facts_set_text(&e->facts, "unnamed.text", image ? profile_unnamed_text(p, image, text, sizeof(text)) : "");
}

static void conclude_stats(struct evidence *e, const char *name, const struct profile *p)
{
	json_t *stats = p->meta.stats ? json_loads(p->meta.stats, 0, NULL) : NULL;
	double idle = json_number_value(json_object_get(stats, "idle_samples"));
	char fact[64];

	snprintf(fact, sizeof(fact), "%s.seconds", name);
	facts_set(&e->facts, fact, (double)p->meta.duration_ns / 1e9);
	snprintf(fact, sizeof(fact), "%s.total", name);
	facts_set(&e->facts, fact, (double)p->nodes[0].total);
	if (!strcmp(name, "wall") && p->meta.duration_ns)
		facts_set(&e->facts, "wall.idle", idle / (double)p->meta.duration_ns);
	if (!strcmp(name, "clock") && p->meta.frequency > 0 && p->meta.duration_ns)
		facts_set(&e->facts, "clock.cpus",
		        (double)p->nodes[0].total / p->meta.frequency / ((double)p->meta.duration_ns / 1e9));
	if (!strcmp(name, "leak"))
		conclude_leak(e, json_object_get(stats, "leak"));
	json_decref(stats);
}

double evidence_taken(const struct profile *p)
{
	json_t *stats = p->meta.stats ? json_loads(p->meta.stats, 0, NULL) : NULL;
	double ret = json_number_value(json_object_get(stats, "bpf_ns")) +
	             json_number_value(json_object_get(stats, "bpf_other_ns"));

	json_decref(stats);
	return ret / 1e9;
}

void evidence_conclude(struct evidence *e)
{
	for (u32 i = 0; i < e->nviews; i++) {
		conclude_stats(e, e->view[i].name, e->view[i].profile);
		if (!strcmp(e->view[i].name, "wall"))
			conclude_states(e, e->view[i].profile);
	}
	for (const struct runtime_ops *const *r = runtimes; *r; r++) {
		char fact[64];

		snprintf(fact, sizeof(fact), "runtime.%s", (*r)->name);
		if (e->runtimes & 1u << (*r)->id)
			facts_set(&e->facts, fact, 1);
	}
	facts_set(&e->facts, "runtimes", __builtin_popcount(e->runtimes));
	conclude_unnamed(e);
	blockers_unseen(&e->facts);
	kept_conclude(&e->facts);
	if (e->target)
		facts_set_text(&e->facts, "target", e->target);
}

void evidence_free(struct evidence *e)
{
	facts_free(&e->facts);
	for (u32 i = 0; i < e->nviews; i++) {
		free(e->view[i].name);
		profile_destroy(e->view[i].profile);
	}
	for (u32 i = 0; i < e->nsteps; i++)
		free(e->step[i].text);
	free(e->target);
	*e = (struct evidence){0};
}
