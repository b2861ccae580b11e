/* SPDX-License-Identifier: Apache-2.0 */
/* Values: heads, types, sizes, entries of hashes, globs, pads; and the arenas that they lie in. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "perl_heap_internal.h"

#define ARENAS_MAX  (1u << 22)
#define ARENA_MIN   8
#define ARENA_MAX   (1u << 20)
#define TYPE_MASK   0xffu
#define NAME_BYTES  256
#define ENTRIES_MAX (1u << 26) /* of a hash */
#define CHAIN_MAX   (1u << 16)
#define HE_BYTES    24 /* next, key, value */
#define HEK_BYTES   9  /* hash, length, and behind the key a byte of flags */
#define PADS_MAX    4096
#define GP_BYTES    56

u64 perl_heap_word(struct perl_heap *p, u64 addr)
{
	const void *bytes = heap_bytes(p->h, addr, 8);
	u64 ret = 0;

	if (bytes)
		memcpy(&ret, bytes, 8);
	return ret;
}

bool perl_heap_sv(struct perl_heap *p, u64 addr, struct perl_sv *ret)
{
	const u8 *bytes = addr && !(addr & 7) ? heap_bytes(p->h, addr, PERL_HEAD) : NULL;

	if (!bytes)
		return false;
	memcpy(&ret->body, bytes, 8);
	memcpy(&ret->count, bytes + 8, 4);
	memcpy(&ret->flags, bytes + 12, 4);
	memcpy(&ret->own, bytes + 16, 8);
	ret->type = ret->flags & TYPE_MASK;
	return ret->count && ret->type < PERL_TYPES;
}

void perl_heap_text(struct perl_heap *p, u64 addr, u64 n, char *ret, size_t size)
{
	const void *bytes;

	n = n < size - 1 ? n : size - 1;
	bytes = n ? heap_bytes(p->h, addr, (u32)n) : NULL;
	if (bytes)
		memcpy(ret, bytes, n);
	ret[bytes ? n : 0] = 0;
}

/* --- arenas --- */

static bool read_arena(struct perl_heap *p, u64 at, struct perl_arena *ret, u64 *next)
{
	const u8 *bytes = at && !(at & 7) ? heap_bytes(p->h, at, PERL_HEAD) : NULL;
	u32 flags;

	if (!bytes)
		return false;
	memcpy(next, bytes, 8);
	memcpy(&ret->n, bytes + 8, 4);
	memcpy(&flags, bytes + 12, 4);
	ret->at = at;
	return !(flags & TYPE_MASK) && ret->n >= ARENA_MIN && ret->n <= ARENA_MAX && !(*next & 7);
}

/* All its SVs are alive, or free, as their flags say. */
static bool is_arena(struct perl_heap *p, const struct perl_arena *a)
{
	const u8 *bytes = a->n <= HEAP_BYTES_MAX / PERL_HEAD ? heap_bytes(p->h, a->at, a->n * PERL_HEAD) : NULL;

	for (u32 i = 1; bytes && i < a->n; i++) {
		u32 count, flags;

		memcpy(&count, bytes + i * PERL_HEAD + 8, 4);
		memcpy(&flags, bytes + i * PERL_HEAD + 12, 4);
		if ((flags & TYPE_MASK) != TYPE_MASK && ((flags & TYPE_MASK) >= PERL_TYPES || count > 1u << 30))
			return false;
	}
	return bytes;
}

