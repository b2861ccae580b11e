/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HotSpot's stacks at every instruction: interpreter, C1, C2, what leads from one to another, exceptions,
 * deoptimisation. YRT_JAVA: the words that run another java than the system's.
 */
#include "steps.h"

#include "runtimes/hotspot/walk/hotspot.h"

#define STEPS     48000
#define UNPACKING 8 /* native frames that fill in a frame, at most */

/* A method that executes, not one that was inlined into it. */
static bool is_physical(const struct frame *f)
{
	return frame_kind(f) == FRAME_SCRIPT && hotspot_kind(f) == HOTSPOT_METHOD && !(frame_flags(f) & FRAME_INLINED);
}

/* Does a method stand inside of this frame? */
static bool is_caller(const struct steps_stack *stack, const struct frame *f)
{
	while (f-- > stack->frames)
		if (is_physical(f))
			return true;
	return false;
}

/*
 * The Method, which stays the same when compiled code takes the place of the interpreter's frame, or the other way.
 * What was inlined comes and goes with each instruction of the leaf, and in callers belongs to the place. So do stubs
 * at the inner end: those that have called Java are looked at.
 */
static u64 identity(struct steps *s, const struct frame *f)
{
	if (is_physical(f))
		return frame_addr(f);
	return hotspot_kind(f) == HOTSPOT_STUB && is_caller(s->now, f) ? steps_mix(f->detail, 1) : 0;
}

/* Where a caller stands: its bytecode, and those of the methods that were inlined there, which are exact at a call. */
static u64 place(struct steps *s, const struct frame *f)
{
	u64 ret = hotspot_bci(f);

	while (is_physical(f) && f-- > s->now->frames && frame_flags(f) & FRAME_INLINED)
		ret = steps_mix(ret, steps_mix(frame_addr(f), hotspot_bci(f)));
	return ret;
}

/* runtimes/hotspot/README.md, "Limits": frames are being taken off and built, or their methods filled in. */
static bool is_rebuilding(struct steps *s)
{
	return steps_named(s, s->now, 0, "DeoptimizationBlob") || steps_named(s, s->now, 0, "UncommonTrapBlob") ||
	       steps_in(s, s->now, UNPACKING, "unpack_frames");
}

/* There, too: the interpreter's entry for a function of Math has called, or calls, a stub. */
static bool is_maths(struct steps *s)
{
	return steps_named(s, s->before, 0, "java.lang.Math.") || steps_named(s, s->now, 0, "java.lang.Math.");
}

/* No fault: what was called is to be entered no more, or is of another class, and passes the call on at once. */
static bool is_passed_on(struct steps *s)
{
	return steps_named(s, s->now, 0, "wrong_method_") || steps_named(s, s->now, 0, "ic_miss_");
}

static bool known(struct steps *s, enum steps_fault fault)
{
	if (fault == STEPS_SHORT && is_passed_on(s))
		return true;
	return is_rebuilding(s) || ((fault == STEPS_SHORT || fault == STEPS_BACK) && is_maths(s));
}

static void run(const char *mode)
{
	static const struct steps_language language = {.identity = identity,
	        .place = place,
	        .shortest = 4,
	        .dull = 3000,
	        .known = known,
	        .root = true,
	        .thread = "steps"};
	static const char java[] = "exec ${YRT_JAVA:-java} -cp ${YRT_BUILD:-.}/fixtures/java -Xbatch "
	                           "-XX:+IgnoreUnrecognizedVMOptions -XX:CompileThresholdScaling=0.02 $0 steps";

	steps_test(&language, (const char *[]){"sh", "-c", java, mode, NULL}, STEPS);
}

static void test_interpreted(void **state)
{
	run("-Xint");
}

static void test_c1(void **state)
{
	run("-XX:TieredStopAtLevel=1");
}

static void test_c2(void **state)
{
	run("-XX:-TieredCompilation");
}

static void test_tiered(void **state)
{
	run("-XX:+TieredCompilation");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_interpreted),
	        cmocka_unit_test(test_c1),
	        cmocka_unit_test(test_c2),
	        cmocka_unit_test(test_tiered),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
