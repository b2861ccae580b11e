/* SPDX-License-Identifier: Apache-2.0 */
#include "perl_names.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ends_with.h"
#include "hash_text.h"
#include "known.h"
#include "perl_objects.h"
#include "perl_postgres.h"

/*
 * The line of a frame as caller() and die() give it. A block of one statement loses its nextstate, and so does the
 * condition of an `elsif`: then PL_curcop is the statement of the `if`, and the lost COP is an OP_NULL in the tree of
 * ops behind it. closest_cop() of util.c (5.20 to 5.44) finds it by the op that runs, or that a caller continues with.
 */

#define OPS_MAX    4096
#define DEPTH_MAX  64
#define NEXT_SINCE 20 /* 5.20: caller() looks for the closest COP */
#define PARENTS    22 /* 5.22: there is op_moresib */

/* op.h of 5.16 to 5.44: what a layout does not name lies between and behind the members that it does. */
struct op {
	u64 next, sibling, ppaddr, targ; /* sibling: without op_moresib the parent */
	u16 type;                        /* op_type, and single bits */
	u8 flags, private;
	u32 unused;
	u64 first; /* of UNOPs and larger ones */
};
#define MORESIB  0x4000
#define OPf_KIDS 4

/* One level of the tree: the op that is looked at, and the COP that was seen last among it and those before it. */
struct level {
	u64 op, cop;
};

static u64 sibling(const struct perl_reader *r, const struct op *op)
{
	return r->image->build.version < PARENTS || op->type & MORESIB ? op->sibling : 0;
}

/* What is looked for: an op, or the next one of an op. */
struct wanted {
	u64 at;       /* its address; 0: only bits of it are known */
	u32 bits;     /* perl_op_bits() */
	bool current; /* no statement behind the one that the search begins at has run */
	bool any;     /* also an op of a type that is not expected */
	bool partly;  /* not all ops were seen: the replacement of s///e is a tree of its own */
};

/* Is it an op that can run, or can have entered a context? */
static bool is_expected(const struct perl_reader *r, u32 type, bool runs)
{
	return runs ? type : r->image->calls[type / 64] >> type % 64 & 1;
}

static bool is_it(const struct perl_reader *r, u64 at, const struct op *op, const struct wanted *w)
{
	u32 type = op->type & PERL_OP_TYPE;
	bool runs = w->bits & PERL_OP_RUNS;
	u64 it = runs ? at : op->next;

	if (!runs && type == r->image->scope)
		return false;
	if (w->at)
		return it == w->at;
	return (w->any || is_expected(r, type, runs)) && perl_op_bits(it, runs) == w->bits;
}

static bool was_cop(const struct perl_reader *r, const struct op *op)
{
	return !(op->type & PERL_OP_TYPE) && op->targ == r->image->type;
}

static u64 behind(const struct perl_reader *r, const struct op *op, const struct wanted *w)
{
	bool cop = perl_is_state(r, op->ppaddr, op->type & PERL_OP_TYPE);

	return cop && w->current ? 0 : sibling(r, op);
}

/* Moves to the next sibling of the op, or of the nearest parent that has one. False: the tree ends. */
static bool go_on(const struct perl_reader *r, struct level *stack, u32 *depth, struct op *op, struct wanted *w)
{
	while (*depth && !(stack[*depth].op = behind(r, op, w)))
		if (!memory_read(r->mem, op, sizeof(*op), stack[--*depth].op)) {
			w->partly = true;
			return false;
		}
	return *depth;
}

/*
 * Of the tree at `at` in the order of closest_cop(): the COP in whose range the op is, `first` before any other; 0: the
 * op is not there.
 */
