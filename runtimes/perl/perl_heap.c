/* SPDX-License-Identifier: Apache-2.0 */
#include "perl_heap.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perl_heap_internal.h"

#define FIRST_VERSION    22 /* struct padname */
#define LAST_VERSION     44
#define PACKAGES_MAX     (1u << 16)
#define PACKAGE_DEPTH    64
#define INTERPRETER_MAX  65536
#define NAME_BYTES       256
#define LABEL_BYTES      48
#define FIELDS_MAX       64 /* keys of a hash, up to which they are names, if it is no object */
#define PAD_MAX          65536
#define PIECE            (1u << 16)
#define COUNTS           65536
#define MAGIC_MAX        64
#define MAGIC_BYTES      40
#define MAGIC_REFCOUNTED 2   /* MGf_REFCOUNTED */
#define MAGIC_BACKREF    '<' /* its object has weak references */
#define CV_WEAKOUTSIDE   0x10
#define BY_TYPE_MAX      (1u << 20)
#define PERL_HEAD_WORDS  4  /* stash, magic, length, room */
#define REGEXP_WORDS     20 /* of struct regexp, or of less */
#define REGEXP_DATA      16 /* regexp_internal.data */
#define REGEXP_ITEMS     4096
#define SUBSTR_WORDS     16
#define UNREACHED_SHARE  10 /* of what is reached there may be 1/10 more */

/* --- what values refer to --- */

/* A value is drawn with what holds it; what it refers to has its label. */
static void give_element(struct perl_heap *p, u32 label, u64 value)
{
	heap_ref(p->h, label | HEAP_PART, value);
}

static bool is_name(const char *key)
{
	size_t n = 0;

	for (; key[n] && n < LABEL_BYTES; n++)
		if (key[n] != '_' && !(key[n] >= 'a' && key[n] <= 'z') && !(key[n] >= 'A' && key[n] <= 'Z') &&
		        !(n && key[n] >= '0' && key[n] <= '9'))
			return false;
	return n && n < LABEL_BYTES;
}

struct giving {
	struct perl_heap *p;
	bool names; /* keys are */
};

static bool give_entry(void *ctx, const char *key, u64 value)
{
	const struct giving *g = ctx;
	char text[LABEL_BYTES + 4];
	u32 label = HEAP_ENTRY;

	if (value < COUNTS) /* PL_strtab, the table of all keys, has numbers */
		return true;
	if (g->names && is_name(key)) {
		snprintf(text, sizeof(text), "{%s}", key);
		label = heap_label(g->p->h, text);
	}
	give_element(g->p, label, value);
	return true;
}

static bool give_hash(struct perl_heap *p, const struct perl_sv *sv)
{
	struct giving g = {.p = p, .names = sv->flags & PERL_BLESSED};

	if (!g.names && sv->body)
		g.names = perl_heap_word(p, sv->body + p->l->pv_cur.at) <= FIELDS_MAX;
	return perl_heap_each_entry(p, sv, give_entry, &g);
}

/* xav_fill lies before xav_max. An array that does not own its elements (@_ of a call) keeps nothing alive. */
static bool give_array(struct perl_heap *p, const struct perl_sv *sv)
{
	u64 n = sv->body ? perl_heap_word(p, sv->body + p->l->pv_cur.at) + 1 : 0;

	if (!sv->own || !(sv->flags & PERL_REAL))
		return true;
	if (n > 1ull << 32)
		return false;
	for (u64 i = 0; i < n; i += PIECE / 8) {
		u32 size = (u32)(n - i < PIECE / 8 ? 8 * (n - i) : PIECE);
		const u8 *bytes = heap_bytes(p->h, sv->own + 8 * i, size);
		u64 word;

		if (!bytes)
			return false;
		for (u32 k = 0; k < size; k += 8) {
			memcpy(&word, bytes + k, 8);
			give_element(p, HEAP_ITEM, word);
		}
	}
	return true;
}

/* A reference in a variable is drawn as what it leads to. */
static u32 variable(struct perl_heap *p, u32 label, u64 value)
{
	struct perl_sv sv;

	return perl_heap_sv(p, value, &sv) && sv.flags & PERL_ROK && sv.type < PERL_REGEXP ? label | HEAP_PART : label;
}

