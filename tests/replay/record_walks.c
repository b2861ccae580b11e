/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records walks of a real program for the gate: README.md here.
 *
 *	yrt-record-walks FILE [-t THREAD] -- PROGRAM [ARGUMENT]...
 *
 * Only what a walk depends on is kept: each word that may as well be 0 becomes 0. So a file has kilobytes, and nothing
 * of the machine.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/steps_program.h"
#include "walk.h"
#include "walks.h"

#define WARM_US 1500000
#define WALKS   40
#define CUT_MAX 4 /* walks that do not come to a root */
#define TRIES   400
#define LINE    64 /* bytes of tables that are kept or not */

static void must(struct error *err)
{
	if (err) {
		fprintf(stderr, "yrt-record-walks: %s\n", err->message);
		exit(1);
	}
}

static void complain(void *ctx, struct error *err)
{
	fprintf(stderr, "yrt-record-walks: %s\n", err->message);
	error_free(err);
}

/* --- which pages of the tables a walk reads: they are protected meanwhile --- */

static u8 *slabs[ARENA_SLABS_MAX];
static u32 nslabs;
static u8 touched[ARENA_SLABS_MAX][(ARENA_SLAB_SIZE + ARENA_SLAB_PAD + WALKS_PAGE - 1) / WALKS_PAGE];

