/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_stubs.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "grow.h"
#include "hotspot_flow.h"
#include "hotspot_frozen_code.h"
#include "now.h"
#include "runtimes/hotspot/memory/hotspot_blocks.h"

/*
 * The pieces of the template interpreter where no frame of a method stands at rbp: before an entry has made it, and
 * after `leave`.
 */

struct interpreter_piece {
	u64 start, end;
	u8 part; /* HOTSPOT_ENTRY: the method is in rbx. HOTSPOT_STUBS */
	struct cfi_entry *entries;
	u32 nentries;
};

#define INTERPRETER_MAX (4u << 20)
#define CODELETS_MAX    4096
#define CODE_ALIGNMENT  32 /* CodeEntryAlignment on x86-64 */
#define LEAVE           0xc9

struct reader {
	struct memory *m;
	u64 start;
	u8 *bytes; /* of all of the interpreter */
	u32 size;
	u64 size_at, description_at, header;
	struct flow flow; /* of the last codelet */
	struct interpreter_piece *pieces;
	u32 npieces;
};

static struct error *add_piece(struct reader *r, const struct flow *f, u32 from, u32 to, u64 end)
{
	struct interpreter_piece piece = {.start = f->ins[from].addr, .end = to < f->n ? f->ins[to].addr : end};
	struct interpreter_piece *grown = realloc(r->pieces, (r->npieces + 1) * sizeof(*grown));
	struct flow_value rbx = f->state[from].reg[DWREG_RBX];
	struct error *err;

	if (!grown)
		return &error_no_memory;
	r->pieces = grown;
	piece.part = rbx.kind == FLOW_REG && rbx.offset == DWREG_RBX ? HOTSPOT_ENTRY : HOTSPOT_STUBS;
	err = flow_rows(f, from, to, &piece.entries, &piece.nentries);
	if (!err)
		r->pieces[r->npieces++] = piece;
	return err;
}

/* Is the caller's rbp in its register, before or after the frame of the method? */
static bool is_outside(const struct flow_state *s)
{
	return s->known && s->reg[DWREG_RBP].kind == FLOW_REG && s->reg[DWREG_RBP].offset == DWREG_RBP;
}

static struct error *add_pieces(struct reader *r, const struct flow *f, u64 end)
{
	struct error *err = NULL;

	for (u32 i = 0, to; !err && i < f->n; i = to) {
		for (to = i; to < f->n && is_outside(&f->state[to]); to++)
			;
		if (to > i)
			err = add_piece(r, f, i, to, end);
		else
			to++;
	}
	return err;
}

static struct error *read_codelet(struct reader *r, u32 at, u32 end, const char *description)
{
	bool is_entry = !strncmp(description, "method entry point", 18);
	struct flow_state entry = flow_entry_r13(), framed = flow_framed();
	struct flow *f = &r->flow;
	struct error *err;

	if (!is_entry && !memchr(r->bytes + at, LEAVE, end - at))
		return NULL;
	err = flow_read(r->bytes + at, r->start + at, end - at, f);
	if (err)
		return err;
	if (is_entry)
		flow_follow(f, 0, &entry);
	flow_follow_rest(f, &framed);
	return add_pieces(r, f, r->start + end);
}

static struct error *read_codelets(struct reader *r)
{
	struct error *err = NULL;
	char description[64];
	u32 size;

	for (u32 at = 0, i = 0; !err && i < CODELETS_MAX && at + r->header < r->size; i++, at += size) {
		u32 code = (at + (u32)r->header + CODE_ALIGNMENT - 1) & ~(CODE_ALIGNMENT - 1);
		u64 text;

		memcpy(&size, r->bytes + at + r->size_at, sizeof(size));
		memcpy(&text, r->bytes + at + r->description_at, sizeof(text));
		if (size < r->header || size > r->size - at)
			break;
		if (code < at + size && memory_string(r->m, description, sizeof(description), text))
			err = read_codelet(r, code, at + size, description);
	}
	return err;
}

