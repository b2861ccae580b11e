/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime_check.h"

#include <unistd.h>

#include "now.h"

#define STARTING_NS 1000000000ull /* an interpreter that starts may be preempted for so long on a busy machine */

/* False: one fails. */
static bool attempt(const struct runtime_checks *c, void *subject, bool all, int *ret)
{
	bool holds = true;

	if (c->look)
		c->look(subject);
	for (u32 i = 0; i < c->n; i++) {
		if (all || ret[i] == CHECK_FAILS)
			ret[i] = c->all[i].run(subject);
		holds &= ret[i] != CHECK_FAILS;
	}
	return holds;
}

void runtime_check(const struct runtime_checks *c, void *subject, int ret[RUNTIME_CHECKS_MAX])
{
	for (u32 i = 0; i < c->attempts; i++) {
		if (i + c->pauses >= c->attempts)
			usleep(1000u << (i + c->pauses - c->attempts));
		if (attempt(c, subject, !i || c->together, ret))
			return;
	}
}

const struct runtime_check *runtime_check_failed(const struct runtime_checks *c, void *subject)
{
	int found[RUNTIME_CHECKS_MAX];

	runtime_check(c, subject, found);
	for (u32 i = 0; i < c->n; i++)
		if (found[i] == CHECK_FAILS)
			return &c->all[i];
	return NULL;
}

struct error *runtime_check_error(
        const struct runtime_checks *c, void *subject, const struct runtime_process *p, const char *language)
{
	const struct runtime_check *failed = runtime_check_failed(c, subject);

	if (!failed)
		return NULL;
	return error_hint(
	        error_new(ERROR_UNSUPPORTED, "process %d: the layout of %s that was found does not hold: %s (%s)",
	                p->pid, language, failed->name, failed->what),
	        "its %s frames are left out; run `yrt layout` on a build of it with -g and name the folder of the "
	        "result in YRT_LAYOUTS",
	        language);
}

void runtime_check_report(const struct runtime_checks *c, const int *found, const char *of, struct report *out)
{
	report_section(out, "checks", of);
	for (u32 i = 0; i < c->n; i++)
		if (found[i] > 0)
			report_text(out, c->all[i].name, c->all[i].what, "ok (%d)", found[i]);
		else
			report_text(out, c->all[i].name, c->all[i].what, found[i] ? "FAILS" : "nothing to check");
}

void runtime_check_inspect(const struct runtime_checks *c, void *subject, struct report *out)
{
	int found[RUNTIME_CHECKS_MAX];

	runtime_check(c, subject, found);
	runtime_check_report(c, found, NULL, out);
}

static bool is_young(const struct runtime_belief *b)
{
	return now_ns() - b->since_ns < STARTING_NS;
}

struct error *runtime_believe(struct runtime_belief *b, const struct runtime_checks *c, void *subject,
        const struct runtime_process *p, const char *language)
{
	struct error *err;

	if (b->state != DOUBTED)
		return NULL;
	err = runtime_check_error(c, subject, p, language);
	if (err && p->pid && is_young(b)) { /* a core stays as it is */
		error_free(err);
		return NULL;
	}
	b->state = err ? REFUSED : BELIEVED;
	return err;
}

bool runtime_is_starting(const struct runtime_belief *b, bool lacks)
{
	return b->state == DOUBTED || (b->state == BELIEVED && lacks && is_young(b));
}
