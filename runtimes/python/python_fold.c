/* SPDX-License-Identifier: Apache-2.0 */
#include "python_fold.h"

#include <string.h>

#include "frame_code.h"
#include "symbols/symbols.h"

static const char *const loop_files[] = {"base_events.py", "base_futures.py", "events.py", "futures.py", "runners.py",
        "selector_events.py", "sslproto.py", "unix_events.py", NULL};
static const char *const loop_runs[] = {"run", "run_forever", "run_until_complete", NULL};
static const char *const import_files[] = {"_bootstrap.py", "_bootstrap_external.py", NULL};
static const char *const import_runs[] = {"_find_and_load", "_gcd_import", NULL};

#define UVLOOP_RUNS "uv_run"

static const struct fold_group {
	const char *name;
	u32 flag;
	const char *folder; /* of its files */
	const char *const *files;
	const char *frozen;      /* how code that is part of the interpreter calls its file; NULL: none is */
	const char *const *runs; /* functions without which it is none: the rest is called by others too */
	bool native;             /* modules can be part of it */
} fold_groups[] = {
        {"asyncio (event loop)", EXPAND_LOOP, "/asyncio", loop_files, NULL, loop_runs, true},
        {"import", EXPAND_IMPORTS, "/importlib", import_files, "<frozen importlib._bootstrap", import_runs, false},
};
#define FOLD_GROUPS (sizeof(fold_groups) / sizeof(*fold_groups))
_Static_assert(FOLD_GROUPS *PYTHON_NO_CODE < PYTHON_SEVERAL_TASKS, "numbers of frames without code");

const char *python_fold_name(const struct frame *f)
{
	u64 number = frame_addr(f) / PYTHON_NO_CODE;

	if (!f->detail && frame_addr(f) == PYTHON_SEVERAL_TASKS)
		return "several tasks await this";
	if (!f->detail && frame_addr(f) == PYTHON_COLLECTS)
		return "(gc)";
	return !f->detail && frame_addr(f) % PYTHON_NO_CODE == 0 && number <= FOLD_GROUPS
	               ? python_fold_group_name((u32)number)
	               : NULL;
}

static bool is_one_of(const char *word, const char *const *list)
{
	for (; *list; list++)
		if (!strcmp(word, *list))
			return true;
	return false;
}

static bool is_file(const struct fold_group *w, const char *path)
{
	const char *file = strrchr(path, '/');
	size_t folder = strlen(w->folder);

	if (w->frozen && !strncmp(path, w->frozen, strlen(w->frozen)))
		return true;
	return file && (size_t)(file - path) >= folder && !strncmp(file - folder, w->folder, folder) &&
	       is_one_of(file + 1, w->files);
}

/* Which of the loop's modules in C a file is; PYTHON_UVLOOP_MODULES: none. libuv may be another program's: only beside
 * uvloop. */
static u32 uvloop_module(const char *path)
{
	static const char *const modules[PYTHON_UVLOOP_MODULES] = {"/uvloop/loop.", "/libuv.so."};
	const char *file = strrchr(path, '/');
	u32 i = 0;

	for (; i < PYTHON_UVLOOP_MODULES; i++) {
		size_t folder = (size_t)(strrchr(modules[i], '/') - modules[i]);

		if (file && (size_t)(file - path) >= folder && !strncmp(file - folder, modules[i], strlen(modules[i])))
			break;
	}
	return i;
}

/* Class.function from 3.11, function before. */
static bool runs(const struct fold_group *w, const char *name)
{
	const char *dot = strrchr(name, '.');

	return is_one_of(dot ? dot + 1 : name, w->runs);
}

u32 python_fold_group(const char *name, const char *file, u32 flags, bool *running)
{
	for (u32 k = 0; k < FOLD_GROUPS; k++)
		if (flags & fold_groups[k].flag && is_file(&fold_groups[k], file)) {
			*running = runs(&fold_groups[k], name);
			return k + 1;
		} else if (flags & fold_groups[k].flag && fold_groups[k].native && !uvloop_module(file)) {
			*running = !strcmp(name, UVLOOP_RUNS);
			return k + 1;
		}
	return 0;
}

