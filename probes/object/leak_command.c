/* SPDX-License-Identifier: Apache-2.0 */
/* The options and the help of leak. */
#include "leak.h"
#include "alloc.h"
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

	(void)recorded;
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

const struct event_command leak_command = {
        .size = sizeof(struct alloc_options),
        .own = own,
        .run = run,
        .text = "Blocks that malloc and its relatives make during the run are watched until free() gets them. What is "
                "left at the end is shown by stack, and inside that what its ages say: a leak has left as much of "
                "the first third of the run as of the second; blocks that are young may be in use; a cache that has "
                "filled up grew at first alone. So run for several times as long as a request or a session lives. "
                "Growth is given with the interval that holds it with 95 % certainty. What was allocated before the "
                "run is not seen.\n"
                "Each call and its return, and each free(), is a hit of 1 to 3 us, 20 us in some virtual machines. "
                "Where that is more than a quarter of --max-cpu, as a share of the target's CPU time, calls are seen "
                "in windows of some milliseconds. Of the blocks that are there when a window ends, debug registers "
                "watch some of each stack until they are freed, or for a tenth of the run: what is still there then, "
                "while memory in use of that size grows, leaks. That works with the malloc of glibc, mimalloc and "
                "gperftools; blocks of others are known for as long as a window only.\n"
                "--growth asks no allocator: it follows mmap, munmap, mremap and brk, and page faults. What was mapped "
                "in the run and is still mapped has the stack that mapped it (to the byte), and each page that was "
                "touched first in the run and is still in memory the stack that touched it. Programs of any language "
                "and allocator are seen; a heap that grows has the stacks that needed a page more. A page "
                "fault, for which the kernel needs 3 us, costs 2 to 10 us more with its stack; past --max-cpu one page "
                "of 2, 4, … "
                "is taken.\n"
                "Above the last line: the memory of the process over the run, and the stacks that matter.",
        .options = options,
        .examples = examples,
        .check = check,
};
