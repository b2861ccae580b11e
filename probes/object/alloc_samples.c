/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc_samples.h"

#include <bpf/libbpf.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "probes/hit/hit_find.h"
#include "probes/object.h"
#include "probes/uprobe.h"
#include "probes/hit/hit_usdt.h"
#include "sample.skel.h"
#include "unwind/binary/proc_path.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"

#define CHANCE      1.96 /* standard errors: 95 % */
#define ENVIRONMENT (1u << 20)

struct known_probe {
	const char *provider, *name;
	s8 block, size, weighted; /* arguments; -1: it has none */
	const char *period;       /* the program's environment has the bytes between two samples, on average; */
	u64 period_default;       /* used if it does not say */
};

/*
 * OpenTelemetry's contract: design-docs/00003-memory-profiling of opentelemetry-ebpf-profiler (2026). libpoireau:
 * src/shim.c, sample.h (2021). A block that libpoireau has sampled and realloc() moves is not followed further.
 */
static const struct known_probe sampled[] =
        {
                {"otel_memory", "alloc", 0, 1, 2, NULL, 0},
                {"libpoireau", "malloc", 1, 2, -1, "POIREAU_SAMPLE_PERIOD_BYTES", 1ul << 25},
                {"libpoireau", "calloc", 3, 4, -1, "POIREAU_SAMPLE_PERIOD_BYTES", 1ul << 25},
                {"libpoireau", "realloc", 3, 4, -1, "POIREAU_SAMPLE_PERIOD_BYTES", 1ul << 25},
},
                                freed[] = {
                                        {"otel_memory", "free", 0, -1, -1, NULL, 0},
                                        {"libpoireau", "free", 1, -1, -1, NULL, 0},
                                        {"libpoireau", "realloc_from_tracked", 1, -1, -1, NULL, 0},
                                        {"libpoireau", "realloc_to_regular", 1, -1, -1, NULL, 0},
};

struct told { /* a file in a process has them */
	u32 process;
	const struct image *img;
};

struct alloc_samples {
	struct object *o;
	const struct bpf_program *at, *freed;
	struct told *told;
	u32 ntold;
	struct image **silent; /* files without such probes; owned */
	u32 nsilent;
	struct uprobe **uprobes;
	u32 nuprobes;
	char text[256];
};

struct error *alloc_samples_create(
        struct object *o, const struct bpf_program *at, const struct bpf_program *freed, struct alloc_samples **ret)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return &error_no_memory;
	**ret = (struct alloc_samples){.o = o, .at = at, .freed = freed};
	return NULL;
}

void alloc_samples_destroy(struct alloc_samples *s)
{
	if (!s)
		return;
	for (u32 i = 0; i < s->nuprobes; i++)
		uprobe_take_away(s->uprobes[i]);
	for (u32 i = 0; i < s->nsilent; i++)
		image_put(s->silent[i]);
	free(s->uprobes);
	free(s->told);
	free(s->silent);
	free(s);
}

/* False: the note says nothing that is understood of it. */
static bool argument(const struct hit_usdt_argument *all, u32 n, s8 which, struct alloc_argument *ret)
{
	static const u8 kinds[] = {[HIT_USDT_CONSTANT] = ALLOC_ARGUMENT_CONSTANT,
	        [HIT_USDT_REGISTER] = ALLOC_ARGUMENT_REGISTER,
	        [HIT_USDT_MEMORY] = ALLOC_ARGUMENT_MEMORY};
	const struct hit_usdt_argument *a = &all[which < 0 ? 0 : which];

	*ret = (struct alloc_argument){0};
	if (which < 0)
		return true;
	if ((u32)which >= n || a->kind == HIT_USDT_UNKNOWN)
		return false;
	*ret = (struct alloc_argument){.kind = kinds[a->kind], .size = a->size, .base = a->base, .value = a->value};
	if (a->kind == HIT_USDT_MEMORY && a->index != HIT_USDT_NONE) {
		ret->index = a->index;
		ret->scale = a->scale;
	}
	return true;
}

/* As the program's environment says. */
static u64 period_of(pid_t pid, const struct known_probe *k)
{
	cleanup(free) char *text = calloc(1, ENVIRONMENT + 1);
	cleanup(fclose) FILE *file = NULL;
	size_t len = strlen(k->period), n;
	char path[32];
	double value = 0;

	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	file = text ? fopen(path, "re") : NULL;
	n = file ? fread(text, 1, ENVIRONMENT, file) : 0;
	for (const char *at = text; n && at < text + n; at += strlen(at) + 1)
		if (!strncmp(at, k->period, len) && at[len] == '=')
			value = strtod(at + len + 1, NULL);
	return value >= 1 && value < 0x1p40 ? (u64)value : k->period_default;
}

/* What a block stands for, if each byte is sampled with the same small probability: size / (1 - exp(-size / period)) */
static void fill_table(struct alloc_sample_place *p)
{
	for (u32 i = 0; i <= ALLOC_SAMPLE_STEPS; i++) {
		double periods = (double)i * ALLOC_SAMPLE_REACH / ALLOC_SAMPLE_STEPS;

		p->of_period[i] = (u32)lround((i ? periods / -expm1(-periods) : 1) * ALLOC_SAMPLE_UNIT);
	}
}

