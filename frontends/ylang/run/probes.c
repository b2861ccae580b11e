/* SPDX-License-Identifier: Apache-2.0 */
#include "probes.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "probes/y/y_probe.h"
#include "probes/y/y_stacks.h"
#include "unwind/binary/proc_path.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"
#include "unwind/now.h"
#include "frontends/ylang/vm_state.h"

#define VALUES_MOST   64u
#define FAILURES_MOST 256u
#define KEY_ROOM      (sizeof(u64) + Y_KEYS_MOST * sizeof(struct y_text)) /* with its generation */
#define TURN_MS       20u /* how long to wait for handlers that run when maps are taken */
#define LAST_TURN_MS  1000u
#define LOST          "[lost]" /* in place of a stack */
#define NO_FRAMES     "[none]" /* of the kernel, or of the thread */
#define SLICE_MS      100u     /* between two looks at whether the run has ended */

struct y_probes {
	const struct y_program *p;
	struct y_target *target;
	struct y_kernel kernel;
	struct y_bpf *bpf;
	struct y_probe *probe;
	struct y_probe_options options;
	struct y_probe_file *files;
	char (*paths)[PROC_MAP_PATH];
	struct y_share share;
	u8 *values, *key, *next; /* room for an entry of a map */
	struct y_stacks *stacks; /* NULL: it has none */
	u8 *taken;               /* what Y_MAP_GLOBALS was when the VM got it */
	bool ended;
};

/* --- making it --- */

static u64 wall_ahead(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (u64)ts.tv_sec * 1000000000 + (u64)ts.tv_nsec - now_ns();
}

static struct error *make(
        const struct y_program *p, const struct y_target *t, const struct y_kernel *k, struct y_bpf **ret)
{
	struct y_bpf_options o = {.pid = (u32)t->pid,
	        .own = (u32)getpid(),
	        .program = t->nmodules ? t->modules[0].path : "",
	        .wall_ns = wall_ahead(),
	        .sleepable = k->sleepable,
	        .check_pid = !k->multi,
	        .cpus = k->cpus};
	struct stat st;

	if (!stat("/proc/self/ns/pid", &st)) {
		o.pid_namespace[0] = st.st_dev;
		o.pid_namespace[1] = st.st_ino;
	}
	return y_bpf_make(p, &o, ret);
}

void y_probes_verified(const struct y_probes *s, FILE *out)
{
	for (u32 i = 0; i < s->bpf->object.nhandlers; i++) {
		const struct y_object_handler *h = &s->bpf->object.handlers[i];

		fprintf(out, "  %s%s: %u instructions, the kernel looked at %u\n", h->spec ? h->spec : "_profile",
		        h->returns ? ":return" : "", h->ninsns, y_probe_verified(s->probe, i));
	}
}

struct error *y_probes_make(const struct y_program *p, const struct y_target *t, struct y_bpf **ret)
{
	struct y_kernel k;

	error_free(y_kernel_ask(&k));
	return make(p, t, &k, ret);
}

/* By its mapping, the kernel finds a file in whatever mount namespace, and one that was deleted. */
static bool path_of(const struct y_target *t, const struct image *img, char path[PROC_MAP_PATH])
{
	for (u32 i = 0; i < t->maps.nlines; i++) {
		const struct map_line *l = &t->maps.lines[i];

		if (!(l->prot & PROT_EXEC) || l->ino != img->ino || !l->path || strcmp(l->path, img->path) != 0)
			continue;
		proc_map_path(path, (pid_t)t->pid, l->start, l->end);
		return true;
	}
	return false;
}

static bool find_files(struct y_probes *s)
{
	struct y_target *t = s->target;

	s->files = calloc(t->nmodules + 1, sizeof(*s->files));
	s->paths = calloc(t->nmodules + 1, sizeof(*s->paths));
	for (u32 i = 0; s->files && s->paths && i < t->nmodules; i++)
		if (path_of(t, t->modules[i].image, s->paths[i]))
			s->files[s->options.nfiles++] = (struct y_probe_file){t->modules[i].image, s->paths[i]};
	s->options.files = s->files;
	return s->files && s->paths;
}

