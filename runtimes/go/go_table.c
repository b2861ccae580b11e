/* SPDX-License-Identifier: Apache-2.0 */
#include "go_table.h"

#include <string.h>

#define VARINT_MAX    5          /* bytes */
#define PCS_MAX       (1u << 20) /* values of a table */
#define FUNC_MAX      48         /* bytes of a struct _func */
#define NO_FILE       0xffffffffu
#define NO_DATA       0xffffffffu
#define TYPES_MAX     (1u << 16) /* bytes of a name with type arguments */
#define RUNTIME_STEP  256        /* functions; the runtime has thousands */
#define RUNTIME_ROUND 512

/* Where members of struct _func lie, by layout. */
static const struct shape {
	u8 name, pcsp, pcfile, pcln, npcdata, unit, start_line, id, flags, nfuncdata, size;
	bool wide; /* the entry and funcdata are pointers */
} shapes[GO_MAGICS] = {
        [GO_MAGIC_1_2] = {8, 20, 24, 28, 32, 0, 0, 36, 0, 39, 40, true},
        [GO_MAGIC_1_16] = {8, 20, 24, 28, 32, 36, 0, 40, 41, 43, 44, true},
        [GO_MAGIC_1_18] = {4, 16, 20, 24, 28, 32, 0, 36, 37, 39, 40, false},
        [GO_MAGIC_1_20] = {4, 16, 20, 24, 28, 32, 36, 40, 41, 43, 44, false},
};

static u32 word(const u8 *from)
{
	u32 v;

	memcpy(&v, from, sizeof(v));
	return v;
}

static u32 at_entry(const struct go_table *t)
{
	return t->magic >= GO_MAGIC_1_18 ? 4 : 8;
}

/* Where function i begins. The last is the end. */
static bool entry_at(struct go_table *t, u32 i, u64 *ret)
{
	u32 width = at_entry(t), offset;
	u64 at = t->functions + (u64)i * 2 * width;

	if (width == 8)
		return go_u64(&t->file, at, ret);
	if (!go_u32(&t->file, at, &offset))
		return false;
	*ret = t->text + offset;
	return true;
}

/* Function i, where its struct _func is, and the next one. */
static bool entries_at(struct go_table *t, u32 i, u64 *start, u64 *offset, u64 *next)
{
	u32 width = at_entry(t);
	u64 wide[3];
	u32 narrow[3];

	if (width == 8) {
		if (!go_read(&t->file, wide, sizeof(wide), t->functions + (u64)i * 16))
			return false;
		*start = wide[0];
		*offset = wide[1];
		*next = wide[2];
		return true;
	}
	if (!go_read(&t->file, narrow, sizeof(narrow), t->functions + (u64)i * 8))
		return false;
	*start = t->text + narrow[0];
	*offset = narrow[1];
	*next = t->text + narrow[2];
	return true;
}

static void read_func(const struct go_table *t, const u8 *raw, struct go_function *fn)
{
	const struct shape *s = &shapes[t->magic];

	fn->name = word(raw + s->name);
	fn->pcsp = word(raw + s->pcsp);
	fn->pcfile = word(raw + s->pcfile);
	fn->pcln = word(raw + s->pcln);
	fn->npcdata = word(raw + s->npcdata);
	fn->unit = s->unit ? word(raw + s->unit) : 0;
	fn->start_line = s->start_line ? word(raw + s->start_line) : 0;
	fn->id = raw[s->id];
	fn->flags = s->flags ? raw[s->flags] : 0;
	fn->nfuncdata = raw[s->nfuncdata];
	fn->pcdata = fn->at + s->size;
	fn->funcdata = fn->pcdata + 4ULL * fn->npcdata;
	if (s->wide)
		fn->funcdata = (fn->funcdata + 7) & ~7ULL;
}

