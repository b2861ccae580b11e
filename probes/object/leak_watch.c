/* SPDX-License-Identifier: Apache-2.0 */
#include "leak_watch.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "leak_again.h"
#include "leak_heap.h"
#include "leak_trap.h"
#include "probes/map_each.h"
#include "probes/object.h"
#include "probes/thread_watch.h"
#include "sample.skel.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"
#include "unwind/now.h"
#include "unwind/table.h"
#include "unwind/thread_start.h"

#define A_MS         1000000ull
#define NEW_NS       (20 * A_MS) /* a block that is watched for so short may have a word that is written often */
#define SOON_MS      1
#define LATER_MS     10
#define IDLE_MS      200
#define TRAPS_MOST   64 /* on a block, that are not the allocator's */
#define WATCH_LEAST  1000000000ull
#define WATCH_PART   8           /* of the run */
#define LINKED_MOST  32768       /* bytes of a block that has a link of mimalloc or tcmalloc */
#define THREADS_MOST 256         /* of a process: to watch more of them takes too long for a window */
#define OFTEN        4           /* times as often as another */
#define SETTLED      6           /* blocks that outlive are enough: twice what a verdict needs */
#define BUSY         8           /* times as bad as one that was freed */
#define LATE_LEAST   (50 * A_MS) /* a block is looked at for so long before it gets a register, or */
#define LATE_PART    2           /* that part of the time that one has it (1/LATE_PART), which is then as short */
#define LATE_EVERY   (50 * A_MS)
#define KNOWN        3 /* such blocks of a stack are enough: its new ones need no registers */
#define TRAPS_BYTES  (LEAK_TRAPS * sizeof(struct leak_trap))

enum words { /* that an allocator writes when a block is freed */
	WORDS_NONE,
	WORDS_HEADER, /* the first, or the header of a chunk of glibc */
	WORDS_LINK,   /* the first; */
	WORDS_OTHERS, /* none: the next owner does */
};

struct allocator_of {
	u32 process;
	const struct image *img;
	enum words words;
	enum leak_books books;
};

struct slot { /* a block that is watched */
	struct leak_key key;
	struct leak_block block;
	struct thread_watch *first, *header;
	u64 armed_ns;
	bool used, late; /* late: it was looked at for a while before */
};

struct candidate {
	struct leak_key key;
	struct leak_block block;
	double worth;
	u32 code; /* block.code; that may be 0 where no register is wanted */
	bool taken;
};

struct leak_watch {
	struct object *object;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool running, ending;
	u64 began_ns, ended_ns, watch_ns;
	struct leak_trap *traps; /* as BPF sees them; one for each slot */
	struct slot slot[LEAK_TRAPS];
	struct allocator_of allocator[LEAK_CODES];
	u32 ncodes;
	struct leak_seen *seen;
	u32 nseen;
	struct table by_hash; /* places in seen, + 1 */
	struct candidate *candidates;
	u32 ncandidates;
	struct leak_again *again;
	u64 late_ns;               /* when one of those was chosen last */
	struct thread_watch *held; /* of yrt's own: while there is none, to open the first takes 10 ms */
	u64 word;
	u64 trap_ns;
	u64 cut, looked_at, registers;
	char refused[160];
};

static struct sample *skeleton(const struct leak_watch *w)
{
	return object_skeleton(w->object);
}

static void end_again(void *ctx, const struct leak_again_block *b, enum leak_again_end how);

struct error *leak_watch_create(struct object *o, u64 watch_ns, struct leak_watch **ret)
{
	struct leak_watch *w = calloc(1, sizeof(*w));
	pthread_condattr_t attr;

	*ret = w;
	if (!w)
		return &error_no_memory;
	w->object = o;
	w->watch_ns = watch_ns;
	w->ncodes = 1;
	w->began_ns = now_ns();
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->changed, &attr);
	pthread_condattr_destroy(&attr);
	return leak_again_create(&(struct leak_again_options){.end = end_again, .ctx = w}, &w->again);
}

