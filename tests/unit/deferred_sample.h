/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of deferred walks: a stack of this program, copied as BPF would, and what backtrace() says of it. It is
 * overwritten before it is walked.
 */
#ifndef YRT_TESTS_DEFERRED_SAMPLE_H
#define YRT_TESTS_DEFERRED_SAMPLE_H

#include <arch.h>
#include <execinfo.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "unit.h"

#include "unwind/profile/deferred.h"
#include "unwind/now.h"

/* of libc's search.h, whose name is that of one of yrt's headers */
void *lfind(const void *key, const void *base, size_t *n, size_t size, int (*compare)(const void *, const void *));

#define DEPTH     6
#define TRUE_MAX  64
#define NUMBER    3u
#define FRAME     2048 /* bytes of one of call() */
#define WIDE      (2 * DEFERRED_PIECE)
#define STACK_MAX (64u << 10)
#define NOISE     (32u << 10)
#define MARK      0x4321u /* address of the frame that the first walk saw behind its guess */

static struct {
	struct arena *arena;
	struct modules *modules;
	struct process *known, *gone, *child;
	struct process *found;                /* of the number */
	void (*jit)(void (*)(void), u64 *sp); /* without unwind information: calls what it is given */
	bool by_jit;                          /* the sample is taken below it, and it is what was guessed behind */
	bool by_wide;                         /* the sample is taken below wide() */
	bool by_lfind;                        /* the sample is taken below lfind(), of another file: no sanitizer's */
} here;

/* One sample, and what is true of it. */
static struct {
	struct deferred_record deferred;
	u8 stack[STACK_MAX];
	u32 size;
	void *caller[TRUE_MAX];
	int callers;
	u64 middle_pc, middle_sp; /* a frame half way up */
	u64 room, room_end;       /* nobody has written there */
} sample;

static struct {
	struct frame frame[TRUE_MAX * 2];
	u32 n, stop, was, times;
} seen;

static void keep_registers(const ucontext_t *uc)
{
	static const int order[ARCH_NREGS] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
	        REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};

	for (u32 i = 0; i < ARCH_NREGS; i++)
		sample.deferred.reg[i] = (u64)uc->uc_mcontext.gregs[order[i]];
}

static void __attribute__((noinline, optimize("no-optimize-sibling-calls"))) take_sample(void)
{
	ucontext_t uc;

	assert_int_equal(getcontext(&uc), 0);
	keep_registers(&uc);
	sample.callers = backtrace(sample.caller, TRUE_MAX);
	while (sample.size < sizeof(sample.stack) && memory_read(here.known->memory, sample.stack + sample.size, 8,
	                                                     sample.deferred.reg[REG_SP] + sample.size))
		sample.size += 8;
	__asm__ volatile("" ::: "memory");
}

static void __attribute__((noinline, optimize("no-optimize-sibling-calls"))) wide(void)
{
	u8 room[WIDE];

	__asm__ volatile("" ::"r"(room) : "memory");
	sample.room = (u64)room;
	sample.room_end = (u64)room + sizeof(room);
	take_sample();
	__asm__ volatile("" ::: "memory");
}

static int __attribute__((noinline, optimize("no-optimize-sibling-calls"))) compare(const void *a, const void *b)
{
	(void)a, (void)b;
	sample.middle_sp = (u64)__builtin_dwarf_cfa();
	take_sample();
	__asm__ volatile("" ::: "memory");
	return 0;
}

static void __attribute__((noinline, optimize("no-optimize-sibling-calls"))) call(volatile int depth)
{
	char two[2] = {0};
	size_t one = 1;
	u8 room[FRAME];

	__asm__ volatile("" ::"r"(room) : "memory");
	if (depth == DEPTH / 2) {
		sample.middle_pc = (u64)__builtin_return_address(0);
		sample.middle_sp = (u64)__builtin_dwarf_cfa();
	}
	if (depth)
		call(depth - 1);
	else if (here.by_jit)
		here.jit(take_sample, &sample.middle_sp);
	else if (here.by_wide)
		wide();
	else if (here.by_lfind)
		lfind(two, two, &one, 1, compare);
	else
		take_sample();
	__asm__ volatile("" ::: "memory");
}