/* struct padname begins with its text, which begins with "$", "@", "%" or "&". */
static u32 pad_label(struct perl_heap *p, u64 names, u64 i)
{
	u64 fill = names ? perl_heap_word(p, names) : 0, array = names ? perl_heap_word(p, names + 8) : 0,
	    name = array && i <= fill ? perl_heap_word(p, array + 8 * i) : 0, text = name ? perl_heap_word(p, name) : 0;
	char label[LABEL_BYTES] = "";
	const char *bytes;

	if (!i)
		return p->labels.arguments;
	for (u32 n = 0; text && n + 1 < sizeof(label); n++) {
		bytes = heap_bytes(p->h, text + n, 1);
		label[n] = bytes ? *bytes : 0;
		label[n + 1] = 0;
		if (!label[n])
			break;
	}
	return strchr("$@%&", *label) && label[0] && label[1] ? heap_label(p->h, label) : HEAP_ANY;
}

/* What is in no variable belongs to the code: constants, results of ops. */
static bool give_pad(struct perl_heap *p, const struct perl_sv *sv, u64 names)
{
	u64 n = sv->body ? perl_heap_word(p, sv->body + p->l->pv_cur.at) + 1 : 0;

	if (!sv->own)
		return true;
	if (n > PAD_MAX)
		return false;
	for (u64 i = 0; i < n; i++) {
		u64 value = perl_heap_word(p, sv->own + 8 * i);
		u32 label = value ? pad_label(p, names, i) : HEAP_ANY;

		if (value)
			heap_ref(p->h, label == HEAP_ANY ? HEAP_PART : variable(p, label, value), value);
	}
	return true;
}

static void give_one_pad(void *ctx, u32 depth, u64 pad, u64 names)
{
	struct perl_heap *p = ctx;

	(void)depth, (void)names;
	heap_ref(p->h, HEAP_PART, pad);
}

static struct error *give_code(struct perl_heap *p, const struct perl_sv *sv)
{
	u32 gv = perl_cv_gv(p->l).at, flags = 0;
	struct error *err = perl_heap_note_pads(p, sv);

	perl_heap_each_pad(p, sv, give_one_pad, p);
	if (sv->body && p->l->cv_flags.at == gv + 36 &&
	        memory_read(p->r.mem, &flags, p->l->cv_flags.size, sv->body + p->l->cv_flags.at) &&
	        !(flags & (CV_WEAKOUTSIDE | PERL_CV_ISXSUB)))
		heap_ref(p->h, p->labels.outer, perl_heap_word(p, sv->body + gv + 24));
	return err;
}

/* struct magic: the next one, functions, private (u16), type, flags, a length, the object. */
static void give_magic(struct perl_heap *p, const struct perl_sv *sv)
{
	u64 at = sv->type >= PERL_PVMG && sv->body && sv->type != PERL_FM ? perl_heap_word(p, sv->body + 8) : 0;
	u64 words[MAGIC_BYTES / 8];

	if (!(sv->flags & (PERL_GMAGICAL | PERL_SMAGICAL | PERL_RMAGICAL)))
		return;
	for (u32 i = 0; i < MAGIC_MAX && at && !(at & 7); i++, at = words[0]) {
		const void *bytes = heap_bytes(p->h, at, sizeof(words));

		if (!bytes)
			return;
		memcpy(words, bytes, sizeof(words));
		if ((words[2] >> 24 & MAGIC_REFCOUNTED) && (words[2] >> 16 & 0xff) != MAGIC_BACKREF)
			heap_ref(p->h, p->labels.tied, words[4]);
	}
}

/* text: only of those that hold text. */
static void give_if_value(struct perl_heap *p, u64 addr, bool text)
{
	struct perl_sv sv;

	if (perl_heap_in_arena(p, addr) && perl_heap_sv(p, addr, &sv) &&
	        (!text || (sv.type < PERL_REGEXP && sv.flags & (PERL_POK | PERL_PPOK))))
		heap_ref(p->h, HEAP_PART, addr);
}

static void give_texts_in(struct perl_heap *p, u64 at)
{
	u64 words[SUBSTR_WORDS];

	if (at && !(at & 7) && memory_read(p->r.mem, words, sizeof(words), at))
		for (u32 i = 0; i < SUBSTR_WORDS; i++)
			give_if_value(p, words[i], true);
}

/*
 * What a compiled pattern keeps, without a layout of struct regexp, which differs in each version: the pattern that it
 * is a copy of, texts that must be there (reg_substr_data), and the program's data: a count, a letter for each, and
 * each. Other values whose address may be left there are not looked at.
 */
