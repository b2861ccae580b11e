/* SPDX-License-Identifier: Apache-2.0 */
#include "values.h"

#include <math.h>
#include <string.h>

#include "text.h"

static const struct kind {
	const char *command, *name, *time, *waits; /* command: what its name ends with */
} kinds[] = {
        {"off-flame", "off_cpu", "off_cpu", "waits"},
        {"wall-flame", "wall", "wall", "waits"},
        {"lock-flame", "mutex", "delay", "contentions"}, /* as Go's runtime calls them */
        {"io-flame", "file_io", "file_io", "waits"},
        {"net-flame", "network_io", "network_io", "waits"},
        {"fault-flame", "page_faults", "time", "waits"},
        {"latency", "latency", "latency", "waits"},
        {"probe", "probe", "time", "waits"},
        {"alloc", "memory", "alloc", "waits"}, /* memory: time is the prefix of its values */
        {"leak", "memory", "inuse", "waits"},
        {"pools", "memory", "inuse", "waits"},
        {"heap", "memory", "inuse", "waits"}, /* also of a language */
        {"-refs", "memory", "inuse", "waits"},
};

/* NULL: none of these. */
static const struct kind *kind_of(const struct profile_meta *m)
{
	size_t length = m->title ? strlen(m->title) : 0;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		size_t n = strlen(kinds[i].command);

		if (length >= n && !strcmp(m->title + length - n, kinds[i].command))
			return &kinds[i];
	}
	return NULL;
}

static struct value value_of(const struct kind *kind, const char *word, enum value_source from)
{
	if (!strcmp(word, "nanoseconds"))
		return (struct value){kind ? kind->time : "time", word, from};
	if (!strcmp(word, "bytes"))
		return (struct value){word, word, from};
	return (struct value){kind && !strcmp(word, "waits") ? kind->waits : word, "count", from};
}

static bool is_pair(const char *a, const char *b, const char *one, const char *other)
{
	return (!strcmp(a, one) && !strcmp(b, other)) || (!strcmp(a, other) && !strcmp(b, one));
}

/* All have one: Parca cannot list its profiles any more once it was sent one without. */
static void set_period(struct values *v)
{
	bool of_time = v->period_ns > 0;

	v->period = of_time ? (struct value){"cpu", "nanoseconds", VALUE_TIME} : v->value[v->counted];
	v->period_number = of_time ? (u64)llround(v->period_ns) : 1;
}

static void set_memory(bool in_use, bool of_bytes, struct values *ret)
{
	ret->kind = "memory";
	ret->n = 2;
	ret->counted = of_bytes;
	ret->value[0] = (struct value){
	        in_use ? "inuse_objects" : "alloc_objects", "count", of_bytes ? VALUE_MORE : VALUE_COUNTED};
	ret->value[1] =
	        (struct value){in_use ? "inuse_space" : "alloc_space", "bytes", of_bytes ? VALUE_COUNTED : VALUE_MORE};
}

/* Both are bytes, of memory that is in use and of addresses: what the second is says which the first is. */
static bool set_growth(const char *more, struct values *ret)
{
	bool of_use = !strcmp(more, "mapped bytes");

	if (!of_use && strcmp(more, "touched bytes"))
		return false;
	*ret = (struct values){.kind = "memory", .n = 2};
	ret->value[0] = (struct value){of_use ? "inuse_space" : "mapped_space", "bytes", VALUE_COUNTED};
	ret->value[1] = (struct value){of_use ? "mapped_space" : "inuse_space", "bytes", VALUE_MORE};
	return true;
}

static void set_values(const struct profile_meta *m, struct values *ret)
{
	const char *unit = text_unit(m), *more = m->more && *m->more ? m->more : NULL;
	const struct kind *kind = kind_of(m);

	*ret = (struct values){.n = 1, .period_ns = text_period_ns(m)};
	if (more && set_growth(more, ret))
		return;
	if (more && (is_pair(unit, more, "bytes", "objects") || (kind && !strcmp(kind->name, "memory")))) {
		set_memory(kind && !strcmp(kind->time, "inuse"), !strcmp(unit, "bytes"), ret);
		return;
	}
	ret->kind = kind ? kind->name : !strcmp(unit, "samples") ? "process_cpu" : value_of(NULL, unit, 0).type;
	ret->value[0] = value_of(kind, unit, VALUE_COUNTED);
	if (ret->period_ns > 0)
		ret->value[ret->n++] = (struct value){"cpu", "nanoseconds", VALUE_TIME};
	else if (more)
		ret->value[ret->n++] = value_of(kind, more, VALUE_MORE);
}

void values_of(const struct profile_meta *m, struct values *ret)
{
	set_values(m, ret);
	set_period(ret);
}

void values_for_coroot(struct values *v)
{
	for (u32 i = 0; i < v->n; i++)
		if (v->value[i].from == VALUE_TIME) {
			v->value[0] = (struct value){"ebpf:cpu:nanoseconds", "nanoseconds", VALUE_TIME};
			v->counted = 0;
			v->n = 1;
		}
}

u64 value_number(const struct values *v, u32 i, u64 counted, u64 more)
{
	switch (v->value[i].from) {
	case VALUE_MORE:
		return more;
	case VALUE_TIME:
		return text_scaled(counted, v->period_ns);
	default:
		return counted;
	}
}