static void record(void *ctx, const struct y_record *r);

static void name_stacks(struct y_program *p)
{
	for (u32 i = 0; i < p->nmaps; i++)
		for (u32 k = 0; k < p->maps[i].nkeys; k++)
			if (p->maps[i].keys[k] == Y_STACK) {
				p->maps[i].stack = k + 1;
				p->maps[i].keys[k] = Y_STR;
			}
}

struct error *y_probes_new(struct y_program *p, struct y_target *t, void (*warn)(void *ctx, struct error *err),
        void *ctx, struct y_probes **ret)
{
	struct y_probes *s = calloc(1, sizeof(*s));
	struct error *err;

	*ret = NULL;
	if (!s)
		return &error_no_memory;
	s->p = p;
	s->target = t;
	err = y_kernel_ask(&s->kernel);
	if (!err)
		err = make(p, t, &s->kernel, &s->bpf);
	s->options = (struct y_probe_options){
	        .pid = t->pid, .kernel = &s->kernel, .root = t->root ? t->root : "", .record = record, .ctx = s};
	s->values = calloc(s->kernel.cpus, sizeof(struct y_total) + sizeof(struct y_text));
	s->key = calloc(2, KEY_ROOM);
	s->next = s->key + (s->key ? KEY_ROOM : 0);
	s->taken = calloc(1, err ? 1 : s->bpf->globals_size);
	if (!err && (!s->taken || !s->values || !s->key || !find_files(s)))
		err = &error_no_memory;
	if (!err)
		memcpy(s->taken, s->bpf->object.globals, s->bpf->globals_size);
	if (!err)
		name_stacks(p);
	if (!err && (s->bpf->object.stacks || y_has_point(p, Y_CALL)))
		err = y_stacks_start(t->pid, &s->bpf->object, warn, ctx, &s->stacks);
	if (!err && s->stacks)
		y_stacks_maps(
		        s->stacks, &s->options.pending, s->options.on_y, &s->options.handlers, &s->options.arguments);
	if (!err)
		err = y_probe_open(&s->bpf->object, &s->options, &s->probe);
	if (err)
		y_probes_free(s);
	else
		*ret = s;
	return err;
}

void y_probes_free(struct y_probes *s)
{
	if (!s)
		return;
	y_probe_close(s->probe);
	y_stacks_free(s->stacks);
	y_bpf_free(s->bpf);
	free(s->files);
	free(s->paths);
	free(s->values);
	free(s->key);
	free(s->taken);
	free(s);
}

/* --- strings --- */

struct text_room { /* a string of the VM */
	u32 len;
	bool cut;
	char bytes[sizeof(((struct y_text *)0)->bytes)];
};

static u64 to_string(struct text_room *room, const void *from)
{
	const struct y_text *t = from;

	room->len = t->len < Y_STR_MOST_PROBE ? t->len : Y_STR_MOST_PROBE;
	room->cut = t->cut;
	memcpy(room->bytes, t->bytes, room->len);
	return (u64)room;
}

/* Of a key beside a stack. */
static u64 short_string(struct text_room *room, const u64 words[Y_STRING_WORDS])
{
	*room = (struct text_room){.len = words[0] < Y_STRING_MOST ? (u32)words[0] : Y_STRING_MOST};
	memcpy(room->bytes, &words[1], room->len);
	return (u64)room;
}

static void from_string(struct y_text *ret, u64 string)
{
	const struct y_str *s = (const struct y_str *)string;

	*ret = (struct y_text){.len = !s ? 0 : s->len < Y_STR_MOST_PROBE ? s->len : Y_STR_MOST_PROBE};
	if (s)
		memcpy(ret->bytes, s->bytes, ret->len);
}