static void give_regexp(struct perl_heap *p, const struct perl_sv *sv)
{
	u64 words[REGEXP_WORDS], data[2];

	if (!sv->body || !memory_read(p->r.mem, words, sizeof(words), sv->body))
		return;
	for (u32 i = PERL_HEAD_WORDS; i < REGEXP_WORDS; i++) {
		u64 at = words[i] & 7 ? 0 : perl_heap_word(p, words[i] + REGEXP_DATA);
		struct perl_sv other;

		if (perl_heap_in_arena(p, words[i])) {
			if (perl_heap_sv(p, words[i], &other) && other.type == PERL_REGEXP)
				heap_ref(p->h, HEAP_PART, words[i]);
			continue;
		}
		give_texts_in(p, words[i]);
		if (!at || at & 7 || perl_heap_in_arena(p, at) || !memory_read(p->r.mem, data, sizeof(data), at) ||
		        (u32)data[0] > REGEXP_ITEMS || !data[1])
			continue;
		for (u32 k = 0; k < (u32)data[0]; k++)
			give_if_value(p, perl_heap_word(p, at + 16 + 8ull * k), false);
	}
}

static bool give(struct perl_heap *p, u64 addr, const struct perl_sv *sv, u32 label)
{
	const u64 *names = sv->type == PERL_AV ? table_get(&p->pads, perl_heap_key(addr)) : NULL;
	struct perl_glob g;

	give_magic(p, sv);
	if (names)
		return give_pad(p, sv, *names);
	if (sv->type == PERL_AV)
		return give_array(p, sv);
	if (sv->type == PERL_HV)
		return give_hash(p, sv);
	if (sv->type == PERL_REGEXP)
		give_regexp(p, sv);
	if (sv->type == PERL_CV || sv->type == PERL_FM) {
		error_free(give_code(p, sv));
	} else if (sv->type == PERL_GV && perl_heap_glob(p, sv, &g)) {
		heap_ref(p->h, HEAP_ANY, g.scalar);
		heap_ref(p->h, HEAP_ANY, g.array);
		heap_ref(p->h, HEAP_ANY, g.hash);
		heap_ref(p->h, HEAP_ANY, g.code);
		heap_ref(p->h, HEAP_PART, g.io);
		heap_ref(p->h, HEAP_ANY, g.format);
	} else if (sv->flags & PERL_ROK && !(sv->flags & PERL_WEAK)) {
		heap_ref(p->h, label & ~HEAP_FLAGS, sv->own);
	}
	return true;
}

enum heap_seen perl_heap_object(void *reader, u64 addr, u32 label, struct heap_object *ret)
{
	struct perl_heap *p = reader;
	struct perl_sv sv;

	if (addr - p->interpreter < p->interpreter_size)
		return HEAP_NOTHING; /* PL_sv_undef and the like */
	if (!perl_heap_in_arena(p, addr) || !perl_heap_sv(p, addr, &sv))
		return HEAP_TORN;
	ret->type = perl_heap_type(p, addr, &sv);
	ret->size = perl_heap_size(p, addr, &sv);
	p->reached++;
	return give(p, addr, &sv, label) ? HEAP_OBJECT : HEAP_TORN;
}

/* --- roots --- */

struct packages {
	struct perl_heap *p;
	u32 root, depth, *left;
	const char *name;
	struct table *seen;
	struct error *err;
};

static void package(struct packages *k, const char *name, u64 stash);

static void root_variable(struct packages *k, char sigil, const char *name, u64 value)
{
	char text[NAME_BYTES + 2];
	u32 label;

	if (!value)
		return;
	snprintf(text, sizeof(text), "%c%s", sigil, name);
	label = heap_label(k->p->h, text);
	heap_root_ref(k->p->h, k->root, sigil == '$' ? variable(k->p, label, value) : label, value);
}

static bool ends_as_package(const char *key, size_t n)
{
	return n > 2 && !strcmp(key + n - 2, "::");
}

