/* SPDX-License-Identifier: Apache-2.0 */
/* Go's stacks at every instruction, with stacks that grow, goroutines that change, signals that preempt them. */
#include "steps.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtimes/go/go.h"

#define STEPS  60000
#define PLACES (1u << 16)

/* Which function is where never changes. Inlined calls come and go with each instruction. */
static u64 identity(struct steps *s, const struct frame *f)
{
	static struct {
		u64 where, detail, identity;
	} places[PLACES];
	u64 i = steps_mix(f->where, f->detail) % PLACES;
	struct runtime_process view = process_view(s->process);
	struct frame_name name;

	if (frame_flags(f) & FRAME_INLINED)
		return 0;
	if (places[i].where == f->where && places[i].detail == f->detail)
		return places[i].identity;
	places[i].where = f->where;
	places[i].detail = f->detail;
	places[i].identity = f->where;
	for (u32 k = 0; k < s->process->ninstances; k++) {
		struct instance *instance = &s->process->instances[k];

		if (instance->data && instance->ops->id == frame_runtime(f) &&
		        instance->ops->name_frame(instance->data, &view, f, 0, 1, &name))
			places[i].identity = name.identity;
	}
	return places[i].identity;
}

/* An inlined call's, and the innermost function's, is where execution is. */
static u64 place(struct steps *s, const struct frame *f)
{
	return frame_flags(f) & FRAME_RETADDR ? frame_addr(f) : 0;
}

/* Has the signal handler pushed a call in half? */
static bool is_pushing(struct steps *s, const struct steps_stack *stack)
{
	return steps_in(s, stack, 1, "preparePanic") || steps_in(s, stack, 1, "doSigPreempt");
}

/* The scheduler goes to another stack as a whole: it has another root, or gogo() went there. */
static bool is_switch(struct steps *s)
{
	return s->now->items[0].identity != s->before->items[0].identity || steps_in(s, s->now, 1, "gogo");
}

/* runtimes/go/README.md, "Limits" */
static bool known(struct steps *s, enum steps_fault fault)
{
	if (fault == STEPS_CUT)
		return is_pushing(s, s->now) || steps_in(s, s->now, 1, "runtime.recovery") ||
		       (steps_in(s, s->now, UINT32_MAX, "sigreturn") && steps_in(s, s->now, UINT32_MAX, "gogo"));
	return fault == STEPS_MIDDLE && (is_switch(s) || is_pushing(s, s->now) || is_pushing(s, s->before));
}

static char *build(void)
{
	static char path[4096];
	const char *source = getenv("YRT_SOURCE"), *folder = getenv("YRT_BUILD");
	char command[16384];

	snprintf(path, sizeof(path), "%s/fixtures/go_steps", folder && *folder ? folder : ".");
	snprintf(command, sizeof(command),
	        "cd %s/fixtures/go/steps && PATH=$PATH:/usr/local/go/bin GO111MODULE=off GOTOOLCHAIN=local GOENV=off "
	        "GOFLAGS= go build -o %s .",
	        source ? source : YRT_SOURCE_DIR, path);
	assert_int_equal(system(command), 0);
	return path;
}

static void test_steps(void **state)
{
	static const struct steps_language language = {
	        .identity = identity, .place = place, .shortest = 1, .known = known};

	steps_test(&language, (const char *[]){build(), NULL}, STEPS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_steps)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