static struct error *place_one(struct alloc_samples *s, const struct process *p, const char *path,
        const struct known_probe *k, const struct hit_place *at, const struct bpf_program *program)
{
	struct hit_usdt_argument arguments[HIT_USDT_ARGUMENTS];
	u32 n = hit_usdt_parse(at->arguments ? at->arguments : "", arguments), number = s->nuprobes;
	struct alloc_sample_place place = {.period = k->period ? period_of(p->pid, k) : 0};
	struct error *err;

	if (number == ALLOC_SAMPLE_PLACES || !argument(arguments, n, k->block, &place.block) ||
	        !argument(arguments, n, k->size, &place.size) || !argument(arguments, n, k->weighted, &place.weighted))
		return NULL;
	fill_table(&place);
	if (bpf_map__update_elem(object_skeleton(s->o)->maps.alloc_sample_places, &number, sizeof(number), &place,
	            sizeof(place), BPF_ANY))
		return error_new(ERROR_INTERNAL, "cannot tell BPF where a sample's size is");
	err = grow(&s->uprobes, number, sizeof(*s->uprobes));
	if (!err)
		err = uprobe_place(program, p->pid, path, at->offset, at->counter, number, &s->uprobes[number]);
	s->nuprobes += !err;
	return err;
}

/* Places a program at those of these probes that the file has. */
static struct error *place_all(struct alloc_samples *s, const struct process *p, const struct mapping *m,
        const struct known_probe *known, u32 n, const struct bpf_program *program, const char **provider)
{
	char path[PROC_MAP_PATH], root[64];
	struct error *err = NULL;

	proc_map_path(path, living_thread(p->pid) ?: p->pid, m->start, m->end);
	snprintf(root, sizeof(root), "/proc/%d/root", p->pid);
	for (u32 i = 0; !err && i < n; i++) {
		struct hit_spec spec = {.kind = HIT_USDT};
		struct hit_found found = {0};
		u32 before = s->nuprobes;

		snprintf(spec.file, sizeof(spec.file), "%s", known[i].provider);
		snprintf(spec.name, sizeof(spec.name), "%s", known[i].name);
		err = hit_find(&spec, m->image, root, &found);
		for (u32 k = 0; !err && k < found.n; k++)
			err = place_one(s, p, path, &known[i], &found.place[k], program);
		free(found.others);
		*provider = s->nuprobes > before ? known[i].provider : *provider;
	}
	return err;
}

static bool was_told(const struct alloc_samples *s, u32 process, const struct image *img)
{
	for (u32 i = 0; i < s->ntold; i++)
		if (s->told[i].process == process && (!img || s->told[i].img == img))
			return true;
	return false;
}

static bool is_silent(const struct alloc_samples *s, const struct image *img)
{
	for (u32 i = 0; i < s->nsilent; i++)
		if (s->silent[i] == img)
			return true;
	return false;
}

static struct error *add_silent(struct alloc_samples *s, struct image *img)
{
	struct error *err = grow(&s->silent, s->nsilent, sizeof(*s->silent));

	if (!err)
		s->silent[s->nsilent++] = image_get(img);
	return err;
}

static struct error *look_at_file(struct alloc_samples *s, const struct process *p, const struct mapping *m)
{
	const char *base = strrchr(m->image->path, '/'), *provider = NULL;
	size_t n = strlen(s->text);
	struct error *err = place_all(s, p, m, sampled, sizeof(sampled) / sizeof(*sampled), s->at, &provider);

	if (!err && provider && s->freed)
		err = place_all(s, p, m, freed, sizeof(freed) / sizeof(*freed), s->freed, &provider);
	if (err || !provider)
		return err ? err : add_silent(s, m->image);
	err = grow(&s->told, s->ntold, sizeof(*s->told));
	if (err)
		return err;
	s->told[s->ntold++] = (struct told){p->number, m->image};
	snprintf(s->text + n, sizeof(s->text) - n, "%s%s (%s)", n ? ", " : "", base ? base + 1 : m->image->path,
	        provider);
	return NULL;
}

struct error *alloc_samples_look(struct alloc_samples *s, const struct process *p, bool *ret)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < p->maps.nlines; i++) {
		const struct mapping *m = &p->mappings[i];

		if (m->image && m->prot & PROT_EXEC && m->image->fd >= 0 && !is_silent(s, m->image) &&
		        !was_told(s, p->number, m->image))
			err = look_at_file(s, p, m);
	}
	*ret = was_told(s, p->number, NULL);
	return err;
}

const char *alloc_samples_text(const struct alloc_samples *s)
{
	return s ? s->text : "";
}

static void add(double sum, double variance, double *ret, double *low, double *high)
{
	double off = CHANCE * sqrt(variance);

	*ret += sum;
	*low += fmax(sum - off, 0);
	*high += sum + off;
}

void alloc_samples_add(struct object *o, struct alloc_estimate *ret)
{
	const double unit = (double)ALLOC_SAMPLE_UNIT * ALLOC_SAMPLE_UNIT;
	struct alloc_sampled sum;

	error_free(object_sum(o, object_skeleton(o)->maps.alloc_sampled, (u64 *)&sum, sizeof(sum)));
	ret->samples = sum.samples;
	ret->sampled_calls = sum.calls;
	ret->sampled_bytes = sum.bytes;
	add((double)sum.calls, (double)sum.calls_variance, &ret->calls, &ret->calls_low, &ret->calls_high);
	add((double)sum.bytes, (double)sum.bytes_variance * unit, &ret->bytes, &ret->bytes_low, &ret->bytes_high);
}