/* An entry of a package: a glob, or a reference to a sub that has none. */
static bool package_entry(void *ctx, const char *key, u64 value)
{
	struct packages *k = ctx;
	char inner[2 * NAME_BYTES];
	size_t n = strlen(key);
	struct perl_sv sv;
	struct perl_glob g;

	if (!perl_heap_sv(k->p, value, &sv))
		return true;
	heap_root_ref(k->p->h, k->root, HEAP_PART, value);
	if (sv.type != PERL_GV) {
		if (sv.flags & PERL_ROK)
			root_variable(k, '&', key, sv.own);
		return true;
	}
	if (!perl_heap_glob(k->p, &sv, &g))
		return true;
	if (ends_as_package(key, n)) {
		snprintf(inner, sizeof(inner), "%s%s%.*s", k->name, *k->name ? "::" : "", (int)n - 2, key);
		package(k, inner, g.hash);
		return !k->err;
	}
	root_variable(k, '$', key, g.scalar);
	root_variable(k, '@', key, g.array);
	root_variable(k, '%', key, g.hash);
	root_variable(k, '&', key, g.code);
	root_variable(k, '*', key, g.io);
	return true;
}

/* name: "" of main, which is in itself. */
static void package(struct packages *k, const char *name, u64 stash)
{
	struct packages inner = *k;
	struct perl_sv sv;

	if (!stash || k->depth >= PACKAGE_DEPTH || !*k->left || table_get(k->seen, perl_heap_key(stash)) ||
	        !perl_heap_sv(k->p, stash, &sv) || sv.type != PERL_HV)
		return;
	--*k->left;
	k->err = table_put(k->seen, perl_heap_key(stash), 1);
	if (k->err)
		return;
	inner.name = name;
	inner.depth++;
	inner.root = heap_root(k->p->h, 0, HEAP_LASTING, *name ? name : "main");
	heap_root_ref(k->p->h, inner.root, HEAP_PART, stash);
	perl_heap_each_entry(k->p, &sv, package_entry, &inner);
	k->err = inner.err;
}

/* The program itself is a sub without a name. */
static bool is_program(struct perl_heap *p, u64 addr, const struct perl_sv *sv)
{
	struct perl_cv cv;

	return sv->type == PERL_CV && perl_read_cv(&p->r, addr, &cv) && !cv.gv && !(cv.flags & PERL_CV_ANON);
}

static struct error *interpreter_roots(struct perl_heap *p, u64 *main)
{
	u32 rest = heap_root(p->h, 0, HEAP_RUNTIME, "(interpreter)");
	char name[NAME_BYTES];

	*main = 0;
	for (u32 i = 0; i + 8 <= p->interpreter_size; i += 8) {
		u64 at = perl_heap_word(p, p->interpreter + i);
		struct perl_sv sv;

		if (!perl_heap_in_arena(p, at) || !perl_heap_sv(p, at, &sv))
			continue;
		if (!*main && perl_heap_stash(p, at, &sv, name, sizeof(name)) && !strcmp(name, "main"))
			*main = at;
		else if (is_program(p, at, &sv))
			heap_root_ref(p->h, heap_root(p->h, 0, HEAP_LASTING, "(main program)"), HEAP_PART, at);
		else
			heap_root_ref(p->h, rest, HEAP_ANY, at);
	}
	return *main ? NULL : error_new(ERROR_UNSUPPORTED, "the packages of this Perl were not found");
}

struct error *perl_heap_roots(void *reader)
{
	struct perl_heap *p = reader;
	struct table seen = {0};
	u32 left = PACKAGES_MAX;
	struct packages k = {.p = p, .left = &left, .name = "", .seen = &seen};
	u64 main;
	struct error *err = interpreter_roots(p, &main);

	if (!err) {
		package(&k, "", main);
		err = k.err;
	}
	table_free(&seen);
	return err;
}

/* --- by arena --- */

struct tally {
	u64 count, bytes;
};

struct counting {
	struct tally *items;
	u32 n;
};

static struct error *count(struct perl_heap *p, void *ctx, u64 addr, const struct perl_sv *sv)
{
	struct counting *c = ctx;
	u32 type = perl_heap_type(p, addr, sv);

	if (type >= c->n) {
		u32 n = 2 * type < BY_TYPE_MAX ? 2 * type + 64 : BY_TYPE_MAX + 1;
		struct tally *grown = reallocarray(c->items, n, sizeof(*grown));

		if (!grown)
			return &error_no_memory;
		memset(grown + c->n, 0, (n - c->n) * sizeof(*grown));
		c->items = grown;
		c->n = n;
	}
	c->items[type].count++;
	c->items[type].bytes += perl_heap_size(p, addr, sv);
	return NULL;
}

static struct error *note_pads(struct perl_heap *p, void *ctx, u64 addr, const struct perl_sv *sv)
{
	return sv->type == PERL_CV || sv->type == PERL_FM ? perl_heap_note_pads(p, sv) : NULL;
}

