/* SPDX-License-Identifier: Apache-2.0 */
#include "wait_shifts.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>

#include "probes/object.h"
#include "sample.skel.h"
#include "unwind/now.h"
#include "wait_record.h"

#define SHIFT_NS   40000000ull
#define FACTOR_MAX 16
#define SHARE      0.007 /* of a CPU, for waits that are skipped */
#define EACH_NS    200.0 /* what one of them costs, about */
#define FUTEX_NS   400.0 /* the same if only waits for futexes count: each is timed, and its system call looked at */

static struct error *attach(struct wait_shifts *s)
{
	struct sample *skel = object_skeleton(s->object);

	s->on_switch = bpf_program__attach(skel->progs.on_switch);
	if (s->on_switch && s->wakers)
		s->on_waking = bpf_program__attach(skel->progs.on_waking);
	if (!s->on_switch || (s->wakers && !s->on_waking))
		return error_errno(errno, "cannot attach to the scheduler's tracepoints");
	return NULL;
}

static void detach(struct wait_shifts *s)
{
	bpf_link__destroy(s->on_switch);
	bpf_link__destroy(s->on_waking);
	s->on_switch = s->on_waking = NULL;
}

static u64 skipped_until_now(const struct wait_shifts *s)
{
	struct wait_stats sum = {0};

	error_free(object_sum(s->object, object_skeleton(s->object)->maps.wait_counters, (u64 *)&sum, sizeof(sum)));
	return sum.skipped > s->skipped ? sum.skipped : s->skipped;
}

static u32 factor_of(const struct wait_shifts *s, u64 skipped, u64 ns)
{
	double each = object_skeleton(s->object)->bss->wait_futexes ? FUTEX_NS : EACH_NS;
	double factor = (double)skipped * each / ((double)ns * SHARE);

	return factor < 2 ? 1 : factor < FACTOR_MAX ? (u32)factor : FACTOR_MAX;
}

/* A shift's length is drawn, so that it does not keep in step with the program. */
static void begin_shift(struct wait_shifts *s, u64 now, u32 factor)
{
	struct sample *skel = object_skeleton(s->object);
	u64 ns = SHIFT_NS / 2 + (u64)((double)SHIFT_NS * drand48());

	skel->data->wait_factor = factor;
	skel->bss->wait_cycle_ns = factor > 1 ? factor * SHIFT_NS : 0;
	s->skipped = skipped_until_now(s);
	s->since_ns = now;
	s->until_ns = now + ns;
}

struct error *wait_shifts_begin(struct wait_shifts *s, const struct object *o, bool wakers, bool always)
{
	*s = (struct wait_shifts){.object = o, .wakers = wakers, .always = always};
	begin_shift(s, now_ns(), 1);
	return attach(s);
}

void wait_shifts_end(struct wait_shifts *s)
{
	detach(s);
}

static struct error *begin_pause(struct wait_shifts *s, u64 now, struct error *(*look)(void *ctx), void *ctx)
{
	struct sample *skel = object_skeleton(s->object);
	u64 ns = (now - s->since_ns) * (skel->data->wait_factor - 1);
	struct error *err;

	skel->bss->wait_pauses = 1;
	err = look(ctx);
	detach(s);
	s->until_ns = now + (ns > s->late_ns ? ns - s->late_ns : 0);
	s->since_ns = now;
	return err;
}

static struct error *end_pause(struct wait_shifts *s, u64 now, u32 factor)
{
	struct error *err = attach(s);

	object_skeleton(s->object)->bss->wait_pauses = 0;
	s->paused_ns += now - s->since_ns;
	s->late_ns = now > s->until_ns ? now - s->until_ns : 0;
	begin_shift(s, now, factor);
	return err;
}

struct error *wait_shifts_poll(struct wait_shifts *s, u64 now, struct error *(*look)(void *ctx), void *ctx)
{
	u32 factor = object_skeleton(s->object)->data->wait_factor;

	if (s->always || now < s->until_ns)
		return NULL;
	if (wait_shifts_pauses(s))
		return end_pause(s, now, s->factor);
	s->watched_ns += now - s->since_ns;
	s->factor = factor_of(s, skipped_until_now(s) - s->skipped, now - s->since_ns);
	if (factor > 1)
		return begin_pause(s, now, look, ctx);
	begin_shift(s, now, s->factor);
	return NULL;
}

bool wait_shifts_pauses(const struct wait_shifts *s)
{
	return !s->on_switch;
}

u64 wait_shifts_due(const struct wait_shifts *s)
{
	const struct sample *skel = object_skeleton(s->object);

	return skel->bss->wait_sampled || skel->data->wait_factor > 1 ? s->until_ns : 0;
}

double wait_shifts_share(const struct wait_shifts *s, u64 now)
{
	bool pauses = wait_shifts_pauses(s);
	u64 ns = now > s->since_ns ? now - s->since_ns : 0, watched = s->watched_ns + (pauses ? 0 : ns),
	    paused = s->paused_ns + (pauses ? ns : 0);

	return watched + paused ? (double)watched / (double)(watched + paused) : 1;
}