/* What lay on the stack is no more. */
static void __attribute__((noinline)) overwrite(void)
{
	volatile u8 noise[NOISE];

	for (u32 i = 0; i < NOISE; i++)
		noise[i] = (u8)(i * 31);
	assert_int_equal(noise[7], 217);
}

static struct process *find(void *ctx, u32 number)
{
	return number == NUMBER ? here.found : NULL;
}

static struct error *keep(void *ctx, const struct stack_record *record, const struct frame *frames, u32 n, u32 was)
{
	assert_true(n <= sizeof(seen.frame) / sizeof(*seen.frame));
	memcpy(seen.frame, frames, n * sizeof(*frames));
	seen.n = n;
	seen.stop = record->stop;
	seen.was = was;
	seen.times++;
	return NULL;
}

/* Calls by code that leaves no frame pointer: a return address is guessed there. */
static void make_jit(void)
{
	static const u8 code[] = {
	        0x48, 0x89, 0x26, /* mov %rsp, (%rsi) */
	        0x55,             /* push %rbp */
	        0x48, 0x85, 0xff, /* test %rdi, %rdi */
	        0x75, 0x02,       /* jne behind the jump, which nobody can follow: no rows are made of this code */
	        0xff, 0xe0,       /* jmp *%rax */
	        0x31, 0xed,       /* xor %ebp, %ebp */
	        0xff, 0xd7,       /* call *%rdi */
	        0x5d,             /* pop %rbp */
	        0xc3,             /* ret */
	};
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(page, MAP_FAILED);
	memcpy(page, code, sizeof(code));
	memcpy(&here.jit, &page, sizeof(page));
}

static int setup(void **state)
{
	make_jit();
	assert_null(arena_create(NULL, &here.arena));
	assert_null(modules_create(here.arena, NULL, &here.modules));
	assert_null(process_create(here.modules, getpid(), NUMBER, &here.known));
	assert_null(process_create_gone(here.modules, getpid(), NUMBER, &here.gone));
	here.gone->dead = false;
	assert_null(process_create_gone(here.modules, getpid(), NUMBER, &here.child));
	assert_null(process_inherit(here.child, here.known));
	return 0;
}

static int teardown(void **state)
{
	process_destroy(here.known);
	process_destroy(here.gone);
	process_destroy(here.child);
	modules_destroy(here.modules);
	arena_destroy(here.arena);
	return 0;
}

/* Pages, as BPF sends them; those that nobody has written to are absent. */
static void send_pieces(struct deferred *l, u32 size)
{
	struct deferred_record *r = calloc(1, sizeof(*r));

	*r = sample.deferred;
	for (u32 at = 0; at < size; at += r->size) {
		r->addr = sample.deferred.reg[REG_SP] + at;
		r->size = DEFERRED_PIECE - r->addr % DEFERRED_PIECE;
		r->size = size - at < r->size ? size - at : r->size;
		memcpy(r->byte, sample.stack + at, r->size);
		if (r->addr >= sample.room && r->addr + r->size <= sample.room_end)
			continue;
		assert_null(deferred_piece(l, r, offsetof(struct deferred_record, byte) + r->size));
	}
	free(r);
}

/* Where backtrace() begins: at take_sample(), or (a sanitizer's) at itself. */
static u32 own_frames(void)
{
	return frame_addr(&seen.frame[1]) == (u64)sample.caller[1] ? 0 : 1;
}

/* The first n frames behind the leaf are those that backtrace() returned. */
static void expect_callers(u32 n)
{
	assert_true(n + 1 <= seen.n);
	for (u32 i = 1; i <= n; i++)
		assert_int_equal(frame_addr(&seen.frame[i]), (u64)sample.caller[i + own_frames()]);
}

#endif