static bool find_offsets(const struct vmstructs *v, struct reader *r)
{
	return vmstructs_field(v, "InterpreterCodelet", "_size", &r->size_at, NULL) &&
	       vmstructs_field(v, "InterpreterCodelet", "_description", &r->description_at, NULL) &&
	       vmstructs_type_size(v, "InterpreterCodelet", &r->header) && r->header <= 128 &&
	       r->size_at + 4 <= r->header && r->description_at + 8 <= r->header;
}

/* [start, end): the interpreter's code. *ret is malloc'ed, and the entries of each piece. */
static struct error *hotspot_interpreter_pieces(
        const struct vmstructs *v, struct memory *m, u64 start, u64 end, struct interpreter_piece **ret, u32 *n)
{
	struct reader r = {.m = m, .start = start, .size = end - start};
	struct error *err = NULL;

	*ret = NULL;
	*n = 0;
	if (end - start > INTERPRETER_MAX || !find_offsets(v, &r))
		return NULL;
	r.bytes = malloc(r.size);
	if (!r.bytes)
		return &error_no_memory;
	if (memory_read(m, r.bytes, r.size, start))
		err = read_codelets(&r);
	flow_free(&r.flow);
	free(r.bytes);
	*ret = r.pieces;
	*n = r.npieces;
	return err;
}

#define CODE_MAX   (1u << 20) /* of a blob */
#define RANGES_MAX 2000       /* a process may have 5,000 regions */
#define BLOBS_MAX  (1u << 16)
#define GAP_MAX    1024 /* the header of the next blob */
#define VAIN_MAX   64
#define WAIT_NS    50000000ull /* twice as long each time */
#define WAIT_MAX   6400000000ull

struct known { /* a blob that was looked at */
	u64 at, code, end;
	u64 bytes; /* hash of its code if that may be freed; else 0 */
};

struct hotspot_stubs {
	const struct vmstructs *v;
	s64 saved_pc;                      /* JavaThread::_saved_exception_pc; -1: not known */
	struct hotspot_stub_range *ranges; /* their entries were malloc'ed */
	u32 nranges;
	struct known *known;
	u32 nknown;
	bool interpreter; /* was looked at */
	u64 interpreter_start, interpreter_end;
	u64 barrier;
	u64 wanted;         /* a frame was seen here, and there are no rows; 0: none */
	u64 vain[VAIN_MAX]; /* where no rows could be made */
	u32 nvain;
	u64 looked_ns, wait_ns; /* for what is wanted */
};

/* Blobs that lie side by side get one range. */
struct update {
	struct hotspot_stubs *s;
	struct memory *m;
	struct error *err;
	struct hotspot_stub_range run;
	struct cfi_entry *entries;
	struct flow flow; /* of the last blob */
	struct hotspot_stub_range
	        polled; /* the beginning of the last blob of the run; without entries: there is none */
};

struct error *hotspot_stubs_create(const struct vmstructs *v, struct hotspot_stubs **ret)
{
	u64 at;

	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return &error_no_memory;
	(*ret)->v = v;
	(*ret)->saved_pc = vmstructs_field(v, "JavaThread", "_saved_exception_pc", &at, NULL) ? (s64)at : -1;
	return NULL;
}

void hotspot_stubs_destroy(struct hotspot_stubs *s)
{
	if (!s)
		return;
	for (u32 i = 0; i < s->nranges; i++)
		free((void *)s->ranges[i].entries);
	free(s->ranges);
	free(s->known);
	free(s);
}

u32 hotspot_stubs_ranges(const struct hotspot_stubs *s, const struct hotspot_stub_range **ret)
{
	*ret = s->ranges;
	return s->nranges;
}

u64 hotspot_stubs_barrier(const struct hotspot_stubs *s)
{
	return s->barrier;
}

static bool has_rows(const struct hotspot_stubs *s, u64 pc)
{
	for (u32 i = 0; i < s->nranges; i++)
		if (pc - s->ranges[i].start < s->ranges[i].end - s->ranges[i].start)
			return true;
	return false;
}

static bool is_in_vain(const struct hotspot_stubs *s, u64 pc)
{
	for (u32 i = 0; i < s->nvain; i++)
		if (s->vain[i] == pc)
			return true;
	return s->nvain == VAIN_MAX;
}