static struct error *be_candidate(struct perl_heap *p, void *ctx, u64 addr, const struct perl_sv *sv)
{
	heap_candidate(p->h, addr, sv->count);
	return NULL;
}

static struct error *each_arena(struct perl_heap *p,
        struct error *(*each)(struct perl_heap *p, void *ctx, u64 addr, const struct perl_sv *sv), void *ctx)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < p->narenas; i++)
		for (u32 k = 1; !err && k < p->arenas[i].n; k++) {
			u64 addr = p->arenas[i].at + (u64)k * PERL_HEAD;
			struct perl_sv sv;

			if (perl_heap_sv(p, addr, &sv))
				err = each(p, ctx, addr, &sv);
		}
	return err;
}

struct error *perl_heap_blocks(void *reader)
{
	struct perl_heap *p = reader;
	struct counting c = {0};
	struct error *err = each_arena(p, note_pads, NULL);

	if (!err)
		err = each_arena(p, count, &c);
	for (u32 i = 0; !err && i < c.n; i++)
		if (c.items[i].count)
			heap_count(p->h, 0, i, c.items[i].count, c.items[i].bytes);
	free(c.items);
	return err;
}

struct error *perl_heap_all(void *reader)
{
	struct perl_heap *p = reader;
	struct error *err = each_arena(p, note_pads, NULL);

	p->listed = true;
	return err ? err : each_arena(p, be_candidate, NULL);
}

static struct error *add_one(struct perl_heap *p, void *ctx, u64 addr, const struct perl_sv *sv)
{
	(void)p, (void)addr, (void)sv;
	++*(u64 *)ctx;
	return NULL;
}

/* Values that the roots did not reach; few may be what changed meanwhile: 0. */
static u64 count_unreached(struct perl_heap *p, u64 *all)
{
	*all = 0;
	if (!p->reached || p->listed)
		return 0;
	error_free(each_arena(p, add_one, all));
	return *all > p->reached + p->reached / UNREACHED_SHARE ? *all - p->reached : 0;
}

/* Nothing frees a cycle: who sees only what the roots reach would miss such a leak. */
bool perl_heap_leaks(void *reader)
{
	u64 all;

	return count_unreached(reader, &all);
}

static void note_unreached(struct perl_heap *p)
{
	u64 all, n = count_unreached(p, &all);
	char text[160];

	if (!n)
		return;
	snprintf(text, sizeof(text),
	        "no root leads to %" PRIu64 " of %" PRIu64 " values: cycles, which nothing frees, or what only C code "
	        "keeps. perl-refs shows them",
	        n, all);
	heap_note(p->h, text);
}

/* --- life --- */

static struct error *check(const struct perl_image *image)
{
	u32 version = image->build.version;

	if (!image->vm.multiple)
		return error_new(ERROR_UNSUPPORTED, "the heap of a Perl without MULTIPLICITY is not read");
	if (version < FIRST_VERSION || version > LAST_VERSION)
		return error_new(ERROR_UNSUPPORTED, "the heap of Perl 5.%u is not read, only of 5.%u to 5.%u", version,
		        FIRST_VERSION, LAST_VERSION);
	return NULL;
}

struct error *perl_heap_open(const struct perl_image *image, u64 bias, u64 interpreter, const struct runtime_process *p,
        struct heap *h, void **ret)
{
	struct error *err = check(image);
	struct perl_heap *made = err ? NULL : calloc(1, sizeof(*made));

	*ret = NULL;
	if (!made)
		return err ? err : &error_no_memory;
	made->h = h;
	made->l = image->layout;
	made->r = (struct perl_reader){.mem = p->memory, .image = image, .bias = bias, .interpreter = interpreter};
	made->interpreter = interpreter;
	made->interpreter_size =
	        image->build.interpreter_size < INTERPRETER_MAX ? image->build.interpreter_size : INTERPRETER_MAX;
	made->labels.arguments = heap_label(h, "@_");
	made->labels.outer = heap_label(h, "(outer)");
	made->labels.tied = heap_label(h, "(tied)");
	err = perl_heap_find_arenas(made);
	if (err)
		perl_heap_close(made);
	else
		*ret = made;
	return err;
}

void perl_heap_close(void *reader)
{
	struct perl_heap *p = reader;

	note_unreached(p);
	free(p->arenas);
	table_free(&p->pads);
	free(p);
}
