/* SPDX-License-Identifier: Apache-2.0 */
#include "go_fold.h"

#include <string.h>

#include "go.h"
#include "go_names.h"

static const char *const works[] = {"(gc)", "(gc assist)", "(scheduler)", "(sysmon)"};
#define WORKS (sizeof(works) / sizeof(*works))

enum work { GC, GC_ASSIST, SCHEDULER, SYSMON, NONE };

/* runtime/mgc.go, mgcmark.go, mgcsweep.go, mgcscavenge.go, proc.go; what mcall() is called with, and threads begin by
 */
static const struct {
	const char *name; /* behind "runtime." */
	enum work work;
} begins[] = {
        {"gcBgMarkWorker", GC},
        {"bgsweep", GC},
        {"bgscavenge", GC},
        {"gcenable.func1", GC}, /* of the go statements for both, 1.17 to 1.20 */
        {"gcenable.func2", GC},
        {"forcegchelper", GC},
        {"gcStart", GC},
        {"gcMarkDone", GC},
        {"gcMarkTermination", GC},
        {"gcAssistAlloc", GC_ASSIST},
        {"deductSweepCredit", GC_ASSIST},
        {"schedule", SCHEDULER},
        {"park_m", SCHEDULER},
        {"goexit0", SCHEDULER},
        {"goexit1", SCHEDULER},
        {"gosched_m", SCHEDULER},
        {"goschedguarded_m", SCHEDULER},
        {"gopreempt_m", SCHEDULER},
        {"asyncPreempt2.func1", SCHEDULER}, /* calls the two, since 1.26 */
        {"preemptPark", SCHEDULER},
        {"goschedImpl", SCHEDULER}, /* in which newstack() has gopreempt_m inlined */
        {"goyield_m", SCHEDULER},
        {"exitsyscall0", SCHEDULER},
        {"exitsyscallNoP", SCHEDULER},
        {"coroexit", SCHEDULER},
        {"coroswitch_m", SCHEDULER},
        {"gogo", SCHEDULER},
        {"stopm", SCHEDULER},
        {"wakep", SCHEDULER},
        {"handoffp", SCHEDULER},
        {"templateThread", SCHEDULER},
        {"sysmon", SYSMON},
};

/* newstack() also copies stacks: it is the scheduler's where that runs inside. */
static enum work work_begun_by(const char *name, enum work inside)
{
	if (inside == SCHEDULER && !strcmp(name, "newstack"))
		return SCHEDULER;
	for (u32 i = 0; i < sizeof(begins) / sizeof(*begins); i++)
		if (!strcmp(begins[i].name, name))
			return begins[i].work;
	return NONE;
}

/* Is this a function of the runtime, or of no package: assembly? *begins is what it begins, with what it has inside. */
static bool is_runtimes(struct go_table *t, u64 bias, const struct frame *f, enum work inside, enum work *begins)
{
	struct go_function fn;
	char name[64];
	u64 pc;

	*begins = NONE;
	if (frame_kind(f) != FRAME_NATIVE || !go_frame_function(t, bias, f, &pc, &fn))
		return false;
	go_function_name(t, &fn, name, sizeof(name));
	if (!strncmp(name, "runtime.", 8))
		*begins = work_begun_by(name + 8, inside);
	else if (!strcmp(name, "gogo")) /* the half of runtime.gogo that jumps to the goroutine */
		*begins = SCHEDULER;
	return !strncmp(name, "runtime.", 8) || !strncmp(name, "internal/", 9) || !strncmp(name, "runtime/", 8) ||
	       !strchr(name, '.');
}

/* The outermost of what they begin counts. */
u32 go_fold(struct go_table *t, u64 bias, const struct frame *frames, u32 i, u32 n, struct frame *ret)
{
	enum work begun, work = NONE;
	u32 eaten = 0;

	for (u32 at = i; at < n && is_runtimes(t, bias, &frames[at], work, &begun); at++)
		if (begun != NONE) {
			work = begun;
			eaten = at - i + 1;
		}
	if (eaten)
		*ret = (struct frame){.where = frame_where(FRAME_SCRIPT, RUNTIME_GO, 0, bias + t->text),
		        .detail = go_detail((u32)frames[i].detail, GO_FOLDED + work)};
	return eaten;
}

const char *go_fold_name(const struct frame *f)
{
	u32 number = (u32)f->detail - GO_FOLDED;

	return number < WORKS ? works[number] : NULL;
}