void leak_watch_destroy(struct leak_watch *w)
{
	if (!w)
		return;
	leak_watch_end(w);
	leak_again_destroy(w->again);
	free(w->seen);
	table_free(&w->by_hash);
	free(w->candidates);
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

static enum words words_of(struct image *img)
{
	const char *kind = alloc_functions_kind(img);

	if (kind && !strcmp(kind, "glibc"))
		return WORDS_HEADER;
	return kind && (!strcmp(kind, "mimalloc") || !strncmp(kind, "tcmalloc", 8)) ? WORDS_LINK : WORDS_OTHERS;
}

void leak_watch_allocator(
        struct leak_watch *w, const struct process *p, struct image *img, u64 bias, const struct alloc_functions *f)
{
	struct leak_code code = {.to = {UINT64_MAX}}; /* anybody's */
	u32 number = w->ncodes;
	enum words words = words_of(img);

	if ((!f->ncode && words != WORDS_OTHERS) || number == LEAK_CODES)
		return;
	for (u32 i = 0; words != WORDS_OTHERS && i < f->ncode && i < LEAK_RANGES; i++) {
		code.from[i] = f->code[i].start + bias;
		code.to[i] = f->code[i].end + bias;
	}
	if (bpf_map__update_elem(skeleton(w)->maps.leak_codes, &number, sizeof(number), &code, sizeof(code), BPF_ANY))
		return;
	w->allocator[number] = (struct allocator_of){p->number, img, words, leak_heap_books(img)};
	w->ncodes++;
}

u32 leak_watch_code(const struct leak_watch *w, const struct process *p, const struct image *img)
{
	for (u32 i = 1; i < w->ncodes; i++)
		if (w->allocator[i].process == p->number && w->allocator[i].img == img)
			return i;
	return 0;
}

/* --- what is known of stacks --- */

const struct leak_seen *leak_watch_seen(const struct leak_watch *w, u64 hash)
{
	u64 *place = hash ? table_get(&w->by_hash, hash) : NULL;

	return place ? &w->seen[*place - 1] : NULL;
}

/* The same, made if there is none; NULL: the stack is not known, or there is no memory. */
static struct leak_seen *seen_of(struct leak_watch *w, u64 hash)
{
	struct leak_seen *known = (struct leak_seen *)leak_watch_seen(w, hash);
	struct error *err;

	if (known)
		return known;
	err = hash ? grow(&w->seen, w->nseen, sizeof(*w->seen)) : &error_no_memory;
	if (!err)
		err = table_put(&w->by_hash, hash, w->nseen + 1);
	if (err) {
		error_free(err);
		return NULL;
	}
	w->seen[w->nseen] = (struct leak_seen){.hash = hash, .least = UINT64_MAX};
	return &w->seen[w->nseen++];
}

/* A block is not seen any more. False: it was freed before. */
static bool cut(struct leak_watch *w, const struct leak_key *key, const struct leak_block *block)
{
	struct leak_seen *seen = seen_of(w, block->hash);
	u64 now = now_ns();

	if (bpf_map__delete_elem(skeleton(w)->maps.leak_blocks, key, sizeof(*key), 0))
		return false;
	if (seen && now > block->ns)
		seen->cut[leak_age(now - block->ns)]++;
	return true;
}

/* --- blocks that are looked at again --- */

static void end_again(void *ctx, const struct leak_again_block *b, enum leak_again_end how)
{
	struct leak_watch *w = ctx;
	struct leak_seen *seen = seen_of(w, b->block.hash);
	u64 now = now_ns();

	if (seen)
		seen->again = 0; /* until they are counted the next time */
	if (how != LEAK_AGAIN_FREED)
		cut(w, &b->key, &b->block);
	else if (!bpf_map__delete_elem(skeleton(w)->maps.leak_blocks, &b->key, sizeof(b->key), 0) && seen)
		seen->died[leak_age(now - b->block.ns)]++;
}

/* --- blocks that are watched --- */

static struct leak_trap *trap_of(struct leak_watch *w, const struct slot *s)
{
	return &w->traps[s - w->slot];
}

static void let_go(struct leak_watch *w, struct slot *s)
{
	__atomic_store_n(&trap_of(w, s)->state, LEAK_TRAP_NONE, __ATOMIC_SEQ_CST);
	thread_watch_close(s->first);
	thread_watch_close(s->header);
	s->first = s->header = NULL;
	s->used = false;
}

static u64 watch_ns(const struct leak_watch *w, u64 now)
{
	u64 part = (now - w->began_ns) / WATCH_PART;

	return w->watch_ns ? w->watch_ns : part > WATCH_LEAST ? part : WATCH_LEAST;
}

/* Has the ledger the same block still? */
static bool is_there(struct leak_watch *w, const struct slot *s)
{
	struct leak_block now;

	return !bpf_map__lookup_elem(skeleton(w)->maps.leak_blocks, &s->key, sizeof(s->key), &now, sizeof(now), 0) &&
	       now.ns == s->block.ns;
}

static void look_at(struct leak_watch *w, struct slot *s, u64 now)
{
	struct leak_trap *t = trap_of(w, s);
	struct leak_seen *seen = seen_of(w, s->block.hash);
	u32 state = __atomic_load_n(&t->state, __ATOMIC_SEQ_CST);
	bool busy = t->traps > TRAPS_MOST, over = now - s->armed_ns >= watch_ns(w, now) / (s->late ? LATE_PART : 1);

	if (state == LEAK_TRAP_FREED || !is_there(w, s)) {
		if (seen)
			seen->late += s->late;
		let_go(w, s);
		return;
	}
	if (state == LEAK_TRAP_ARMED && !busy && !over && !w->ending)
		return;
	let_go(w, s);
	if (cut(w, &s->key, &s->block) && seen) {
		seen->busy += busy;
		seen->outlived += over;
		seen->outlived_bytes += over ? (double)s->block.size : 0;
	}
}

static void look_at_all(struct leak_watch *w)
{
	for (u32 i = 0; i < LEAK_TRAPS; i++)
		if (w->slot[i].used)
			look_at(w, &w->slot[i], now_ns());
}

static u32 until_look(const struct leak_watch *w)
{
	u32 ms = IDLE_MS, n;
	u64 now = now_ns();

	for (u32 i = 0; i < LEAK_TRAPS; i++)
		if (w->slot[i].used)
			ms = ms == SOON_MS || now - w->slot[i].armed_ns < NEW_NS ? SOON_MS : LATER_MS;
	leak_again_all(w->again, &n);
	return n && ms == IDLE_MS ? LATER_MS : ms;
}

static void refuse(struct leak_watch *w, struct error *err)
{
	if (!w->refused[0])
		snprintf(w->refused, sizeof(w->refused), "%s", err->message);
	error_free(err);
}

static struct error *map_traps(struct leak_watch *w)
{
	void *traps = mmap(
	        NULL, TRAPS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(skeleton(w)->maps.leak_traps), 0);

	if (traps == MAP_FAILED)
		return error_errno(errno, "cannot map what BPF says of debug registers");
	w->traps = traps;
	return NULL;
}

/* --- which blocks --- */

static u32 registers_of(const struct leak_watch *w, u32 code)
{
	return w->allocator[code].words == WORDS_HEADER ? 2 : 1;
}

static bool has_room(const struct leak_watch *w, const struct candidate *c)
{
	u32 used = 0, slots = 0;

	for (u32 i = 0; i < LEAK_TRAPS; i++) {
		slots += w->slot[i].used;
		if (w->slot[i].used && w->slot[i].key.tgid == c->key.tgid)
			used += registers_of(w, w->slot[i].block.code);
	}
	return slots < LEAK_TRAPS && used + registers_of(w, c->block.code) <= THREAD_WATCHES;
}

/* May its end be seen by what is written there? Then *trap says so. */
static bool is_fit(const struct leak_watch *w, const struct candidate *c, struct leak_trap *trap)
{
	u64 header = 0;
	struct iovec local = {&header, sizeof(header)}, remote = {(void *)(c->key.addr - 8), sizeof(header)};
	enum words words = c->block.code < LEAK_CODES ? w->allocator[c->block.code].words : WORDS_NONE;

	*trap = (struct leak_trap){
	        .block = c->key.addr, .word = c->key.addr, .tgid = c->key.tgid, .code = c->block.code};
	if (c->key.addr % 8 || c->block.size < 8 || words == WORDS_NONE)
		return false;
	if (words != WORDS_HEADER)
		return words == WORDS_OTHERS || c->block.size <= LINKED_MOST;
	if (process_vm_readv((pid_t)c->key.tgid, &local, 1, &remote, 1, 0) != sizeof(header))
		return false;
	trap->header_at = c->key.addr - 8;
	trap->header = header;
	return header & LEAK_HEADER_PREV_IN_USE && !(header & LEAK_HEADER_MAPPED) && header >> 40 == 0 &&
	       (header & ~LEAK_HEADER_BITS) >= c->block.size + 8;
}

static struct error *open_registers(struct leak_watch *w, struct slot *s, const struct leak_trap *t)
{
	struct thread_watch_options o = {.pid = (pid_t)t->tgid,
	        .addr = t->word,
	        .bytes = 8,
	        .written = true,
	        .program = bpf_program__fd(skeleton(w)->progs.on_leak_trap)};
	struct error *err = thread_watch_open(&o, &s->first);

	o.addr = t->header_at;
	if (!err && o.addr)
		err = thread_watch_open(&o, &s->header);
	return err;
}

static void arm(struct leak_watch *w, struct candidate *c, bool late)
{
	struct leak_seen *seen = seen_of(w, c->block.hash);
	struct slot *s = w->slot;
	struct leak_trap trap;
	struct error *err;

	if (!seen || !is_fit(w, c, &trap))
		return;
	while (s->used)
		s++;
	*s = (struct slot){.key = c->key, .block = c->block, .armed_ns = now_ns(), .used = true, .late = late};
	*trap_of(w, s) = trap;
	__atomic_store_n(&trap_of(w, s)->state, LEAK_TRAP_ARMED, __ATOMIC_SEQ_CST);
	err = open_registers(w, s, &trap);
	if (err) {
		refuse(w, err);
		let_go(w, s);
		return;
	}
	c->taken = true;
	seen->watched++;
	w->registers++;
	look_at(w, s, now_ns()); /* it may have been freed before the registers were set */
}

/* So many threads that to watch them takes too long? */
static bool is_large(pid_t pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	return stat(path, &st) || st.st_nlink > THREADS_MOST + 2;
}

/* How many blocks of its stack were freed when they were older. */
static double freed_later(const struct leak_watch *w, const struct candidate *c, u64 now)
{
	struct leak_stack all;
	double sum = 0;

	if (bpf_map__lookup_elem(
	            skeleton(w)->maps.leak_stacks, &c->block.hash, sizeof(c->block.hash), &all, sizeof(all), 0))
		return 0;
	for (u32 i = leak_age(now > c->block.ns ? now - c->block.ns : 0); i < LEAK_AGES; i++)
		sum += all.died[i];
	return sum;
}

/*
 * What its stack could explain, the less the more often that was looked at in vain; and the less it is worth the more
 * blocks lived for longer and were freed still.
 */
static double worth(struct leak_watch *w, const struct candidate *c, u64 now)
{
	const struct leak_seen *s = seen_of(w, c->block.hash);

	if (!s)
		return 0;
	return sqrt(s->left) * (s->outlived + 1.0) / (s->watched + 2.0 + BUSY * s->busy) / (s->watched + 1.0) /
	       (1 + freed_later(w, c, now));
}

/* Of blocks that all live for long enough is known, of the others is not: a cache that is full has many such. */
static bool is_settled(const struct leak_seen *s, const struct leak_seen *other)
{
	return s->outlived >= SETTLED && other->outlived < SETTLED && s->watched > other->watched;
}

/* A stack that was watched often gives way to one that was not. True: there is room now. */
static bool make_room(struct leak_watch *w, const struct candidate *c)
{
	const struct leak_seen *seen = seen_of(w, c->block.hash), *other;

	for (u32 i = 0; i < LEAK_TRAPS && seen; i++) {
		struct slot *s = &w->slot[i];

		if (!s->used || s->late || s->key.tgid != c->key.tgid ||
		        registers_of(w, s->block.code) < registers_of(w, c->block.code))
			continue;
		other = seen_of(w, s->block.hash);
		if (!other || (other->watched < OFTEN * (seen->watched + 1) && !is_settled(other, seen)))
			continue;
		let_go(w, s);
		cut(w, &s->key, &s->block);
		return has_room(w, c);
	}
	return false;
}

static void choose(struct leak_watch *w)
{
	const struct leak_seen *seen;
	u64 now = now_ns();

	for (u32 i = 0; i < w->ncandidates; i++) {
		seen = leak_watch_seen(w, w->candidates[i].block.hash);
		w->candidates[i].worth = worth(w, &w->candidates[i], now);
		if (seen && seen->again >= KNOWN)
			w->candidates[i].code = 0;
	}
	for (u32 tries = 0; tries < 2 * THREAD_WATCHES; tries++) {
		struct candidate *best = NULL;

		for (u32 i = 0; i < w->ncandidates; i++) {
			struct candidate *c = &w->candidates[i];

			if (!c->taken && c->code && (!best || c->worth > best->worth))
				best = c;
		}
		if (!best || is_large((pid_t)best->key.tgid))
			return;
		if (has_room(w, best) || make_room(w, best))
			arm(w, best, false);
		if (!best->taken)
			best->code = 0;
		for (u32 i = 0; i < w->ncandidates; i++)
			if (w->candidates[i].block.hash == best->block.hash)
				w->candidates[i].worth /= 2;
	}
}

static bool is_old(const struct leak_watch *w, const struct leak_again_block *b, u64 now)
{
	u64 least = watch_ns(w, now) / LATE_PART;

	return now - b->since_ns >= (least > LATE_LEAST ? least : LATE_LEAST);
}

static void count_again(struct leak_watch *w, u64 now)
{
	u32 n;
	struct leak_again_block *all = leak_again_all(w->again, &n);
	struct leak_seen *seen;

	for (u32 i = 0; i < n; i++)
		if ((seen = seen_of(w, all[i].block.hash)))
			seen->again = 0;
	for (u32 i = 0; i < n; i++)
		if ((seen = seen_of(w, all[i].block.hash)))
			seen->again += is_old(w, &all[i], now);
}

/* What its stack could explain, the less the more is known of it. */
static double late_worth(const struct leak_watch *w, const struct leak_again_block *b)
{
	const struct leak_seen *s = leak_watch_seen(w, b->block.hash);

	return s ? sqrt((double)s->again * (double)b->block.bytes) * (s->outlived + 1.0) / (s->watched + 2.0) /
	                       (s->watched + 1.0)
	         : 0;
}

/* Of the stack that is worth most the oldest block. NULL: none. */
static struct leak_again_block *best_again(struct leak_watch *w, u64 now)
{
	u32 n;
	struct leak_again_block *all = leak_again_all(w->again, &n), *best = NULL;
	double worth, most = 0;

	for (u32 i = 0; i < n; i++) {
		if (all[i].taken || !all[i].block.code || !is_old(w, &all[i], now))
			continue;
		worth = late_worth(w, &all[i]);
		if (!best || worth > most || (worth >= most && all[i].since_ns < best->since_ns)) {
			best = &all[i];
			most = worth;
		}
	}
	return best;
}

static void let_go_of(struct leak_watch *w, const struct leak_key *key)
{
	for (u32 i = 0; i < LEAK_TRAPS; i++)
		if (w->slot[i].used && w->slot[i].key.addr == key->addr && w->slot[i].key.tgid == key->tgid) {
			let_go(w, &w->slot[i]);
			cut(w, key, &w->slot[i].block);
		}
}

/* Registers for blocks that seem to be there still. One that has changed since the last look is none. */
static void choose_late(struct leak_watch *w, u64 now)
{
	struct leak_again_block *b;
	struct candidate c;

	if (now - w->late_ns < LATE_EVERY)
		return;
	w->late_ns = now;
	count_again(w, now);
	for (u32 i = 0; i < THREAD_WATCHES && (b = best_again(w, now)); i++) {
		c = (struct candidate){.key = b->key, .block = b->block};
		b->taken = true;
		if (is_large((pid_t)c.key.tgid) || !has_room(w, &c)) {
			b->taken = false;
			return;
		}
		arm(w, &c, true);
		if (!c.taken)
			continue;
		if (!leak_again_holds(b))
			let_go_of(w, &c.key);
		leak_again_remove(w->again, b);
	}
}

static void *work(void *arg)
{
	struct leak_watch *w = arg;
	struct timespec ts;

	pthread_mutex_lock(&w->lock);
	while (!w->ending) {
		look_at_all(w);
		leak_again_look(w->again, now_ns());
		choose_late(w, now_ns());
		ts = now_timespec(now_ns() + until_look(w) * A_MS);
		pthread_cond_timedwait(&w->changed, &w->lock, &ts);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

u64 leak_watch_start(struct leak_watch *w)
{
	struct thread_watch_options o = {.pid = getpid(),
	        .addr = (u64)&w->word,
	        .bytes = 8,
	        .written = true,
	        .program = bpf_program__fd(skeleton(w)->progs.on_leak_trap)};
	struct error *err = thread_watch_open(&o, &w->held);

	if (!err)
		err = map_traps(w);
	if (!err)
		w->trap_ns = thread_watch_cost();
	if (!err && thread_start(&w->thread, NULL, work, w) == 0)
		w->running = true;
	if (err)
		refuse(w, err);
	return w->running ? w->trap_ns : 0;
}

static bool is_watched(const struct leak_watch *w, const struct leak_key *key, const struct leak_block *block)
{
	for (u32 i = 0; i < LEAK_TRAPS; i++)
		if (w->slot[i].used && w->slot[i].key.addr == key->addr && w->slot[i].key.tgid == key->tgid &&
		        w->slot[i].block.ns == block->ns)
			return true;
	return false;
}

/* Of a block that was looked at before: it is in the ledger still, or another one is that has got its address. */
static bool is_again(struct leak_watch *w, const struct leak_key *key, const struct leak_block *block)
{
	struct leak_again_block *b = leak_again_in_ledger(w->again, key);
	struct leak_seen *seen = b ? seen_of(w, b->block.hash) : NULL;

	if (!b)
		return false;
	b->there = b->block.ns == block->ns;
	if (!b->there && seen)
		seen->died[leak_age(block->ns - b->block.ns)]++;
	return b->there;
}

/* A block of the ledger. */
static struct error *add_candidate(void *ctx, const void *of, const void *value)
{
	struct leak_watch *w = ctx;
	const struct leak_key *key = of;
	const struct leak_block *block = value;
	struct leak_seen *seen;
	struct error *err;
	bool stayed;
	u32 class;

	if (is_watched(w, key, block) || is_again(w, key, block))
		return NULL;
	seen = seen_of(w, block->hash);
	err = grow(&w->candidates, w->ncandidates, sizeof(*w->candidates));
	if (!err && seen) {
		w->candidates[w->ncandidates++] = (struct candidate){.key = *key, .block = *block, .code = block->code};
		seen->left += (double)block->bytes;
		seen->least = block->size < seen->least ? block->size : seen->least;
		seen->most = block->size > seen->most ? block->size : seen->most;
		seen->books = block->code < LEAK_CODES ? w->allocator[block->code].books : LEAK_BOOKS_NONE;
		class = size_class(leak_heap_room(seen->books, block->size));
		seen->classes[class / 64] |= 1ull << class % 64;
		stayed = now_ns() - block->ns >= watch_ns(w, now_ns());
		seen->outlived += stayed;
		seen->outlived_bytes += stayed ? (double)block->size : 0;
		seen->in_window += stayed;
	}
	error_free(err);
	return NULL;
}

static void look_again(struct leak_watch *w, const struct candidate *c)
{
	bool header = w->allocator[c->block.code % LEAK_CODES].words == WORDS_HEADER;

	if (w->running && c->block.code && leak_again_add(w->again, &c->key, &c->block, header))
		w->looked_at++;
	else
		w->cut += cut(w, &c->key, &c->block);
}

void leak_watch_take(struct leak_watch *w)
{
	pthread_mutex_lock(&w->lock);
	look_at_all(w);
	w->ncandidates = 0;
	leak_again_begin_ledger(w->again);
	error_free(map_each(skeleton(w)->maps.leak_blocks, false, add_candidate, w, "which blocks there are"));
	leak_again_end_ledger(w->again);
	if (w->running)
		choose(w);
	for (u32 i = 0; i < w->ncandidates; i++)
		if (!w->candidates[i].taken)
			look_again(w, &w->candidates[i]);
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
}

void leak_watch_end(struct leak_watch *w)
{
	pthread_mutex_lock(&w->lock);
	w->ending = true;
	w->ended_ns = w->ended_ns ? w->ended_ns : now_ns();
	look_at_all(w);
	leak_again_look(w->again, UINT64_MAX);
	leak_again_end_all(w->again);
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
	if (w->running)
		pthread_join(w->thread, NULL);
	w->running = false;
	thread_watch_close(w->held);
	w->held = NULL;
	if (w->traps)
		munmap(w->traps, TRAPS_BYTES);
	w->traps = NULL;
}

void leak_watch_summary(const struct leak_watch *w, struct leak_summary *s)
{
	s->cut = w->cut;
	s->looked_at = w->looked_at;
	s->registers = w->registers;
	s->watch_s = (double)watch_ns(w, w->ended_ns ? w->ended_ns : now_ns()) / 2e9;
	s->no_registers = w->refused[0] ? w->refused : NULL;
}
