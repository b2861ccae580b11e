/* SPDX-License-Identifier: Apache-2.0 */
/* watch: a short recording from time to time, or when something happens; nothing is loaded in between. */
#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <types.h>
#include <unistd.h>

#include "cli.h"
#include "curl_library.h"
#include "output.h"
#include "probes/select_find.h"
#include "say.h"
#include "send.h"
#include "unwind/cleanup.h"
#include "unwind/error.h"
#include "unwind/now.h"
#include "unwind/table.h"
#include "when.h"

/*
 * What watch keeps in a folder: recordings named watch-….yrt and dumps named watch-….txt, oldest first by their names,
 * which are times.
 */

#define RING_RECORDING ".yrt"
#define RING_DUMP      ".txt"

#define STAMP      (OUTPUT_STAMP - 1)
#define RESERVED_S (24 * 60 * 60)

/* "watch-20260102-030405.yrt", "watch-20260102-030405-2.txt" */
static int is_ours(const struct dirent *entry)
{
	const char *name = entry->d_name;
	size_t n = strlen(name);

	return n > 10 && !strncmp(name, "watch-", 6) &&
	       (!strcmp(name + n - 4, RING_RECORDING) || !strcmp(name + n - 4, RING_DUMP)) &&
	       strspn(name + 6, "0123456789-") == n - 10;
}

/* Without what follows the dot, so that TIME-2 comes after TIME and before TIME-10. */
static int by_age(const struct dirent **a, const struct dirent **b)
{
	char stem[2][sizeof((*a)->d_name)];

	snprintf(stem[0], sizeof(stem[0]), "%.*s", (int)strlen((*a)->d_name) - 4, (*a)->d_name);
	snprintf(stem[1], sizeof(stem[1]), "%.*s", (int)strlen((*b)->d_name) - 4, (*b)->d_name);
	return strverscmp(stem[0], stem[1]);
}