/* --- maps: from the kernel --- */

static void split_key(const struct y_map *m, const u8 *key, struct text_room *rooms, u64 *keys)
{
	for (u32 i = 0; i < m->nkeys; i++) {
		if (m->keys[i] == Y_STR) {
			keys[i] = to_string(&rooms[i], key);
			key += sizeof(struct y_text);
		} else {
			memcpy(&keys[i], key, sizeof(u64));
			key += sizeof(u64);
		}
	}
}

static void join_key(const struct y_map *m, const u64 *keys, u8 *key)
{
	memset(key, 0, KEY_ROOM);
	for (u32 i = 0; i < m->nkeys; i++) {
		if (m->keys[i] == Y_STR) {
			struct y_text t;

			from_string(&t, keys[i]);
			memcpy(key, &t, sizeof(t));
			key += sizeof(t);
		} else {
			memcpy(key, &keys[i], sizeof(u64));
			key += sizeof(u64);
		}
	}
}

/* What all CPUs have together is added. */
static void add_up(const struct y_probes *s, const struct y_map *m, u32 size, struct y_aggregate *ret)
{
	u64 most = ret->count ? y_ordered((u64)ret->max) : 0, least = ret->count ? ~y_ordered((u64)ret->min) : 0;

	for (u32 cpu = 0; cpu < s->kernel.cpus; cpu++) {
		struct y_total t = {0};

		memcpy(&t, s->values + (size_t)cpu * size, size < sizeof(t) ? size : sizeof(t));
		ret->count += t.count;
		ret->sum = (s64)((u64)ret->sum + t.sum);
		most = t.most > most ? t.most : most;
		least = t.least > least ? t.least : least;
		for (u32 b = 0; ret->buckets && b < y_buckets(m); b++)
			ret->buckets[b] += t.bucket[b];
	}
	ret->max = (s64)y_ordered(most);
	ret->min = (s64)y_ordered(~least);
}

/* The value of an entry, s->values, is added to what the VM has of a gathered map; of another one it replaces that. */
static void take_entry(struct y_probes *s, u32 map, const u8 *key)
{
	struct y_table *t = &s->share.tables[map];
	const struct y_map *m = &s->p->maps[map];
	struct text_room rooms[Y_KEYS_MOST], value;
	u64 keys[Y_KEYS_MOST] = {0}, number;
	struct y_entry *e;

	split_key(m, key, rooms, keys);
	e = y_table_add(t, keys);
	if (!e)
		return;
	if (m->is_agg) {
		add_up(s, m, s->bpf->object.maps[Y_OWN_MAPS + map].value_size, (struct y_aggregate *)e->value);
	} else if (m->value == Y_STR) {
		y_table_set(t, e, to_string(&value, s->values));
	} else {
		memcpy(&number, s->values, sizeof(number));
		y_table_set(t, e, s->bpf->gathered[map] ? e->value + number : number);
	}
}

static const char *part_of(const struct y_stack_text *text, enum y_stack part, size_t *len)
{
	const char *from = part == Y_KERNEL_STACK ? text->text + text->kernel : text->text;

	*len = part == Y_USER_STACK ? text->user : strlen(from);
	if (*len)
		return from;
	*len = sizeof(NO_FRAMES) - 1;
	return NO_FRAMES;
}