/* Modulo 2^32, of an odd number: each round doubles the bits that are right, of which there are three. */
static u32 inverse(u32 n)
{
	u32 ret = n;

	for (u32 i = 0; i < 4; i++)
		ret *= 2 - n * ret;
	return ret;
}

void go_table_find_key(struct go_table *t)
{
	u64 start, offset, next;
	u32 func[2]; /* the first members of struct _func: entryOff and nameOff */

	for (u32 i = 0; i < t->nfunctions && entries_at(t, i, &start, &offset, &next); i++)
		if (go_read(&t->file, func, sizeof(func), t->functions + offset) && func[1] & 1) {
			t->entry_key = (func[0] ^ (u32)(start - t->text)) * inverse(func[1]);
			return;
		}
}

/* Does a function's own entry agree with the table's? */
static bool same_entry(const struct go_table *t, const u8 *raw, u64 start)
{
	u64 entry = 0;

	memcpy(&entry, raw, shapes[t->magic].wide ? 8 : 4);
	if (t->entry_key)
		entry ^= word(raw + shapes[t->magic].name) * t->entry_key;
	return entry + t->text == start;
}

bool go_function_at(struct go_table *t, u32 i, struct go_function *ret)
{
	u64 offset;
	u8 raw[FUNC_MAX];

	if (i >= t->nfunctions || !entries_at(t, i, &ret->start, &offset, &ret->end))
		return false;
	ret->at = (t->magic == GO_MAGIC_1_2 ? t->addr : t->functions) + offset;
	if (!go_read(&t->file, raw, shapes[t->magic].size, ret->at))
		return false;
	if (!same_entry(t, raw, ret->start) || ret->end < ret->start)
		return false;
	read_func(t, raw, ret);
	return true;
}

bool go_function_find(struct go_table *t, u64 addr, struct go_function *ret)
{
	u32 lo = 0, hi = t->nfunctions;
	u64 start;

	while (hi - lo > 1) {
		u32 mid = lo + (hi - lo) / 2;

		if (!entry_at(t, mid, &start))
			return false;
		if (start <= addr)
			lo = mid;
		else
			hi = mid;
	}
	return go_function_at(t, lo, ret) && addr >= ret->start && addr < ret->end;
}

u32 go_name(struct go_table *t, u32 name, char *ret, u32 max)
{
	return go_string(&t->file, ret, max, t->names + name);
}

/* Where the last ']' of a name is; 0: nowhere. */
static u64 last_bracket(struct go_table *t, u32 name)
{
	u64 at = t->names + name, found = 0;
	u8 c;

	for (u32 n = 0; n < TYPES_MAX && go_u8(&t->file, at + n, &c) && c; n++)
		if (c == ']')
			found = at + n;
	return found;
}

u32 go_short_name(struct go_table *t, u32 name, char *ret, u32 max)
{
	static const char types[] = "[...]";
	u32 n = go_name(t, name, ret, max), open = (u32)strcspn(ret, "[");
	u64 close = open + sizeof(types) < max && ret[open] ? last_bracket(t, name) : 0;

	if (!close)
		return n;
	memcpy(ret + open, types, sizeof(types));
	open += (u32)sizeof(types) - 1;
	return open + go_string(&t->file, ret + open, max - open, close + 1);
}

u32 go_function_name(struct go_table *t, const struct go_function *fn, char *ret, u32 max)
{
	return go_name(t, fn->name, ret, max);
}

static bool varint(struct go_pcs *p, u32 *ret)
{
	u32 value = 0;
	u8 byte;

	for (u32 i = 0; i < VARINT_MAX; i++) {
		if (!go_u8(&p->t->file, p->at++, &byte))
			return false;
		value |= (u32)(byte & 0x7f) << (7 * i);
		if (!(byte & 0x80)) {
			*ret = value;
			return true;
		}
	}
	return false;
}

void go_pcs_start(struct go_pcs *p, struct go_table *t, const struct go_function *fn, u32 table)
{
	*p = (struct go_pcs){.t = t, .at = table ? t->pcs + table : 0, .from = fn->start, .pc = fn->start, .value = -1};
}