static void free_list(struct dirent **list, int n)
{
	for (int i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

static struct error *list_ring(const char *dir, struct dirent ***ret, int *n)
{
	*n = scandir(dir, ret, is_ours, by_age);
	if (*n < 0)
		return error_hint(
		        error_errno(errno, "cannot read the folder %s", dir), "--dir takes the folder of recordings");
	return NULL;
}

/* Calls found with the path of each, oldest first, until it returns an error, which is returned. */
static struct error *ring_each(const char *dir, struct error *(*found)(void *ctx, const char *path), void *ctx)
{
	struct dirent **list;
	int n;
	struct error *err = list_ring(dir, &list, &n);

	for (int i = 0; !err && i < n; i++) {
		cleanup(free) char *path = NULL;

		err = asprintf(&path, "%s/%s", dir, list[i]->d_name) < 0 ? &error_no_memory : found(ctx, path);
	}
	if (n >= 0)
		free_list(list, n);
	return err;
}

/*
 * Makes the empty file of the next one: watch-TIME.yrt, or watch-TIME-N.yrt where one is there that is not older (of
 * the same second, or from before the clock was set back). *ret is malloc'd.
 */
static struct error *ring_reserve(const char *dir, const char *kind, char **ret)
{
	struct dirent **list;
	char stamp[OUTPUT_STAMP];
	cleanup(free) char *stem = NULL;
	unsigned long first = 1;
	int n;
	struct error *err = list_ring(dir, &list, &n);
	const char *newest = err || !n ? "" : list[n - 1]->d_name + 6;

	*ret = NULL;
	output_stamp(stamp);
	if (strspn(newest, "0123456789-") >= STAMP && strncmp(newest, stamp, STAMP) >= 0) {
		snprintf(stamp, sizeof(stamp), "%s", newest);
		first = newest[STAMP] == '-' ? strtoul(newest + STAMP + 1, NULL, 10) + 1 : 2;
	}
	if (!err)
		err = asprintf(&stem, "%s/watch-%s", dir, stamp) < 0 ? &error_no_memory
		                                                     : output_reserve(stem, kind, first, ret);
	if (n >= 0)
		free_list(list, n);
	return err && n >= 0 ? error_hint(err, "free some space, or give another folder with --dir") : err;
}

struct trim {
	u64 bytes, limit;
	u32 files, deleted;
	bool measuring;
};

static struct error *trim_one(void *ctx, const char *path)
{
	struct trim *t = ctx;
	struct stat st;

	if (stat(path, &st))
		return NULL;
	if (!st.st_size) { /* somebody's next one; or what is left of somebody who was killed */
		if (!t->measuring && st.st_mtime < time(NULL) - RESERVED_S)
			unlink(path);
		return NULL;
	}
	if (t->measuring) {
		t->bytes += (u64)st.st_size;
		t->files++;
	} else if (t->bytes > t->limit && t->files > 1 && !unlink(path)) {
		t->bytes -= (u64)st.st_size;
		t->files--;
		t->deleted++;
	}
	return NULL;
}

/* Deletes the oldest until at most limit bytes are left; *deleted: how many. The newest always stays. */
static struct error *ring_trim(const char *dir, u64 limit, u32 *deleted)
{
	struct trim t = {.limit = limit, .measuring = true};
	struct error *err = ring_each(dir, trim_one, &t);

	t.measuring = false;
	if (!err)
		err = ring_each(dir, trim_one, &t);
	*deleted = t.deleted;
	return err;
}

static struct error *measure_one(void *ctx, const char *path)
{
	u64 *bytes = ctx;
	struct stat st;

	*bytes += stat(path, &st) ? 0 : (u64)st.st_size;
	return NULL;
}

/* The oldest one goes, unless it is the only one. */
static struct error *ring_drop_oldest(const char *dir, u32 *deleted)
{
	u64 bytes = 0;
	struct error *err = ring_each(dir, measure_one, &bytes);

	return err ? err : ring_trim(dir, bytes ? bytes - 1 : 0, deleted);
}

/* A key for a table, of the time in the name of a recording. */
static u64 ring_key(const char *path)
{
	const char *slash = strrchr(path, '/');
	u64 ret = 0;

	for (const char *c = slash ? slash + 1 : path; *c; c++)
		if (*c >= '0' && *c <= '9')
			ret = ret * 10 + (u64)(*c - '0');
	return ret * 0x9e3779b97f4a7c15 | 1;
}

/*
 * Recordings of watch on their way to a store: what the store does not take stays in the folder and is tried again with
 * the next one, or after a while. A store that is down, hangs, or asks for a pause must not hold up the next recording.
 */

struct spool {
	const char *dir;
	u64 limit;                /* bytes of all recordings */
	double retry_s;           /* what is left is tried again so much later, also if there is no next one */
	struct send_options send; /* url NULL: they are kept, and not sent */
	/* its own */
	struct table refused; /* recordings that the store does not take: they are kept, and not sent again */
	u64 pause_ns;         /* nothing is sent before: the store asked for that */
	u64 slow_ns;          /* the same: it took too long; but a run of -n ends with an attempt */
	u64 retry_ns;         /* when that is */
	int code;             /* of the last one that was not sent; 0: all were */
};

#define BUSY 4 /* a store that took too long is left alone for this many times as long */

static bool is_recording(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot && !strcmp(dot, RING_RECORDING);
}

static struct error *send_one(void *ctx, const char *path)
{
	struct spool *s = ctx;
	u64 key = ring_key(path);
	struct send_result result;
	struct error *err;
	struct stat st;

	if (!is_recording(path) || table_get(&s->refused, key) || stat(path, &st) ||
	        !st.st_size) /* another one writes it, or could not */
		return NULL;
	err = send_file(&s->send, path, &stop_sampling, &result);
	if (!err)
		unlink(path);
	if (result.pause_s > 0)
		s->pause_ns = now_ns() + (u64)(result.pause_s * 1e9);
	if (!err || (!result.refused && err->kind != ERROR_INPUT))
		return err;
	s->code = report_error(err);
	say_note("%s is kept, but not sent again by this run", path);
	return table_put(&s->refused, key, 0);
}

static void send_all(struct spool *s, u64 until_ns)
{
	u64 begin = now_ns(), end;
	struct error *err;

	s->code = 0;
	s->send.until_ns = until_ns > begin ? until_ns : begin;
	err = ring_each(s->dir, send_one, s);
	end = now_ns();
	s->retry_ns = end + (u64)(s->retry_s * 1e9);
	if (!err)
		return;
	s->code = report_error(err);
	say_note("unsent recordings are kept in %s and sent with the next one", s->dir);
	if (end > s->send.until_ns)
		s->slow_ns = end + BUSY * (end - begin);
}

/*
 * Sends what is there, and makes room. What goes wrong is reported. A recording has one attempt in any case, and others
 * only if they are over before until_ns.
 */
static void spool_put_away(struct spool *s, u64 until_ns)
{
	u32 deleted = 0;
	struct error *err;

	if (s->send.url && now_ns() >= s->pause_ns && now_ns() >= s->slow_ns)
		send_all(s, until_ns);
	err = ring_trim(s->dir, s->limit, &deleted);
	if (err)
		s->code = report_error(err);
	else if (deleted && s->send.url)
		say_note("%u unsent recordings were deleted: they exceeded --ring", deleted);
}

/* The same once it is time to try again what is left, if anything is. */
static void spool_retry(struct spool *s, u64 until_ns)
{
	if (s->code && now_ns() >= s->retry_ns)
		spool_put_away(s, until_ns);
}

/* 0, or the exit code of a run that ends now. */
static int spool_code(const struct spool *s)
{
	return !s->code && s->refused.used ? ERROR_OUTPUT : s->code;
}

static void spool_free(struct spool *s)
{
	table_free(&s->refused);
}

#define LOOK_S     1.0 /* at the condition */
#define SEEK_LOOKS 5   /* looks between two at all processes: who is selected by now */

enum { WATCH_EVERY = 0x600, WATCH_WHEN, WATCH_DIR, WATCH_RING };

static const struct manual_option options[] = {
        SELECT_OPTIONS,
        {'s', "subprocesses", NULL, "also their children", COMPLETE_NOTHING},
        {'d', "duration", "SECS", "length of each recording (10)", COMPLETE_NOTHING},
        {WATCH_EVERY, "every", "SECS", "time from the start of a recording to that of the next, at least (60)",
                COMPLETE_NOTHING},
        {WATCH_WHEN, "when", "CONDITION",
                "record only while CONDITION holds: 'cpu > 80% for 5s', 'load > 4', 'rss > 2g', 'exit(COMMAND) > 0'",
                COMPLETE_NOTHING},
        {FLAME_EVENT, "event", "NAME",
                "what to record: clock (time on the CPU, the default), lock (waits for locks), wait (time off the "
                "CPU), "
                "wall (both) and the others of record; dump: every thread's stack, what it waits for, and deadlocks at "
                "one "
                "moment, as text (watch-TIME.txt)",
                COMPLETE_NOTHING},
        {'n', "count", "N", "end after N recordings (0: never)", COMPLETE_NOTHING},
        {WATCH_DIR, "dir", "DIR",
                "directory of the recordings, watch-TIME.yrt and so on; it is made if its parent is there (.)",
                COMPLETE_FILE},
        {WATCH_RING, "ring", "SIZE",
                "how much all recordings together may take; beyond that the oldest is removed (64m; k, m, g)",
                COMPLETE_NOTHING},
        {'F', "freq", "HZ", "samples per second of CPU time (99)", COMPLETE_NOTHING},
        {'U', "user", NULL, "leave out kernel frames", COMPLETE_NOTHING},
        {FLAME_DEPTH, "depth", "N", "at most N frames per stack (1024; up to 8192)", COMPLETE_NOTHING},
        {FLAME_CPU, "max-cpu", "PERCENT",
                "how much of one CPU stacks may take; if they take more, the rate is halved (10; 0: no limit)",
                COMPLETE_NOTHING},
        SEND_OPTIONS,
        {'q', "quiet", NULL, "only errors, and one line per recording", COMPLETE_NOTHING},
        {0},
};

static const char *const usage[] = {"-p PID | --select RULE | -a [options]", NULL};

static const struct manual_example examples[] = {
        {"yrt watch --select exe=envoy --push pyroscope+http://pyroscope:4040", "ten seconds of every minute"},
        {"yrt watch -p 4242 --when 'cpu > 80% for 5s' -n 3 --dir /var/tmp", "three recordings while the CPU is busy"},
        {"yrt watch --select exe=envoy --when 'exit(curl -fs -m 2 localhost:9901/ready) > 0 for 5s'",
                "when a check fails for five seconds"},
        {"yrt watch -p 4242 --event lock --when 'exit(./check) > 0' -n 1", "who waits for whose lock, at that moment"},
        {"yrt watch -p 4242 --event dump --when 'exit(curl -fs -m 2 localhost:8080/health) > 0' -n 3 --every 10",
                "what all threads do while a service does not answer"},
        {"yrt watch -a --every 600 --ring 200m --dir /var/lib/yrt", "a machine's last days"},
        {NULL, NULL},
};

const struct manual watch_manual = {
        .usage = usage,
        .text = "Recordings are those of yrt record. Between two of them no BPF program is loaded, and yrt sleeps. "
                "Processes are selected again each time. With --push each recording is sent and then deleted; one "
                "that the store does not accept is kept within --ring and sent again with the next. One that the "
                "store refuses for what it is (too large, say) is kept, but not sent again by this run. A store that "
                "hangs or asks for a pause is tried less often and does not hold up recordings. If unsent recordings "
                "are left at the end, the exit code is 8.\n"
                "cpu and rss are the sums of all targets (of the machine with -a); 100 % is one CPU. exit() is the "
                "exit code of a shell command, which runs every second without stdout; after 10 s it is killed and "
                "counts as 137.",
        .options = options,
        .examples = examples,
};

struct watch {
	struct flame_options o;
	struct when when;
	const char *condition;
	double every_s;
	u32 count;
	struct spool spool;
	int *given; /* by -p */
	int ngiven;
	bool dumps;         /* in place of recordings */
	bool missed;        /* nothing matched the last time, and it was said */
	bool obscured;      /* a process that may match may not be looked at, and it was said */
	struct table known; /* processes that were looked at, by pid: how often */
};

static const struct setting settings[] = {
        {WATCH_EVERY, SETTING_OF(struct watch, every_s), .name = "--every", .min = 0.1, .max = 1e7, .seconds = true},
        {WATCH_WHEN, SETTING_OF(struct watch, condition)},
        {WATCH_DIR, SETTING_OF(struct watch, spool.dir)},
        {'n', SETTING_OF(struct watch, count), .name = "--count", .min = 0, .max = 1e9},
        {0},
};

static struct error *parse_size(const char *text, u64 *ret)
{
	char *end;
	double value = strtod(text, &end);

	value *= *end == 'k' ? 1 << 10 : *end == 'm' ? 1 << 20 : *end == 'g' ? 1 << 30 : 1;
	if (end == text || (*end && end[1]) || (*end && !strchr("kmg", *end)) || !(value >= 1) || value > 1e15)
		return error_new(ERROR_USAGE, "--ring takes bytes, as 64m, not \"%s\"", text);
	*ret = (u64)value;
	return NULL;
}

static struct error *take_option(struct watch *w, int option)
{
	bool taken;
	struct error *err;

	if (option == WATCH_RING)
		return parse_size(optarg, &w->spool.limit);
	err = settings_apply(settings, option, optarg, w, &taken);
	return err || taken ? err : flame_option(option, &w->o);
}

static struct error *check_dumps(struct watch *w)
{
	if (w->o.run.sampler.everyone)
		return error_hint(error_new(ERROR_USAGE, "--event dump takes no -a"), "give -p or --select");
	if (w->o.send.url)
		return error_hint(
		        error_new(ERROR_USAGE, "--event dump writes text, which a profile store does not take"),
		        "leave out --push; --event wall is a recording of what threads wait for");
	w->o.event = NULL;
	return w->condition ? when_parse(w->condition, &w->when) : NULL;
}

static struct error *parse(struct watch *w, int argc, char **argv)
{
	struct manual_getopt g;
	struct error *err = NULL;
	int option;

	manual_getopt(&watch_manual, &g);
	optind = 1;
	while (!err && (option = getopt_long(argc, argv, g.shorts, g.longs, NULL)) != -1)
		err = take_option(w, option);
	if (err || w->o.help)
		return err;
	if (optind < argc)
		return error_hint(error_new(ERROR_USAGE, "unexpected argument \"%s\"", argv[optind]),
		        "watch does not start commands; give -p, --select or -a");
	w->given = w->o.run.pids;
	w->ngiven = w->o.run.npids;
	w->o.run.pids = NULL;
	w->o.run.npids = 0;
	if (!w->ngiven && !w->o.selection.nrules && !w->o.run.sampler.everyone)
		return error_hint(error_new(ERROR_USAGE, "no process was given"),
		        "give -p PID, --select exe=NAME, or -a for all");
	if (w->o.run.sampler.duration_s <= 0 || w->o.run.sampler.duration_s > w->every_s)
		return error_new(ERROR_USAGE, "--duration (%g s) has to be more than 0 and no more than --every (%g s)",
		        w->o.run.sampler.duration_s, w->every_s);
	w->dumps = w->o.event && !strcmp(w->o.event, "dump");
	if (w->dumps)
		return check_dumps(w);
	err = flame_set_event(&w->o);
	if (!err && w->o.run.sampler.everyone && w->o.event && strcmp(w->o.event, "clock") != 0)
		err = error_hint(error_new(ERROR_USAGE, "-a works for time on the CPU only"), "give -p or --select");
	if (!err && w->condition)
		err = when_parse(w->condition, &w->when);
	if (!err)
		err = send_check(&w->o.send);
	return err || !w->o.send.url ? err : curl_load();
}

/* Another one that may be looked at can come: said once, err is freed. Any other error is returned. */
static struct error *note_hidden(struct watch *w, struct error *err)
{
	if (!err || err->kind != ERROR_PERMISSION)
		return err;
	if (!w->obscured)
		say_note("%s: %s", err->message, err->hint);
	w->obscured = true;
	error_free(err);
	return NULL;
}

/* Who they are now. False: nobody. */
static bool find_targets(struct watch *w, struct error **err)
{
	w->o.run.npids = 0;
	for (int i = 0; i < w->ngiven; i++)
		if (!run_add_pid(&w->o.run, w->given[i]))
			*err = &error_no_memory;
	if (!*err)
		*err = flame_leave_out_gone(&w->o); /* each is said once */
	w->ngiven = w->o.run.npids;
	for (int i = 0; i < w->ngiven; i++)
		w->given[i] = w->o.run.pids[i];
	w->o.awaits = true;
	if (!*err)
		*err = note_hidden(w, flame_select(&w->o));
	return !*err && (w->o.run.npids || w->o.run.sampler.everyone);
}

static void sleep_until(u64 until_ns)
{
	u64 now = now_ns();

	while (!interrupted && now < until_ns) {
		struct timespec left = {.tv_sec = (time_t)((until_ns - now) / 1000000000),
		        .tv_nsec = (long)((until_ns - now) % 1000000000)};

		nanosleep(&left, NULL);
		now = now_ns();
	}
}

struct seen {
	struct watch *w;
	struct table now;
};

/* At the second look at a process it has become what it was started for. */
static struct error *note_seen(void *ctx, pid_t pid)
{
	struct seen *seen = ctx;

	return table_put(&seen->now, (u64)pid, table_get(&seen->w->known, (u64)pid) ? 2 : 1);
}

static struct error *offer_new(void *ctx, pid_t pid)
{
	struct watch *w = ctx;
	const u64 *looks = table_get(&w->known, (u64)pid);
	struct error *err;

	if (looks && *looks == 2)
		return NULL;
	err = table_put(&w->known, (u64)pid, looks ? 2 : 1);
	if (!err && selection_matches_pid(&w->o.selection, "/proc", pid) && !run_add_pid(&w->o.run, pid))
		err = &error_no_memory;
	return err;
}

/* All processes now and then, and in between those that have started: a machine may have thousands. */
static struct error *seek_targets(struct watch *w, u32 look)
{
	bool all = !w->o.selection.nrules || look % SEEK_LOOKS == 0;
	struct seen seen = {.w = w};
	struct error *err = NULL;

	if (all)
		find_targets(w, &err);
	if (!err && w->o.selection.nrules)
		err = each_process("/proc", all ? note_seen : offer_new, all ? (void *)&seen : w);
	if (all) {
		table_free(&w->known);
		w->known = seen.now;
	}
	return err ? err : run_add_children(&w->o.run);
}

/* Until the condition has held for long enough. */
static struct error *wait_for_condition(struct watch *w)
{
	struct error *err = NULL;
	char value[WHEN_VALUE];

	when_restart(&w->when);
	for (u32 look = 0; w->condition && !err && !interrupted; look++) {
		bool holds = false;

		spool_retry(&w->spool, now_ns());
		err = seek_targets(w, look);
		if (!err)
			err = when_look(&w->when, w->o.run.pids, w->o.run.npids, w->o.run.sampler.everyone,
			        &interrupted, &holds);
		if (holds)
			break;
		sleep_until(now_ns() + (u64)(LOOK_S * 1e9));
	}
	when_show(&w->when, value);
	if (w->condition && !err && !interrupted && !w->o.quiet)
		say_note("%s: it is %s", w->condition, value);
	return err;
}

/* The volume is full, or was. False: the folder can not be written to, which will not change by itself. */
static bool make_room(const struct watch *w)
{
	u32 deleted = 0;

	if (access(w->spool.dir, W_OK | X_OK))
		return false;
	error_free(ring_drop_oldest(w->spool.dir, &deleted));
	if (deleted)
		say_note("the oldest recording was deleted, to make room in %s", w->spool.dir);
	return true;
}

/* What has no place is said at once, not when the condition holds at last. */
static struct error *check_folder(const char *dir)
{
	cleanup(free) char *whole = NULL;
	bool made = !mkdir(dir, 0777);
	int code;

	if ((made || errno == EEXIST || errno == EROFS) && !access(dir, W_OK | X_OK)) {
		if (made)
			say_note("made the folder %s", dir);
		return NULL;
	}
	code = errno;
	whole = realpath(dir, NULL); /* of ".", which is anywhere in a container */
	return error_hint(
	        error_new(ERROR_OUTPUT, "cannot write to the folder %s: %s", whole ? whole : dir, strerror(code)),
	        "--dir takes another one for the recordings");
}

/* A name for -o, where a percent sign stands for more. */
static char *literally(const char *path)
{
	char *ret = malloc(2 * strlen(path) + 1), *to = ret;

	for (; ret && *path; *to++ = *path++)
		if (*path == '%')
			*to++ = '%';
	if (ret)
		*to = '\0';
	return ret;
}

static int record_to(struct watch *w, const struct command_line *self, int argc, char **argv, const char *path)
{
	cleanup(free) char *output = literally(path);
	int code;

	if (!output)
		return report_error(&error_no_memory);
	w->o.output = output;
	code = w->dumps ? dump_once(&w->o, path) : flame_once(self, &w->o, argc, argv);
	if (w->dumps && !code)
		fprintf(stderr, "yrt: wrote %s\n", path);
	w->o.output = NULL;
	output_unreserve(path);
	malloc_trim(0);
	return code;
}

/* -1: there was nobody to record. */
static int record_once(struct watch *w, const struct command_line *self, int argc, char **argv, struct error **err)
{
	cleanup(free) char *path = NULL;

	if (find_targets(w, err)) {
		struct error *full = w->dumps ? run_add_children(&w->o.run) : NULL;

		if (!full)
			full = ring_reserve(w->spool.dir, w->dumps ? RING_DUMP : RING_RECORDING, &path);

		w->missed = false;
		return full ? report_error(full) : record_to(w, self, argc, argv, path);
	}
	if (!*err && !w->missed)
		flame_note_waiting(&w->o);
	w->missed = true;
	return -1;
}

static int run(struct watch *w, const struct command_line *self, int argc, char **argv)
{
	struct error *err = NULL;
	u64 next = now_ns();
	u32 done = 0;
	int code = 0;

	w->spool.send = w->o.send;
	w->spool.retry_s = w->every_s;
	w->o.send.url = NULL;
	spool_put_away(&w->spool, next); /* what an earlier run has left */
	while (!interrupted && (!w->count || done < w->count)) {
		sleep_until(next);
		err = wait_for_condition(w);
		if (err || interrupted)
			break;
		next = now_ns() + (u64)(w->every_s * 1e9);
		code = record_once(w, self, argc, argv, &err);
		if (err || code == ERROR_PERMISSION || code == ERROR_UNSUPPORTED)
			break;
		done += code >= 0;
		if (code >= 0 && done == w->count)
			w->spool.slow_ns = 0; /* the last attempt */
		if (code >= 0)
			spool_put_away(&w->spool, next);
		else
			spool_retry(&w->spool, next);
		if (code == ERROR_OUTPUT && !make_room(w))
			break;
	}
	w->o.send = w->spool.send;
	return err ? report_error(err) : code > 0 ? code : spool_code(&w->spool);
}

int watch_main(const struct command_line *self, int argc, char **argv)
{
	struct watch w = {.spool.dir = ".", .every_s = 60, .spool.limit = 64 << 20};
	struct error *err;
	int code = 0;

	flame_defaults(&w.o);
	w.o.run.sampler.duration_s = 10;
	w.o.run.sampler.collect.names.inlines = true;
	err = parse(&w, argc, argv);
	if (!err && w.o.help) {
		manual_help(stdout, self);
	} else if (!err) {
		catch_signals();
		err = check_folder(w.spool.dir);
	}
	if (!err && !w.o.help)
		code = run(&w, self, argc, argv);
	free(w.given);
	when_free(&w.when);
	spool_free(&w.spool);
	table_free(&w.known);
	flame_free(&w.o);
	return err ? report_error(err) : code;
}
