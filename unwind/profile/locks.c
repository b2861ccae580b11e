/* SPDX-License-Identifier: Apache-2.0 */
#include "locks.h"

#include <stdio.h>
#include <string.h>

#include "cleanup.h"
#include "rules.h"
#include "symbols/symbols.h"

#define WITHIN 7 /* native frames inside the function that locks: unnamed ones of a stripped libc among them */

/* Functions of the program that a worker's loop has at most; in a task of a pool (Disruptor's: 4; Hazelcast's: 7). */
#define LOOP_OWN     8 /* of a thread of its own */
#define LOOP_IN_TASK 4
#define LOOP_NATIVE  12 /* of native code, the thread's start among them: MariaDB's 3, libuv's 4 */

#define MUTEX(name)                                                                                                    \
	{                                                                                                              \
		.at = {.frame = name, .within = WITHIN}, .kind = LOCK_MUTEX                                            \
	}
#define RWLOCK(name, what, inside)                                                                                     \
	{                                                                                                              \
		.at = {.frame = name, .within = WITHIN}, .kind = LOCK_RWLOCK, .word = what, .back = inside             \
	}
/* PostgreSQL: a backend sleeps at a semaphore of its own, which says nothing about the lock. */
#define LWLOCK(name)                                                                                                   \
	{                                                                                                              \
		.at = {.frame = name, .within = WITHIN}, .kind = LOCK_RWLOCK, .word = "LWLock", .each = true           \
	}
#define OTHER(name, of)                                                                                                \
	{                                                                                                              \
		.at = {.frame = name, .within = WITHIN}, .kind = of                                                    \
	}

/*
 * glibc 2.17 to 2.41, musl 1.1 and 1.2, Rust's std and parking_lot, Abseil, TCMalloc, PostgreSQL 10 to 18. Locks come
 * first: a condition's function takes its mutex again. In glibc's rwlock (struct_rwlock.h of x86) both futexes lie in
 * the second word of 8 bytes.
 */
