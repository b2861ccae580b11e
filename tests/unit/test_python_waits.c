/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread waits for, of a process whose memory has any bytes, and reads that fail. */
#include <sys/mman.h>

#include "unit.h"

#include "runtime.h"
#include "runtimes/python/python_waits.h"

#define MEMORY_START 0x10000
#define MEMORY_END   0x40000
#define ROUNDS       20000

/* Words are small: many are addresses of this memory. */
struct noise {
	struct memory memory;
	u64 state;
};

static u64 next(struct noise *n)
{
	n->state = n->state * 6364136223846793005ull + 1442695040888963407ull;
	return n->state >> 33;
}

static bool read_noise(struct memory *mem, void *dst, size_t size, uint64_t addr)
{
	struct noise *n = (struct noise *)mem;

	if (addr < MEMORY_START || addr >= MEMORY_END || size > MEMORY_END - addr || !(next(n) % 16))
		return false;
	for (size_t i = 0; i + 8 <= size; i += 8) {
		u64 word = next(n) % 4 ? MEMORY_START + (next(n) & 0x3fff8) : next(n);

		memcpy((char *)dst + i, &word, 8);
	}
	if (size % 8)
		memset((char *)dst + size / 8 * 8, (int)next(n), size % 8);
	if (next(n) % 4 == 0 && size <= 16)
		memcpy(dst, "_thread.RLock", size < 14 ? size : 14);
	return true;
}

static void check(struct noise *n, const struct python_layout *l, u64 *rlock_type, u32 *found)
{
	const struct mapping mapping = {
	        .start = MEMORY_START, .end = MEMORY_END, .prot = PROT_READ | PROT_WRITE, .anonymous = true};
	const struct runtime_process p = {.memory = &n->memory, .mappings = &mapping, .nmappings = 1};
	const struct python_image image = {.layout = l, .runtime = 0x100};
	const u64 sp = MEMORY_START + (next(n) & 0x1fff8);
	const struct runtime_thread t = {.sp = sp, .futex = sp + (next(n) & 0x1ff8)};
	struct runtime_wait wait = {0};

	if (!python_waits_for(&image, MEMORY_START, rlock_type, &p, &t, &wait))
		return;
	assert_true(wait.at && memchr(wait.type, 0, sizeof(wait.type)));
	assert_true(wait.kind == LOCK_VM || wait.kind == LOCK_OBJECT);
	++*found;
}

static void test_noise(void **state)
{
	static const struct python_layout layouts[] = {
	        {.ob_size = {16, 8}, .ob_type = {8, 8}, .ts_thread_id = {152, 8}, .runtime_gil = {360, 8}},
	        {.ob_size = {16, 8},
	                .ob_type = {8, 8},
	                .ts_thread_id = {152, 8},
	                .interp_gil = {64, 8},
	                .runtime_interpreters = {40, 8},
	                .interp_next = {0, 8}},
	        {.ob_size = {32, 8}, .ob_type = {24, 8}, .ts_thread_id = {152, 8}},
	        {.ob_size = {60000, 8}, .ob_type = {60000, 8}},
	};
	struct noise n = {.memory.read = read_noise, .state = 1};
	u32 found = 0;

	for (u32 i = 0; i < ROUNDS; i++) {
		u64 type = i & 4 ? MEMORY_START + (next(&n) & 0x3fff8) : 0;

		check(&n, &layouts[i % 4], &type, &found);
	}
	assert_true(found > 10);
}

#define OBJECT  0x20000
#define TYPE    0x30000
#define NAME    0x38000
#define SP      0x11000
#define POINTER 0x7000
#define OTHER   0x8000

/* A thread whose stack holds a pointer to one RLock. */
struct rlock_case {
	struct memory memory;
	u64 lock, owner, level;
};

static bool read_case(struct memory *mem, void *dst, size_t size, uint64_t addr)
{
	const struct rlock_case *c = (struct rlock_case *)mem;
	const u64 words[][2] = {{SP + 64, OBJECT}, {OBJECT + 8, TYPE}, {OBJECT + 16, c->lock}, {OBJECT + 24, c->owner},
	        {OBJECT + 32, c->level}, {TYPE + 24, NAME}};

	if (addr < MEMORY_START || addr >= MEMORY_END || size > MEMORY_END - addr)
		return false;
	memset(dst, 0, size);
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (words[i][0] >= addr && words[i][0] + 8 <= addr + size)
			memcpy((char *)dst + (words[i][0] - addr), &words[i][1], 8);
	if (addr == NAME)
		snprintf(dst, size, "_thread.RLock");
	return true;
}

static bool waits_for(struct rlock_case c, u64 futex, u64 rlock_type)
{
	static const struct python_layout layout = {.ob_size = {16, 8}, .ob_type = {8, 8}};
	const struct mapping mapping = {
	        .start = MEMORY_START, .end = MEMORY_END, .prot = PROT_READ | PROT_WRITE, .anonymous = true};
	const struct runtime_process p = {.memory = &c.memory, .mappings = &mapping, .nmappings = 1};
	const struct python_image image = {.layout = &layout};
	const struct runtime_thread t = {.sp = SP, .futex = futex, .pointer = POINTER};
	struct runtime_wait wait = {0};

	c.memory.read = read_case;
	if (!python_waits_for(&image, 0, &rlock_type, &p, &t, &wait))
		return false;
	assert_int_equal(wait.at, OBJECT);
	assert_int_equal(wait.holder_pointer, c.owner);
	assert_int_equal(rlock_type, TYPE);
	return true;
}

static void test_rlock(void **state)
{
	const u64 parked = SP + 128, locked = 3;

	assert_true(waits_for((struct rlock_case){.lock = OTHER, .owner = OTHER}, OTHER, 0));
	assert_false(waits_for((struct rlock_case){.lock = OTHER, .owner = OTHER}, OTHER + 8, 0));
	assert_true(waits_for((struct rlock_case){.lock = locked, .owner = OTHER}, parked, 0));
	/* held by the thread itself, or by nobody: it waits for something else */
	assert_false(waits_for((struct rlock_case){.lock = locked, .owner = POINTER}, parked, 0));
	assert_false(waits_for((struct rlock_case){.lock = locked}, parked, 0));
	assert_false(waits_for((struct rlock_case){.lock = locked - 2, .owner = OTHER}, parked, 0));
}

/* Each has a type of its own. */
static void test_rlock_of_another_interpreter(void **state)
{
	assert_true(waits_for((struct rlock_case){.lock = OTHER, .owner = OTHER}, OTHER, TYPE + 0x100));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_noise), cmocka_unit_test(test_rlock),
	        cmocka_unit_test(test_rlock_of_another_interpreter)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