static int by_address(const void *a, const void *b)
{
	const struct perl_arena *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

/* How many arenas are chained from here on; the first two are looked at closely. 0: this is none. */
static u32 count_arenas(struct perl_heap *p, u64 at)
{
	struct perl_arena a;
	u32 n = 0;

	for (u64 next; n < ARENAS_MAX && read_arena(p, at, &a, &next); at = next, n++)
		if (n < 2 && !is_arena(p, &a))
			return 0;
	return at ? 0 : n;
}

static struct error *take_arenas(struct perl_heap *p, u64 at)
{
	struct error *err = NULL;
	struct perl_arena a;

	for (u64 next; !err && p->narenas < ARENAS_MAX && read_arena(p, at, &a, &next); at = next) {
		err = grow(&p->arenas, p->narenas, sizeof(*p->arenas));
		if (!err)
			p->arenas[p->narenas++] = a;
	}
	if (p->narenas)
		qsort(p->arenas, p->narenas, sizeof(*p->arenas), by_address);
	return err;
}

/* PL_sv_arenaroot: the word of the interpreter that leads to the longest chain of arenas. */
struct error *perl_heap_find_arenas(struct perl_heap *p)
{
	u64 best = 0;
	u32 most = 0;

	for (u32 i = 0; i + 8 <= p->interpreter_size; i += 8) {
		u64 at = perl_heap_word(p, p->interpreter + i);
		u32 n = at ? count_arenas(p, at) : 0;

		if (n > most) {
			most = n;
			best = at;
		}
	}
	if (!best)
		return error_new(ERROR_UNSUPPORTED, "where this Perl keeps its values was not found");
	return take_arenas(p, best);
}

bool perl_heap_in_arena(const struct perl_heap *p, u64 addr)
{
	u32 low = 0, high = p->narenas;
	u64 behind;

	if (!high || addr < p->arenas[0].at)
		return false;
	while (high - low > 1) {
		u32 middle = low + (high - low) / 2;

		if (p->arenas[middle].at <= addr)
			low = middle;
		else
			high = middle;
	}
	behind = addr - p->arenas[low].at;
	return behind && behind % PERL_HEAD == 0 && behind / PERL_HEAD < p->arenas[low].n;
}

/* --- types --- */

static const char *const type_names[] = {"UNDEF", "SCALAR", "REF", "ARRAY", "PAD", "HASH", "CODE", "GLOB", "IO",
        "REGEXP", "LVALUE", "FORMAT", "INVLIST", "OBJECT", "STASH"};
enum { UNDEF, SCALAR, REF, ARRAY, PAD, HASH, CODE, GLOB, IO, REGEXP, LVALUE, FORMAT, INVLIST, OBJECT, STASH };

bool perl_heap_stash(struct perl_heap *p, u64 addr, const struct perl_sv *sv, char *ret, size_t size)
{
	return sv->type == PERL_HV && sv->flags & PERL_OOK && perl_stash_name(&p->r, addr, ret, size);
}

static u32 basic_type(struct perl_heap *p, u64 addr, const struct perl_sv *sv)
{
	static const u8 types[PERL_TYPES] = {[PERL_INVLIST] = INVLIST,
	        [PERL_REGEXP] = REGEXP,
	        [PERL_GV] = GLOB,
	        [PERL_LV] = LVALUE,
	        [PERL_AV] = ARRAY,
	        [PERL_HV] = HASH,
	        [PERL_CV] = CODE,
	        [PERL_FM] = FORMAT,
	        [PERL_IO] = IO,
	        [PERL_OBJ] = OBJECT};
	char name[NAME_BYTES];

	if (perl_heap_stash(p, addr, sv, name, sizeof(name)))
		return STASH;
	if (sv->type == PERL_AV && table_get(&p->pads, perl_heap_key(addr)))
		return PAD;
	if (types[sv->type])
		return types[sv->type];
	if (sv->flags & PERL_ROK)
		return REF;
	return sv->flags & 0xff00 ? SCALAR : UNDEF;
}

/* A sub without a name is called by its first statement: it has nothing else. 0: it is none. */
static u32 closure_type(struct perl_heap *p, u64 addr)
{
	char name[NAME_BYTES], file[NAME_BYTES], text[2 * NAME_BYTES + 32];
	struct perl_cv cv;
	u32 ret, line;

	if (!perl_read_cv(&p->r, addr, &cv) || !(cv.flags & PERL_CV_ANON) || cv.flags & PERL_CV_ISXSUB || !cv.start)
		return 0;
	ret = heap_type(p->h, cv.start, NULL);
	if (ret || !perl_cv_name(&p->r, &cv, name, sizeof(name)) ||
	        !perl_cop_place(&p->r, perl_first_cop(&p->r, cv.start), &line, file, sizeof(file)))
		return ret;
	snprintf(text, sizeof(text), "CODE of %s (%s:%u)", name, file, line);
	return heap_type(p->h, cv.start, text);
}

u32 perl_heap_type(struct perl_heap *p, u64 addr, const struct perl_sv *sv)
{
	char name[NAME_BYTES];
	u64 stash = sv->flags & PERL_BLESSED && sv->body ? perl_heap_word(p, sv->body) : 0;
	u32 type = stash ? heap_type(p->h, stash, NULL) : 0, basic;

	if (type)
		return type;
	if (stash && perl_stash_name(&p->r, stash, name, sizeof(name)))
		return heap_type(p->h, stash, name);
	type = sv->type == PERL_CV ? closure_type(p, addr) : 0;
	if (type)
		return type;
	basic = basic_type(p, addr, sv);
	return heap_type(p->h, basic + 1, type_names[basic]);
}

/* --- sizes --- */

/* Bodies without the words that are not there for a type (bodies_by_type in sv.c). */
static const u16 body_sizes[PERL_TYPES] = {[PERL_PV] = 16,
        [PERL_INVLIST] = 40,
        [PERL_PVIV] = 24,
        [PERL_PVNV] = 32,
        [PERL_PVMG] = 48,
        [PERL_REGEXP] = 160,
        [PERL_GV] = 48,
        [PERL_LV] = 80,
        [PERL_AV] = 40,
        [PERL_HV] = 32,
        [PERL_CV] = 104,
        [PERL_FM] = 104,
        [PERL_IO] = 136,
        [PERL_OBJ] = 40};

/* Of a text that several values share its part; of a key of a hash nothing, as it is the hash's. */
static u64 text_size(struct perl_heap *p, const struct perl_sv *sv)
{
	u64 room = sv->body && sv->own ? perl_heap_word(p, sv->body + p->l->pv_cur.at + 8) : 0;
	const u8 *sharing;

	if (!room || room > 1ull << 46 || !(sv->flags & (PERL_POK | PERL_PPOK)))
		return 0;
	if (!(sv->flags & PERL_COW))
		return room;
	sharing = heap_bytes(p->h, sv->own + room - 1, 1);
	return sharing ? room / (*sharing + 1u) : room;
}

static bool add_entry(void *ctx, const char *key, u64 value)
{
	u64 *size = ctx;

	*size += HE_BYTES + HEK_BYTES + strlen(key);
	return true;
}

u64 perl_heap_size(struct perl_heap *p, u64 addr, const struct perl_sv *sv)
{
	u64 size = PERL_HEAD + body_sizes[sv->type], max;

	if (sv->type == PERL_AV) {
		max = sv->body ? perl_heap_word(p, sv->body + p->l->pv_cur.at + 8) + 1 : 0;
		return size + (sv->own && max < 1ull << 40 ? 8 * max : 0);
	}
	if (sv->type == PERL_HV) {
		max = sv->body ? perl_heap_word(p, sv->body + p->l->hv_max.at) + 1 : 0;
		size += sv->own && max < 1ull << 40 ? 8 * max : 0;
		perl_heap_each_entry(p, sv, add_entry, &size);
		return size;
	}
	if (sv->type == PERL_GV || sv->type == PERL_REGEXP || sv->type >= PERL_CV || sv->type == PERL_IV)
		return size;
	return size + (sv->flags & PERL_ROK ? 0 : text_size(p, sv));
}

/* --- hashes, globs, pads --- */

static void read_key(struct perl_heap *p, u64 hek, char *ret, size_t size)
{
	const u8 *bytes = hek ? heap_bytes(p->h, hek, p->l->hek_key.at) : NULL;
	s32 n = 0;

	if (bytes)
		memcpy(&n, bytes + p->l->hek_len.at, 4);
	*ret = 0;
	if (n > 0)
		perl_heap_text(p, hek + p->l->hek_key.at, (u64)n, ret, size);
}

/* The entries of a bucket; *left: how many there may still be. */
static bool each_of_bucket(struct perl_heap *p, u64 entry, u64 *left,
        bool (*each)(void *ctx, const char *key, u64 value), void *ctx, bool *stopped)
{
	char key[NAME_BYTES];
	u64 words[3];

	for (u32 n = 0; entry; n++, entry = words[0]) {
		const u8 *bytes = n < CHAIN_MAX && *left && !(entry & 7) ? heap_bytes(p->h, entry, HE_BYTES) : NULL;

		if (!bytes)
			return false;
		--*left;
		memcpy(words, bytes, sizeof(words));
		read_key(p, words[1], key, sizeof(key));
		if (!each(ctx, key, words[2])) {
			*stopped = true;
			return true;
		}
	}
	return true;
}

bool perl_heap_each_entry(
        struct perl_heap *p, const struct perl_sv *hv, bool (*each)(void *ctx, const char *key, u64 value), void *ctx)
{
	u64 max = hv->body ? perl_heap_word(p, hv->body + p->l->hv_max.at) : 0, left = ENTRIES_MAX;
	bool stopped = false;

	if (!hv->own)
		return true;
	if (max >= ENTRIES_MAX)
		return false;
	for (u64 i = 0; i <= max && !stopped; i++) {
		const void *bytes = heap_bytes(p->h, hv->own + 8 * i, 8);
		u64 entry;

		if (!bytes)
			return false;
		memcpy(&entry, bytes, 8);
		if (!each_of_bucket(p, entry, &left, each, ctx, &stopped))
			return false;
	}
	return true;
}

bool perl_heap_glob(struct perl_heap *p, const struct perl_sv *gv, struct perl_glob *ret)
{
	const u8 *bytes = gv->own && !(gv->own & 7) ? heap_bytes(p->h, gv->own, GP_BYTES) : NULL;
	u64 words[GP_BYTES / 8];

	if (!bytes)
		return false;
	memcpy(words, bytes, sizeof(words));
	*ret = (struct perl_glob){words[0], words[1], words[2], words[4], words[5], words[6]};
	return true;
}

/* xcv_padlist_u lies behind xcv_gv_u and xcv_file; a function in C has none. */
void perl_heap_each_pad(struct perl_heap *p, const struct perl_sv *cv,
        void (*each)(void *ctx, u32 depth, u64 pad, u64 names), void *ctx)
{
	u32 gv = perl_cv_gv(p->l).at;
	u64 list, array, names, max;
	u32 flags = 0;

	if (!cv->body || p->l->cv_flags.at != gv + 36 ||
	        !memory_read(p->r.mem, &flags, p->l->cv_flags.size, cv->body + p->l->cv_flags.at) ||
	        flags & PERL_CV_ISXSUB)
		return;
	list = perl_heap_word(p, cv->body + gv + 16);
	max = list ? perl_heap_word(p, list) : 0;
	array = list ? perl_heap_word(p, list + 8) : 0;
	names = array ? perl_heap_word(p, array) : 0;
	for (u32 i = 1; array && i <= max && i < PADS_MAX; i++) {
		u64 pad = perl_heap_word(p, array + 8ull * i);

		if (pad)
			each(ctx, i, pad, names);
	}
}

struct noting {
	struct perl_heap *p;
	struct error *err;
};

static void note_pad(void *ctx, u32 depth, u64 pad, u64 names)
{
	struct noting *n = ctx;

	if (!n->err)
		n->err = table_put(&n->p->pads, perl_heap_key(pad), names);
}

struct error *perl_heap_note_pads(struct perl_heap *p, const struct perl_sv *cv)
{
	struct noting n = {.p = p};

	perl_heap_each_pad(p, cv, note_pad, &n);
	return n.err;
}
