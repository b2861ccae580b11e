/* SPDX-License-Identifier: Apache-2.0 */
/* <view>-<name>: what a runtime shows of a process at one moment, or of the growth between two (runtime_snapshot.h). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli.h"
#include "one_target.h"
#include "output.h"
#include "say.h"
#include "frontends/format/format.h"
#include "unwind/cleanup.h"
#include "unwind/now.h"
#include "unwind/runtime_snapshot.h"

#define GROWTH_S      30 /* between two moments, where there are always two */
#define SECONDS_MAX   1e6
#define INSTANCES_MAX 16

enum key { KEY_CORE = 508, KEY_ROOT, KEY_WATCH, KEY_FLAG }; /* KEY_FLAG + the number of a flag */

static const struct manual_option common[] = {
        ONE_PROCESS_OPTIONS,
        {'o', "output", "FILE", "- is stdout (the default): text", COMPLETE_FILE},
        {'f', "format", "NAME", "text, or a format, whatever the extension of FILE:", COMPLETE_FORMAT},
        {'q', "quiet", NULL, "no notes", COMPLETE_NOTHING},
};
/* Where one moment is enough. */
static const struct manual_option moment[] = {
        {KEY_WATCH, "watch", "SECS", "look again after SECS seconds, and show what increased", COMPLETE_NOTHING},
        CORE_OPTIONS(KEY_CORE, KEY_ROOT),
};
static const struct manual_option duration = {
        'd', "duration", "SECS", "how long to sample (30); Ctrl-C ends it early", COMPLETE_NOTHING};

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static const char *const usage[] = {"-p PID [options]", NULL};
static const char *const moment_usage[] = {"-p PID [options]", "--core FILE [options]", NULL};

static const struct manual_example examples[] = {
        {"yrt @ -p 4242 | less", NULL},
        {"yrt @ -p 4242 -o x.html", "as a page for a browser"},
        {"yrt @ -p 4242 -o x.pb.gz", "for pprof"},
        {NULL, NULL},
};

struct request {
	int pid;
	const char *core, *root;
	const char *output, *format;
	double seconds; /* 0: one moment */
	u32 flags;
	bool quiet, help;
};

/* What was read of each instance of the runtime, at one or two moments. */
struct moments {
	const struct runtime_snapshot_ops *ops;
	void *before[INSTANCES_MAX], *after[INSTANCES_MAX];
	u32 n;
	u64 start_ns, end_ns;
};

static u32 count_flags(const struct runtime_snapshot_ops *ops)
{
	u32 n = 0;

	while (ops->flags && ops->flags[n].name)
		n++;
	return n;
}

const struct manual *snapshot_manual(const struct runtime_snapshot_ops *ops)
{
	u32 nflags = count_flags(ops), n = 0;
	struct manual_option *options = calloc(COUNT(common) + COUNT(moment) + nflags + 1, sizeof(*options));
	struct manual *ret = calloc(1, sizeof(*ret));

	if (!options || !ret) {
		free(options);
		free(ret);
		return NULL;
	}
	for (u32 i = 0; i < COUNT(common); i++)
		options[n++] = common[i];
	for (u32 i = 0; !ops->growth && i < COUNT(moment); i++)
		options[n++] = moment[i];
	if (ops->growth)
		options[n++] = duration;
	for (u32 i = 0; i < nflags; i++)
		options[n++] = (struct manual_option){
		        KEY_FLAG + (int)i, ops->flags[i].name, NULL, ops->flags[i].text, COMPLETE_NOTHING};
	*ret = (struct manual){.usage = ops->growth ? usage : moment_usage,
	        .text = ops->text,
	        .options = options,
	        .examples = examples};
	return ret;
}

/* --- options --- */

static const struct runtime_snapshot_ops *find_ops(const struct command_line *self, const struct view *view)
{
	const char *name = self->name + strlen(view->name) + 1;

	for (const struct runtime_ops *const *r = runtimes; *r; r++)
		for (u32 i = 0; view_has(view, (*r)->id) && (*r)->snapshots && (*r)->snapshots[i]; i++)
			if (!strcmp((*r)->snapshots[i]->name, name))
				return (*r)->snapshots[i];
	return NULL;
}

