/* SPDX-License-Identifier: Apache-2.0 */
/* What was seen and what was lost (probes/loss.h): as a file, and notes on processes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "output.h"
#include "say.h"
#include "probes/loss.h"

#define UNREAD_TOLD 3 /* processes */

void loss_note_unread(const struct sampler_stats *st)
{
	const struct unread_list *l = st->unread;
	u32 told = l->kept < UNREAD_TOLD ? l->kept : UNREAD_TOLD;

	for (u32 i = 0; i < told; i++)
		say_note("process %d (%s) could not be looked into, its own code has no names: %s", l->first[i].pid,
		        l->first[i].comm, l->first[i].why ? l->first[i].why : "out of memory");
	if (l->n > told)
		say_note("%u more processes could not be looked into", l->n - told);
}

struct error *stats_write(const struct sampler_stats *st, const char *path)
{
	FILE *out = !strcmp(path, "-") ? stdout : fopen(path, "we");
	struct error *err = NULL;
	json_t *root;

	if (!out) {
		err = error_errno(errno, "cannot write the statistics to %s", path);
		err->kind = err == &error_no_memory ? err->kind : ERROR_OUTPUT;
		return err;
	}
	root = stats_json(st);
	if (json_dumpf(root, out, JSON_INDENT(2)) || fputc('\n', out) == EOF || fflush(out))
		err = error_new(ERROR_OUTPUT, "cannot write the statistics to %s: %s", path, strerror(errno));
	json_decref(root);
	if (out == stdout)
		return output_unread(out, err);
	if (fclose(out) && !err)
		err = error_new(ERROR_OUTPUT, "cannot write the statistics to %s: %s", path, strerror(errno));
	return err;
}
