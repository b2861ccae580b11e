/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of perl_heap.h share. */
#ifndef YRT_PERL_HEAP_INTERNAL_H
#define YRT_PERL_HEAP_INTERNAL_H

#include "perl_heap.h"
#include "table.h"

#define PERL_HEAD 24 /* struct sv: body, count of references, flags, a word of its own */

/* svtype, from PVIV on the same in all versions */
enum perl_type {
	PERL_UNDEF,
	PERL_IV,
	PERL_NV,
	PERL_PV,
	PERL_INVLIST,
	PERL_PVIV,
	PERL_PVNV,
	PERL_PVMG,
	PERL_REGEXP,
	PERL_GV,
	PERL_LV,
	PERL_AV,
	PERL_HV,
	PERL_CV,
	PERL_FM,
	PERL_IO,
	PERL_OBJ, /* 5.38 */
	PERL_TYPES,
};

/* sv.h */
#define PERL_ROK      0x00000800u
#define PERL_POK      0x00000400u
#define PERL_PPOK     0x00004000u /* SVp_POK */
#define PERL_BLESSED  0x00100000u
#define PERL_GMAGICAL 0x00200000u
#define PERL_SMAGICAL 0x00400000u
#define PERL_RMAGICAL 0x00800000u
#define PERL_OOK      0x02000000u
#define PERL_COW      0x10000000u
#define PERL_REAL     0x40000000u /* of an array: it owns its elements */
#define PERL_WEAK     0x80000000u /* of a reference */

struct perl_sv {
	u64 body, own; /* own: sv_u: text, elements, buckets, what a reference leads to */
	u32 count, flags;
	enum perl_type type;
};

struct perl_arena {
	u64 at;
	u32 n; /* SVs, the first of which is the arena's own */
};

struct perl_heap {
	struct heap *h;
	struct perl_reader r;
	const struct perl_layout *l;
	u64 interpreter;
	u32 interpreter_size;
	struct perl_arena *arenas; /* in order of address */
	u32 narenas;
	struct table pads; /* from a pad's address to that of its names */
	u64 reached;       /* values that were looked at because something leads to them */
	bool listed;       /* all were given, for --unreachable */
	struct {
		u32 arguments, outer, tied;
	} labels;
};

u64 perl_heap_word(struct perl_heap *p, u64 addr); /* 0: unreadable, too */
/* False: there is no value at this address, or it was freed. */
bool perl_heap_sv(struct perl_heap *p, u64 addr, struct perl_sv *ret);
/* Is it a place of an SV in an arena? */
bool perl_heap_in_arena(const struct perl_heap *p, u64 addr);
/* heap_type() of a value: its package, or what reftype() says, with STASH, PAD and UNDEF. */
u32 perl_heap_type(struct perl_heap *p, u64 addr, const struct perl_sv *sv);
u64 perl_heap_size(struct perl_heap *p, u64 addr, const struct perl_sv *sv);
/* Finds the arenas. An error: none. */
struct error *perl_heap_find_arenas(struct perl_heap *p);
/* Notes the pads of a sub. */
struct error *perl_heap_note_pads(struct perl_heap *p, const struct perl_sv *cv);
/* Calls each for the pads of a sub: 1 is the first. */
void perl_heap_each_pad(struct perl_heap *p, const struct perl_sv *cv,
        void (*each)(void *ctx, u32 depth, u64 pad, u64 names), void *ctx);
/* A text of the target, cut; "" if it cannot be read. */
void perl_heap_text(struct perl_heap *p, u64 addr, u64 n, char *ret, size_t size);
/* Is it a package? Its name. */
bool perl_heap_stash(struct perl_heap *p, u64 addr, const struct perl_sv *sv, char *ret, size_t size);

/* Calls each for the entries of a hash until it returns false. False: it does not fit together. */
bool perl_heap_each_entry(
        struct perl_heap *p, const struct perl_sv *hv, bool (*each)(void *ctx, const char *key, u64 value), void *ctx);

/* The members of a glob. */
struct perl_glob {
	u64 scalar, io, code, hash, array, format;
};
bool perl_heap_glob(struct perl_heap *p, const struct perl_sv *gv, struct perl_glob *ret);

static inline u64 perl_heap_key(u64 addr)
{
	addr *= 0x9e3779b97f4a7c15ull;
	return (addr ^ addr >> 29) | 1ull << 63;
}

#endif
