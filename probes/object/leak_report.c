/* SPDX-License-Identifier: Apache-2.0 */
#include "leak_report.h"

#include <stdio.h>
#include <stdlib.h>

#include "probes/loss.h"
#include "unwind/cleanup.h"

#define TOLD    10 /* stacks in the text */
#define CALLERS 4

struct judged {
	struct leak_site *site;
	struct leak_growth growth;
	u64 seen, blocks, bytes;
	u64 young; /* of bytes: of the last third */
};

static void describe(const struct leak_summary *s, const struct judged *j, char *text, size_t size)
{
	static const char *const words[] = {[LEAK_FEW] = "left: too few to tell",
	        [LEAK_IN_USE] = "left: young",
	        [LEAK_ENDED] = "left: grew, then ended"};
	char low[32], high[32];

	if (s->in_shifts)
		snprintf(text, size, "[outlived %.1f s]", s->watch_s);
	else if (j->growth.verdict == LEAK_GROWS)
		snprintf(text, size, "[left: grows by %s to %s a minute]", loss_amount(j->growth.low, low),
		        loss_amount(j->growth.high, high));
	else
		snprintf(text, size, "[%s]", words[j->growth.verdict]);
}

static void judge(const struct leak_stacks *stacks, struct leak_site *site, u64 now, struct judged *ret)
{
	struct leak_left left;

	*ret = (struct judged){.site = site};
	leak_stacks_thirds(stacks, site, now, &left);
	ret->growth = leak_judge(&left, (double)(now - stacks->began_ns) / 1e9);
	ret->young = (u64)left.bytes[2];
	for (u32 i = 0; i < LEAK_SLOTS; i++) {
		ret->seen += site->seen[i];
		ret->blocks += site->blocks[i];
		ret->bytes += site->bytes[i];
	}
}

static struct error *show(struct profile *p, const struct leak_summary *s, const struct judged *j)
{
	char text[128];
	struct profile_function fn = {.name = text, .module = "", .file = "", .kind = KIND_LABEL};
	struct error *err;
	u32 function, node;

	describe(s, j, text, sizeof(text));
	err = profile_function(p, 0, &fn, false, &function);
	if (!err)
		err = profile_child(p, j->site->node, function, &node);
	if (err)
		return err;
	profile_add(p, node, j->bytes);
	profile_add_more(p, node, j->blocks);
	return NULL;
}

/* What grows first, then by size. */
static int by_growth(const void *a, const void *b)
{
	const struct judged *x = a, *y = b;
	bool grows = x->growth.verdict == LEAK_GROWS, others = y->growth.verdict == LEAK_GROWS;

	if (grows != others)
		return grows ? -1 : 1;
	return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

/* Code of a language, as its users know it? */
static bool is_script(const struct profile *p, u32 node)
{
	enum profile_kind kind = p->functions[p->nodes[node].function].kind;

	return kind >= KIND_SCRIPT && kind <= KIND_SCRIPT_JIT;
}

void leak_print_stack(FILE *out, const struct profile *p, u32 node)
{
	u32 script = node, shown = 0;

	while (script && !is_script(p, script))
		script = p->nodes[script].parent;
	for (; node && shown <= CALLERS; node = p->nodes[node].parent) {
		if (shown == 2 && script && node > script) {
			fputs(" < …", out);
			node = script;
		}
		fprintf(out, "%s%s", shown++ ? " < " : "", p->functions[p->nodes[node].function].name);
	}
	fputs(node ? " …\n" : "\n", out);
}

static void print_one(FILE *out, const struct profile *p, const struct leak_summary *s, const struct judged *j)
{
	const struct leak_stack *all = &j->site->all;
	char text[128], bytes[32];

	describe(s, j, text, sizeof(text));
	fprintf(out, "  %s: %s in %lu of %lu blocks%s", text, loss_amount((double)j->bytes, bytes), j->blocks,
	        all->made, all->lives ? "" : ", none was freed");
	if (all->lives)
		fprintf(out, ", the others were freed after %.3g s on average",
		        (double)all->life_ns / (double)all->lives / 1e9);
	fputs("\n    ", out);
	leak_print_stack(out, p, j->site->node);
}

struct error *leak_report(struct leak_stacks *stacks, struct profile *p, struct leak_summary *s, u64 now, char **text)
{
	cleanup(free) struct judged *all = calloc(stacks->n + 1, sizeof(*all));
	size_t size;
	FILE *out = all ? open_memstream(text, &size) : NULL;
	struct error *err = out ? NULL : &error_no_memory;
	u32 n = 0;

	for (u32 i = 0; !err && i < stacks->n; i++) {
		judge(stacks, &stacks->of[i], now, &all[n]);
		if (!all[n].seen)
			continue;
		s->grows += all[n].growth.verdict == LEAK_GROWS && !s->in_shifts;
		err = show(p, s, &all[n++]);
	}
	if (!err)
		qsort(all, n, sizeof(*all), by_growth);
	for (u32 i = 0; !err && i < n && i < TOLD; i++)
		print_one(out, p, s, &all[i]);
	if (!err && n > TOLD)
		fprintf(out, "  and %u more stacks\n", n - TOLD);
	if (out)
		fclose(out);
	return err;
}