/* The interpreter's code has rows where no frame is at rbp, and is known as a whole. */
void hotspot_stubs_saw(struct hotspot_stubs *s, u64 pc)
{
	if (!s->wanted && s->interpreter && pc - s->interpreter_start >= s->interpreter_end - s->interpreter_start &&
	        !has_rows(s, pc) && !is_in_vain(s, pc))
		s->wanted = pc;
}

bool hotspot_stubs_wanted(const struct hotspot_stubs *s, u64 now)
{
	return s->wanted && now >= s->looked_ns + s->wait_ns;
}

static void end_search(struct hotspot_stubs *s)
{
	if (!s->wanted)
		return;
	if (!has_rows(s, s->wanted) && s->nvain < VAIN_MAX)
		s->vain[s->nvain++] = s->wanted;
	s->wanted = 0;
	s->looked_ns = now_ns();
	s->wait_ns = !s->wait_ns ? WAIT_NS : s->wait_ns < WAIT_MAX ? 2 * s->wait_ns : WAIT_MAX;
}

/* Takes over the entries, even on error. */
static struct error *add_range(struct hotspot_stubs *s, struct hotspot_stub_range range)
{
	struct error *err = NULL;

	if (s->nranges < RANGES_MAX && range.nentries) {
		err = grow(&s->ranges, s->nranges, sizeof(*s->ranges));
		if (!err) {
			s->ranges[s->nranges++] = range;
			return NULL;
		}
	}
	free((void *)range.entries);
	return err;
}

static void end_run(struct update *u)
{
	struct error *err;

	u->run.entries = u->entries;
	err = add_range(u->s, u->run);
	u->err = u->err ? u->err : err;
	err = add_range(u->s, u->polled); /* it lies over the run */
	u->err = u->err ? u->err : err;
	u->run = (struct hotspot_stub_range){.part = HOTSPOT_STUBS};
	u->polled = (struct hotspot_stub_range){.part = HOTSPOT_POLLED};
	u->entries = NULL;
}

/* Buffers that are written again and again. */
static bool is_temporary(const struct hotspot_blob *b)
{
	return strstr(b->name, "emp") || strstr(b->name, "ompile") || strstr(b->name, "getCPUIDBrandString");
}

/*
 * Code that grows in its blob, and never touches the stack pointer. Of inline caches in transition (8 to 22) it loads a
 * register and jumps (icBuffer_x86.cpp: assemble_ic_buffer_code()), is written anew all the time, and is gone after the
 * next safepoint.
 */
static bool is_flat(const struct hotspot_blob *b)
{
	return !strncmp(b->name, "vtable", 6) || !strcmp(b->name, "native signature handlers") ||
	       !strcmp(b->name, "InlineCacheBuffer");
}

/* Calls of native code, and by it: freed with what they were made for. Another one may have their place and size. */
static bool may_be_freed(const struct hotspot_blob *b)
{
	return strstr(b->name, "upcall") || !strcmp(b->name, "nep_invoker_blob") ||
	       !strcmp(b->name, "invoke_native_blob");
}

/* Is the return address looked for above rbp, as nothing but a frame that stands already has it? */
static bool is_framed(const struct flow_ins *in, const struct flow_state *s)
{
	return in->op == FLOW_LOAD && in->src == DWREG_RBP && in->value == 8 && s->reg[DWREG_RBP].kind == FLOW_REG &&
	       s->reg[DWREG_RBP].offset == DWREG_RBP;
}

/*
 * The state in which such a blob is entered. Some are jumped to, and push what stands for the return address first:
 * there the depth at the first call is a word more than the frame size says. C1's forward_exception goes on in the
 * frame of the stub that has called the VM in vain, which is as large as its own.
 */
static struct flow_state entry_of(const struct hotspot_blob *b, const struct flow *f)
{
	struct flow_state s = flow_entry();

	if (!strcmp(b->name, "MethodHandles adapters")) /* entries of the interpreter, as its own are */
		return flow_entry_r13();
	if (!strcmp(b->name, "ExceptionBlob"))
		return flow_entry_unpushed(DWREG_RDX);
	for (u32 i = 0; b->frame_size && i < f->n; i++) {
		if (f->ins[i].op == FLOW_CALL && f->ins[i].target != f->ins[i].addr + f->ins[i].size)
			return s.reg[DWREG_RSP].kind == FLOW_CFA &&
			                       s.reg[DWREG_RSP].offset == -8 * (s32)b->frame_size - 8
			               ? flow_entry_unpushed(FLOW_REGS)
			               : flow_entry();
		if (is_framed(&f->ins[i], &s))
			return flow_entry_framed(b->frame_size);
		flow_apply(&f->ins[i], &s);
	}
	return flow_entry();
}

