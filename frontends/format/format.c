/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <strings.h>

#include "format.h"
#include "unwind/profile/profile_places.h"
#include "unwind/profile/profile_processes.h"
#include "unwind/profile/profile_tiers.h"

const struct format *const formats[] = {&format_folded, &format_html, &format_svg, &format_txt, &format_pprof,
        &format_otlp, &format_firefox, &format_chrome, &format_speedscope, &format_perf, &format_jfr, &format_recording,
        NULL};

static bool has_extension(const char *path, const char *extension)
{
	size_t n = strlen(path), m = strlen(extension);

	return n > m && !strcasecmp(path + n - m, extension);
}

struct error *format_write(const struct format *f, struct profile *p, FILE *out)
{
	enum processes how = p->meta.processes && f->processes != PROCESSES_RAW ? p->meta.processes : f->processes;
	struct error *err = f->keeps || p->meta.annotate ? NULL : profile_merge_tiers(p);

	if (!err)
		err = profile_show_processes(p, how);
	if (!err && !f->keeps)
		err = profile_shorten_places(p);
	return err ? err : f->write(p, out);
}

const struct format *format_find(const char *name, const char *path)
{
	if (!name && (!path || !strcmp(path, "-") || !strcmp(path, "/dev/null")))
		return &format_folded;
	for (const struct format *const *f = formats; *f; f++)
		if (name ? !strcmp(name, (*f)->name) : has_extension(path, (*f)->extension))
			return *f;
	return NULL;
}

const struct format *format_or_text(const char *name, const char *path)
{
	return name || (strcmp(path, "-") && strchr(path, '.')) ? format_find(name, path) : NULL;
}
