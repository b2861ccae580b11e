/* SPDX-License-Identifier: Apache-2.0 */
#include "python_fold.h"

#include <string.h>

static const char *const loop_files[] = {"base_events.py", "base_futures.py", "events.py", "futures.py", "runners.py",
        "selector_events.py", "sslproto.py", "unix_events.py", NULL};
static const char *const loop_runs[] = {"run", "run_forever", "run_until_complete", NULL};
static const char *const import_files[] = {"_bootstrap.py", "_bootstrap_external.py", NULL};
static const char *const import_runs[] = {"_find_and_load", "_gcd_import", NULL};

static const struct wall {
	const char *name;
	u32 flag;
	const char *folder; /* of its files */
	const char *const *files;
	const char *frozen;	 /* how code that is part of the interpreter calls its file; NULL: none is */
	const char *const *runs; /* functions without which it is none: the rest is called by others too */
} walls[] = {
        {"asyncio (event loop)", EXPAND_LOOP, "/asyncio", loop_files, NULL, loop_runs},
        {"import", EXPAND_IMPORTS, "/importlib", import_files, "<frozen importlib._bootstrap", import_runs},
};
#define WALLS (sizeof(walls) / sizeof(*walls))
_Static_assert(WALLS * PYTHON_NO_CODE < PYTHON_SEVERAL_TASKS, "numbers of frames without code");

const char *python_fold_name(const struct frame *f)
{
	u64 number = frame_addr(f) / PYTHON_NO_CODE;

	if (!f->detail && frame_addr(f) == PYTHON_SEVERAL_TASKS)
		return "several tasks await this";
	return !f->detail && frame_addr(f) % PYTHON_NO_CODE == 0 && number <= WALLS ? python_wall_name((u32)number) : NULL;
}

static bool is_one_of(const char *word, const char *const *list)
{
	for (; *list; list++)
		if (!strcmp(word, *list))
			return true;
	return false;
}

static bool is_file(const struct wall *w, const char *path)
{
	const char *file = strrchr(path, '/');
	size_t folder = strlen(w->folder);

	if (w->frozen && !strncmp(path, w->frozen, strlen(w->frozen)))
		return true;
	return file && (size_t)(file - path) >= folder && !strncmp(file - folder, w->folder, folder) && is_one_of(file + 1, w->files);
}

/* Class.function from 3.11, function before. */
static bool runs(const struct wall *w, const char *name)
{
	const char *dot = strrchr(name, '.');

	return is_one_of(dot ? dot + 1 : name, w->runs);
}

u32 python_wall(const char *name, const char *file, u32 flags, bool *running)
{
	for (u32 k = 0; k < WALLS; k++)
		if (flags & walls[k].flag && is_file(&walls[k], file)) {
			*running = runs(&walls[k], name);
			return k + 1;
		}
	return 0;
}

const char *python_wall_name(u32 number)
{
	return number && number <= WALLS ? walls[number - 1].name : NULL;
}

static bool is_python(const struct frame *f)
{
	return frame_kind(f) == FRAME_SCRIPT && frame_runtime(f) == RUNTIME_PYTHON;
}

/* Is it part of the wall? *running becomes true if it is what makes it one. */
static bool is_part(struct python_names *names, struct memory *mem, const struct wall *w, const struct frame *f, bool *running)
{
	struct frame_name name;

	if (!is_python(f) || !python_name_frame(names, mem, f, &name) || !is_file(w, name.file))
		return false;
	*running = *running || runs(w, name.name);
	return true;
}

/* The next Python frame at or behind i, with only native ones before it; n: none. */
static u32 next_python(const struct frame *frames, u32 i, u32 n)
{
	while (i < n && frame_kind(&frames[i]) == FRAME_NATIVE)
		i++;
	return i < n && is_python(&frames[i]) ? i : n;
}

static u32 fold(struct python_names *names, struct memory *mem, const struct wall *w, const struct frame *frames, u32 i, u32 n,
        struct frame *ret, u32 *eaten)
{
	bool running = false, inside = is_part(names, mem, w, &frames[i], &running);
	u32 put = 0, last = i;

	for (u32 at = next_python(frames, i + 1, n); at < n && is_part(names, mem, w, &frames[at], &running);
	        at = next_python(frames, at + 1, n))
		last = at;
	if (!running)
		return 0;
	if (!inside)
		ret[put++] = frames[i];
	ret[put++] = (struct frame){
	        .where = frame_where(FRAME_SCRIPT, RUNTIME_PYTHON, 0, PYTHON_NO_CODE * (u64)(w - walls + 1))};
	*eaten = last - i + 1;
	return put;
}

u32 python_fold(struct python_names *names, struct memory *mem, const struct frame *frames, u32 i, u32 n, u32 flags,
        struct frame *ret, u32 *eaten)
{
	u32 put = 0;

	*eaten = 0;
	for (u32 k = 0; k < WALLS && !put; k++)
		if (flags & walls[k].flag)
			put = fold(names, mem, &walls[k], frames, i, n, ret, eaten);
	return put;
}