/*
 * The handler that a trapping poll is sent to makes room for a return address, saves all registers, and then fetches it
 * from the JavaThread, where the signal handler has left it (sharedRuntime_x86_64.cpp: generate_handler_blob()). How
 * many instructions it takes until it lies where it belongs; 0: it is no such handler.
 */
static u32 fetches(const struct flow *f, s64 saved_pc)
{
	for (u32 i = 0; i + 1 < f->n; i++) {
		const struct flow_ins *in = &f->ins[i], *next = in + 1;
		struct flow_value at = next->dst < FLOW_REGS ? f->state[i + 1].reg[next->dst] : (struct flow_value){0};

		if (in->op == FLOW_LOAD && in->src == DWREG_R15 && in->value == saved_pc && next->op == FLOW_STORE &&
		        next->src == in->dst && at.kind == FLOW_CFA && at.offset + next->value == -8)
			return i + 2;
	}
	return 0;
}

/* Rows for that long: with a return address in a register, so that none is looked for on the stack. */
static struct error *polled_rows(const struct flow *f, s64 saved_pc, struct hotspot_stub_range *ret)
{
	u32 to = fetches(f, saved_pc);
	struct cfi_entry *entries;
	struct error *err;

	if (!to || to == f->n)
		return NULL;
	err = flow_rows(f, 0, to, &entries, &ret->nentries);
	if (err)
		return err;
	for (u32 i = 0; i < ret->nentries; i++)
		if (entries[i].rule.kind == CFI_REG)
			entries[i].rule.ra_reg = DWREG_R15;
	ret->entries = entries;
	ret->start = f->ins[0].addr;
	ret->end = f->ins[to].addr;
	return NULL;
}

/* A blob is filled from its beginning; what was never written is left out. */
static struct error *blob_rows(struct update *u, const struct hotspot_blob *b, struct cfi_entry **entries, u32 *n)
{
	u64 size = b->code_end - b->code;
	u8 *bytes = size <= CODE_MAX ? malloc(size) : NULL;
	struct flow_state entry;
	struct flow *f = &u->flow;
	struct error *err;

	*entries = NULL;
	*n = 0;
	if (size > CODE_MAX)
		return NULL;
	if (!bytes)
		return &error_no_memory;
	if (!memory_read(u->m, bytes, size, b->code)) {
		free(bytes);
		return NULL;
	}
	if (!u->s->barrier)
		u->s->barrier = hotspot_barrier_code(bytes, size, b->code);
	err = flow_read(bytes, b->code, size, f);
	free(bytes);
	if (err)
		return err;
	entry = entry_of(b, f);
	flow_follow(f, 0, &entry);
	flow_follow_rest(f, &entry);
	err = flow_rows(f, 0, f->n, entries, n);
	return err ? err : polled_rows(f, u->s->saved_pc, &u->polled);
}

static struct error *flat_rows(const struct hotspot_blob *b, struct cfi_entry **entries, u32 *n)
{
	struct flow_state entry = flow_entry();

	*entries = calloc(1, sizeof(**entries));
	if (!*entries)
		return &error_no_memory;
	(*entries)[0] = (struct cfi_entry){b->code, flow_rule(&entry)};
	*n = 1;
	return NULL;
}

static struct error *add_blob(struct update *u, const struct hotspot_blob *b)
{
	struct cfi_entry *entries, *all;
	struct error *err;
	u32 n;

	err = is_flat(b) ? flat_rows(b, &entries, &n) : blob_rows(u, b, &entries, &n);
	if (err || !entries)
		return err;
	all = realloc(u->entries, (u->run.nentries + n) * sizeof(*all));
	if (all) {
		memcpy(all + u->run.nentries, entries, n * sizeof(*all));
		u->entries = all;
		u->run.start = u->run.nentries ? u->run.start : b->code;
		u->run.end = b->code_end;
		u->run.nentries += n;
	}
	free(entries);
	return all ? NULL : &error_no_memory;
}

