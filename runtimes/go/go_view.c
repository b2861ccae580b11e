/* SPDX-License-Identifier: Apache-2.0 */
#include "go_view.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/param.h>

#define GOROUTINES_MAX (1u << 28)
#define CHECKED        64 /* goroutines */
#define TRIES          4
#define ID_MAX         (1ULL << 48)
#define ID_FIRST       4096
#define BUCKET_MAX     128 /* bytes of struct bucket */
#define BUCKET_MEMORY  1   /* bucket.typ: memProfile */
#define BUCKET_DEPTH   1024
#define RATE_MAX       (1ULL << 40)

enum wanted { ALLGADD, HEADER, REASON, SCHEDINIT, BUCKET, RATE, RATE_OLD, WANTED };

u64 go_word(const struct go_view *v, u64 addr)
{
	u64 word;

	return memory_read(v->p->memory, &word, sizeof(word), addr) ? word : 0;
}

u64 go_member(const void *structure, struct layout_member m)
{
	u64 value = 0;

	memcpy(&value, (const u8 *)structure + m.at, m.size <= sizeof(value) ? m.size : sizeof(value));
	return value;
}

bool go_is_start(const struct go_view *v, u64 addr)
{
	struct go_function fn;

	return go_function_find(v->table, addr - v->bias, &fn) && fn.start == addr - v->bias;
}

/* --- strings --- */

/* A string by its head. "": there is none. */
static void read_string(const struct go_view *v, u64 head, char *ret, u32 max)
{
	u64 at[2];

	ret[0] = 0;
	if (!memory_read(v->p->memory, at, sizeof(at), head) || !at[1] || at[1] >= max ||
	        !memory_read(v->p->memory, ret, at[1], at[0]))
		return;
	ret[at[1]] = 0;
	for (u32 i = 0; i < at[1]; i++)
		if (ret[i] < ' ' || ret[i] > '~')
			ret[0] = 0;
}

static void find_release(struct go_view *v, const struct go_references *schedinit)
{
	for (u32 i = 0; i < schedinit->n; i++) {
		read_string(v, schedinit->at[i] + v->bias, v->release, sizeof(v->release));
		if (!strncmp(v->release, "go1.", 4) || !strncmp(v->release, "devel", 5))
			return;
	}
	strcpy(v->release, "an unknown release");
}

/* The second of them is the same in all releases. */
static bool read_reasons(struct go_view *v, u64 at)
{
	char second[GO_REASON_MAX];

	read_string(v, at + 16, second, sizeof(second));
	if (strcmp(second, "GC assist marking"))
		return false;
	for (v->nreasons = 0; v->nreasons < GO_REASONS; v->nreasons++) {
		char *text = v->reason[v->nreasons];

		read_string(v, at + 16ULL * v->nreasons, text, GO_REASON_MAX);
		if (v->nreasons && !text[0])
			return true;
	}
	return true;
}

static bool find_reasons(struct go_view *v, const struct go_references *refs)
{
	for (u32 i = 0; i < refs->n; i++)
		if (read_reasons(v, refs->at[i] + v->bias))
			return true;
	return false;
}

/* --- goroutines --- */

static bool is_code(const struct go_view *v, u64 pc)
{
	const struct mapping *m = pc ? mapping_find(v->p->mappings, v->p->nmappings, pc) : NULL;

	return !pc || (m && m->prot & PROT_EXEC);
}

static bool is_pointer(const struct go_view *v, u64 addr)
{
	u64 word;

	return !addr || (!(addr & 7) && memory_read(v->p->memory, &word, sizeof(word), addr));
}

static bool is_goroutine(const struct go_view *v, const u8 *g, u64 addr)
{
	const struct go_layout *l = v->at;
	u64 status = go_member(g, l->g_status) & ~(u64)GO_STATUS_SCAN, start = go_member(g, l->g_startpc),
	    self = go_member(g, l->g_self);

	if (status >= GO_STATUSES || go_member(g, l->g_goid) >= ID_MAX || go_member(g, l->g_waitreason) >= v->nreasons)
		return false;
	if (go_member(g, l->g_parent) >= ID_MAX || go_member(g, l->g_stack_lo) > go_member(g, l->g_stack_hi))
		return false;
	return status >= GO_DEAD || ((go_member(g, l->g_goid) || status == GO_IDLE) && is_code(v, start) &&
	                                    is_code(v, go_member(g, l->g_gopc)) && (!self || self == addr) &&
	                                    is_pointer(v, go_member(g, l->g_labels)));
}

