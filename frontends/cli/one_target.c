/* SPDX-License-Identifier: Apache-2.0 */
#include "one_target.h"

#include "say.h"
#include "unwind/binary/core_file.h"

struct error *one_target_check(int pid, const char *core, const char *root)
{
	if (!pid == !core)
		return error_hint(error_new(ERROR_USAGE, pid ? "--core excludes -p" : "no process was given"),
		        "give -p PID or --core FILE");
	if (root && !core)
		return error_new(ERROR_USAGE, "--root takes --core");
	return NULL;
}

static void warn(void *ctx, struct error *err)
{
	const struct one_target *t = ctx;

	if (t->quiet)
		error_free(err);
	else
		say_note_error(err);
}

struct error *one_target_open(struct one_target *t)
{
	struct error *err = t->core ? core_open(t->core, t->root, &t->file) : NULL;

	if (!err)
		err = process_alone_open(&t->alone, t->pid, t->file, warn, t);
	t->p = t->alone.p;
	return err;
}

void one_target_close(struct one_target *t)
{
	process_alone_close(&t->alone);
	core_close(t->file);
}

int one_target_pid(const struct one_target *t)
{
	return t->file ? (int)t->file->pid : t->p->pid;
}

struct error *one_target_lacks(const struct one_target *t, const struct view *view)
{
	const char *comm = t->p->comm;

	if (t->file)
		return error_hint(error_new(ERROR_UNSUPPORTED, "no %s was found in the core of %s (pid %d)",
		                          view->language, comm, one_target_pid(t)),
		        "the files that it had mapped must be here, or below --root");
	return error_hint(error_new(ERROR_UNSUPPORTED, "no %s was found in %s (pid %d)", view->language, comm, t->pid),
	        "`yrt inspect -p %d` shows what was found", t->pid);
}