static u64 search(const struct perl_reader *r, u64 at, u64 first, struct wanted *w)
{
	struct level stack[DEPTH_MAX] = {{at, first}};
	struct op op;
	u32 depth = 0;

	for (u32 i = 0; i < OPS_MAX; i++) {
		struct level *l = &stack[depth];

		if (!memory_read(r->mem, &op, sizeof(op), l->op))
			break;
		if (depth && was_cop(r, &op))
			l->cop = l->op;
		if (is_it(r, l->op, &op, w)) {
			w->at = w->bits & PERL_OP_RUNS ? l->op : op.next;
			return l->cop;
		}
		w->partly |= depth + 1 == DEPTH_MAX || (op.type & PERL_OP_TYPE) == r->image->subst;
		if (op.flags & OPf_KIDS && op.first && depth + 1 < DEPTH_MAX) {
			stack[++depth] = (struct level){op.first, l->cop};
			continue;
		}
		if (!go_on(r, stack, &depth, &op, w))
			return 0;
	}
	w->partly = true;
	return 0;
}

/* Are ops what is read here? */
static bool is_known(const struct perl_layout *l)
{
	return l->op_ppaddr.at == offsetof(struct op, ppaddr) && l->op_targ.at == offsetof(struct op, targ);
}

/*
 * op: perl_op() of a frame whose statement this is. The statement itself if there is no other one.
 *
 * Ops far from each other may have the same bits, as in a long loop. The op is not behind a later statement, because
 * that would be the current one then. So an op is first looked for where it can be, and among those of a type that it
 * can have, which a module's own op may not have. closest_cop() may find another one before it that is followed by the
 * same op.
 */
static u64 perl_closest_cop(const struct perl_reader *r, u64 cop, u32 op)
{
	struct wanted w = {.bits = op, .current = true};
	struct op first;
	u64 begin, found;

	if (!op || !is_known(r->image->layout) || (!(op & PERL_OP_RUNS) && r->image->build.version < NEXT_SINCE) ||
	        !perl_is_cop(r, cop) || !memory_read(r->mem, &first, sizeof(first), cop))
		return cop;
	begin = sibling(r, &first);
	found = begin ? search(r, begin, cop, &w) : 0;
	w.any = true;
	if (begin && !found)
		found = search(r, begin, cop, &w);
	w.current = false;
	if (begin && !(op & PERL_OP_RUNS))
		found = search(r, begin, cop, &w);
	return found ? found : cop;
}

/* False: the code whose tree of ops has this root does not have this statement. */
static bool perl_may_have(const struct perl_reader *r, u64 root, u64 cop)
{
	struct wanted w = {.at = cop, .bits = PERL_OP_RUNS};

	return !root || !is_known(r->image->layout) || search(r, root, cop, &w) || w.partly;
}

/* What was read: of a CV, what it is called and where it begins; of a statement that a frame was in, where that is: its
 * owner is the frame's CV with its cookie. */
struct text {
	struct known known;
	u64 hash; /* of a CV, perl_cv_hash() */
	u32 line;
	char *name, *file;
};

struct perl_names {
	const struct perl_image *image;
	u64 bias;
	u64 postgres; /* perl_postgres_find() */
	struct known_objects known;
};

static void text_free(struct known *k)
{
	struct text *t = (struct text *)k;

	free(t->name);
	free(t->file);
	free(t);
}

struct perl_names *perl_names_create(const struct perl_image *image, u64 bias)
{
	struct perl_names *names = calloc(1, sizeof(*names));

	if (names) {
		names->image = image;
		names->bias = bias;
		names->known.destroy = text_free;
	}
	return names;
}

void perl_names_set_postgres(struct perl_names *names, u64 top)
{
	names->postgres = top;
}

void perl_names_destroy(struct perl_names *names)
{
	if (!names)
		return;
	known_forget(&names->known);
	free(names);
}

static struct text *find(struct perl_names *names, u64 object, u64 owner)
{
	return (struct text *)known_find(&names->known, object, owner);
}

static struct text *keep(struct perl_names *names, u64 object, u64 owner, const char *name, const char *file, u32 line)
{
	struct text *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	*t = (struct text){
	        .known = {.object = object, .owner = owner}, .line = line, .name = strdup(name), .file = strdup(file)};
	if (!t->name || !t->file) {
		text_free(&t->known);
		return NULL;
	}
	known_keep(&names->known, &t->known);
	return t;
}

