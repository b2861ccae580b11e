/* SPDX-License-Identifier: Apache-2.0 */
/* What threads of a JVM in fake memory wait for: who holds it, also if the holder is new, and what asking costs. */
#include "unit.h"

#include "hotspot_heap_fake.h"
#include "runtime.h"
#include "runtimes/hotspot/heap/hotspot_heap_view.h"
#include "runtimes/hotspot/waits/hotspot_waits.h"

/* Offsets in JavaThread, ObjectMonitor and objects. */
enum {
	PENDING = 24,
	OWNER_ID = 32,
	STACK_BASE = 40,
	STACK_SIZE = 48,
	WAITING = 56,
	MONITOR_OBJECT = 0,
	MONITOR_OWNER = 8,
	HOLDER_AT = 40,
	STATUS_AT = 16,
};

#define BLOCKED 0x401 /* ALIVE | BLOCKED_ON_MONITOR_ENTER */
#define MAIN    100   /* number of the first thread */

struct waiting {
	struct fake *f;
	struct hotspot_heap_view *h;
	struct hotspot_waits w;
	u64 monitor;
};

/* The first thread waits for a monitor, by this field of JavaThread. */
static void start(struct waiting *s, enum fake_age age, u64 by)
{
	u64 handle;

	s->f = fake_create((struct fake_options){.age = age});
	assert_null(hotspot_heap_view_create(s->f->v, &s->f->layout, &s->h));
	s->w = (struct hotspot_waits){.heap = s->h,
	        .pending = PENDING,
	        .waiting = WAITING,
	        .owner_id = age == FAKE_25 ? OWNER_ID : 0,
	        .monitors = true,
	        .object = MONITOR_OBJECT,
	        .owner = MONITOR_OWNER};
	s->monitor = fake_room(s->f, 16);
	handle = age == FAKE_25 ? fake_pointer_to(s->f, s->f->at[0]) : s->f->at[0];
	fake64(s->f, s->monitor + MONITOR_OBJECT, handle);
	fake64(s->f, s->f->java_thread[0] + by, s->monitor);
}

static void stop(struct waiting *s)
{
	hotspot_heap_view_destroy(s->h);
	fake_destroy(s->f);
}

/* The number of reads that it takes. */
static u32 ask(struct waiting *s, struct runtime_wait *ret)
{
	struct runtime_thread t = {.tid = MAIN};

	*ret = (struct runtime_wait){0};
	s->f->reads = 0;
	assert_true(hotspot_waits_for(&s->w, s->h, &s->f->memory, &t, ret));
	assert_int_equal(ret->at, s->f->at[0]);
	return s->f->reads;
}

static u32 ask_owner(struct waiting *s, u64 owner, struct runtime_wait *ret)
{
	fake64(s->f, s->monitor + MONITOR_OWNER, owner);
	return ask(s, ret);
}

/* Gives the JVM one thread more, as it does it: by another list. */
static u64 bear_thread(struct fake *f)
{
	u64 static_at, list = fake_room(f, 32), old[2] = {f->java_thread[0], f->java_thread[1]}, array, born;

	fake_thread(f, 1, "born", f->thread, false);
	born = f->java_thread[1];
	array = fake_pointer_to(f, old[0]);
	fake_pointer_to(f, old[1]);
	fake_pointer_to(f, born);
	fake32(f, list + 4, 3);
	fake64(f, list + 16, array);
	assert_true(vmstructs_static(f->v, "ThreadsSMRSupport", "_java_thread_list", &static_at));
	fake64(f, static_at, list);
	f->java_thread[1] = old[1];
	return born;
}

static void number(struct fake *f, u64 thread, pid_t tid)
{
	u64 os;

	memcpy(&os, f->bytes + (thread + THREAD_OS - FAKE_BASE), 8);
	fake32(f, os + OS_TID, tid);
}