/* While it runs its stack may be another at any moment, and it have only one end of it. */
static bool is_goroutine_at(const struct go_view *v, u64 addr, u8 *copy, u32 size)
{
	for (u32 i = 0; i < TRIES; i++)
		if (memory_read(v->p->memory, copy, size, addr) && is_goroutine(v, copy, addr))
			return true;
	return false;
}

u32 go_goroutine_size(const struct go_view *v)
{
	u32 end = 0;

	for (u32 i = 0; i < v->layout->schema->n; i++) {
		const struct layout_member *m = layout_member(v->layout, i);

		if (!strncmp(v->layout->schema->fields[i].name, "runtime.g:", 10) && (u32)m->at + m->size > end)
			end = (u32)m->at + m->size;
	}
	return end;
}

/* Reads the first elements of what may be the slice allgs. Returns how many; 0: it is empty, or not a slice. */
static u32 read_slice(const struct go_view *v, u64 at, u64 *ret)
{
	u64 slice[3];
	u32 n;

	if (!memory_read(v->p->memory, slice, sizeof(slice), at) || !slice[1] || slice[1] > slice[2] ||
	        slice[2] > GOROUTINES_MAX)
		return 0;
	n = slice[1] < CHECKED ? (u32)slice[1] : CHECKED;
	return memory_read(v->p->memory, ret, n * sizeof(*ret), slice[0]) ? n : 0;
}

static bool has_number(const u64 *ids, u32 n, u64 id)
{
	for (u32 i = 0; i < n; i++)
		if (ids[i] == id)
			return true;
	return false;
}

/* No two of them ever have the same number, and the runtime's own, which never end, are among the first. */
static bool is_allgs(const struct go_view *v, u64 at)
{
	u64 g[CHECKED], ids[CHECKED], id, least = ID_MAX;
	u32 size = go_goroutine_size(v), n = read_slice(v, at, g), nids = 0, started = 0;
	u8 copy[GO_GOROUTINE_MAX];

	if (size > GO_GOROUTINE_MAX)
		return false;
	for (u32 i = 0; i < n; i++) {
		if (!is_goroutine_at(v, g[i], copy, size))
			return false;
		id = go_member(copy, v->at->g_goid);
		if (id && has_number(ids, nids, id))
			return false;
		ids[nids] = id;
		nids += id != 0;
		least = id ? MIN(id, least) : least;
		started += go_is_start(v, go_member(copy, v->at->g_startpc));
	}
	return started && least < ID_FIRST;
}

static bool find_allgs(struct go_view *v, const struct go_references *refs)
{
	for (u32 i = 0; i < refs->n && !v->allgs; i++)
		if (is_allgs(v, refs->at[i] + v->bias))
			v->allgs = refs->at[i] + v->bias;
	return v->allgs;
}

/* It has made no goroutine yet. */
static bool is_starting(const struct go_view *v, const struct go_references *refs)
{
	u64 g[CHECKED];

	for (u32 i = 0; i < refs->n; i++)
		if (read_slice(v, refs->at[i] + v->bias, g))
			return false;
	return true;
}

/* --- heap profile --- */

/* Those of memory and those of blocking are lists of the same form. */
static void find_buckets(struct go_view *v, const struct go_references *refs)
{
	const struct go_layout *l = v->at;
	u8 head[BUCKET_MAX];

	for (u32 i = 0; i < refs->n && !v->buckets && l->b_bytes.size <= sizeof(head); i++) {
		u64 first = go_word(v, refs->at[i] + v->bias);

		if (first && !(first & 7) && memory_read(v->p->memory, head, l->b_bytes.size, first) &&
		        go_member(head, l->b_type) == BUCKET_MEMORY && go_member(head, l->b_depth) - 1 < BUCKET_DEPTH &&
		        go_member(head, l->b_size) && go_member(head, l->b_size) < ID_MAX)
			v->buckets = refs->at[i] + v->bias;
	}
}