static const struct lock_rule native_rules[] = {
        MUTEX("__lll_lock_wait_private"), /* malloc's arenas, stdio */
        MUTEX("__lll_lock_wait"),
        MUTEX("__pthread_mutex_cond_lock"),
        MUTEX("pthread_mutex_lock"),
        MUTEX("__pthread_mutex_lock"),
        MUTEX("___pthread_mutex_lock"),
        MUTEX("__pthread_mutex_lock_full"),
        MUTEX("pthread_mutex_timedlock"),
        MUTEX("__pthread_mutex_timedlock"),
        MUTEX("pthread_mutex_clocklock"),
        MUTEX("__pthread_mutex_clocklock_common"),
        MUTEX("std::sys::sync::mutex::futex::Mutex::lock_contended"),
        MUTEX("std::sys::unix::locks::futex_mutex::Mutex::lock_contended"),
        MUTEX("std::sys_common::once::futex::Once::call"),
        MUTEX("std::sys::sync::once::futex::Once::call"),
        MUTEX("parking_lot::raw_mutex::RawMutex::lock_slow"),
        MUTEX("absl::Mutex::LockSlow"),
        MUTEX("absl::base_internal::SpinLock::SlowLock"),
        MUTEX("SpinLock::SlowLock"),
        MUTEX("__pthread_once_slow"),
        RWLOCK("pthread_rwlock_timedrdlock", "read lock", 0), /* musl's, and glibc's with a limit */
        RWLOCK("pthread_rwlock_timedwrlock", "write lock", 0),
        RWLOCK("pthread_rwlock_rdlock", "read lock", 8),
        RWLOCK("__pthread_rwlock_rdlock", "read lock", 8),
        RWLOCK("___pthread_rwlock_rdlock", "read lock", 8),
        RWLOCK("pthread_rwlock_wrlock", "write lock", 8),
        RWLOCK("__pthread_rwlock_wrlock", "write lock", 8),
        RWLOCK("___pthread_rwlock_wrlock", "write lock", 8),
        RWLOCK("std::sys::sync::rwlock::futex::RwLock::read_contended", "read lock", 0),
        RWLOCK("std::sys::sync::rwlock::futex::RwLock::write_contended", "write lock", 0),
        RWLOCK("parking_lot::raw_rwlock::RawRwLock::lock_shared_slow", "read lock", 0),
        RWLOCK("parking_lot::raw_rwlock::RawRwLock::lock_exclusive_slow", "write lock", 0),
        LWLOCK("LWLockAcquire"),
        LWLOCK("LWLockAcquireOrWait"),
        LWLOCK("LWLockWaitForVar"),
        OTHER("__condvar_quiesce_and_switch_g1", LOCK_CONDITION), /* pthread_cond_signal(): for waiters to leave */
        OTHER("pthread_cond_wait", LOCK_CONDITION),
        OTHER("__pthread_cond_wait", LOCK_CONDITION),
        OTHER("___pthread_cond_wait", LOCK_CONDITION),
        OTHER("pthread_cond_timedwait", LOCK_CONDITION),
        OTHER("__pthread_cond_timedwait", LOCK_CONDITION),
        OTHER("___pthread_cond_timedwait", LOCK_CONDITION),
        OTHER("pthread_cond_clockwait", LOCK_CONDITION),
        OTHER("__pthread_cond_clockwait", LOCK_CONDITION),
        OTHER("___pthread_cond_clockwait", LOCK_CONDITION),
        OTHER("cnd_wait", LOCK_CONDITION),
        OTHER("std::sys::sync::condvar::futex::Condvar::wait", LOCK_CONDITION),
        OTHER("std::sys::sync::condvar::futex::Condvar::wait_timeout", LOCK_CONDITION),
        OTHER("parking_lot::condvar::Condvar::wait_until_internal", LOCK_CONDITION),
        OTHER("absl::CondVar::WaitCommon", LOCK_CONDITION),
        OTHER("absl::Mutex::AwaitCommon", LOCK_CONDITION),
        OTHER("sem_wait", LOCK_SEMAPHORE),
        OTHER("__new_sem_wait", LOCK_SEMAPHORE),
        OTHER("__new_sem_wait_slow64.constprop.0", LOCK_SEMAPHORE),
        OTHER("sem_timedwait", LOCK_SEMAPHORE),
        OTHER("sem_clockwait", LOCK_SEMAPHORE),
        OTHER("pthread_join", LOCK_JOIN),
        OTHER("__pthread_clockjoin_ex", LOCK_JOIN),
        OTHER("pthread_timedjoin_np", LOCK_JOIN),
        OTHER("pthread_clockjoin_np", LOCK_JOIN),
        OTHER("thrd_join", LOCK_JOIN),
        OTHER("pthread_barrier_wait", LOCK_CONDITION),
        OTHER("__pthread_barrier_wait", LOCK_CONDITION),
        OTHER("std::thread::park", LOCK_PARK),
        OTHER("std::__atomic_futex_unsigned_base::_M_futex_wait_until", LOCK_CONDITION),
        {.at = {0}},
};

static const struct {
	const char *one, *many;
	const char *awaited; /* NULL: as one */
} words[LOCK_KINDS] = {
        [LOCK_FUTEX] = {"futex", "futexes of unknown use"},
        [LOCK_MUTEX] = {"mutex", "mutexes"},
        [LOCK_RWLOCK] = {"rwlock", "rwlocks"},
        [LOCK_MONITOR] = {"monitor", "monitors"},
        [LOCK_OBJECT] = {"lock", "lock objects"},
        [LOCK_VM] = {"VM lock", "the VM's lock"},
        [LOCK_CONDITION] = {"condition", "conditions", "notification"},
        [LOCK_SEMAPHORE] = {"semaphore", "semaphores"},
        [LOCK_JOIN] = {"join", "ends of threads", "end"},
        [LOCK_PARK] = {"parked", "work", "permit"},
};

const char *lock_kind_words(enum lock_kind kind)
{
	return words[kind].many;
}

const char *lock_kind_awaited(enum lock_kind kind)
{
	return words[kind].awaited ? words[kind].awaited : words[kind].one;
}

