/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expansion and names of 10,000 compiled methods of a live JVM, none of them seen before, as frames of stacks and each
 * as a stack of its own, beside as many plain reads of it. Limit: 50 ms, for stacks.
 */
#include "tests/unit/hotspot_jvm.h"

#include "bench.h"
#include "profile/expand.h"
#include "profile/names.h"
#include "runtimes/hotspot/walk/hotspot.h"

#define METHODS 10000
#define ROUNDS  5
#define DEPTH   50 /* of a stack */

/* A caller's frame in each method of the fixture, at the end of its code. */
static u32 find_frames(struct jvm *j, struct frame *frames)
{
	struct runtime_process view = process_view(j->process);
	struct hotspot_nmethod nm;
	struct frame_name name;
	u32 n = 0;

	for (u32 i = 0; i < j->n && n < METHODS; i++) {
		if (!hotspot_nmethod_read(j->instance->code, j->process->memory, j->nmethods[i], 0, &nm))
			continue;
		frames[n].where = frame_where(FRAME_SCRIPT, RUNTIME_HOTSPOT, FRAME_RETADDR, nm.at);
		frames[n].detail = hotspot_nmethod(nm.compile_id, nm.code_end - nm.code);
		if (hotspot_runtime.name_frame(j->instance, &view, frames, n, n + 1, &name) &&
		        !strncmp(name.name, "many.pack.age.Class", 19) && strstr(name.name, ".method"))
			n++;
	}
	return n;
}

static double time_names(struct jvm *j, struct names *names, const struct frame *frames, u32 n, u32 depth)
{
	static struct frame expanded[DEPTH * RUNTIME_EXPAND_MAX];
	double start = now_ms();

	for (u32 i = 0; i < n; i += depth) {
		u32 put = expand_stack(
		        j->process, &frames[i], n - i < depth ? n - i : depth, 0, expanded, DEPTH * RUNTIME_EXPAND_MAX);
		struct named named;

		for (u32 k = 0; k < put; k++) {
			must(names_frame(names, j->process, expanded, k, put, &named));
			if (named.unresolved)
				fail_msg("frame %u has no name", i);
		}
	}
	return now_ms() - start;
}

static double time_reads(struct jvm *j, const struct frame *frames, u32 n)
{
	double start = now_ms();
	u8 bytes[256];

	for (u32 i = 0; i < n; i++)
		memory_read(j->process->memory, bytes, sizeof(bytes), frame_addr(&frames[i]));
	return now_ms() - start;
}

/* Nothing is known yet each time. */
static void run(struct jvm *j, const struct frame *frames, u32 n, u32 depth, double *named, double *read)
{
	struct names_options options = {0};
	struct profile *profile;
	struct names *names;

	hotspot_names_destroy(j->instance->names);
	must(hotspot_names_create(j->instance->v, j->instance->layout, j->instance->code, &j->instance->names));
	must(profile_create(&profile));
	must(names_create(profile, j->modules, &options, &names));
	*named = time_names(j, names, frames, n, depth);
	*read = time_reads(j, frames, n);
	if (profile->nfunctions < n)
		fail_msg("%u functions for %u methods", profile->nfunctions, n);
	names_destroy(names);
	profile_destroy(profile);
}

/* Medians. */
static void measure(struct jvm *j, const struct frame *frames, u32 n, u32 depth)
{
	double named[ROUNDS], read[ROUNDS];

	for (u32 i = 0; i < ROUNDS; i++)
		run(j, frames, n, depth, &named[i], &read[i]);
	printf("names of %u Java methods, stacks of %u: %.1f ms (limit 50 ms), %.1f times as long as a read of each "
	       "(%.1f ms)\n",
	        n, depth, median(named, ROUNDS), median(named, ROUNDS) / median(read, ROUNDS), median(read, ROUNDS));
}

int main(void)
{
	static struct frame frames[METHODS];
	struct jvm *j = jvm_start("-Xcomp -XX:-TieredCompilation");
	u32 n;

	jvm_nmethods(j);
	n = find_frames(j, frames);
	if (n < METHODS)
		fail_msg("only %u of %u methods are compiled", n, METHODS);
	measure(j, frames, n, DEPTH);
	measure(j, frames, n, 1);
	jvm_end(j);
	return 0;
}
