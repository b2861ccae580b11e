/* SPDX-License-Identifier: Apache-2.0 */
#include "python_async.h"

#include <string.h>

enum role {
	ROLE_NONE,
	ROLE_INSIDE, /* a function of the modules that a loop consists of */
	ROLE_RUNS,   /* one that runs the loop: without it, asyncio was only called by a task */
};

static bool is_one_of(const char *word, const char *const *list)
{
	for (; *list; list++)
		if (!strcmp(word, *list))
			return true;
	return false;
}

static bool is_module(const char *path)
{
	static const char *const files[] = {"base_events.py", "base_futures.py", "events.py", "futures.py", "runners.py",
	        "selector_events.py", "sslproto.py", "unix_events.py", NULL};
	const char *file = strrchr(path, '/');

	return file && file - path >= 8 && !strncmp(file - 8, "/asyncio", 8) && is_one_of(file + 1, files);
}

/* Class.function from 3.11, function before. */
static bool runs(const char *name)
{
	static const char *const functions[] = {"run", "run_forever", "run_until_complete", NULL};
	const char *dot = strrchr(name, '.');

	return is_one_of(dot ? dot + 1 : name, functions);
}

static bool is_python(const struct frame *f)
{
	return frame_kind(f) == FRAME_SCRIPT && frame_runtime(f) == RUNTIME_PYTHON;
}

static enum role role_of(struct python_names *names, struct memory *mem, const struct frame *f)
{
	struct frame_name name;

	if (!is_python(f) || !python_name_frame(names, mem, f, &name) || !is_module(name.file))
		return ROLE_NONE;
	return runs(name.name) ? ROLE_RUNS : ROLE_INSIDE;
}

/* The next Python frame at or behind i, with only native ones before it; n: none. */
static u32 next_python(const struct frame *frames, u32 i, u32 n)
{
	while (i < n && frame_kind(&frames[i]) == FRAME_NATIVE)
		i++;
	return i < n && is_python(&frames[i]) ? i : n;
}

u32 python_async_fold(struct python_names *names, struct memory *mem, const struct frame *frames, u32 i, u32 n,
        struct frame *ret, u32 *eaten)
{
	bool inside = role_of(names, mem, &frames[i]) != ROLE_NONE, running = false;
	u32 put = 0, last = i;
	enum role role;

	for (u32 at = inside ? i : next_python(frames, i + 1, n); at < n; at = next_python(frames, at + 1, n)) {
		role = role_of(names, mem, &frames[at]);
		if (role == ROLE_NONE)
			break;
		running = running || role == ROLE_RUNS;
		last = at;
	}
	*eaten = 0;
	if (!running)
		return 0;
	if (!inside)
		ret[put++] = frames[i];
	ret[put++] = (struct frame){.where = PYTHON_ASYNC_FRAME};
	*eaten = last - i + 1;
	return put;
}