static struct error *match(const struct rule_stack *s, const struct lock_rule *rule, bool *ret)
{
	const struct idle_rule leaf = {.frame = rule->leaf, .within = 1};
	struct error *err = NULL;
	u32 depth[2] = {0};

	*ret = false;
	for (u32 i = 0; !err && !*ret && i < s->n; i++) {
		bool script = frame_kind(&s->frames[i]) == FRAME_SCRIPT, begins = true;

		if (!rule_is_code(&s->frames[i]))
			continue;
		if (depth[0] >= rule->at.within && depth[1] >= rule->at.within)
			break;
		if (rule->leaf && script && !depth[1])
			err = rule_matches(s, i, 0, &leaf, &begins);
		if (err || !begins)
			break;
		err = rule_matches(s, i, depth[script]++, &rule->at, ret);
	}
	return err;
}

/* Is a wait without a lock so many functions of the program deep, inside a pool's task or not? */
static bool is_deep(enum lock_kind kind, u32 own, bool in_task)
{
	if (kind == LOCK_SEMAPHORE) /* is for what there are few of */
		return own > 1;
	return own > (in_task ? LOOP_IN_TASK : LOOP_OWN);
}

static struct error *has_begun(
        const struct rule_stack *s, const struct lock_rule *rule, const struct runtime_ops *ops, bool *ret)
{
	enum function_role role = ROLE_PROGRAM;
	struct error *err = NULL;
	u32 own = 0;

	*ret = false;
	for (u32 i = 0; ops->role && rule->kind >= LOCK_OTHERS && !err && !*ret && role != ROLE_RUNS && i < s->n; i++) {
		struct named named;

		if (frame_kind(&s->frames[i]) != FRAME_SCRIPT || !rule_is_code(&s->frames[i]))
			continue;
		err = names_frame(s->names, s->p, s->frames, i, s->n, &named);
		if (err)
			break;
		role = ops->role(s->profile->functions[named.function].name);
		own += role == ROLE_PROGRAM;
		*ret = is_deep(rule->kind, own, role == ROLE_RUNS);
	}
	return err;
}

/* The same of a program of native code alone: a row's lock of a database, a connection of a pool. */
static struct error *has_begun_native(const struct rule_stack *s, const struct lock_rule *rule, bool *ret)
{
	struct error *err = NULL;
	bool inside = true;
	u32 own = 0;

	for (u32 i = 0; !err && rule->kind >= LOCK_OTHERS && rule->kind != LOCK_JOIN && i < s->n; i++) {
		bool found = false;

		if (!rule_is_code(&s->frames[i]))
			continue;
		if (inside)
			err = rule_matches(s, i, 0, &rule->at, &found);
		own += !inside;
		inside &= !found;
	}
	*ret = own > LOOP_NATIVE;
	return err;
}

static struct error *find_rule(const struct rule_stack *s, const struct lock_rule *rules, const struct lock_rule **ret)
{
	struct error *err = NULL;
	bool found;

	for (const struct lock_rule *r = rules; r && !err && !*ret && r->at.frame; r++) {
		err = match(s, r, &found);
		if (!err && found)
			*ret = r;
	}
	return err;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The file whose variables without initial value (.bss) this anonymous mapping may hold. */
static const struct mapping *file_before(const struct process *p, const struct mapping *m)
{
	for (u32 k = (u32)(m - p->mappings); k-- > 0 && p->mappings[k].end == p->mappings[k + 1].start;)
		if (p->mappings[k].image)
			return &p->mappings[k];
	return NULL;
}

static void name_memory(const struct mapping *m, u64 addr, char *text)
{
	const char *name = m && m->name ? m->name : "";

	if (m && !m->anonymous && *name == '/')
		snprintf(text, LOCK_TEXT, "%s+0x%lx", base_name(name), addr - m->start + m->offset);
	else if (!strcmp(name, "[heap]") || !strcmp(name, "[stack]"))
		snprintf(text, LOCK_TEXT, "%.*s 0x%lx", (int)strlen(name) - 2, name + 1, addr);
	else
		snprintf(text, LOCK_TEXT, "0x%lx", addr);
}

void locks_name_address(const struct process *p, u64 addr, char *text)
{
	const struct mapping *m = mapping_find(p->mappings, p->maps.nlines, addr), *file;
	cleanup(free) char *shown = NULL;
	char name[LOCK_TEXT];
	u64 offset;

	file = !m ? NULL : m->image ? m : m->anonymous ? file_before(p, m) : NULL;
	if (!file || !symbols_object(file->image, addr - file->bias, name, sizeof(name), &offset)) {
		name_memory(m, addr, text);
		return;
	}
	shown = symbol_demangle(name);
	if (offset)
		snprintf(text, LOCK_TEXT, "%.400s+0x%lx", shown ? shown : name, offset);
	else
		snprintf(text, LOCK_TEXT, "%.400s", shown ? shown : name);
}

/* What the runtime says that is waited for: "com.example.Account". */
static struct error *find_awaited(const struct rule_stack *s, char *text)
{
	struct error *err = NULL;
	struct named named;