static struct error *make_slab(struct arena_source *source, u32 i, void **ret)
{
	slabs[i] =
	        mmap(NULL, sizeof(touched[0]) * WALKS_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (slabs[i] == MAP_FAILED)
		return &error_no_memory;
	nslabs = i + 1;
	*ret = slabs[i];
	return NULL;
}

static void slab_done(struct arena_source *source, u32 i, void *slab)
{
	munmap(slab, sizeof(touched[0]) * WALKS_PAGE);
	slabs[i] = NULL;
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	for (u32 i = 0; i < nslabs; i++) {
		u64 off = (u64)info->si_addr - (u64)slabs[i];

		if (off < sizeof(touched[0]) * WALKS_PAGE) {
			touched[i][off / WALKS_PAGE] = 1;
			mprotect(slabs[i] + off / WALKS_PAGE * WALKS_PAGE, WALKS_PAGE, PROT_READ | PROT_WRITE);
			return;
		}
	}
	signal(SIGSEGV, SIG_DFL);
}

static void protect(int prot)
{
	for (u32 i = 0; i < nslabs; i++)
		mprotect(slabs[i], sizeof(touched[0]) * WALKS_PAGE, prot);
}

static void keep_pages(struct walks *w)
{
	for (u32 i = 0; i < nslabs; i++)
		for (u32 page = 0; page < ARENA_SLAB_SIZE / WALKS_PAGE; page++)
			if (touched[i][page] && w->npages < WALKS_PAGES_MAX) {
				w->pages[w->npages].offset = i * ARENA_SLAB_SIZE + page * WALKS_PAGE;
				w->pages[w->npages].bytes = malloc(WALKS_PAGE);
				memcpy(w->pages[w->npages++].bytes, slabs[i] + page * WALKS_PAGE, WALKS_PAGE);
			}
}

/* --- what it reads of the target --- */

struct recorder {
	struct memory memory, *target;
	struct walk_record *record;
};

static bool record_read(struct memory *mem, void *dst, size_t size, uint64_t addr)
{
	struct recorder *r = (struct recorder *)mem;
	bool ok = memory_read(r->target, dst, size, addr);

	if (r->record->npieces < WALKS_PIECES_MAX) {
		struct walks_piece *p = &r->record->pieces[r->record->npieces++];

		*p = (struct walks_piece){.addr = addr, .size = (u32)size, .readable = ok, .bytes = calloc(1, size)};
		if (ok)
			memcpy(p->bytes, dst, size);
	}
	return ok;
}

static void record(struct process *p, const struct unwind_registers *registers, struct walk_record *ret)
{
	struct recorder r = {.memory.read = record_read, .target = p->memory, .record = ret};

	ret->registers = *registers;
	ret->frames = calloc(WALKS_FRAMES_MAX, sizeof(*ret->frames));
	ret->pieces = calloc(WALKS_PIECES_MAX, sizeof(*ret->pieces));
	free(p->modules->caches);
	p->modules->caches = NULL;
	p->memory = &r.memory;
	protect(PROT_NONE);
	ret->stop = unwind_stack(p, registers, ret->frames, WALKS_FRAMES_MAX, &ret->nframes);
	protect(PROT_READ | PROT_WRITE);
	p->memory = r.target;
}

/* --- only what matters --- */

static bool is_as_before(const struct walks *w, u32 i)
{
	static struct walks_result now;

	walks_again(w, i, WALKS_NONE, &now);
	return walks_same(&w->walk[i], &now) && !now.unknown;
}

static bool all_as_before(const struct walks *w)
{
	for (u32 i = 0; i < w->nwalks; i++)
		if (!is_as_before(w, i))
			return false;
	return true;
}

/* Zeroes what a walk does as well without, in halves down to words. */
static void clear_piece(const struct walks *w, u32 i, u8 *bytes, u32 size)
{
	u8 saved[WALK_WINDOW];
	u32 half = size / 16 * 8;

	if (size > sizeof(saved))
		return;
	memcpy(saved, bytes, size);
	memset(bytes, 0, size);
	if (is_as_before(w, i))
		return;
	memcpy(bytes, saved, size);
	if (size > 8 && half) {
		clear_piece(w, i, bytes, half);
		clear_piece(w, i, bytes + half, size - half);
	}
}

static void clear_table(const struct walks *w, u8 *bytes, u32 size)
{
	u8 saved[WALKS_PAGE];

	memcpy(saved, bytes, size);
	memset(bytes, 0, size);
	if (all_as_before(w))
		return;
	memcpy(bytes, saved, size);
	if (size > LINE) {
		clear_table(w, bytes, size / 2);
		clear_table(w, bytes + size / 2, size / 2);
	}
}

static void reduce(struct walks *w)
{
	walks_place(w);
	if (!all_as_before(w)) {
		fprintf(stderr, "yrt-record-walks: a walk is not the same when it is replayed\n");
		exit(1);
	}
	for (u32 i = 0; i < w->nwalks; i++)
		for (u32 k = 0; k < w->walk[i].npieces; k++)
			if (w->walk[i].pieces[k].readable)
				clear_piece(w, i, w->walk[i].pieces[k].bytes, w->walk[i].pieces[k].size);
	for (u32 i = 0; i < w->npages; i++)
		clear_table(w, w->pages[i].bytes, WALKS_PAGE);
}

static void show(const struct walks *w)
{
	u32 frames = 0, scripts = 0, cut = 0;

	for (u32 i = 0; i < w->nwalks; i++) {
		cut += w->walk[i].stop != STOP_ROOT;
		frames += w->walk[i].nframes;
		for (u32 k = 0; k < w->walk[i].nframes; k++)
			scripts += frame_kind(&w->walk[i].frames[k]) == FRAME_SCRIPT;
	}
	printf("%u frames, %u of a language; %u walks do not come to a root\n", frames, scripts, cut);
}

static void record_all(const char *const *argv, const char *thread, struct walks *w)
{
	struct arena_source source = {.make = make_slab, .done = slab_done};
	struct arena *arena;
	struct modules *modules;
	struct process *p;
	struct program program = program_start(argv, thread);
	struct unwind_registers registers;
	u32 cut = 0;

	program_run(&program, WARM_US);
	must(arena_create(&source, &arena));
	must(modules_create(arena, NULL, &modules));
	modules->complain = complain;
	must(process_create(modules, program.pid, 1, &p));
	w->entry = p->entry;
	for (u32 i = 0; i < TRIES && w->nwalks < WALKS; i++) {
		struct walk_record *r = &w->walk[w->nwalks];

		program_run(&program, 300 + (u32)random() % 4000);
		program_registers(&program, &registers);
		memset(r, 0, sizeof(*r));
		record(p, &registers, r);
		if (r->stop == STOP_ROOT || cut++ < CUT_MAX)
			w->nwalks++;
	}
	keep_pages(w);
	program_end(&program);
	process_destroy(p);
	modules_destroy(modules);
	arena_destroy(arena);
}

int main(int argc, char **argv)
{
	struct walks *w = calloc(1, sizeof(*w));
	const char *thread = NULL;
	int at = 2;

	if (argc > 4 && !strcmp(argv[2], "-t")) {
		thread = argv[3];
		at = 4;
	}
	if (!w || argc < at + 2 || strcmp(argv[at], "--") != 0) {
		fprintf(stderr, "usage: yrt-record-walks FILE [-t THREAD] -- PROGRAM [ARGUMENT]...\n");
		return 2;
	}
	sigaction(SIGSEGV, &(struct sigaction){.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER}, NULL);
	record_all((const char *const *)argv + at + 1, thread, w);
	show(w);
	reduce(w);
	walks_save(w, argv[1]);
	walks_free(w);
	return 0;
}