#define STATEMENT_PLACE (1ull << 63)

/* The statement, and the op in it (perl_op()); NULL: it is not there any more. */
static const struct text *place(struct perl_names *names, const struct perl_reader *r, u64 cop, u32 op, u64 owner)
{
	u64 object = cop >> 3 | (u64)op << PERL_COP_BITS | STATEMENT_PLACE; /* a closure's code may begin with it */
	struct text *k = cop ? find(names, object, owner) : NULL;
	char file[NAME_MAX_BYTES];
	u32 line;

	if (k || !cop)
		return k;
	return perl_cop_place(r, perl_closest_cop(r, cop, op), &line, file, sizeof(file))
	               ? keep(names, object, owner, "", file, line)
	               : NULL;
}

static void say_sql_name(
        struct perl_names *names, const struct perl_reader *r, u64 cv, u64 start, char *ret, size_t size)
{
	char name[NAME_MAX_BYTES];

	if (names->postgres && perl_postgres_name(r, names->postgres, cv, start, name, sizeof(name)))
		snprintf(ret, size, "%s", name);
}

/* Is the CV that is there by now another renamed closure? A caller runs a statement of its own code. */
static bool is_other(const struct perl_reader *r, const struct frame *f, const struct perl_cv *cv)
{
	return perl_kind(f->detail) == PERL_KIND_RENAMED &&
	       (perl_kind_of_cv(cv->flags) != PERL_KIND_RENAMED ||
	               (!(perl_op(f) & PERL_OP_RUNS) && !perl_may_have(r, cv->root, perl_cop(f->detail))));
}

/* Is it a BEGIN block? When it ends it loses its GV, and is `__ANON__`; then it has the statement. */
static bool may_be_begin(const struct perl_reader *r, const struct frame *f, const struct perl_cv *cv)
{
	char name[NAME_MAX_BYTES];

	return (perl_cv_name(r, cv, name, sizeof(name)) && ends_with(name, "::BEGIN")) ||
	       (cv->root && perl_may_have(r, cv->root, perl_cop(f->detail)));
}

/* *alive: the CV is still there. Not certain where another one of that address and cookie may have been meant. */
static const struct text *function(
        struct perl_names *names, const struct perl_reader *r, const struct frame *f, u64 owner, bool *alive)
{
	u64 at = perl_object(f), detail = f->detail;
	struct text *k = find(names, at, owner);
	char name[NAME_MAX_BYTES], file[NAME_MAX_BYTES] = "";
	u64 words[3], hash;
	u32 kind = perl_kind(detail), line = 0;
	struct perl_cv cv;

	*alive = false;
	if (!perl_read_cv(r, at, &cv))
		return k;
	words[0] = cv.start;
	words[1] = cv.root;
	words[2] = cv.gv;
	hash = perl_cv_hash(cv.body, words, kind);
	if (perl_has_line(f) ? !may_be_begin(r, f, &cv)
	                     : perl_cookie(cv.body, words, kind) != perl_cookie_of(detail) || is_other(r, f, &cv))
		return k;
	*alive = true;
	if (k && k->hash == hash)
		return k;
	if (!perl_cv_name(r, &cv, name, sizeof(name)) && snprintf(name, sizeof(name), "__ANON__") < 0)
		return NULL;
	if (!(cv.flags & PERL_CV_ISXSUB) && !perl_cop_place(r, perl_first_cop(r, cv.start), &line, file, sizeof(file)))
		line = 0;
	if (cv.flags & PERL_CV_ANON)
		say_sql_name(names, r, at, 0, name, sizeof(name));
	if (perl_has_line(f) && ends_with(name, "__ANON__"))
		strcpy(name + strlen(name) - strlen("__ANON__"), "BEGIN");
	k = keep(names, at, owner, name, file, line);
	if (k)
		k->hash = hash;
	return k;
}