	for (u32 i = 0; !err && !*text && i < s->n; i++) {
		if (!(frame_flags(&s->frames[i]) & FRAME_AWAITED))
			continue;
		err = names_frame(s->names, s->p, s->frames, i, s->n, &named);
		if (!err && !named.unresolved)
			snprintf(text, LOCK_TEXT, "%s", s->profile->functions[named.function].name);
	}
	return err;
}

static struct error *describe(
        const struct rule_stack *s, const struct lock_rule *rule, u64 addr, struct lock_found *ret)
{
	const char *word = rule && rule->word ? rule->word : words[ret->kind].one;
	char place[LOCK_TEXT] = "";
	struct error *err = NULL;

	if (rule && rule->each && rule->kind != LOCK_VM)
		err = find_awaited(s, place);
	else if (addr && s->p && ret->kind < LOCK_OTHERS && !(rule && rule->each))
		locks_name_address(s->p, rule && rule->back ? (addr & ~7ull) - rule->back : addr, place);
	if (rule && rule->type && !*place)
		snprintf(place, sizeof(place), "%s", rule->type);
	snprintf(ret->text, sizeof(ret->text), "%s%s%.480s", word, *place ? " " : "", place);
	return err;
}

struct error *locks_any_of_runtime(const struct rule_stack *s, bool *ret)
{
	const struct lock_rule *rule = NULL;
	struct error *err = NULL;

	for (u32 k = 0; !err && !rule && k < s->p->ninstances; k++)
		err = find_rule(s, s->p->instances[k].ops->locks, &rule);
	*ret = rule;
	return err;
}

/* Is it no thread that waits? Its reason says what for, unless a rule knows more. */
static bool is_task(const struct rule_stack *s)
{
	return s->n && frame_kind(&s->frames[0]) == FRAME_REASON && frame_runtime(&s->frames[0]) != RUNTIME_NATIVE;
}

struct error *locks_find(struct names *names, const struct profile *profile, const struct process *p,
        const struct frame *frames, u32 n, struct lock_found *ret)
{
	struct rule_stack s = {.names = names, .profile = profile, .p = p, .frames = frames, .n = n, .comm = ""};
	const struct lock_rule *rule = NULL;
	struct error *err = NULL;

	ret->begun = false;
	for (u32 k = 0; p && !err && !rule && k < p->ninstances; k++) {
		err = find_rule(&s, p->instances[k].ops->locks, &rule);
		if (!err && rule)
			err = has_begun(&s, rule, p->instances[k].ops, &ret->begun);
	}
	if (!err && !rule && p) {
		err = find_rule(&s, native_rules, &rule);
		if (!err && rule && !p->ninstances)
			err = has_begun_native(&s, rule, &ret->begun);
	}
	if (err)
		return err;
	ret->kind = rule ? rule->kind : is_task(&s) ? LOCK_PARK : LOCK_FUTEX;
	*ret->text = 0;
	return !rule && is_task(&s) ? NULL : describe(&s, rule, n ? frame_addr(&frames[0]) : 0, ret);
}
