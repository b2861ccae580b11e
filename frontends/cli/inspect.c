/* SPDX-License-Identifier: Apache-2.0 */
/* `yrt inspect`: what a process was recognised as, and from what. */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli.h"
#include "one_target.h"
#include "output.h"
#include "say.h"
#include "manual.h"
#include "frontends/format/text.h"
#include "probes/object/alloc_functions.h"
#include "unwind/binary/core_file.h"
#include "unwind/binary/proc_path.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"
#include "unwind/process/alone.h"
#include "unwind/process/other_language.h"
#include "unwind/report.h"

#define KEY_WIDTH_MAX   32
#define VALUE_WIDTH_MAX 48

enum { INSPECT_JSON = 512, INSPECT_CORE, INSPECT_ROOT };

static const struct manual_option options[] = {
        PID_OPTIONS,
        {'s', "subprocesses", NULL, "also their children", COMPLETE_NOTHING},
        CORE_OPTIONS(INSPECT_CORE, INSPECT_ROOT),
        {INSPECT_JSON, "json", NULL,
                "as JSON: {\"processes\": [{\"pid\", \"program\", \"malloc\", \"runtimes\", \"notes\"}]}; of a "
                "core also \"files\"",
                COMPLETE_NOTHING},
        {0},
};

static const char *const usage[] = {"-p PID[,PID...] [options]", "--core FILE [options]", NULL};

static const struct manual_example examples[] = {
        {"yrt inspect -p $(pgrep -o nginx) -s", "a master and its workers"},
        {"yrt inspect -p 4242 --json | jq '.processes[].runtimes[].sections[] | select(.name == \"vm\")'",
                "the VMs, for a program"},
        {"yrt inspect --core core.4242", "what died, and which of its files are not here"},
        {NULL, NULL},
};

const struct manual inspect_manual = {
        .usage = usage,
        .text = "Prints for each runtime its version and build, where its code is, its VMs and their state, the "
                "offsets of its structures with their origin, and the checks that they passed. Anything that was not "
                "recognised is listed with the reason. The process keeps running; nothing is written to it.\n"
                "Of a core, files of code that are missing here, or are others than those that were mapped, are listed "
                "with the build-id that is wanted.",
        .options = options,
        .examples = examples,
};

/* What is known of one process. */
struct inspection {
	pid_t pid;
	const struct core_file *core; /* NULL: it lives */
	char *program;
	char allocators[256]; /* alloc_functions_text() */
	u32 nruntimes;
	const char **runtimes;  /* names */
	struct report *reports; /* of each */
	u32 nnotes;
	struct error **notes; /* what could not be recognised, or not be read */
};

static void inspection_free(struct inspection *in)
{
	for (u32 i = 0; i < in->nruntimes; i++)
		report_free(&in->reports[i]);
	for (u32 i = 0; i < in->nnotes; i++)
		error_free(in->notes[i]);
	free(in->program);
	free(in->runtimes);
	free(in->reports);
	free(in->notes);
}

static void note(void *ctx, struct error *err)
{
	struct inspection *in = ctx;

	if (grow(&in->notes, in->nnotes, sizeof(*in->notes)))
		error_free(err);
	else
		in->notes[in->nnotes++] = err;
}

/* The kernel cuts the name of a process, and a program may change it. */
static const char *program_of_core(const struct core_file *core)
{
	for (u32 i = 0; i < core->nfiles; i++) {
		const char *base = strrchr(core->files[i].path, '/');

		if (core->files[i].code && base && !strncmp(base + 1, core->comm, strlen(core->comm)))
			return core->files[i].path;
	}
	return core->comm;
}

static char *find_program(const struct process *p)
{
	char path[64], target[PATH_MAX];
	ssize_t len;

	if (p->core)
		return strdup(program_of_core(p->core));
	proc_path(path, sizeof(path), p->pid, "exe");
	len = readlink(path, target, sizeof(target) - 1);
	target[len > 0 ? len : 0] = '\0';
	return strdup(len > 0 ? target : p->comm);
}

static struct error *inspect_runtimes(const struct process *p, struct inspection *in)
{
	struct runtime_process view = process_view(p);
	struct error *err = NULL;

	in->runtimes = calloc(p->ninstances + 1, sizeof(*in->runtimes));
	in->reports = calloc(p->ninstances + 1, sizeof(*in->reports));
	in->program = find_program(p);
	if (!in->runtimes || !in->reports || !in->program)
		return &error_no_memory;
	for (u32 i = 0; !err && i < p->ninstances; i++) {
		const struct instance *instance = &p->instances[i];
		struct report *out = &in->reports[in->nruntimes];

		if (!instance->data || !instance->ops->inspect)
			continue;
		in->runtimes[in->nruntimes++] = instance->ops->name;
		err = instance->ops->inspect(instance->data, &view, out);
		if (!err)
			err = report_end(out);
	}
	return err;
}

