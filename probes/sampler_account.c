/* SPDX-License-Identifier: Apache-2.0 */
/* What sampling costs, and what it has seen. */
#include "sampler_internal.h"

#include <stdio.h>
#include <time.h>

#include "unwind/cleanup.h"
#include "unwind/now.h"

#define BUDGET_EVERY_S 1.0
#define BUDGET_LOOKS   3 /* in a row, if it is yrt's own time: to name stacks that are new costs once only */

u64 sampler_peak_rss_kb(void)
{
	cleanup(fclose) FILE *file = fopen("/proc/self/status", "re");
	char line[128];
	u64 kb = 0;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "VmHWM: %lu", &kb) == 1)
			break;
	return kb;
}

/* Of all programs. others: of those that take no samples. */
static u64 bpf_ns(struct sampler *s, const struct probe_stats *probe, u64 *others)
{
	u64 measured = object_run_time(s->object, others);

	if (measured)
		return measured + *others;
	return (probe->timed ? probe->timed_ns / probe->timed * probe->samples : 0) + *others;
}

static double cpu_percent(struct sampler *s, const struct probe_stats *probe, u64 until_ns)
{
	u64 own = s->cpu_at_end ? s->cpu_at_end : process_cpu_ns(), others;
	double used = (double)(own - s->cpu_at_begin) + (double)bpf_ns(s, probe, &others);

	if (s->cpu_end_ns) /* what was on its way was named after the last sample */
		until_ns = s->cpu_end_ns;
	return until_ns > s->began_ns ? 100 * used / (double)(until_ns - s->began_ns) : 0;
}

/* Did samples cost more than they may since the last look? own: to read and name them; bpf: to take them. */
static bool is_over_budget(struct sampler *s, u64 now, u64 own, u64 bpf)
{
	double most = s->options.cpu_percent / 100 * (double)(now - s->budget_ns);
	u64 by_bpf = bpf > s->budget_bpf_ns ? bpf - s->budget_bpf_ns : 0, by_own = own - s->budget_own_ns;

	s->budget_ns = now;
	s->budget_bpf_ns = bpf;
	s->budget_own_ns = own;
	if (now - s->began_ns <= 2 * BUDGET_EVERY_S * 1e9)
		return false;
	s->over_looks = (double)(by_bpf + by_own) > most ? s->over_looks + 1 : 0;
	return (double)by_bpf > most || s->over_looks >= BUDGET_LOOKS;
}

struct error *sampler_keep_budget(struct sampler *s, u64 now)
{
	struct probe_stats probe;
	struct error *err;
	u64 bpf, others;

	if (!s->options.cpu_percent || !s->ops->halve || now - s->budget_ns < BUDGET_EVERY_S * 1e9)
		return NULL;
	err = object_stats(s->object, &probe);
	if (err)
		return err;
	bpf = bpf_ns(s, &probe, &others);
	if (!is_over_budget(s, now, s->samples_ns, bpf - others) || s->halvings >= 10)
		return NULL;
	s->over_looks = 0;
	object_halve(s->object);
	s->ops->halve(s->event);
	s->halvings++;
	s->options.warn(s->options.ctx,
	        error_new(ERROR_INTERNAL, "samples took more than %g %% of a CPU: yrt takes half as many from here on",
	                s->options.cpu_percent));
	return NULL;
}

static u64 count_complete(const struct probe_stats *probe)
{
	u64 sum = 0;

	for (u32 i = 0; i < STOP_MAX; i++)
		sum += stop_is_complete(i) ? probe->stop[i] : 0;
	return sum;
}

void sampler_stats(struct sampler *s, struct sampler_stats *ret)
{
	struct sampler_stats st = {.collect = *collector_stats(s->collector),
	        .halvings = s->halvings,
	        .first_sample_ms = -1,
	        .max_rss_kb = sampler_peak_rss_kb()};
	u64 until = s->ended_ns ? s->ended_ns : now_ns();

	*ret = (struct sampler_stats){.event = s->ops, .unread = &s->targets.unread, .command_status = COMMAND_RUNS};
	if (!s->walkers) /* nothing was loaded */
		return;
	error_free(object_stats(s->object, &st.probe));
	for (u32 i = 0; i < STOP_MAX; i++) {
		st.probe.stop[i] -= st.collect.deferred[i];
		st.probe.stop[STOP_ROOT] += st.collect.deferred[i];
	}
	st.samples = st.collect.counted;
	st.complete = count_complete(&st.probe);
	st.bpf_ns = bpf_ns(s, &st.probe, &st.bpf_other_ns);
	st.bpf_ns -= st.bpf_other_ns;
	st.bpf_ns_per_sample = (double)st.bpf_ns / (double)(st.probe.samples ? st.probe.samples : 1);
	st.cpu_percent = cpu_percent(s, &st.probe, until);
	st.sampling_rss_kb = s->sampling_rss_kb ? s->sampling_rss_kb : st.max_rss_kb;
	st.map_kb = object_map_bytes(s->object) / 1024;
	if (st.probe.first_ns > s->began_ns)
		st.first_sample_ms = (double)(st.probe.first_ns - s->began_ns) / 1e6;
	st.processes = s->targets.seen;
	st.runtimes = targets_runtimes(&s->targets);
	st.unread = &s->targets.unread;
	st.armed_ms = (double)(s->armed_ns - s->created_ns) / 1e6;
	st.duration_s = (double)(until - s->began_ns) / 1e9;
	if (s->command)
		command_has_ended(s->command);
	st.command_status = s->command ? command_status(s->command) : COMMAND_RUNS;
	st.event = s->ops;
	if (s->walkers)
		walkers_stats(s->walkers, &st.walkers);
	if (s->event)
		s->ops->stats(s->event, &st);
	*ret = st;
}
