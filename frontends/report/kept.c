/* SPDX-License-Identifier: Apache-2.0 */
#include "kept.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "frontends/format/diff.h"
#include "frontends/format/format.h"
#include "frontends/format/input.h"
#include "frontends/format/keeper.h"
#include "frontends/format/text.h"
#include "match.h"
#include "probes/loss.h"
#include "unwind/cleanup.h"
#include "unwind/now.h"
#include "unwind/process/alone.h"
#include "unwind/runtime.h"
#include "unwind/runtime_heap.h"

#define SHORT    3             /* frames of a path in a title */
#define CHEAP_NS 500000000     /* a reading that took less of a CPU may be repeated, over all the time that there is */
#define ENOUGH   (64ull << 20) /* bytes by which what is kept has grown since the first reading */
#define LONGER   1.5           /* the next reading takes so much longer: the heap has grown */
#define NEW_PART 0.001         /* of the growth: so much of it are the elements themselves */
#define MOVED    1.5           /* times the growth of all */

bool kept_choose(struct kept *k, u32 seen)
{
	for (const struct runtime_ops *const *r = runtimes; *r; r++)
		if (seen & 1u << (*r)->id && (*r)->heap && (*r)->heap->object) {
			snprintf(k->command, sizeof(k->command), "%s-refs", (*r)->view);
			return true;
		}
	return false;
}

static void path_of(const struct kept *k, u32 reading, char *ret, size_t size)
{
	snprintf(ret, size, "%s/kept-%u.yrt", k->folder, reading);
}

/* Of the first runtime in the process whose objects tell who keeps them. */
static bool recognise(struct kept *k)
{
	struct process_alone a = {0};
	struct error *err = process_alone_open(&a, k->pid, NULL, NULL, NULL);
	u32 seen = 0;

	for (u32 i = 0; !err && i < a.p->ninstances; i++)
		seen |= 1u << a.p->instances[i].ops->id;
	error_free(err);
	process_alone_close(&a);
	return kept_choose(k, seen);
}

static struct error *read_once(const struct kept *k, u32 reading)
{
	char path[PATH_MAX], pid[16];
	const char *arguments[] = {"yrt", k->command, "-q", "-p", pid, "-o", path, NULL};

	path_of(k, reading, path, sizeof(path));
	snprintf(pid, sizeof(pid), "%d", k->pid);
	return child_yrt(arguments, "/dev/null", 0);
}

/* "12 tasks: select", "shared by 3 paths": these numbers change while it is the same. */
static struct error *drop_numbers(struct profile *p)
{
	struct error *err = NULL;

	for (u32 i = 1; !err && i < p->nfunctions; i++) {
		const char *name = p->functions[i].name, *rest = name;

		while (isdigit((unsigned char)*rest))
			rest++;
		if (rest != name && *rest == ' ')
			err = profile_string(p, rest + 1, &p->functions[i].name);
		else if (!strncmp(name, "shared by ", 10))
			err = profile_string(p, "shared", &p->functions[i].name);
	}
	return err;
}

/* "VM 0x7f22fc40e3f0": what several VMs of a process keep is added up, as of threads that run the same program. */
static struct error *join_vms(struct profile *p)
{
	cleanup(free) u32 *as = calloc(p->nfunctions + 1, sizeof(*as));
	u32 n = 0;

	if (!as)
		return &error_no_memory;
	for (u32 i = 1; i < p->nfunctions; i++) {
		bool one = !strncmp(p->functions[i].name, "VM 0x", 5);

		as[i] = one ? 0 : i;
		n += one;
	}
	return n ? profile_merge(p, as, as) : NULL;
}

static struct error *load_reading(const struct kept *k, u32 reading, struct profile **ret)
{
	struct filter_options options = {0};
	struct recording cut;
	char path[PATH_MAX];
	struct error *err;

	path_of(k, reading, path, sizeof(path));
	err = input_load(path, &options, ret, &cut);
	err = err ? err : drop_numbers(*ret);
	return err ? err : join_vms(*ret);
}