/* What was read of a process that ends meanwhile is not to be trusted. */
static struct error *check_alive(const struct process *p)
{
	u8 byte;

	for (u32 i = 0; i < p->maps.nlines; i++)
		if ((p->mappings[i].prot & PROT_EXEC) && memory_read(p->memory, &byte, 1, p->mappings[i].start))
			return NULL;
	return error_hint(error_new(ERROR_NO_PROCESS, "process %d has ended, or runs another program now", p->pid),
	        "give the pid of a running process");
}

/*
 * Modules are not shared between processes: complaints come once a module, and belong to a process here.
 * core: NULL, or it must outlive in.
 */
static struct error *inspect_process(pid_t pid, struct core_file *core, struct inspection *in)
{
	struct process_alone a = {0};
	struct error *err = process_alone_open(&a, pid, core, note, in);

	in->pid = core ? (pid_t)core->pid : pid;
	in->core = core;
	if (!err)
		err = inspect_runtimes(a.p, in);
	if (!err)
		alloc_functions_text(a.p, in->allocators, sizeof(in->allocators));
	if (!err && !core)
		err = check_alive(a.p);
	process_alone_close(&a);
	return err;
}

/* --- text --- */

static char *value_of(const struct report_row *row)
{
	char *text;

	if (row->value)
		return clean_text(row->value);
	return asprintf(&text, "%ld", row->number) < 0 ? NULL : text;
}

static int width(int old, const char *text, int max)
{
	int len = text ? (int)strlen(text) : 0;

	return len > old && len <= max ? len : old;
}

static void print_row(const struct report_row *row, int keys, int values)
{
	cleanup(free) char *value = value_of(row), *remark = row->remark ? clean_text(row->remark) : NULL;

	printf("    %-*s  ", keys, row->key);
	if (remark)
		printf("%-*s  %s\n", values, value ? value : "", remark);
	else
		printf("%s\n", value ? value : "");
}

