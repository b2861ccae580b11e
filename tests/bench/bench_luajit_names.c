/* SPDX-License-Identifier: Apache-2.0 */
/* Names of 10,000 distinct Lua functions of a live process, beside as many plain reads of it. Limit: 50 ms. */
#include "tests/unit/luajit_target.h"

#include "bench.h"
#include "profile/names.h"

#define STACKS    5
#define FUNCTIONS 2000
#define ROUNDS    5

/* Names all frames of the stack. */
static double time_names(struct target *t, struct names *names, u32 *unresolved)
{
	double start = now_ms();
	struct named named;

	for (u32 i = t->nframes; i-- > 0;) {
		must(names_frame(names, t->process, t->frames, i, t->nframes, &named));
		*unresolved += named.unresolved;
	}
	return now_ms() - start;
}

static double time_reads(struct target *t)
{
	double start = now_ms();
	u8 bytes[256];

	for (u32 i = 0; i < t->nframes; i++)
		memory_read(t->process->memory, bytes, sizeof(bytes), frame_addr(&t->frames[i]));
	return now_ms() - start;
}

/* All stacks once. */
static void run(double *named, double *read)
{
	struct target *t = target_start("many_functions.lua", "", NULL);
	struct names_options options = {0};
	struct profile *profile;
	struct names *names;
	u32 unresolved = 0;

	must(profile_create(&profile));
	must(names_create(profile, t->modules, &options, &names));
	for (u32 i = 0; i < STACKS; i++) {
		if (!target_continue(t, 0) || target_walk(t) != STOP_ROOT || t->nframes < FUNCTIONS)
			fail_msg("stack %u is not there", i);
		*named += time_names(t, names, &unresolved);
		*read += time_reads(t);
	}
	if (unresolved || profile->nfunctions < STACKS * FUNCTIONS)
		fail_msg("%u functions, %u frames without a name", profile->nfunctions, unresolved);
	names_destroy(names);
	profile_destroy(profile);
	target_end(t);
}

int main(void)
{
	double named[ROUNDS] = {0}, read[ROUNDS] = {0};

	for (u32 i = 0; i < ROUNDS; i++)
		run(&named[i], &read[i]);
	printf("names of %u Lua functions: %.1f ms (limit 50 ms), %.1f times as long as a read of each (%.1f ms)\n",
	        STACKS * FUNCTIONS, median(named, ROUNDS), median(named, ROUNDS) / median(read, ROUNDS),
	        median(read, ROUNDS));
	return 0;
}