static void take_stack(struct y_probes *s, const struct y_stack_key *key, const struct y_stack_total *total,
        const struct y_stack_text *whole)
{
	u32 map = (u32)key->map, stack = s->p->maps[map].stack - 1, n = 0;
	const struct y_map *m = &s->p->maps[map];
	size_t len;
	const char *text = part_of(whole, m->part, &len);
	cleanup(free) struct y_str *string = malloc(sizeof(*string) + len);
	struct text_room room;
	u64 keys[Y_KEYS_MOST] = {0};
	struct y_aggregate *a;
	struct y_entry *e;

	if (!string)
		return;
	*string = (struct y_str){.len = (u32)len};
	memcpy(string->bytes, text, len);
	for (u32 k = 0; k < m->nkeys; k++)
		if (k == stack) {
			keys[k] = (u64)string;
		} else if (m->keys[k] == Y_STR) {
			keys[k] = short_string(&room, &key->keys[n]);
			n += Y_STRING_WORDS;
		} else {
			keys[k] = key->keys[n++];
		}
	e = y_table_add(&s->share.tables[map], keys);
	if (!e)
		return;
	if (!m->is_agg) {
		e->value += total->sum;
		return;
	}
	a = (struct y_aggregate *)e->value; /* several hashes may have one text */
	a->min = !a->count || (s64)y_ordered(~total->least) < a->min ? (s64)y_ordered(~total->least) : a->min;
	a->max = !a->count || (s64)y_ordered(total->most) > a->max ? (s64)y_ordered(total->most) : a->max;
	a->count += total->count;
	a->sum = (s64)((u64)a->sum + total->sum);
}

/* All maps by stack are one in the kernel. A stack whose text is still on its way is left there until the end. */
static void take_stacks(struct y_probes *s, u64 below)
{
	struct y_stack_key key, next;
	struct y_stack_total total;
	bool more = s->stacks && y_stacks_next(s->stacks, NULL, &key);

	for (u32 n = 0; more && n <= Y_STACKS_MOST; n++) {
		struct y_stack_text text = y_stacks_text(s->stacks, key.hash);

		more = y_stacks_next(s->stacks, &key, &next);
		if (!text.text && below == UINT64_MAX)
			text = (struct y_stack_text){LOST, sizeof(LOST) - 1, 0};
		if (text.text && key.generation < below && key.map < s->p->nmaps && s->p->maps[key.map].stack &&
		        y_stacks_get(s->stacks, &key, &total)) {
			take_stack(s, &key, &total, &text);
			y_stacks_delete(s->stacks, &key);
		}
		key = next;
	}
}

/* What no handler adds to any more becomes the VM's. */
static void gather(struct y_probes *s, u32 map, u64 below)
{
	u32 most = s->bpf->object.maps[Y_OWN_MAPS + map].most;
	bool more = y_probe_next(s->probe, map, NULL, s->key);

	for (u32 n = 0; more && n <= most; n++) {
		u64 generation;

		more = y_probe_next(s->probe, map, s->key, s->next);
		memcpy(&generation, s->key, sizeof(generation));
		if (generation < below && y_probe_get(s->probe, map, s->key, s->values)) {
			take_entry(s, map, s->key + sizeof(generation));
			y_probe_delete(s->probe, map, s->key);
		}
		memcpy(s->key, s->next, KEY_ROOM);
	}
}

static void take_map(struct y_probes *s, u32 map, u64 below)
{
	u32 most = s->bpf->object.maps[Y_OWN_MAPS + map].most;
	bool more;

	if (s->p->maps[map].stack)
		return;
	if (s->bpf->gathered[map]) {
		gather(s, map, below);
		return;
	}
	more = y_probe_next(s->probe, map, NULL, s->key);
	y_table_clear(&s->share.tables[map]);
	for (u32 n = 0; more && n <= most; n++) {
		if (y_probe_get(s->probe, map, s->key, s->values))
			take_entry(s, map, s->key);
		more = y_probe_next(s->probe, map, s->key, s->next);
		memcpy(s->key, s->next, KEY_ROOM);
	}
}