static void print_section(const char *runtime, const struct report_section *s)
{
	int keys = 0, values = 0;

	for (u32 i = 0; i < s->nrows; i++) {
		cleanup(free) char *value = s->rows[i].remark ? value_of(&s->rows[i]) : NULL;

		keys = width(keys, s->rows[i].key, KEY_WIDTH_MAX);
		values = width(values, value, VALUE_WIDTH_MAX);
	}
	printf("  %s: %s%s%s\n", runtime, s->name, s->subject ? " " : "", s->subject ? s->subject : "");
	for (u32 i = 0; i < s->nrows; i++)
		print_row(&s->rows[i], keys, values);
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static bool same_section(const struct report_section *a, const struct report_section *b)
{
	bool same = same_text(a->name, b->name) && same_text(a->subject, b->subject) && a->nrows == b->nrows;

	for (u32 i = 0; same && i < a->nrows; i++)
		same = same_text(a->rows[i].key, b->rows[i].key) && same_text(a->rows[i].value, b->rows[i].value) &&
		       same_text(a->rows[i].remark, b->rows[i].remark) && a->rows[i].number == b->rows[i].number;
	return same;
}

/* Does an earlier process, of the same program, have such a section at the same place? */
static bool was_shown(
        const struct inspection *before, const char *runtime, u32 i, u32 k, const struct report_section *s)
{
	return before && i < before->nruntimes && !strcmp(before->runtimes[i], runtime) &&
	       k < before->reports[i].nsections && same_section(&before->reports[i].sections[k], s);
}

/* What a process has as the one before it: the names of the sections, in a line. */
static void print_runtime(const struct inspection *in, u32 i, const struct inspection *before)
{
	const struct report *report = &in->reports[i];
	u32 n = 0, rows = 0;

	for (u32 k = 0; k < report->nsections; k++) {
		const struct report_section *s = &report->sections[k];

		if (!was_shown(before, in->runtimes[i], i, k, s)) {
			print_section(in->runtimes[i], s);
			continue;
		}
		n++;
		rows += s->nrows;
	}
	if (n)
		printf("  %s: %s %u sections, %u rows: as of process %d\n", in->runtimes[i],
		        n == report->nsections ? "all" : "the other", n, rows, before->pid);
}

static void print_note(const struct error *err)
{
	cleanup(free) char *message = clean_text(err->message), *hint = err->hint ? clean_text(err->hint) : NULL;

	printf("  note: %s\n", message ? message : "");
	if (hint)
		printf("        %s\n", hint);
}

static const char *const match_names[] = {
        [CORE_UNSEEN] = "missing", [CORE_SAME] = "here", [CORE_OTHER] = "other", [CORE_MISSING] = "missing"};

/* Of code: those that are not here, and how many there are. */
static void print_files(const struct core_file *core)
{
	char build_id[CORE_BUILD_ID];
	u32 n = 0, here = 0;

	for (u32 i = 0; i < core->nfiles; i++) {
		n += core->files[i].code;
		here += core->files[i].code && core->files[i].match == CORE_SAME;
	}
	printf("  files of code: %u, of which %u are here\n", n, here);
	for (u32 i = 0; i < core->nfiles; i++) {
		const struct core_mapped *f = &core->files[i];
		cleanup(free) char *path = clean_text(f->path);

		if (!f->code || f->match == CORE_SAME)
			continue;
		core_build_id(core, f, build_id);
		printf("    %-7s  %s%s%s\n", match_names[f->match], path ? path : "", *build_id ? "  build-id " : "",
		        build_id);
	}
}

/* before: the inspection of the same program that was printed; NULL if none was. */
static void print_text(const struct inspection *in, const struct inspection *before)
{
	cleanup(free) char *program = clean_text(in->program), *allocators = clean_text(in->allocators);
	struct other_language other;

	printf("process %d  %s\n", in->pid, program ? program : "");
	for (u32 i = 0; i < in->nruntimes; i++)
		print_runtime(in, i, before);
	for (u32 i = 0; i < in->nnotes; i++)
		print_note(in->notes[i]);
	if (in->allocators[0])
		printf("  malloc: %s\n", allocators ? allocators : "");
	if (!in->nruntimes)
		printf("  no language runtime that yrt can read: its frames are those of native code\n");
	if (!in->core && other_language_of(in->pid, &other))
		printf("  it runs %s: %s\n", other.name, other.limits);
	if (in->core)
		print_files(in->core);
}

/* --- JSON --- */

static json_t *json_text(const char *text)
{
	cleanup(free) char *safe = text ? clean_text(text) : NULL;

	return safe ? json_string(safe) : NULL;
}

static void set_text(json_t *object, const char *key, const char *text)
{
	if (text)
		json_object_set_new(object, key, json_text(text));
}

static json_t *json_row(const struct report_row *row)
{
	json_t *object = json_object();

	set_text(object, "key", row->key);
	json_object_set_new(object, "value", row->value ? json_text(row->value) : json_integer(row->number));
	set_text(object, "remark", row->remark);
	return object;
}

static json_t *json_section(const struct report_section *s)
{
	json_t *object = json_object(), *rows = json_array();

	set_text(object, "name", s->name);
	set_text(object, "subject", s->subject);
	for (u32 i = 0; i < s->nrows; i++)
		json_array_append_new(rows, json_row(&s->rows[i]));
	json_object_set_new(object, "rows", rows);
	return object;
}

static json_t *json_error(const struct error *err)
{
	json_t *object = json_object();

	set_text(object, "message", err->message);
	set_text(object, "hint", err->hint);
	return object;
}

static json_t *json_runtime(const char *name, const struct report *report)
{
	json_t *sections = json_array();

	for (u32 i = 0; i < report->nsections; i++)
		json_array_append_new(sections, json_section(&report->sections[i]));
	return json_pack("{s:s, s:o}", "name", name, "sections", sections);
}

static json_t *json_files(const struct core_file *core)
{
	json_t *files = json_array();
	char build_id[CORE_BUILD_ID];

	for (u32 i = 0; i < core->nfiles; i++) {
		const struct core_mapped *f = &core->files[i];
		json_t *object = f->code ? json_object() : NULL;

		if (!object)
			continue;
		core_build_id(core, f, build_id);
		set_text(object, "path", f->path);
		set_text(object, "build_id", *build_id ? build_id : NULL);
		set_text(object, "state", match_names[f->match]);
		json_array_append_new(files, object);
	}
	return files;
}

static json_t *json_inspection(const struct inspection *in, const struct error *err)
{
	json_t *object = json_pack("{s:i}", "pid", in->pid), *runtimes = json_array(), *notes = json_array();

	set_text(object, "program", in->program);
	set_text(object, "malloc", in->allocators[0] ? in->allocators : NULL);
	for (u32 i = 0; i < in->nruntimes; i++)
		json_array_append_new(runtimes, json_runtime(in->runtimes[i], &in->reports[i]));
	for (u32 i = 0; i < in->nnotes; i++)
		json_array_append_new(notes, json_error(in->notes[i]));
	json_object_set_new(object, "runtimes", runtimes);
	json_object_set_new(object, "notes", notes);
	if (in->core)
		json_object_set_new(object, "files", json_files(in->core));
	if (err)
		json_object_set_new(object, "error", json_error(err));
	return object;
}

/* --- the command --- */

/* The inspections that were printed: a pool's workers are alike, and only what differs from the first is printed. */
struct printed {
	struct inspection *all;
	u32 n;
};

static void cleanup_printed(struct printed *t)
{
	for (u32 i = 0; i < t->n; i++)
		inspection_free(&t->all[i]);
	free(t->all);
}

static const struct inspection *same_program(const struct printed *t, const char *program)
{
	for (u32 i = 0; i < t->n; i++)
		if (same_text(t->all[i].program, program))
			return &t->all[i];
	return NULL;
}

/* Takes over what was found. */
static void print_one(struct printed *t, struct inspection *in)
{
	print_text(in, same_program(t, in->program));
	if (grow(&t->all, t->n, sizeof(*t->all)))
		inspection_free(in);
	else
		t->all[t->n++] = *in;
	*in = (struct inspection){0};
}

/* Returns the exit code of the last process that could not be looked into. */
static int inspect_all(const struct flame_options *o, json_t *processes)
{
	cleanup(printed) struct printed printed = {0};
	int code = 0;

	for (int i = 0; i < o->run.npids; i++) {
		struct inspection in = {0};
		struct error *err = inspect_process(o->run.pids[i], NULL, &in);

		if (err && err->kind == ERROR_NO_PROCESS &&
		        i >= o->run.nasked) { /* a child that was found, and has ended */
			error_free(err);
			inspection_free(&in);
			continue;
		}
		if (processes)
			json_array_append_new(processes, json_inspection(&in, err));
		else if (!err)
			print_one(&printed, &in);
		if (err)
			code = report_error(err);
		inspection_free(&in);
	}
	return code;
}

static int inspect_core(const char *path, const char *root, json_t *processes)
{
	struct inspection in = {0};
	struct core_file *core = NULL;
	struct error *err = core_open(path, root, &core);

	if (!err)
		err = inspect_process(0, core, &in);
	if (!err && processes)
		json_array_append_new(processes, json_inspection(&in, NULL));
	else if (!err)
		print_text(&in, NULL);
	inspection_free(&in);
	core_close(core);
	return err ? report_error(err) : 0;
}

static struct error *print_json(json_t *processes)
{
	json_t *root = json_pack("{s:O}", "processes", processes);
	bool failed = !root || json_dumpf(root, stdout, JSON_INDENT(2)) || fputc('\n', stdout) == EOF;

	json_decref(root);
	return failed ? error_new(ERROR_OUTPUT, "cannot write the JSON: %s", strerror(errno)) : NULL;
}

struct request {
	struct flame_options o;
	const char *core, *root;
	bool json;
};

static struct error *check(struct request *r)
{
	if (r->root && !r->core)
		return error_new(ERROR_USAGE, "--root takes --core");
	if (!r->core)
		return flame_select_now(&r->o);
	if (r->o.run.npids || r->o.selection.nrules || r->o.run.sampler.follow)
		return error_new(ERROR_USAGE, "--core excludes -p, --select and -s");
	return NULL;
}

static struct error *parse(int argc, char **argv, struct request *r)
{
	struct manual_getopt table;
	struct error *err = NULL;
	struct flame_options *o = &r->o;
	int c;

	manual_getopt(&inspect_manual, &table);
	optind = 1;
	while (!err && (c = getopt_long(argc, argv, table.shorts + 1, table.longs, NULL)) != -1) {
		if (c == 'p')
			err = flame_add_pids(o, optarg);
		else if (c == FLAME_SELECT)
			err = selection_add(&o->selection, optarg);
		else if (c == 's')
			o->run.sampler.follow = true;
		else if (c == INSPECT_JSON)
			r->json = true;
		else if (c == INSPECT_CORE)
			r->core = optarg;
		else if (c == INSPECT_ROOT)
			r->root = optarg;
		else if (c == 'h')
			o->help = true;
		else
			err = manual_bad_option();
	}
	if (!err && optind < argc)
		err = error_hint(error_new(ERROR_USAGE, "unexpected argument \"%s\"", argv[optind]),
		        "processes are given by -p PID");
	if (!err && !o->help)
		err = check(r);
	return err ? err : run_add_children(&o->run);
}

static struct error *finish(json_t *processes)
{
	struct error *err = processes ? print_json(processes) : NULL;

	json_decref(processes);
	if (!err && (fflush(stdout) || ferror(stdout)))
		err = error_new(ERROR_OUTPUT, "cannot write the result: %s", strerror(errno));
	return output_unread(stdout, err);
}

int inspect_main(const struct command_line *self, int argc, char **argv)
{
	struct request r = {0};
	json_t *processes;
	struct error *err = parse(argc, argv, &r);
	int code = 0;

	if (!err && r.o.help) {
		manual_help(stdout, self);
	} else if (!err) {
		processes = r.json ? json_array() : NULL;
		code = r.core ? inspect_core(r.core, r.root, processes) : inspect_all(&r.o, processes);
		err = finish(processes);
	}
	flame_free(&r.o);
	return err ? report_error(err) : code;
}
