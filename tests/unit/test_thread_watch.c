/* SPDX-License-Identifier: Apache-2.0 */
/* Debug registers in all threads: those that begin while others are being watched are covered, or counted. */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "unit.h"

#include "probes/thread_watch.h"

#define HIT     37 /* writes of a thread */
#define THREADS 200

static volatile u64 word __attribute__((aligned(8)));
static atomic_bool stop;

/* Adds 1 to the only element of a map. */
static int counter(int map)
{
	struct bpf_insn code[] = {
	        {.code = BPF_ST | BPF_MEM | BPF_W, .dst_reg = BPF_REG_10, .off = -4},
	        {.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_2, .src_reg = BPF_REG_10},
	        {.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_2, .imm = -4},
	        {.code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = BPF_REG_1, .src_reg = BPF_PSEUDO_MAP_FD, .imm = map},
	        {0},
	        {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_map_lookup_elem},
	        {.code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = BPF_REG_0, .off = 2},
	        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_1, .imm = 1},
	        {.code = BPF_STX | BPF_ATOMIC | BPF_DW, .dst_reg = BPF_REG_0, .src_reg = BPF_REG_1, .imm = BPF_ADD},
	        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
	        {.code = BPF_JMP | BPF_EXIT},
	};

	return bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "count", "GPL", code, sizeof(code) / sizeof(*code), NULL);
}

static u64 hits(int map)
{
	u32 zero = 0;
	u64 n = 0;

	assert_int_equal(bpf_map_lookup_elem(map, &zero, &n), 0);
	return n;
}

static void *write_word(void *ctx)
{
	for (u32 i = 0; i < HIT; i++)
		word = i;
	return NULL;
}

static void run_threads(u32 n)
{
	pthread_t thread;

	for (u32 i = 0; i < n; i++) {
		assert_int_equal(pthread_create(&thread, NULL, write_word, NULL), 0);
		pthread_join(thread, NULL);
	}
}

/* Threads that end at once, one after the other. */
static void *churn(void *ctx)
{
	while (!stop)
		run_threads(1);
	return NULL;
}

static struct thread_watch *watch(int program)
{
	struct thread_watch_options o = {
	        .pid = getpid(), .addr = (u64)&word, .bytes = sizeof(word), .program = program};
	struct thread_watch *w = NULL;
	struct error *err = thread_watch_open(&o, &w);

	if (err) {
		error_free(err);
		skip(); /* no debug registers, or not permitted */
	}
	return w;
}

static void begin_later(void **state)
{
	int map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "hits", 4, 8, 1, NULL), program = map < 0 ? -1 : counter(map);
	struct thread_watch *w;

	if (program < 0)
		skip();
	w = watch(program);
	assert_int_equal(thread_watch_missed(w), 0);
	run_threads(THREADS);
	assert_int_equal(hits(map), THREADS * HIT);
	thread_watch_close(w);
	close(program);
	close(map);
}

/* While threads begin and end all the time, what begins afterwards is seen: each by one watch, not by two. */
static void begin_meanwhile(void **state)
{
	int map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "hits", 4, 8, 1, NULL), program = map < 0 ? -1 : counter(map);
	struct thread_watch *w;
	pthread_t thread;
	u64 before;

	if (program < 0)
		skip();
	stop = false;
	assert_int_equal(pthread_create(&thread, NULL, churn, NULL), 0);
	w = watch(program);
	stop = true;
	pthread_join(thread, NULL);
	assert_true(thread_watch_missed(w) <= 1);
	before = hits(map);
	run_threads(THREADS);
	assert_int_equal(hits(map) - before, THREADS * HIT);
	thread_watch_close(w);
	close(program);
	close(map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(begin_later), cmocka_unit_test(begin_meanwhile)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
