/* SPDX-License-Identifier: Apache-2.0 */
/* The options and the help of leak. */
#include "leak.h"
#include "alloc.h"
#include "alloc_explain.h"
#include "probes/event_command.h"
#include "probes/run.h"

enum { LEAK_BLOCKS = EVENT_KEY, LEAK_INTERVAL, LEAK_GROWTH, LEAK_MAPPED };

static const struct event_option options[] = {
        {LEAK_BLOCKS, "blocks", NULL, "show the number of blocks, not their bytes"},
        {LEAK_INTERVAL, "interval", "BYTES",
                "blocks smaller than BYTES are watched with the probability size/BYTES (1, and more where many come)"},
        {LEAK_GROWTH, "growth", NULL,
                "only what makes the process larger: memory that it maps and touches for the first time; hardly any "
                "cost"},
        {LEAK_MAPPED, "mapped", NULL, "with --growth: show bytes that are mapped, not those in memory"},
        {0},
};

static const struct setting own[] = {
        {LEAK_GROWTH, SETTING_OF(struct alloc_options, growth), .on = true},
        {LEAK_MAPPED, SETTING_OF(struct alloc_options, mapped), .on = true},
        {LEAK_INTERVAL, SETTING_OF(struct alloc_options, interval), .name = "--interval", .min = 1, .max = 1e9},
        {0},
};

static const struct setting run[] = {
        {LEAK_BLOCKS, SETTING_OF(struct run_request, second), .on = true},
        {0},
};

static const struct event_example examples[] = {
        {"yrt @ -p 4242 -d 60 -o leak.html", "what a minute has left behind, and what grows"},
        {"yrt @ -p 4242 -d 600 --blocks -f txt -o -", "slow leaks, by number"},
        {"yrt @ -p 4242 -I grows -o leak.html", "only what grows"},
        {"yrt @ -p 4242 --growth -d 600 -o growth.html", "which pages are new, and who touched them first"},
        {NULL, NULL},
};

static struct error *check(struct run_request *r, bool recorded)
{
	const struct alloc_options *o = r->own;

	if (!o->growth && o->mapped)
		return error_hint(error_new(ERROR_USAGE, "--mapped is about mappings"), "add --growth");
	if (!o->growth)
		return NULL;
	if (o->interval >= 1 || r->second)
		return error_hint(
		        error_new(ERROR_USAGE, "--growth sees no blocks: --blocks and --interval mean nothing"),
		        "leave them out");
	r->sampler.event = &growth_event;
	return NULL;
}

static void explain(FILE *out, const struct run_request *r, const struct sampler_stats *st)
{
	const struct alloc_options *o = r->own;
	const struct leak_summary *s = o->growth ? NULL : st->of_event;

	if (s && !s->calls)
		alloc_explain_nothing(out, r, st);
}

const struct event_command leak_command = {
        .size = sizeof(struct alloc_options),
        .own = own,
        .run = run,
        .text = "Blocks from malloc and its relatives are followed until they are freed. What is left at the end is "
                "shown by stack, and below that by age: a leak leaves as much from the first third of the run as from "
                "the second; young blocks may still be in use; a cache grows only until it is full. So let it run for "
                "several times the life of a request or session. Growth is given with its 95 % interval. What was "
                "allocated before the run is not seen.\n"
                "Each call and its return, and each free(), is a hit of 1 to 3 us, 20 us in some virtual machines. "
                "Where that is more than a quarter of --max-cpu, as a share of the target's CPU time, calls are seen "
                "in windows of some milliseconds. Blocks that a window leaves are looked at again, by what they hold. "
                "Some that seem to be there still are then watched by debug registers. If they are not freed, and "
                "memory of that size grows, they are a leak. jemalloc and musl write nothing into a block that is "
                "freed: there it counts as freed when anybody writes to it.\n"
                "--growth follows mmap, munmap, mremap, brk and page faults, whatever the language and the allocator. "
                "What is mapped at the end and was not before is shown, to the byte, by the stack that mapped it; "
                "each page that was first touched in the run and is still in memory, by the stack that touched it. A "
                "page fault takes the kernel 3 us, and 2 to 10 us more with its stack; past --max-cpu every second, "
                "fourth … page gets one.\n"
                "Above the last line: the memory of the process over the run, and the stacks that matter.",
        .options = options,
        .examples = examples,
        .check = check,
        .explain = explain,
};