static void take_globals(struct y_probes *s)
{
	memcpy(s->taken, y_probe_globals(s->probe), s->bpf->globals_size);
	for (u32 i = 0; i < s->p->nglobals; i++) {
		const struct y_global *g = &s->p->globals[i];
		const u8 *at = s->taken + s->bpf->global_offsets[i];

		if (g->n) {
			memcpy(s->share.global_arrays[i], at, g->n * sizeof(u64));
			for (u32 k = 0; k < g->n; k++)
				s->share.global_arrays[i][k] = y_wrap(g->type, s->share.global_arrays[i][k]);
		} else if (g->type == Y_STR) {
			struct text_room room;
			struct y_str *copy;

			to_string(&room, at);
			copy = malloc(sizeof(*copy) + room.len);
			if (!copy)
				continue;
			*copy = (struct y_str){.len = room.len, .cut = room.cut};
			memcpy(copy->bytes, room.bytes, room.len);
			free((void *)s->share.globals[i]);
			s->share.globals[i] = (u64)copy;
		} else {
			memcpy(&s->share.globals[i], at, sizeof(u64));
			s->share.globals[i] = y_wrap(g->type, s->share.globals[i]);
		}
	}
}

static void take_below(struct y_probes *s, u64 below)
{
	for (u32 i = 0; i < s->p->nmaps; i++)
		take_map(s, i, below);
	take_stacks(s, below);
	take_globals(s);
}

static void take(void *ctx)
{
	struct y_probes *s = ctx;

	take_below(s, y_probe_turn(s->probe, TURN_MS));
}

/* --- and back --- */

static void give_entry(struct y_probes *s, u32 map, const struct y_entry *e)
{
	const struct y_map *m = &s->p->maps[map];
	u32 size = s->bpf->object.maps[Y_OWN_MAPS + map].value_size;

	join_key(m, e->keys, s->key);
	memset(s->values, 0, (size_t)s->kernel.cpus * size);
	if (m->is_agg) {
		const struct y_aggregate *a = (const struct y_aggregate *)e->value;
		struct y_total t = {.count = a->count,
		        .sum = (u64)a->sum,
		        .most = y_ordered((u64)a->max),
		        .least = ~y_ordered((u64)a->min)};

		if (a->buckets)
			memcpy(t.bucket, a->buckets, y_buckets(m) * sizeof(*t.bucket));
		memcpy(s->values, &t, size);
	} else if (m->value == Y_STR) {
		from_string((struct y_text *)s->values, e->value);
	} else {
		memcpy(s->values, &e->value, sizeof(u64));
	}
	y_probe_set(s->probe, map, s->key, s->values);
}

/* What _begin and _oneshot made of the maps that handlers read. */
static void give_maps(struct y_probes *s)
{
	for (u32 map = 0; map < s->p->nmaps; map++) {
		const struct y_table *t = &s->share.tables[map];

		for (u32 i = 0; !s->bpf->gathered[map] && i < t->nentries; i++)
			if (!t->entries[i]->gone)
				give_entry(s, map, t->entries[i]);
	}
}

/* Handlers may change it meanwhile: what the VM changed of a number is added. */
static void give_number(enum y_type type, u64 *at, u64 taken, u64 value)
{
	if (type == Y_F64 && value != taken)
		__atomic_store_n(at, value, __ATOMIC_RELAXED);
	else if (value != taken)
		__atomic_fetch_add(at, value - taken, __ATOMIC_RELAXED);
}

static void give(void *ctx)
{
	struct y_probes *s = ctx;
	u8 *data = y_probe_globals(s->probe);

	for (u32 i = 0; i < s->p->nglobals; i++) {
		const struct y_global *g = &s->p->globals[i];
		u32 offset = s->bpf->global_offsets[i];
		const u64 *values = g->n ? s->share.global_arrays[i] : &s->share.globals[i];
		struct y_text text;
		u64 taken;

		if (g->type == Y_STR && !g->n) {
			from_string(&text, *values);
			text.cut = *values && ((const struct y_str *)*values)->cut;
			if (memcmp(&text, s->taken + offset, sizeof(text)) != 0)
				memcpy(data + offset, &text, sizeof(text));
			continue;
		}
		for (u32 k = 0; k < (g->n ? g->n : 1); k++, offset += sizeof(u64)) {
			memcpy(&taken, s->taken + offset, sizeof(taken));
			give_number(g->type, (u64 *)(data + offset), y_wrap(g->type, taken), values[k]);
		}
	}
}