/* The only number among what its code names: other words are pointers, strings or zeroes. */
static void find_rate(struct go_view *v, const struct go_references *refs)
{
	for (u32 i = 0; i < refs->n && !v->rate; i++) {
		u64 word = go_word(v, refs->at[i] + v->bias);

		v->rate = word < RATE_MAX ? word : 0;
	}
}

/* --- all --- */

static struct error *misfit(const struct go_view *v, const char *what)
{
	return error_hint(error_new(ERROR_UNSUPPORTED, "%s of %s: %s", v->table->file.img->path, v->release, what),
	        "run `yrt layout --runtime go` on a program of that release that is not stripped, and name the folder "
	        "of the result in "
	        "YRT_LAYOUTS");
}

static void references(struct go_code *code, struct go_view *v, const struct go_wanted *w, struct go_references *ret)
{
	ret->n = 0;
	if (w->found)
		go_code_references(code, v->table, &w->fn, ret);
}

/* Takes the first layout that fits the goroutines; while there are no goroutines, simply the first. */
static struct error *find_fitting(struct go_view *v, const struct go_references *allgadd)
{
	bool starting = is_starting(v, allgadd), known = false;
	struct layout *layout;
	struct error *err;

	for (u32 from = 0; from < GO_LAYOUTS; from++) {
		err = go_layout_find(v->table->file.img, v->release, from, &layout);
		if (err)
			return err;
		if (!layout)
			continue;
		known = true;
		layout_destroy(v->layout);
		v->layout = layout;
		v->at = layout->values;
		if (starting || find_allgs(v, allgadd))
			return NULL;
	}
	return misfit(v, known ? "its goroutines do not look as those of the layout that is known"
	                       : "its structures are not known");
}

static struct error *find_variables(struct go_view *v, struct go_code *code, const struct go_wanted *w)
{
	struct go_references refs;
	struct error *err;

	references(code, v, &w[SCHEDINIT], &refs);
	if (!go_release(v->table, v->release))
		find_release(v, &refs);
	references(code, v, &w[HEADER], &refs);
	if (!find_reasons(v, &refs)) {
		references(code, v, &w[REASON], &refs);
		if (!find_reasons(v, &refs))
			return misfit(v, "no table of reasons to wait where its code has one");
	}
	references(code, v, &w[ALLGADD], &refs);
	err = find_fitting(v, &refs);
	if (err)
		return err;
	references(code, v, &w[BUCKET], &refs);
	find_buckets(v, &refs);
	references(code, v, &w[RATE], &refs);
	if (!refs.n) /* 1.11: its callee names it */
		references(code, v, &w[RATE_OLD], &refs);
	find_rate(v, &refs);
	return NULL;
}

/* *runs: the module has a runtime. */
static struct error *fill(struct go_view *v, struct go_code *code, bool *runs)
{
	struct go_wanted wanted[WANTED] = {
	        [ALLGADD] = {.name = "runtime.allgadd"},
	        [HEADER] = {.name = "runtime.goroutineheader"},
	        [REASON] = {.name = "runtime.waitReason.String"},
	        [SCHEDINIT] = {.name = "runtime.schedinit"},
	        [BUCKET] = {.name = "runtime.stkbucket"},
	        [RATE] = {.name = "runtime.profilealloc"},
	        [RATE_OLD] = {.name = "runtime.nextSample"},
	};

	go_functions_named(v->table, wanted, WANTED);
	if (!wanted[SCHEDINIT].found)
		return NULL;
	*runs = true;
	if (!wanted[ALLGADD].found)
		return misfit(v, "its table of functions has no runtime.allgadd");
	return find_variables(v, code, wanted);
}

struct error *go_view_open(const struct runtime_process *p, struct go_table *t, u64 bias, struct go_view **ret)
{
	struct go_view *v = calloc(1, sizeof(*v));
	struct go_code *code = go_code_create();
	struct error *err = &error_no_memory;
	bool runs = false;

	*ret = NULL;
	if (v && code) {
		v->p = p;
		v->table = t;
		v->bias = bias;
		err = fill(v, code, &runs);
	}
	go_code_destroy(code);
	if (err || !runs)
		go_view_close(v);
	else
		*ret = v;
	return err;
}

void go_view_close(struct go_view *v)
{
	if (v)
		layout_destroy(v->layout);
	free(v);
}
