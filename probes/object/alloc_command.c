/* SPDX-License-Identifier: Apache-2.0 */
/* The options and the help of alloc. */
#include "alloc.h"

#include <string.h>

#include "alloc_explain.h"
#include "probes/event_command.h"
#include "probes/run.h"
#include "unwind/process/children.h"
#include "unwind/runtime.h"
#include "unwind/runtime_snapshot.h"

enum { ALLOC_CALLS = EVENT_KEY, ALLOC_INTERVAL, ALLOC_GROWTH };

static const struct event_option options[] = {
        {ALLOC_CALLS, "calls", NULL, "show the number of calls, not their bytes"},
        {ALLOC_GROWTH, "growth", NULL,
                "only what makes the process larger: mmap and sbrk, by the program and by its allocators"},
        {ALLOC_INTERVAL, "interval", "BYTES",
                "blocks smaller than BYTES get a stack with the probability size/BYTES (1, and more where many come)"},
        {0},
};

static const struct setting own[] = {
        {ALLOC_GROWTH, SETTING_OF(struct alloc_options, growth), .on = true},
        {ALLOC_INTERVAL, SETTING_OF(struct alloc_options, interval), .name = "--interval", .min = 1, .max = 1e9},
        {0},
};

static const struct setting run[] = {
        {ALLOC_CALLS, SETTING_OF(struct run_request, second), .on = true},
        {0},
};

static const struct event_example examples[] = {
        {"yrt @ -p 4242 -d 10 -o alloc.html", "who allocates how many bytes"},
        {"yrt @ -p 4242 --calls -f txt -o -", "who allocates most often"},
        {"yrt @ -p 4242 --growth -d 600 -o growth.html", "why it becomes larger; hardly any cost"},
        {"yrt @ -p 4242 -o alloc.pb.gz", "both numbers, for pprof"},
        {NULL, NULL},
};

static u32 children_of(const struct run_request *r)
{
	u32 sum = 0;

	for (int i = 0; i < r->npids; i++)
		sum += children_count(r->pids[i]);
	return sum;
}

/* Does its allocator ask the kernel, not libc? There is a view of its own for such. */
static bool has_own_memory(const struct runtime_ops *ops)
{
	for (const struct runtime_snapshot_ops *const *s = ops->snapshots; s && *s; s++)
		if (!strcmp((*s)->name, "alloc"))
			return true;
	return ops->alloc;
}

static bool explain_language(FILE *out, const struct run_request *r, u32 seen)
{
	for (const struct runtime_ops *const *ops = runtimes; *ops; ops++)
		if (seen & 1u << (*ops)->id && has_own_memory(*ops)) {
			fprintf(out, "no call was made: %s takes its objects' memory from the kernel itself: ",
			        (*ops)->language);
			fprintf(out, "`yrt %s-alloc -p %d` shows who makes them\n", (*ops)->view,
			        r->npids ? r->pids[0] : 0);
			return true;
		}
	return false;
}

void alloc_explain_nothing(FILE *out, const struct run_request *r, const struct sampler_stats *st)
{
	u32 children = r->sampler.follow ? 0 : children_of(r);

	if (explain_language(out, r, st->runtimes))
		return;
	if (children)
		fprintf(out, "no call was made; its children (%u) may make them: add -s\n", children);
	else
		fputs("no call was made: it ran little, or used again what it had\n", out);
}

static void explain(FILE *out, const struct run_request *r, const struct sampler_stats *st)
{
	const struct alloc_summary *s = st->of_event;

	if (s->counters.calls || s->estimate.samples)
		return;
	if (*s->sampled)
		fprintf(out, "%s told no sample: --max-cpu 0 sees its functions instead\n", s->sampled);
	else
		alloc_explain_nothing(out, r, st);
}

const struct event_command alloc_command = {
        .size = sizeof(struct alloc_options),
        .own = own,
        .run = run,
        .text = "Every allocator that has the names of C and C++ is seen: malloc, calloc, realloc (its new size), "
                "posix_memalign and its relatives, new, mmap without a file, sbrk; libc's own, preloaded, or linked "
                "in with symbols; and those that mimalloc and jemalloc have in Rust and Redis (mi_malloc, je_malloc, "
                "_rjem_malloc). A call by the allocator itself does not count again. python-alloc and lua-alloc see "
                "instead the function by which the runtime gets the memory of all its objects.\n"
                "A program that tells samples of its allocations by USDT probes (otel_memory:alloc, libpoireau's) is "
                "seen by these, with their weights; --max-cpu 0 sees its functions instead.\n"
                "A uprobe sees each call, for 1 to 3 us of the target's time. If that is more than a quarter of "
                "--max-cpu, functions are probed in shifts, and calls of a shift stand for those in between; yrt says "
                "so, and totals are estimates then. A block gets a stack with a probability that grows with its size, "
                "and is weighted by that, so that neither bytes nor calls are biased. --max-cpu 0 takes every stack.\n"
                "--growth counts what is mapped, not what is touched: fault-flame shows that.",
        .options = options,
        .examples = examples,
        .explain = explain,
};