static struct error *take_option(int key, const struct runtime_snapshot_ops *ops, struct request *r)
{
	const struct setting seconds = {
	        .name = ops->growth ? "--duration" : "--watch", .min = 0.01, .max = SECONDS_MAX, .seconds = true};
	struct error *err = NULL;

	if (key == 'p' || key == FLAME_SELECT) {
		err = one_process(key, optarg, &r->pid);
	} else if (key == 'd' || key == KEY_WATCH) {
		err = setting_number(&seconds, optarg, &r->seconds);
	} else if (key == KEY_CORE) {
		r->core = optarg;
	} else if (key == KEY_ROOT) {
		r->root = optarg;
	} else if (key == 'o') {
		r->output = optarg;
	} else if (key == 'f') {
		r->format = strcmp(optarg, "text") ? optarg : NULL;
	} else if (key == 'q') {
		r->quiet = true;
	} else if (key == 'h') {
		r->help = true;
	} else if (key >= KEY_FLAG) {
		r->flags |= ops->flags[key - KEY_FLAG].bit;
	} else {
		err = manual_bad_option();
	}
	return err;
}

static struct error *parse(const struct command_line *self, const struct runtime_snapshot_ops *ops, int argc,
        char **argv, struct request *r)
{
	struct manual_getopt g;
	struct error *err = NULL;
	int key;

	*r = (struct request){.output = "-", .seconds = ops->growth ? GROWTH_S : 0};
	manual_getopt(self->manual, &g);
	optind = 1;
	while (!err && (key = getopt_long(argc, argv, g.shorts + 1, g.longs, NULL)) != -1)
		err = take_option(key, ops, r);
	if (err || r->help)
		return err;
	if (optind < argc)
		return error_hint(error_new(ERROR_USAGE, "unexpected argument \"%s\"", argv[optind]),
		        "a process is given by -p PID");
	err = ops->growth && !r->pid ? error_hint(error_new(ERROR_USAGE, "no process was given"), "give -p PID")
	                             : one_target_check(r->pid, r->core, r->root);
	if (err)
		return err;
	if (r->core && r->seconds)
		return error_new(ERROR_USAGE, "--core excludes --watch: a core does not grow");
	if (r->format && !format_find(r->format, NULL))
		return error_hint(error_new(ERROR_USAGE, "there is no format \"%s\"", r->format), "--help lists them");
	return NULL;
}

/* --- the process --- */

static bool has_snapshot(const struct runtime_ops *ops, const struct runtime_snapshot_ops *wanted)
{
	for (u32 i = 0; ops->snapshots && ops->snapshots[i]; i++)
		if (ops->snapshots[i] == wanted)
			return true;
	return false;
}

static struct error *take_moment(const struct process *p, struct moments *m, u32 flags, void **ret)
{
	struct runtime_process view = process_view(p);
	struct error *err = NULL;

	m->n = 0;
	for (u32 i = 0; !err && i < p->ninstances && m->n < INSTANCES_MAX; i++)
		if (p->instances[i].data && has_snapshot(p->instances[i].ops, m->ops))
			err = m->ops->take(p->instances[i].data, &view, flags, &ret[m->n++]);
	return err;
}

static struct error *take_moments(
        const struct one_target *t, const struct view *view, const struct request *r, struct moments *m)
{
	struct error *err;
	bool any = false;

	m->start_ns = now_ns();
	err = take_moment(t->p, m, r->flags, r->seconds ? m->before : m->after);
	if (!err && r->seconds) {
		sleep_s(r->seconds);
		err = take_moment(t->p, m, r->flags, m->after);
	}
	m->end_ns = now_ns();
	for (u32 i = 0; i < m->n; i++)
		any |= m->after[i] != NULL;
	return err || any ? err : one_target_lacks(t, view);
}

/* --- output --- */

/* Text of a target on its way to people: its controls are replaced, line by line. */
struct cleaner {
	FILE *out;
	char *line;
	size_t n, size;
};