/* --- what a timer changes of maps that handlers read --- */

static void take_out(struct y_probes *s, u32 map, const struct y_entry *e)
{
	const struct y_map *m = &s->p->maps[map];
	bool number = !m->is_agg && m->value != Y_STR;
	u64 now, sum;

	join_key(m, e->keys, s->key);
	if (!y_probe_take_out(s->probe, map, s->key, s->values) || !number)
		return;
	memcpy(&now, s->values, sizeof(now));
	if (now == e->value)
		return;
	if (s->bpf->set[map] || m->value == Y_F64) /* it is a new one */
		y_probe_set(s->probe, map, s->key, s->values);
	else
		y_probe_add(s->probe, map, s->key, now - e->value, &sum);
}

static void edit(void *ctx, u32 map, enum y_op op, struct y_entry *e, u64 by)
{
	struct y_probes *s = ctx;
	const struct y_map *m = &s->p->maps[map];
	u64 result;

	if (s->bpf->gathered[map] || m->stack)
		return;
	if (op == Y_OP_MAP_DELETE) {
		take_out(s, map, e);
	} else if (op == Y_OP_MAP_SET || m->value == Y_STR || m->value == Y_F64) {
		give_entry(s, map, e);
	} else {
		join_key(m, e->keys, s->key);
		if (y_probe_add(s->probe, map, s->key, by, &result) && !m->is_agg)
			e->value = result;
	}
}

/* --- records --- */

/* Is value number k of the format a string? */
static void find_texts(const struct y_format *f, bool texts[VALUES_MOST])
{
	u32 n = 0;

	for (u32 i = 0; i < f->npieces && n + 2 < VALUES_MOST; i++) {
		const struct y_piece *p = &f->pieces[i];

		if (p->kind == Y_TEXT)
			continue;
		n += (p->width == Y_STAR) + (p->precision == Y_STAR);
		texts[n++] = p->kind == Y_STRING;
	}
}

static void print(struct y_probes *s, const struct y_record *r)
{
	const struct y_format *f = &s->p->formats[r->number];
	cleanup(free) struct text_room *rooms = calloc(VALUES_MOST, sizeof(*rooms));
	struct y_printed values[VALUES_MOST] = {0};
	bool texts[VALUES_MOST] = {0};
	u32 at = sizeof(*r);

	find_texts(f, texts);
	for (u32 i = 0; rooms && i < f->nvalues && i < VALUES_MOST; i++) {
		struct y_printed_value v;

		if (at + sizeof(v) + (texts[i] ? sizeof(struct y_text) : 0) > r->size)
			return;
		memcpy(&v, (const u8 *)r + at, sizeof(v));
		at += sizeof(v);
		values[i] = (struct y_printed){v.value, v.status, v.at};
		if (texts[i]) {
			values[i].value = to_string(&rooms[i], (const u8 *)r + at);
			at += sizeof(struct y_text);
		}
	}
	if (rooms)
		(s->share.json ? y_json_format : y_print_format)(s->share.out, f, values);
}

static void say(const struct y_probes *s, const struct y_record *r, const char *kind)
{
	const struct y_place *place;
	struct text_room room;

	if (r->number >= s->p->nplaces || r->size < sizeof(*r) + sizeof(struct y_text))
		return;
	place = &s->p->places[r->number];
	to_string(&room, r + 1);
	fflush(s->share.out);
	fprintf(s->share.err, "%s:%u:%u: %s: ", place->file, place->line, place->column, kind);
	y_put_text(s->share.err, room.bytes, room.len);
	fputc('\n', s->share.err);
}

