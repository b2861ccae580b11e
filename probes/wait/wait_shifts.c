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
#define SHARE      0.007  /* of a CPU, for waits that are skipped */
#define FUTEX_NS   400ull /* instead of WAIT_SKIPPED_NS where only futexes count: such waits are timed */

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

/* Of waits that were skipped in a shift of ns that ends now. */
static u32 factor_of(struct wait_shifts *s, u64 ns)
{
	struct sample *skel = object_skeleton(s->object);
	struct wait_stats sum = {0};
	u64 before = s->skipped;
	double factor;

	error_free(object_sum(s->object, skel->maps.wait_counters, (u64 *)&sum, sizeof(sum)));
	if (sum.skipped > before) /* it could be read */
		s->skipped = sum.skipped;
	factor = (double)((s->skipped - before) * (skel->bss->wait_futexes ? FUTEX_NS : WAIT_SKIPPED_NS)) /
	         ((double)ns * SHARE);
	return factor < 2 ? 1 : factor < FACTOR_MAX ? (u32)factor : FACTOR_MAX;
}

/* A shift's length is drawn, so that it does not keep in step with the program. */
static void begin_shift(struct wait_shifts *s, u64 now)
{
	struct sample *skel = object_skeleton(s->object);
	u64 ns = SHIFT_NS / 2 + (u64)((double)SHIFT_NS * drand48());

	skel->data->wait_factor = s->factor;
	s->since_ns = now;
	s->until_ns = now + ns;
}

struct error *wait_shifts_begin(struct wait_shifts *s, const struct object *o, bool wakers, bool always)
{
	*s = (struct wait_shifts){.object = o, .wakers = wakers, .always = always, .factor = 1};
	begin_shift(s, now_ns());
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

static struct error *end_pause(struct wait_shifts *s, u64 now)
{
	struct error *err = attach(s);

	object_skeleton(s->object)->bss->wait_pauses = 0;
	s->paused_ns += now - s->since_ns;
	s->late_ns = now > s->until_ns ? now - s->until_ns : 0;
	begin_shift(s, now);
	return err;
}

struct error *wait_shifts_poll(struct wait_shifts *s, u64 now, struct error *(*look)(void *ctx), void *ctx)
{
	u32 factor = object_skeleton(s->object)->data->wait_factor;

	if (s->always || now < s->until_ns)
		return NULL;
	if (wait_shifts_pauses(s))
		return end_pause(s, now);
	s->watched_ns += now - s->since_ns;
	s->factor = factor_of(s, now - s->since_ns);
	if (factor > 1)
		return begin_pause(s, now, look, ctx);
	begin_shift(s, now);
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