const char *python_fold_group_name(u32 number)
{
	return number && number <= FOLD_GROUPS ? fold_groups[number - 1].name : NULL;
}

static bool is_python(const struct frame *f)
{
	return frame_kind(f) == FRAME_SCRIPT && frame_runtime(f) == RUNTIME_PYTHON;
}

struct folding {
	struct python_names *names;
	struct python_uvloop *uvloop;
	const struct runtime_process *p;
	const struct fold_group *fold_group;
	bool running; /* what makes it a fold group is part of it */
	bool certain; /* not only libuv is */
};

/* Is this address of the module in the function that runs the loop? */
static bool runs_module(struct python_uvloop *uvloop, struct image *img, u64 addr)
{
	struct symbol run = {0};

	if (uvloop->image != img) {
		symbols_lookup(img, UVLOOP_RUNS, &run);
		*uvloop = (struct python_uvloop){img, run.start, run.end};
	}
	return addr >= uvloop->start && addr < uvloop->end;
}

static bool is_native_part(struct folding *f, const struct frame *frame)
{
	u64 addr = frame_code(frame);
	const struct mapping *m = f->fold_group->native && frame_kind(frame) == FRAME_NATIVE
	                                  ? mapping_find(f->p->mappings, f->p->nmappings, addr)
	                                  : NULL;
	u32 module = m && m->image ? uvloop_module(m->image->path) : PYTHON_UVLOOP_MODULES;

	if (module == PYTHON_UVLOOP_MODULES)
		return false;
	f->running = f->running || runs_module(&f->uvloop[module], m->image, addr - m->bias);
	f->certain = f->certain || !module;
	return true;
}

static bool is_part(struct folding *f, const struct frame *frame)
{
	const char *name, *file;

	if (!is_python(frame))
		return is_native_part(f, frame);
	if (!python_name_code(f->names, f->p->memory, frame, &name, &file) || !is_file(f->fold_group, file))
		return false;
	f->running = f->running || runs(f->fold_group, name);
	f->certain = true;
	return true;
}

/* The next frame of the fold group at or behind i, with only other native ones before it; n: none. */
static u32 next_part(struct folding *f, const struct frame *frames, u32 i, u32 n)
{
	for (; i < n; i++) {
		if (is_part(f, &frames[i]))
			return i;
		if (frame_kind(&frames[i]) != FRAME_NATIVE)
			break;
	}
	return n;
}

static u32 fold(struct folding *f, const struct frame *frames, u32 i, u32 n, struct frame *ret, u32 *eaten)
{
	bool inside = is_part(f, &frames[i]);
	u32 put = 0, last = i;

	if (!inside && !is_python(&frames[i]))
		return 0;
	for (u32 at = next_part(f, frames, i + 1, n); at < n; at = next_part(f, frames, at + 1, n))
		last = at;
	if (!f->running || !f->certain)
		return 0;
	if (!inside)
		ret[put++] = frames[i];
	ret[put++] = (struct frame){.where = frame_where(FRAME_SCRIPT, RUNTIME_PYTHON, 0,
	                                    PYTHON_NO_CODE * (u64)(f->fold_group - fold_groups + 1))};
	*eaten = last - i + 1;
	return put;
}

u32 python_fold(struct python_names *names, struct python_uvloop uvloop[PYTHON_UVLOOP_MODULES],
        const struct runtime_process *p, const struct frame *frames, u32 i, u32 n, u32 flags, struct frame *ret,
        u32 *eaten)
{
	u32 put = 0;

	*eaten = 0;
	for (u32 k = 0; k < FOLD_GROUPS && !put; k++) {
		struct folding f = {names, uvloop, p, &fold_groups[k], false, false};

		if (flags & fold_groups[k].flag)
			put = fold(&f, frames, i, n, ret, eaten);
	}
	return put;
}