/* Another reading, of a larger heap, would only say so again. */
static bool is_enough(const struct kept *k, u32 reading)
{
	struct profile *first = NULL, *now = NULL;
	struct error *err = load_reading(k, 0, &first);
	bool ret;

	if (!err)
		err = load_reading(k, reading, &now);
	ret = !err && now->nodes[0].total > first->nodes[0].total + ENOUGH;
	error_free(err);
	profile_destroy(first);
	profile_destroy(now);
	return ret;
}

/* CPU time of the readings so far. */
static u64 children_ns(void)
{
	struct rusage u;

	return getrusage(RUSAGE_CHILDREN, &u) ? 0
	                                      : (u64)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000 +
	                                                (u64)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

/* Exits with the kind of the first error. */
static void read_and_exit(struct kept *k, double seconds, u64 until)
{
	u64 began = now_ns(), step = (u64)(seconds * 1e9) / (KEPT_READINGS - 1), took = 0;
	u64 cpu = 0, cpu_before, wide = until > began ? (until - began) / KEPT_READINGS : 0;

	signal(SIGINT, SIG_DFL);
	if (!*k->command && !recognise(k))
		_exit(0);
	for (u32 i = 0; i < KEPT_READINGS; i++) {
		u64 now = now_ns(), at = began + i * step, room = (u64)((double)took * LONGER);
		struct error *err;

		if (i && now + room > until)
			break;
		if (i && cpu < CHEAP_NS && took < wide / 2) {
			step = wide > step ? wide : step;
			at = began + i * step;
		} else if (i && i + 1 < KEPT_READINGS && cpu > CHEAP_NS) {
			continue;
		}
		sleep_until_ns(at + room < until ? at : until - room);
		now = now_ns();
		cpu_before = children_ns();
		err = read_once(k, i);
		if (err)
			_exit((int)err->kind);
		took = now_ns() - now;
		cpu = children_ns() - cpu_before;
		if (i && is_enough(k, i))
			break;
	}
	_exit(0);
}

struct error *kept_begin(struct kept *k, double seconds, u64 until)
{
	fflush(NULL);
	k->reader = fork();
	if (!k->reader) {
		setpgid(0, 0);
		read_and_exit(k, seconds, until);
	}
	if (k->reader > 0) {
		setpgid(k->reader, k->reader);
		return NULL;
	}
	k->reader = 0;
	return error_errno(errno, "cannot start a process");
}

static void delete_readings(const struct kept *k)
{
	char path[PATH_MAX];

	for (u32 i = 0; i < KEPT_READINGS; i++) {
		path_of(k, i, path, sizeof(path));
		unlink(path);
	}
}

void kept_cancel(struct kept *k)
{
	if (!k->reader)
		return;
	kill(-k->reader, SIGKILL);
	waitpid(k->reader, NULL, 0);
	k->reader = 0;
	delete_readings(k);
}

/*
 * What keeps the growth is the first collection that has more elements than before; a queue, or a map, that has had one
 * element all the time only lies on the way.
 */
static bool has_more(const struct profile *p, const double *grown, u32 node)
{
	double self = (double)p->nodes[node].self - (p->base ? (double)p->base[node] : 0);

	return self > NEW_PART * grown[0];
}

static double *grown_of(const struct profile *p)
{
	double *ret = calloc(p->nnodes, sizeof(*ret));

	for (u32 i = p->nnodes; ret && i-- > 0;) {
		ret[i] += (double)p->nodes[i].self - (p->base ? (double)p->base[i] : 0);
		if (i)
			ret[p->nodes[i].parent] += ret[i];
	}
	return ret;
}

static struct error *name_path(const struct profile *p, const struct keeper *path, struct facts *f)
{
	cleanup(free) char *all = keeper_text(p, path, path->n);
	cleanup(free) char *by = keeper_text(p, path, path->collection);
	u32 element = path->collection < path->n ? path->collection : path->n - 1;
	const char *what = path->n ? keeper_type(p->functions[p->nodes[path->node[element]].function].name) : "";

	if (!all || !by)
		return &error_no_memory;
	facts_set_text(f, "kept.path", all);
	facts_set_text(f, "kept.by", by);
	facts_set(f, "kept.sure", path->sure);
	facts_set_text(f, "kept.what", strcmp(what, "shared") != 0 ? what : "of several kinds");
	return NULL;
}

/*
 * Is this node the end of the path up to its keeper? By the last frames only: what is shared is drawn below one of the
 * ways to it, which may be another one in the next reading. Functions are those of the difference, by name.
 */
static bool is_keeper(const struct profile *p, u32 node, const struct profile *names, const struct keeper *path)
{
	u32 same = 0;

	for (u32 i = path->collection; i-- > 0 && same < SHORT;) {
		const char *name = names->functions[names->nodes[path->node[i]].function].name;

		if (keeper_is_shared(name))
			continue;
		while (node && keeper_is_shared(p->functions[p->nodes[node].function].name))
			node = p->nodes[node].parent;
		if (!node || strcmp(p->functions[p->nodes[node].function].name, name) != 0)
			return false;
		node = p->nodes[node].parent;
		same++;
	}
	return same;
}

/* What of this profile is below the keeper, wherever that is. */
static double below(const struct profile *p, const struct profile *names, const struct keeper *path)
{
	cleanup(free) bool *inside = calloc(p->nnodes + 1, sizeof(*inside)); /* parents come first */
	double sum = 0;

	for (u32 i = 1; inside && i < p->nnodes; i++) {
		inside[i] = inside[p->nodes[i].parent];
		if (inside[i] || !is_keeper(p, i, names, path))
			continue;
		inside[i] = true;
		sum += (double)p->nodes[i].total;
	}
	return sum;
}

/* "74.7 MiB to 99.9 MiB", a minute; of two readings "about 74.7 MiB", of one "at least 74.7 MiB". */
static void set_amount(double low, double high, u32 parts, struct facts *f)
{
	char least[LOSS_AMOUNT], most[LOSS_AMOUNT], text[2 * LOSS_AMOUNT + 8];

	loss_amount(60 * low, least);
	loss_amount(60 * high, most);
	if (parts > 1 && !strcmp(least, most))
		snprintf(text, sizeof(text), "%s", least);
	else if (parts > 1)
		snprintf(text, sizeof(text), "%s to %s", least, most);
	else
		snprintf(text, sizeof(text), "%s %s", parts ? "about" : "at least", least);
	facts_set_text(f, "kept.amount", text);
}

static double at(const struct profile *p)
{
	return (double)p->meta.start_unix_ns / 1e9;
}

/* How fast it grew in each of the parts between two readings. */
static void set_rates(
        struct profile *const *readings, u32 n, const struct profile *names, const struct keeper *path, struct facts *f)
{
	double low = INFINITY, high = -INFINITY;

	for (u32 i = 1; i < n; i++) {
		double s = at(readings[i]) - at(readings[i - 1]);
		double rate = (below(readings[i], names, path) - below(readings[i - 1], names, path)) / s;

		low = s > 0 ? fmin(low, rate) : low;
		high = s > 0 ? fmax(high, rate) : high;
	}
	facts_set(f, "kept.low", low);
	facts_set(f, "kept.high", high);
	set_amount(low, high, n - 1, f);
}

/* Of one reading: what the collection has beyond all that the process had before. */
static void set_least(const struct kept *k, const struct keeper *path, double seconds, struct facts *f)
{
	double rate = fmin(k->rate, (path->bytes - k->before) / seconds);

	facts_set(f, "kept.below", path->bytes);
	facts_set(f, "kept.before", k->before);
	facts_set(f, "kept.growth", rate);
	facts_set(f, "kept.low", rate);
	facts_set(f, "kept.high", rate);
	set_amount(rate, rate, 0, f);
}

/* A box without the package or module of its type: ".by: HashMap" of ".by: java.util.HashMap". */
static void put_short(const char *box, size_t len, FILE *out)
{
	const char *colon = memmem(box, len, ": ", 2), *type = colon ? colon + 2 : box, *from = type;
	size_t n = len - (size_t)(type - box);

	for (size_t i = 0; i < n && (isalnum((unsigned char)type[i]) || strchr("._$", type[i])); i++)
		from = type[i] == '.' && i + 1 < n ? type + i + 1 : from;
	fprintf(out, "%.*s%.*s", (int)(type - box), box, (int)(len - (size_t)(from - box)), from);
}

/* "... > c > d > e" of a long path, with short types. */
static char *shortened(const char *path)
{
	const char *at = path + strlen(path);
	size_t sign = strlen(KEEPER_SIGN), size;
	char *ret = NULL;
	FILE *out = open_memstream(&ret, &size);

	for (u32 n = 0; at > path && n < SHORT; n++)
		for (at -= at > path; at > path && strncmp(at, KEEPER_SIGN, sign) != 0; at--)
			;
	if (!out)
		return NULL;
	if (at != path) {
		fputs("..." KEEPER_SIGN, out);
		at += sign;
	}
	for (const char *next; at; at = next ? next + sign : NULL) {
		next = strstr(at, KEEPER_SIGN);
		put_short(at, next ? (size_t)(next - at) : strlen(at), out);
		fputs(next ? KEEPER_SIGN : "", out);
	}
	return fclose(out) ? NULL : ret;
}

/* What comes after the first n bytes of a path. */
static const char *beyond(const char *path, size_t n)
{
	return path && strlen(path) > n + strlen(KEEPER_SIGN) ? path + n + strlen(KEEPER_SIGN) : "";
}

static char *how_it_grew(const struct facts *f, const char *near)
{
	const struct fact *readings = facts_find(f, "kept.readings");
	double seconds = facts_number(f, "kept.seconds");
	char amount[LOSS_AMOUNT], before[LOSS_AMOUNT], *ret;
	int length;

	if (!readings || readings->number > 1)
		length = asprintf(&ret, "that grew by %s a second through %.0f seconds, %.0f %% of it below %s",
		        loss_amount(facts_number(f, "kept.growth"), amount), seconds,
		        100 * facts_number(f, "kept.share"), near);
	else
		length = asprintf(&ret,
		        "%s of that are below %s, while the whole process had %s in memory %.0f seconds before",
		        loss_amount(facts_number(f, "kept.below"), amount), near,
		        loss_amount(facts_number(f, "kept.before"), before), seconds);
	return length < 0 ? NULL : ret;
}

void kept_conclude(struct facts *f)
{
	const struct fact *by = facts_find(f, "kept.by"), *what = facts_find(f, "kept.what");
	cleanup(free) char *near = by && by->text ? shortened(by->text) : NULL;
	cleanup(free) char *how = near ? how_it_grew(f, near) : NULL;

	if (!facts_find(f, "kept.most"))
		facts_set_text(f, "kept.most", "");
	if (!facts_find(f, "kept.added"))
		facts_set_text(f, "kept.added", "");
	if (!near)
		return;
	facts_set_text(f, "kept.near", near);
	if (what && what->text) {
		cleanup(free) char *type = shortened(what->text);

		facts_set_text(f, "kept.type", type ? type : what->text);
	}
	if (how)
		facts_set_text(f, "kept.how", how);
}

/*
 * As a view of this name, and a recording in the folder. Takes the profile over, also on failure. Its target and loss
 * may be strings of another profile.
 */
static struct error *add_view(const char *folder, const char *name, struct profile *p, struct evidence *e)
{
	char path[PATH_MAX], stats[64];
	cleanup(fclose) FILE *out = NULL;
	struct error *err;

	snprintf(stats, sizeof(stats), "{\"event\": \"%s\"}", name);
	snprintf(path, sizeof(path), "%s/%s.yrt", folder, name);
	err = profile_string(p, stats, &p->meta.stats);
	if (!err)
		err = profile_string(p, p->meta.target, &p->meta.target);
	if (!err)
		err = profile_string(p, p->meta.loss, &p->meta.loss);
	if (!err && !(out = fopen(path, "we")))
		err = error_errno(errno, "cannot write %s", path);
	if (!err)
		err = format_write(&format_recording, p, out);
	if (!err)
		return evidence_add(e, path, p);
	profile_destroy(p);
	return err;
}

/* The difference (without a base: all) as a profile of what has grown. Takes it over, also on failure. */
static struct error *add_grown(const struct kept *k, struct profile *grown, double seconds, struct evidence *e)
{
	for (u32 i = 0; grown->base && i < grown->nnodes; i++)
		grown->nodes[i].self -= grown->base[i] < grown->nodes[i].self ? grown->base[i] : grown->nodes[i].self;
	free(grown->base);
	grown->base = NULL;
	profile_finish(grown);
	grown->meta.title = "what has grown, by who keeps it";
	grown->meta.unit = "bytes";
	grown->meta.more = grown->meta.before = grown->meta.loss_before = NULL;
	grown->meta.duration_ns = (u64)(seconds * 1e9);
	return add_view(k->folder, "kept", grown, e);
}

static void set_facts(const struct kept *k, const struct profile *last, double seconds, struct facts *f)
{
	facts_set_text(f, "kept.command", k->command);
	facts_set(f, "kept.pid", k->pid);
	facts_set(f, "kept.seconds", seconds);
	facts_set(f, "kept.bytes", (double)last->nodes[0].total);
	facts_set(f, "kept.growth", 0);
	facts_set(f, "kept.low", 0);
	facts_set(f, "kept.high", 0);
	facts_set(f, "kept.share", 0);
}

/* The profile of what has grown, which may be the only reading. */
static struct error *difference(struct profile **readings, u32 n, struct profile **ret)
{
	struct diff_options options = {.raw = true, .before = "before"};

	if (n > 1)
		return diff_create(readings[0], readings[n - 1], &options, ret);
	*ret = readings[0];
	readings[0] = NULL;
	return NULL;
}

static double ended_at(const struct profile *p)
{
	return at(p) + (double)p->meta.duration_ns / 1e9;
}

/* Of its growth nothing is known. */
static struct error *forget_growth(struct facts *f, const char *why)
{
	static const char *const growth[] = {"kept.growth", "kept.low", "kept.high", "kept.share"};

	for (size_t i = 0; i < sizeof(growth) / sizeof(*growth); i++)
		facts_forget(f, growth[i]);
	return error_new(ERROR_INTERNAL, "%s", why);
}

static struct error *conclude_path(const struct kept *k, struct profile *const *readings, u32 n,
        const struct profile *grown, const struct keeper *path, double all, struct facts *f)
{
	double growth = n > 1 ? below(readings[n - 1], grown, path) - below(readings[0], grown, path) : path->bytes;

	/* what was drawn below another root before has not grown */
	if (growth > MOVED * all)
		return forget_growth(f, "what it keeps is drawn below other roots in each reading");
	facts_set(f, "kept.share", fmin(1, growth / all));
	if (n > 1)
		set_rates(readings, n, grown, path, f);
	else
		set_least(k, path, facts_number(f, "kept.seconds"), f);
	return name_path(grown, path, f);
}

static struct error *conclude(const struct kept *k, struct profile **readings, u32 n, struct evidence *e)
{
	double seconds =
	        n > 1 ? at(readings[n - 1]) - at(readings[0]) : ended_at(readings[0]) - (double)k->before_unix_ns / 1e9;
	cleanup(free) double *grown = NULL;
	cleanup(free) char *most = NULL, *sentence = NULL;
	struct profile *both = NULL;
	struct keeper path;
	struct error *err = NULL;

	if (seconds <= 0)
		return NULL;
	set_facts(k, readings[n - 1], seconds, &e->facts);
	most = keeper_describe(readings[n - 1]);
	if (most && asprintf(&sentence, "%s.", most) > 0)
		facts_set_text(&e->facts, "kept.most", sentence);
	err = difference(readings, n, &both);
	if (err || !both)
		return err;
	grown = grown_of(both);
	if (!grown) {
		profile_destroy(both);
		return &error_no_memory;
	}
	keeper_find(both, grown, has_more, &path);
	facts_set(&e->facts, "kept.readings", n);
	if (n > 1)
		facts_set(&e->facts, "kept.growth", grown[0] / seconds);
	if (grown[0] > 0 && path.n && (n > 1 || (path.bytes > k->before && k->rate > 0)))
		err = conclude_path(k, readings, n, both, &path, grown[0], &e->facts);
	else if (n == 1)
		err = forget_growth(&e->facts, "its heap was not read twice in the time that there was");
	if (err) {
		profile_destroy(both);
		return err;
	}
	return add_grown(k, both, seconds, e);
}

/* Those that there are. */
static struct error *read_all(const struct kept *k, struct evidence *e)
{
	struct profile *readings[KEPT_READINGS] = {0};
	struct error *err = NULL;
	char path[PATH_MAX];
	u32 n = 0;

	for (u32 i = 0; i < KEPT_READINGS; i++) {
		path_of(k, i, path, sizeof(path));
		if (!err && !access(path, R_OK))
			err = load_reading(k, i, &readings[n]);
		n += readings[n] != NULL;
	}
	delete_readings(k);
	if (!err && n)
		err = conclude(k, readings, n, e);
	else if (!err)
		err = error_new(ERROR_INTERNAL, "its heap was not read in the time that there was");
	for (u32 i = 0; i < n; i++)
		profile_destroy(readings[i]);
	return err;
}

struct error *kept_end(struct kept *k, u64 until, struct evidence *e)
{
	int status = 0;
	bool late = false;
	struct error *err;

	if (!k->reader)
		return NULL;
	err = child_wait(k->reader, until, &status, &late);
	kill(-k->reader, SIGKILL); /* what it had started */
	k->reader = 0;
	if (!err && !late && WIFEXITED(status) && WEXITSTATUS(status))
		evidence_step(e, true, "yrt %s -p %d failed: it says why", k->command, k->pid);
	return err ? err : read_all(k, e);
}

static bool makes(const struct profile *p, u32 node, const char *type)
{
	size_t n = strlen(type);
	const char *leaf = p->functions[p->nodes[node].function].name;

	for (u32 at = node; at; at = p->nodes[at].parent) {
		const char *name = p->functions[p->nodes[at].function].name;

		if (!strncmp(name, type, n) && !strncmp(name + n, ".<init>", 7))
			return true;
	}
	return !strcmp(leaf, type);
}

static bool find_made(const struct profile *p, const char *type, bool *nodes)
{
	bool any = false;

	for (u32 i = 1; *type && i < p->nnodes; i++)
		any |= nodes[i] = p->nodes[i].self && makes(p, i, type);
	return any;
}

/* Of the elements, or else of the first type below them that is seen to be made: small objects are seldom. */
static bool find_first_made(const struct profile *p, const char *beyond, bool *nodes)
{
	bool any = false;

	while (!any && *beyond) {
		size_t n = (size_t)(strstr(beyond, KEEPER_SIGN) ?: beyond + strlen(beyond)) - (size_t)beyond;
		cleanup(free) char *box = strndup(beyond, n);

		any = box && find_made(p, keeper_type(box), nodes);
		beyond += n;
		beyond += *beyond ? strlen(KEEPER_SIGN) : 0;
	}
	return any;
}

struct error *kept_made(const char *folder, struct evidence *e)
{
	const struct profile *p = evidence_view(e, "tlab");
	const struct fact *by = facts_find(&e->facts, "kept.by"), *all = facts_find(&e->facts, "kept.path"),
	                  *what = facts_find(&e->facts, "kept.what");
	struct profile *made = NULL;
	struct match m = {0};
	struct error *err;
	bool any;

	if (!p || !by || !by->text || !all || !all->text || !what || !what->text || evidence_view(e, "made"))
		return NULL;
	m.nodes = calloc(p->nnodes, sizeof(*m.nodes));
	if (!m.nodes)
		return &error_no_memory;
	any = find_made(p, what->text, m.nodes) || find_first_made(p, beyond(all->text, strlen(by->text)), m.nodes);
	err = any ? match_profile(&m, p, &made) : NULL;
	match_free(&m);
	if (err || !made)
		return err;
	made->meta.target = p->meta.target;
	made->meta.loss = p->meta.loss;
	return add_view(folder, "made", made, e);
}