/* Platform threads and virtual ones share their numbers: only who is not in the list can be virtual. */
static void names_a_holder_that_is_new(void **state)
{
	struct waiting s;
	struct runtime_wait wait;
	u32 first, again;
	u64 born;

	start(&s, FAKE_25, PENDING);
	fake64(s.f, s.f->java_thread[1] + OWNER_ID, 77);
	ask_owner(&s, 77, &wait);
	assert_int_equal(wait.holder, MAIN + 1);
	born = bear_thread(s.f);
	number(s.f, born, 4711);
	fake64(s.f, born + OWNER_ID, 78);
	ask_owner(&s, 78, &wait);
	assert_string_equal(wait.holder_name, "");
	assert_int_equal(wait.holder, 4711);
	first = ask_owner(&s, 79, &wait);
	assert_string_equal(wait.holder_name, "virtual thread 79");
	assert_int_equal(wait.holder, 0);
	again = ask(&s, &wait);
	assert_string_equal(wait.holder_name, "virtual thread 79");
	assert_true(again < first);
	stop(&s);
}

/* Where the owner is the JavaThread itself, no other thread is read to find it. */
static void finds_an_owner_without_reads(void **state)
{
	struct waiting s;
	struct runtime_wait wait;
	u32 without, with;

	start(&s, FAKE_8, PENDING);
	ask(&s, &wait); /* lists the threads */
	without = ask_owner(&s, s.f->java_thread[1], &wait);
	assert_int_equal(wait.holder, MAIN + 1);
	s.w.last = 0;
	s.w.stack_base = STACK_BASE;
	s.w.stack_size = STACK_SIZE;
	with = ask(&s, &wait);
	assert_int_equal(wait.holder, MAIN + 1);
	assert_int_equal(with, without);
	fake64(s.f, s.f->java_thread[0] + STACK_BASE, 0x9000);
	fake64(s.f, s.f->java_thread[0] + STACK_SIZE, 0x1000);
	ask_owner(&s, 0x8ff8, &wait);
	assert_int_equal(wait.holder, MAIN);
	stop(&s);
}

/* Of 19 and later, where java.lang.Thread has no threadStatus. Returns where the search for one would read. */
static u64 give_holder(struct fake *f)
{
	const struct fake_java_field thread[] = {{"name", "Ljava/lang/String;", THREAD_NAME_AT, false},
	        {"holder", "Ljava/lang/Thread$FieldHolder;", HOLDER_AT, false}};
	const struct fake_java_field status[] = {{"threadStatus", "I", STATUS_AT, false}};
	u64 class = fake_class(f, "java/lang/Thread$FieldHolder", 32, f->object), holder = fake_room(f, 32);

	fake_fields(f, f->thread, thread, 2);
	fake_fields(f, class, status, 1);
	fake_object(f, holder, class);
	fake32(f, holder + STATUS_AT, BLOCKED);
	fake64(f, f->thread_object[0] + HOLDER_AT, holder);
	return f->thread + KLASS_STREAM;
}

static void searches_a_missing_field_once(void **state)
{
	struct waiting s;
	struct runtime_wait wait;
	u32 reads;
	u64 fields;

	start(&s, FAKE_25, WAITING);
	fields = give_holder(s.f);
	ask(&s, &wait);
	assert_int_equal(wait.kind, LOCK_MONITOR);
	reads = ask(&s, &wait);
	fake64(s.f, fields, 0);
	assert_int_equal(ask(&s, &wait), reads);
	assert_int_equal(wait.kind, LOCK_MONITOR);
	stop(&s);
}

/* Once in a list that stays as it is; if it changes, what is new is found at once. */
static void looks_for_a_thread_once(void **state)
{
	struct waiting s;
	struct hotspot_thread all[4], t;
	u32 list, miss;
	u64 born;

	start(&s, FAKE_25, PENDING);
	hotspot_threads(s.h, &s.f->memory, all, 4, false);
	s.f->reads = 0;
	hotspot_threads(s.h, &s.f->memory, all, 4, false);
	list = s.f->reads;
	s.f->reads = 0;
	assert_false(hotspot_thread_of(s.h, &s.f->memory, 4711, &t));
	miss = s.f->reads;
	assert_true(miss < 2 * list);
	s.f->reads = 0;
	s.h->places_next_ns = UINT64_MAX;
	assert_false(hotspot_thread_of(s.h, &s.f->memory, 4711, &t));
	assert_true(s.f->reads < list);
	born = bear_thread(s.f);
	number(s.f, born, 4711);
	assert_true(hotspot_thread_of(s.h, &s.f->memory, 4711, &t));
	assert_string_equal(t.name, "born");
	stop(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(names_a_holder_that_is_new),
	        cmocka_unit_test(finds_an_owner_without_reads),
	        cmocka_unit_test(searches_a_missing_field_once),
	        cmocka_unit_test(looks_for_a_thread_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