/* A closure: all that is left of it for sure is its code. */
static const struct text *closure(struct perl_names *names, const struct perl_reader *r, u64 start, u64 owner)
{
	struct text *k = find(names, start, owner);
	char name[NAME_MAX_BYTES], file[NAME_MAX_BYTES];
	u64 cop;
	u32 line;
	size_t n;

	if (k)
		return k;
	cop = perl_first_cop(r, start);
	if (!cop || !perl_cop_place(r, cop, &line, file, sizeof(file)))
		return NULL;
	if (!perl_cop_package(r, cop, name, sizeof(name)))
		name[0] = 0;
	n = strlen(name);
	snprintf(name + n, sizeof(name) - n, "%s__ANON__", n ? "::" : "");
	say_sql_name(names, r, 0, start, name, sizeof(name));
	return keep(names, start, owner, name, file, line);
}

/* A statement's place; no line: unknown. */
struct spot {
	u32 line;
	char file[NAME_MAX_BYTES];
};

static struct spot spot_of(const struct text *k)
{
	struct spot ret = {.line = k ? k->line : 0};

	if (k)
		snprintf(ret.file, sizeof(ret.file), "%s", k->file);
	return ret;
}

static void say_place(const struct spot *spot, struct frame_name *ret)
{
	if (!spot->line)
		return;
	if (!ret->file[0]) {
		snprintf(ret->file, sizeof(ret->file), "%s", spot->file);
		ret->definition = spot->line;
	}
	if (!strcmp(ret->file, spot->file) || (!spot->file[0] && ret->definition == spot->line))
		ret->line = spot->line;
}

/* Where a frame is. Of a statement that was freed since its line may be all that is known. */
static struct spot frame_spot(struct perl_names *names, const struct perl_reader *r, const struct frame *f, u64 owner)
{
	struct spot ret = {.line = perl_line(f)};
	u64 cop = perl_cop(f->detail);
	const struct text *k = place(names, r, cop, perl_op(f), owner);
	u32 line;

	if (!perl_has_line(f) || !ret.line || (k && k->line == ret.line))
		return spot_of(k);
	if (!perl_cop_place(r, cop, &line, ret.file, sizeof(ret.file)) || line != ret.line)
		ret.file[0] = '\0';
	return ret;
}

/*
 * Try::Tiny gives each of its blocks a name and frees it when it has run; Future::AsyncAwait runs copies of a sub. What
 * was named at a statement says what else ran it; the innermost frame's may be a caller's, of another file or above.
 */
#define STATEMENT 2ull /* owner of what ran it */

static bool fits(const struct text *k, const struct spot *statement)
{
	return !statement->line || (!strcmp(k->file, statement->file) && statement->line >= k->line);
}

/* What was named at the statement of this frame, and may have run it; NULL: nothing. */
static const struct text *seen_at(struct perl_names *names, u64 cop, const struct spot *statement)
{
	const struct text *k = cop ? find(names, cop, STATEMENT) : NULL;

	return k && fits(k, statement) ? k : NULL;
}

/* Of a sub: what it is called; NULL: it is gone, and nothing that was named before can have run its statement. */
static const struct text *sub(struct perl_names *names, const struct perl_reader *r, const struct frame *f, u64 owner,
        const struct spot *statement)
{
	u64 cop = perl_cop(f->detail);
	bool alive, replaced;
	const struct text *k = function(names, r, f, owner, &alive), *seen = seen_at(names, cop, statement);

	if (!alive)
		return k && fits(k, statement) ? k : seen;
	if (!k || !cop || !statement->line || !k->line)
		return k;
	/* Of two of a caller's file that begin above its statement, the one further down has the statement in it. */
	replaced = seen && perl_kind(f->detail) == PERL_KIND_RENAMED && !(perl_op(f) & PERL_OP_RUNS);
	if (replaced && (!fits(k, statement) || seen->line > k->line))
		return seen;
	if (!fits(k, statement) || (find(names, cop, STATEMENT) && !(replaced && seen->line < k->line)))
		return k;
	return keep(names, cop, STATEMENT, k->name, k->file, k->line);
}

