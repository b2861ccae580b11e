/* SPDX-License-Identifier: Apache-2.0 */
#include "go_inspect.h"

#include <string.h>

#include "go_release.h"

static const char *const layouts[GO_MAGICS] = {"1.2", "1.16", "1.18", "1.20"};

static void report_module(struct go_table *t, u64 bias, struct report *out)
{
	char version[GO_RELEASE_MAX];

	image_report(t->file.img, out);
	if (go_release(t, version))
		report_text(out, "version", NULL, "%s", version);
	report_text(out, "load bias", NULL, "0x%lx", bias);
	report_text(out, "pclntab", layouts[t->magic], "0x%lx", t->addr + bias);
	if (t->module)
		report_text(out, "moduledata", NULL, "0x%lx", t->module + bias);
	report_number(out, "functions", t->nfunctions, NULL);
	report_text(out, "inlined calls", t->inlining.size ? "checked by 64 of them" : NULL, "%s",
	        t->inlining.size ? "told" : "not told");
}

static void report_stretch(struct report *out, const char *name, const struct go_stretch *s, u64 bias)
{
	if (s->end)
		report_text(out, name, "on the other stack", "0x%lx-0x%lx", s->start + bias, s->end + bias);
}

struct error *go_inspect(struct go_table *t, u64 bias, const struct go_switches *s, const char *missing,
        const struct go_config *config, struct report *out)
{
	const char *origin = "code of runtime.systemstack";

	report_module(t, bias, out);
	report_section(out, "changes of stacks", NULL);
	if (missing)
		report_text(out, "walked", NULL,
		        *missing ? "no: code of runtime.%s is not of a known form"
		                 : "no: it has no runtime of its own%s",
		        missing);
	if (missing || !config)
		return report_end(out);
	report_stretch(out, "systemstack", &s->systemstack, bias);
	report_stretch(out, "mcall", &s->mcall, bias);
	report_stretch(out, "morestack", &s->morestack, bias);
	report_stretch(out, "asmcgocall", &s->asmcgocall, bias);
	report_stretch(out, "cgocallback", &s->callback, bias);
	report_section(out, "layout", NULL);
	report_number(out, "g, from the thread pointer", config->tls,
	        s->tls_at ? "a word that the dynamic linker filled in" : origin);
	report_number(out, "g.m", config->g_m, origin);
	report_number(out, "g.sched.sp", config->g_sched, origin);
	report_number(out, "m.g0", config->m_g0, origin);
	report_number(out, "m.curg", config->m_curg, origin);
	if (s->asmcgocall.end) {
		report_number(out, "g in a frame of asmcgocall", config->asm_g, "its code");
		report_number(out, "depth in a frame of asmcgocall", config->asm_depth, "its code");
	}
	return report_end(out);
}