bool go_pcs_next(struct go_pcs *p)
{
	u32 delta, pcs;

	if (!p->at || p->seen == PCS_MAX || !varint(p, &delta) || (!delta && p->seen) || !varint(p, &pcs))
		return false;
	p->seen++;
	p->value = (s32)((u32)p->value + ((delta >> 1) ^ -(delta & 1)));
	p->from = p->pc;
	p->pc += pcs; /* in units of the shortest instruction, a byte here */
	return p->pc > p->from;
}

bool go_pcs_find(struct go_table *t, const struct go_function *fn, u32 table, u64 addr, s32 *ret)
{
	struct go_pcs p;

	go_pcs_start(&p, t, fn, table);
	while (go_pcs_next(&p) && p.from <= addr) {
		*ret = p.value;
		if (addr < p.pc)
			return true;
	}
	return false;
}

/* Where the name of a function's file number n is. */
static bool file_at(struct go_table *t, const struct go_function *fn, u32 n, u64 *ret)
{
	u32 offset;

	if (t->magic == GO_MAGIC_1_2) {
		if (!go_u32(&t->file, t->files + 4ULL * n, &offset))
			return false;
		*ret = t->addr + offset;
		return true;
	}
	if (!go_u32(&t->file, t->units + 4ULL * ((u64)fn->unit + n), &offset) || offset == NO_FILE)
		return false;
	*ret = t->files + offset;
	return true;
}

u32 go_line(struct go_table *t, const struct go_function *fn, u64 addr, char *file, u32 max)
{
	s32 value;
	u64 at;

	file[0] = 0;
	if (go_pcs_find(t, fn, fn->pcfile, addr, &value) && value >= 0 && file_at(t, fn, (u32)value, &at))
		go_string(&t->file, file, max, at);
	return go_pcs_find(t, fn, fn->pcln, addr, &value) && value > 0 ? (u32)value : 0;
}

s32 go_inlined_at(struct go_table *t, const struct go_function *fn, u64 addr)
{
	const struct go_inlining *in = &t->inlining;
	u32 table;
	s32 value;

	if (!in->size || fn->npcdata <= in->pcdata || fn->nfuncdata <= in->funcdata)
		return GO_NOT_INLINED;
	if (!go_u32(&t->file, fn->pcdata + 4ULL * in->pcdata, &table) || !go_pcs_find(t, fn, table, addr, &value))
		return GO_NOT_INLINED;
	return value < 0 ? GO_NOT_INLINED : value;
}

/* Where a function's tree of inlined calls lies. */
static bool tree_at(struct go_table *t, const struct go_function *fn, u64 *ret)
{
	u32 offset;

	if (fn->nfuncdata <= t->inlining.funcdata)
		return false;
	if (shapes[t->magic].wide)
		return go_u64(&t->file, fn->funcdata + 8ULL * t->inlining.funcdata, ret) && *ret;
	if (!t->gofunc || !go_u32(&t->file, fn->funcdata + 4ULL * t->inlining.funcdata, &offset) || offset == NO_DATA)
		return false;
	*ret = t->gofunc + offset;
	return true;
}

bool go_inlined_call(struct go_table *t, const struct go_function *fn, s32 index, u32 *name, u64 *caller)
{
	const struct go_inlining *in = &t->inlining;
	u64 tree;
	u32 pc;

	if (index < 0 || !tree_at(t, fn, &tree))
		return false;
	tree += (u64)index * in->size;
	if (!go_u32(&t->file, tree + in->name, name) || !go_u32(&t->file, tree + in->parent_pc, &pc))
		return false;
	*caller = fn->start + pc;
	return *caller < fn->end;
}