static const struct text *named_sub(struct perl_names *names, const struct perl_reader *r, const struct frame *f,
        u64 owner, const struct spot *statement)
{
	u32 kind = perl_kind(f->detail);
	bool alive;

	if (kind == PERL_KIND_CLOSURE)
		return closure(names, r, perl_object(f), owner);
	return kind == PERL_KIND_SUB || kind == PERL_KIND_RENAMED ? sub(names, r, f, owner, statement)
	                                                          : function(names, r, f, owner, &alive);
}

/* The frame as the walker would have made it. */
static struct frame read_sub(const struct perl_reader *r, struct frame f)
{
	u64 words[3];
	struct perl_cv cv;
	u32 kind;

	f.detail -= (u64)PERL_KIND_UNREAD << PERL_KIND_SHIFT;
	if (!perl_read_cv(r, perl_object(&f), &cv))
		return f;
	words[0] = cv.start;
	words[1] = cv.root;
	words[2] = cv.gv;
	kind = perl_kind_of_cv(cv.flags);
	if (kind == PERL_KIND_CLOSURE)
		f.where += cv.start - perl_object(&f);
	f.detail |= (u64)kind << PERL_KIND_SHIFT |
	            (u64)perl_cookie(kind == PERL_KIND_CLOSURE ? 0 : cv.body, words, kind) << PERL_COOKIE_SHIFT;
	return f;
}

/* Each `use` has a BEGIN block on its line. The next one takes the place of one whose statement is gone. */
static bool is_another_begin(const struct frame *f, const struct spot *statement, const struct text *k)
{
	return perl_has_line(f) && statement->line && !statement->file[0] && statement->line != k->line;
}

static bool name_sub(struct perl_names *names, const struct perl_reader *r, const struct frame *f, bool unread,
        struct frame_name *ret)
{
	u64 owner = perl_object(f) ^ (u64)((perl_has_line(f) ? perl_line(f) : perl_cookie_of(f->detail)) + 1) << 48;
	u32 kind = perl_kind(f->detail);
	struct spot statement = kind == PERL_KIND_XS ? (struct spot){0} : frame_spot(names, r, f, owner);
	const struct text *k = named_sub(names, r, f, owner, &statement);

	if (k && unread && !fits(k, &statement)) /* by now it may be another one */
		k = NULL;
	if (!k && perl_stack(f->detail) != PERL_STACK_REQUIRE)
		return false;
	if (!k) { /* what was run while code was compiled, and then freed */
		snprintf(ret->name, sizeof(ret->name), "BEGIN");
		say_place(&statement, ret);
		return true;
	}
	snprintf(ret->name, sizeof(ret->name), "%s", kind == PERL_KIND_PATTERN ? "(?{...})" : k->name);
	if (kind != PERL_KIND_PATTERN && !is_another_begin(f, &statement, k)) {
		snprintf(ret->file, sizeof(ret->file), "%s", k->file);
		ret->definition = k->line;
	}
	say_place(&statement, ret);
	ret->form = kind == PERL_KIND_XS ? FORM_NATIVE : FORM_INTERPRETED;
	return true;
}

/* A frame that is no sub's: what it is, and the statement that began it. */
static bool name_block(
        struct perl_names *names, const struct perl_reader *r, const struct frame *f, struct frame_name *ret)
{
	static const char *const texts[PERL_KINDS] = {
	        [PERL_KIND_EVAL] = "eval {...}",
	        [PERL_KIND_TRY] = "try {...}",
	        [PERL_KIND_STRING] = "eval \"...\"",
	        [PERL_KIND_SORT] = "sort {...}",
	        [PERL_KIND_MAIN] = "main program",
	};
	struct spot spot = frame_spot(names, r, f, perl_object(f)), begin = spot;
	u32 kind = perl_kind(f->detail);

	if (kind >= PERL_KINDS || !texts[kind])
		return false;
	snprintf(ret->name, sizeof(ret->name), "%s", texts[kind]);
	if (!perl_has_line(f) || perl_object(f) != perl_cop(f->detail))
		begin = spot_of(place(names, r, perl_object(f), 0, 0));
	if (kind != PERL_KIND_MAIN)
		say_place(&begin, ret);
	ret->line = 0;
	say_place(&spot, ret);
	if (kind == PERL_KIND_MAIN)
		ret->definition = 1;
	return true;
}