static struct known *find_known(struct hotspot_stubs *s, u64 at)
{
	for (u32 i = 0; i < s->nknown; i++)
		if (s->known[i].at == at)
			return &s->known[i];
	return NULL;
}

static u64 hash_code(struct memory *m, const struct hotspot_blob *b)
{
	u8 bytes[4096];
	u64 size = b->code_end - b->code < sizeof(bytes) ? b->code_end - b->code : sizeof(bytes);

	return memory_read(m, bytes, size, b->code) ? XXH3_64bits(bytes, size) | 1 : 1;
}

/* Remembers the blob. False: it was so already, or there are too many. */
static bool is_new(struct hotspot_stubs *s, struct memory *m, const struct hotspot_blob *b)
{
	struct known *known = find_known(s, b->at);
	u64 bytes = may_be_freed(b) ? hash_code(m, b) : 0;

	if (known && known->code == b->code && known->end == b->code_end && known->bytes == bytes)
		return false;
	if (!known) {
		if (s->nknown == BLOBS_MAX || grow(&s->known, s->nknown, sizeof(*s->known)))
			return false;
		known = &s->known[s->nknown++];
	}
	*known = (struct known){b->at, b->code, b->code_end, bytes};
	return true;
}

static bool each_blob(void *ctx, const struct hotspot_blob *b)
{
	struct update *u = ctx;

	if (b->kind == BLOB_NMETHOD || b->code >= b->code_end || !strcmp(b->name, "Interpreter") || is_temporary(b) ||
	        !is_new(u->s, u->m, b)) {
		end_run(u);
		return !u->err;
	}
	if (u->run.nentries && b->code - u->run.end > GAP_MAX)
		end_run(u);
	if (!u->err)
		u->err = add_blob(u, b);
	if (u->polled.nentries)
		end_run(u);
	return !u->err;
}

/* With several heaps, what belongs to no method has one of its own. */
static bool holds_stubs(const struct hotspot_heap *heap, u32 n)
{
	return n == 1 || strstr(heap->name, "non-nmethods");
}

static struct error *add_interpreter(struct hotspot_stubs *s, const struct hotspot_code *c, struct memory *m)
{
	struct interpreter_piece *pieces;
	struct error *err;
	u64 start, end;
	u32 n;

	if (s->interpreter || !hotspot_interpreter(c, m, &start, &end))
		return NULL;
	err = hotspot_interpreter_pieces(s->v, m, start, end, &pieces, &n);
	for (u32 i = 0; i < n; i++) {
		const struct interpreter_piece *p = &pieces[i];
		struct error *failed =
		        add_range(s, (struct hotspot_stub_range){p->start, p->end, p->part, p->entries, p->nentries});

		err = err ? err : failed;
	}
	free(pieces);
	s->interpreter = !err;
	s->interpreter_start = start;
	s->interpreter_end = end;
	return err;
}

static struct error *update(struct hotspot_stubs *s, const struct hotspot_code *c, struct memory *m)
{
	struct update u = {.s = s, .m = m, .run.part = HOTSPOT_STUBS, .polled.part = HOTSPOT_POLLED};
	struct hotspot_heap heaps[HOTSPOT_HEAPS_MAX];
	u32 n = hotspot_heaps(c, m, heaps);

	for (u32 i = 0; !u.err && i < n; i++) {
		if (!holds_stubs(&heaps[i], n))
			continue;
		hotspot_each_blob(c, m, &heaps[i], each_blob, &u);
		end_run(&u);
	}
	flow_free(&u.flow);
	return u.err ? u.err : add_interpreter(s, c, m);
}

/* Hundreds of small blobs side by side: a page is read once for all of them. */
struct error *hotspot_stubs_update(struct hotspot_stubs *s, const struct hotspot_code *c, struct memory *m)
{
	struct hotspot_blocks *blocks = hotspot_blocks_create();
	struct error *err = blocks ? update(s, c, hotspot_blocks_renew(blocks, m)) : &error_no_memory;

	hotspot_blocks_destroy(blocks);
	end_search(s);
	return err;
}