u32 go_inlined_start(struct go_table *t, const struct go_function *fn, s32 index)
{
	const struct go_inlining *in = &t->inlining;
	u64 tree;
	u32 line;

	if (!in->start_line || index < 0 || !tree_at(t, fn, &tree))
		return 0;
	return go_u32(&t->file, tree + (u64)index * in->size + in->start_line, &line) ? line : 0;
}

u8 go_wrapper_id(struct go_table *t)
{
	struct go_function fn;
	bool has_data = false;
	u8 highest = 0;

	if (t->wrapper)
		return t->wrapper;
	for (u32 i = 0; i < t->nfunctions; i++)
		if (go_function_at(t, i, &fn)) {
			highest = fn.id > highest ? fn.id : highest;
			has_data |= fn.nfuncdata != 0;
		}
	/* 1.11 has the low byte of nfuncdata in its place, and 0 in that of nfuncdata */
	t->wrapper = highest && has_data ? highest : UINT8_MAX;
	return t->wrapper;
}

/* A letter of each package that assembly of the runtime is in, or of a function in none. */
static bool may_be_special(const char *name)
{
	return !memcmp(name, "runtime.", 8) || !memcmp(name, "time.now", 8) || !memcmp(name, "racecall", 8) ||
	       !memcmp(name, "crosscal", 8) || !memcmp(name, "_rt0_amd", 8) || !memcmp(name, "msancall", 8) ||
	       !memcmp(name, "asancall", 8) || !memcmp(name, "gogo", 5);
}

bool go_special_name(struct go_table *t, u32 i, struct go_function *fn, char *ret)
{
	if (!go_function_at(t, i, fn) || !go_read(&t->file, ret, 8, t->names + fn->name) || !may_be_special(ret))
		return false;
	return go_function_name(t, fn, ret, GO_SPECIAL_MAX) < GO_SPECIAL_MAX - 1;
}

/* Is function i of the runtime, by the first letters of its name? Read alone: its neighbours are not looked at. */
static bool is_runtimes(struct go_table *t, u32 i)
{
	const struct shape *s = &shapes[t->magic];
	u64 start, offset, next;
	u32 name;
	char text[8];

	return entries_at(t, i, &start, &offset, &next) &&
	       image_read(t->file.img, &name, sizeof(name),
	               (t->magic == GO_MAGIC_1_2 ? t->addr : t->functions) + offset + s->name) &&
	       image_read(t->file.img, text, sizeof(text), t->names + name) && !memcmp(text, "runtime.", 8);
}

void go_runtime_functions(struct go_table *t, u32 *first, u32 *end)
{
	*first = t->runtime_first;
	*end = t->runtime_end;
	if (*end)
		return;
	for (u32 i = 0; i < t->nfunctions; i += RUNTIME_STEP) {
		if (!is_runtimes(t, i))
			continue;
		*first = *end ? *first : i < RUNTIME_ROUND ? 0 : i - RUNTIME_ROUND;
		*end = i + RUNTIME_ROUND < t->nfunctions ? i + RUNTIME_ROUND : t->nfunctions;
	}
	t->runtime_first = *first;
	t->runtime_end = *end;
}

static void look_among(struct go_table *t, struct go_wanted *wanted, u32 n, u32 first, u32 end)
{
	struct go_function fn;
	char name[GO_SPECIAL_MAX];

	for (u32 i = first; i < end; i++)
		for (u32 k = go_special_name(t, i, &fn, name) ? 0 : n; k < n; k++) {
			struct go_wanted *w = &wanted[k];

			if (w->found || strcmp(w->name, name) || (w->accept && !w->accept(t, &fn)))
				continue;
			w->fn = fn;
			w->found = true;
		}
}

void go_functions_named(struct go_table *t, struct go_wanted *wanted, u32 n)
{
	u32 first, end;

	go_runtime_functions(t, &first, &end);
	look_among(t, wanted, n, first, end);
	if (!wanted[0].found)
		look_among(t, wanted, n, 0, t->nfunctions);
}