/* Does it look like a file below a directory of @INC? */
static bool is_relative(const char *text)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./";

	return strpbrk(text, "./") && *text != '/' && !text[strspn(text, letters)];
}

/*
 * What was the file's name may be another text by now: then it does not look like a file, or another one runs, or it is
 * a path at which Perl looks for the next file.
 */
static const struct text *file_name(
        struct perl_names *names, const struct perl_reader *r, u64 at, const struct spot *running)
{
	const struct text *k = find(names, at, 1);
	char file[NAME_MAX_BYTES];
	bool runs;

	if (!perl_sv_text(r, at, file, sizeof(file)))
		return k;
	runs = ends_with(running->file, file);
	if (!runs && (!is_relative(file) || (k && ends_with(running->file, k->name))))
		return k;
	return k && !strcmp(k->name, file) ? k : keep(names, at, 1, file, "", 0);
}

static bool name_file(
        struct perl_names *names, const struct perl_reader *r, const struct frame *f, struct frame_name *ret)
{
	struct spot spot = frame_spot(names, r, f, perl_object(f));
	const struct text *k = file_name(names, r, perl_object(f), &spot);

	snprintf(ret->name, sizeof(ret->name), "require%s%s", k ? " " : "", k ? k->name : "");
	ret->qualified = true;
	say_place(&spot, ret);
	return true;
}

static bool is_perl(const struct frame *f)
{
	return frame_kind(f) == FRAME_SCRIPT && frame_runtime(f) == RUNTIME_PERL;
}

static bool is_sub(const struct frame *f)
{
	u32 kind = perl_kind(f->detail);

	return kind == PERL_KIND_SUB || kind >= PERL_KIND_CLOSURE;
}

/* A block runs statements of what it is in. */
static bool is_block(const struct frame *f)
{
	u32 kind = perl_kind(f->detail);

	return kind == PERL_KIND_EVAL || kind == PERL_KIND_TRY || kind == PERL_KIND_SORT;
}

bool perl_is_entered(const struct frame *frames, u32 i, u32 n)
{
	bool same = false;

	if (!is_perl(&frames[i]) || !is_sub(&frames[i]))
		return false;
	for (u32 k = 0; k < n; k++) {
		if (k == i || !is_perl(&frames[k]))
			continue;
		if (k < i || (!same && perl_cop(frames[k].detail) != perl_cop(frames[i].detail)))
			return false;
		same = true;
		if (!is_block(&frames[k]))
			return perl_object(&frames[k]) != perl_object(&frames[i]);
	}
	return false;
}

bool perl_name_frame(struct perl_names *names, struct memory *mem, const struct frame *frame, struct frame_name *ret)
{
	struct perl_reader r = {.mem = mem, .image = names->image, .bias = names->bias};
	bool named, unread = perl_kind(frame->detail) == PERL_KIND_UNREAD;
	struct frame f;
	u32 kind;

	if (names->image->vm.multiple &&
	        !memory_read(mem, &r.interpreter, sizeof(r.interpreter), names->bias + names->image->interpreter))
		r.interpreter = 0;
	memset(ret, 0, sizeof(*ret));
	f = unread ? read_sub(&r, *frame) : *frame;
	kind = perl_kind(f.detail);
	if (kind <= PERL_KIND_FORMAT || kind == PERL_KIND_PATTERN || kind == PERL_KIND_CLOSURE ||
	        kind == PERL_KIND_RENAMED)
		named = name_sub(names, &r, &f, unread, ret);
	else if (kind == PERL_KIND_REQUIRE)
		named = name_file(names, &r, &f, ret);
	else
		named = name_block(names, &r, &f, ret);
	ret->identity = hash_add_text(hash_add_text(ret->definition + kind, ret->name), ret->file);
	return named;
}