static bool put_line(struct cleaner *c)
{
	char *at = c->line, *field;

	while ((field = strsep(&at, "\t"))) {
		cleanup(free) char *clean = clean_text(field);

		if (!clean || fputs(clean, c->out) == EOF || (at && fputc('\t', c->out) == EOF))
			return false;
	}
	c->n = 0;
	return true;
}

static ssize_t clean_write(void *cookie, const char *bytes, size_t size)
{
	struct cleaner *c = cookie;

	for (size_t i = 0; i < size; i++) {
		if (c->n + 1 >= c->size) {
			char *grown = realloc(c->line, 2 * c->size + 256);

			if (!grown)
				return 0;
			c->line = grown;
			c->size = 2 * c->size + 256;
		}
		c->line[c->n++] = bytes[i] == '\n' || !bytes[i] ? '\0' : bytes[i];
		if (bytes[i] == '\n' && (!put_line(c) || fputc('\n', c->out) == EOF))
			return 0;
	}
	return (ssize_t)size;
}

static struct error *print(const struct moments *m, u32 flags, FILE *to)
{
	struct cleaner c = {.out = to};
	FILE *out = fopencookie(&c, "w", (cookie_io_functions_t){.write = clean_write});
	struct error *err = out ? NULL : &error_no_memory;

	for (u32 i = 0; !err && i < m->n; i++)
		if (m->after[i])
			err = m->ops->print(m->before[i], m->after[i], flags, out);
	if (out && (fclose(out) || ferror(to)) && !err)
		err = error_new(ERROR_OUTPUT, "%s", strerror(errno));
	free(c.line);
	return err;
}

static struct error *draw(const struct moments *m, const struct command_line *self, const struct one_target *t,
        u32 flags, const struct format *format, FILE *out)
{
	struct profile *profile;
	struct error *err = profile_create(&profile);
	char target[128];
	struct timespec now;

	if (err)
		return err;
	for (u32 i = 0; !err && i < m->n; i++)
		if (m->after[i])
			err = m->ops->draw(m->before[i], m->after[i], flags, profile);
	clock_gettime(CLOCK_REALTIME, &now);
	snprintf(target, sizeof(target), "%s (pid %d)", t->p->comm, one_target_pid(t));
	profile->meta = (struct profile_meta){.title = self->name,
	        .target = target,
	        .unit = m->ops->unit,
	        .more = m->ops->more,
	        .duration_ns = m->end_ns - m->start_ns,
	        .start_unix_ns = (u64)now.tv_sec * 1000000000ull + (u64)now.tv_nsec};
	profile_finish(profile);
	if (!err)
		err = format_write(format, profile, out);
	profile_destroy(profile);
	return err;
}

static struct error *write_result(
        const struct moments *m, const struct command_line *self, const struct one_target *t, const struct request *r)
{
	const struct format *format = format_or_text(r->format, r->output);
	struct output out;
	struct error *err = output_open(strdup(r->output), &out);

	if (err)
		return err;
	err = format ? draw(m, self, t, r->flags, format, out.file) : print(m, r->flags, out.file);
	return output_end(&out, err);
}

static struct error *run(const struct command_line *self, const struct runtime_snapshot_ops *ops, struct request *r)
{
	struct moments m = {.ops = ops};
	struct one_target t = {.pid = r->pid, .core = r->core, .root = r->root, .quiet = r->quiet};
	struct error *err = one_target_open(&t);

	if (!err)
		err = take_moments(&t, view_of_command(self->name), r, &m);
	if (!err)
		err = write_result(&m, self, &t, r);
	for (u32 i = 0; i < INSTANCES_MAX; i++) {
		ops->free(m.before[i]);
		ops->free(m.after[i]);
	}
	one_target_close(&t);
	return err;
}

int snapshot_main(const struct command_line *self, int argc, char **argv)
{
	const struct runtime_snapshot_ops *ops = find_ops(self, view_of_command(self->name));
	struct request r;
	struct error *err = parse(self, ops, argc, argv, &r);

	if (!err && r.help) {
		manual_help(stdout, self);
		return 0;
	}
	catch_signals();
	if (!err)
		err = run(self, ops, &r);
	return err ? report_error(err) : 0;
}