static void record(void *ctx, const struct y_record *r)
{
	struct y_probes *s = ctx;
	u32 map = r->number & ~(1u << 31);

	switch (r->kind) {
	case Y_RECORD_PRINT:
		if (r->number < s->p->nformats)
			print(s, r);
		break;
	case Y_RECORD_MAP:
		if (map < s->p->nmaps) {
			take(s);
			(s->share.json ? y_json_table : y_print_table)(
			        s->share.out, &s->share.tables[map], r->number >> 31 ? Y_HIST : Y_TABLE);
		}
		break;
	case Y_RECORD_WARN:
		say(s, r, "warning");
		break;
	case Y_RECORD_ERROR:
		say(s, r, "error");
		s->share.stats->error = true;
		s->ended = true;
		break;
	default:
		s->ended = true;
	}
}

/* A map that is by stack alone or not: what it has by each stack. */
static void weigh(struct y_probes *s, const struct y_table *t)
{
	for (u32 i = 0; i < t->nentries; i++) {
		const struct y_entry *e = t->entries[i];
		const struct y_str *text = (const struct y_str *)e->keys[t->map->stack - 1];

		if (!e->gone && text)
			y_stacks_weigh(s->stacks, text->bytes, text->len,
			        t->map->is_agg ? (u64)((const struct y_aggregate *)e->value)->sum : e->value);
	}
}

struct profile *y_probes_profile(struct y_probes *s)
{
	return s->stacks ? y_stacks_profile(s->stacks) : NULL;
}

/* --- a run --- */

static struct error *start(void *ctx, const struct y_share *share)
{
	struct y_probes *s = ctx;
	struct error *err;

	s->share = *share;
	give_maps(s);
	give(s);
	err = y_probe_start(s->probe);
	if (!err && s->stacks)
		y_stacks_open(s->stacks);
	return err;
}

static bool wait_until(void *ctx, u64 until)
{
	struct y_probes *s = ctx;
	u64 now = now_ns(), ms = until > now ? (until - now + 999999) / 1000000 : 0;

	y_probe_wait(s->probe, ms < SLICE_MS ? (u32)ms : SLICE_MS);
	fflush(s->share.out);
	return !s->ended;
}

static void count_failures(struct y_probes *s)
{
	struct y_run_stats *stats = s->share.stats;
	struct y_counted c;

	for (u32 i = 0; i < s->p->nplaces * Y_STATUSES; i++) {
		if (!y_probe_counted(s->probe, i, &c) || !c.count)
			continue;
		stats->failed += c.count;
		if (stats->nfailures < FAILURES_MOST &&
		        !grow(&stats->failures, stats->nfailures, sizeof(*stats->failures)))
			stats->failures[stats->nfailures++] =
			        (struct y_failure){i / Y_STATUSES, i % Y_STATUSES, c.at, c.count};
	}
}

static void stop(void *ctx)
{
	struct y_probes *s = ctx;
	const struct y_control *c = y_probe_globals(s->probe);

	y_probe_stop(s->probe);
	if (s->stacks) {
		y_stacks_stop(s->stacks);
		s->share.stats->lost += y_stacks_lost(s->stacks);
	}
	y_probe_turn(s->probe, LAST_TURN_MS);
	s->share.stats->not_ended = y_probe_running(s->probe);
	take_below(s, UINT64_MAX);
	for (u32 i = 0; s->stacks && i < s->p->nmaps; i++)
		if (s->p->maps[i].stack)
			weigh(s, &s->share.tables[i]);
	s->share.stats->missed = y_probe_missed(s->probe);
	s->share.stats->hits = c->handlers;
	s->share.stats->handlers += c->handlers;
	s->share.stats->lost += c->lost_updates;
	s->share.stats->lost_records += c->lost_records;
	s->share.stats->not_run += c->not_run;
	count_failures(s);
}

const struct y_probe_ops y_probes_ops = {
        .start = start, .wait = wait_until, .take = take, .give = give, .edit = edit, .stop = stop};
