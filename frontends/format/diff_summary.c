/* SPDX-License-Identifier: Apache-2.0 */

#include "diff_test.h"
#include "text.h"

#define ROWS_MOST 40

static void put_side(FILE *out, const char *word, const struct diff_side *side, const char *const *names)
{
	char clean[TEXT_CLEAN], amount[TEXT_AMOUNT];

	for (u32 i = 0; i < side->n; i++) {
		text_clean(names[i], clean);
		fprintf(out, "%-7s %s: %s\n", i ? "" : word, clean,
		        text_amount(&side->runs[i]->meta, side->runs[i]->nodes[0].total, amount));
	}
}

static void put_p(FILE *out, double p)
{
	if (p < 0.0001)
		fputs("  <0.0001", out);
	else
		fprintf(out, "%9.4f", p);
}

static void put_finding(FILE *out, const struct profile *p, const struct diff_finding *f, bool raw)
{
	const struct profile_function *fn = &p->functions[f->function];
	char name[TEXT_CLEAN], module[TEXT_CLEAN];

	text_clean(text_name(fn), name);
	text_clean(fn->module, module);
	if (raw)
		fprintf(out, "%10.0f %10.0f %+10.0f \u00b1%-8.0f", f->before, f->after, f->after - f->before, f->error);
	else
		fprintf(out, "%9.2f%% %9.2f%% %+10.2f \u00b1%-8.2f", f->before * 100, f->after * 100,
		        (f->after - f->before) * 100, f->error * 100);
	put_p(out, f->p);
	fprintf(out, "  %-5s  %s%s%.150s%s%.60s%s\n", f->self ? "self" : "total", text_marks(fn->flags), "", name,
	        *module ? "  [" : "", module, *module ? "]" : "");
}

void diff_summary(FILE *out, const struct profile *difference, const struct diff_tested *t,
        const struct diff_side sides[2], const char *const *names[2], bool raw)
{
	put_side(out, "before", &sides[0], names[0]);
	put_side(out, "after", &sides[1], names[1]);
	if (!t->nfindings)
		fprintf(out, "Nothing changed beyond chance: %u functions tested.", t->functions);
	else
		fprintf(out, "%u changes beyond chance (p < %g together, %u functions tested).", t->nfindings,
		        DIFF_LEVEL, t->functions);
	fprintf(out, " Noise: %.1f times that of independent samples.\n", t->noise);
	if (t->least > 0)
		fprintf(out,
		        "Of a function with 10 %% of all samples a change of %.1f points or more would be found.\n",
		        t->least * 100);
	if (sides[0].n + sides[1].n == 2)
		fputs("How one program differs from run to run is known better with several recordings a side: "
		      "yrt diff a1 a2 a3 -- b1 b2 b3\n",
		        out);
	if (!t->nfindings)
		return;
	fprintf(out, "\n%10s %10s %10s %-9s%9s  what\n", "before", "after", "change", " \u00b195 %", "p");
	for (u32 i = 0; i < t->nfindings && i < ROWS_MOST; i++)
		put_finding(out, difference, &t->findings[i], raw);
	if (t->nfindings > ROWS_MOST)
		fprintf(out, "and %u smaller ones\n", t->nfindings - ROWS_MOST);
}
