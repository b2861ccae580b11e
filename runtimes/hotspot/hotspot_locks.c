/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_locks.h"

#include <string.h>

#define NATIVE                 12 /* frames: some of libc's lie inside */
#define SCRIPT                 12 /* frames of java.util.concurrent inside: of pinned virtual threads some more */
#define LOCKS                  "java.util.concurrent.locks."
#define SYNCHRONIZER           LOCKS "AbstractQueuedSynchronizer."
#define SYNCHRONIZER_CONDITION LOCKS "AbstractQueuedSynchronizer$ConditionObject."

#define VM(name, what)                                                                                                 \
	{                                                                                                              \
		.at = {.frame = name, .within = NATIVE}, .kind = LOCK_VM, .word = what, .each = true                   \
	}
#define INITIALIZED(name, outer)                                                                                       \
	{                                                                                                              \
		.at = {.frame = name, .within = NATIVE, .caller = "InstanceKlass::" outer}, .kind = LOCK_VM,           \
		.word = "class initialization", .each = true                                                           \
	}
#define MONITOR(name)                                                                                                  \
	{                                                                                                              \
		.at = {.frame = name, .within = NATIVE}, .kind = LOCK_MONITOR, .each = true                            \
	}
/* By Unsafe.park(): what else a thread in one of these functions waits for is the JVM's own. */
#define PARKED(name, outer, of, what, class)                                                                           \
	{                                                                                                              \
		.at = {.frame = name, .within = SCRIPT, .caller = outer}, .kind = of, .leaf = "Unsafe.park",           \
		.word = what, .type = class, .each = true                                                              \
	}
#define OBJECT(name, what, class) PARKED(LOCKS name, NULL, LOCK_OBJECT, what, class)
#define EXCLUSIVE(inner, outer)   PARKED(SYNCHRONIZER inner, outer, LOCK_OBJECT, NULL, NULL)
#define REACQUIRED(inner, outer)                                                                                       \
	PARKED(SYNCHRONIZER inner, SYNCHRONIZER_CONDITION outer, LOCK_OBJECT, "lock of a Condition", NULL)
#define OTHER(name, of) PARKED(name, NULL, of, NULL, NULL)
#define WAITED(name, of)                                                                                               \
	{                                                                                                              \
		.at = {.frame = name, .within = SCRIPT}, .kind = of, .each = true                                      \
	}

/*
 * objectMonitor.cpp of JDK 8 to 26, java.base of the same. A thread waits on an event of its own (ParkEvent, Parker),
 * so the futex does not identify the lock. What others make of AbstractQueuedSynchronizer is a lock if it is acquired
 * exclusively.
 */
const struct lock_rule hotspot_locks[] = {
        VM("SafepointSynchronize::block", "safepoint"),              /* also with a monitor that it has just got */
        INITIALIZED("ObjectSynchronizer::enter", "link_class_impl"), /* the monitor of an array of int */
        INITIALIZED("ObjectLocker::ObjectLocker", "link_class_impl"),
        INITIALIZED("LightweightSynchronizer::enter", "link_class_impl"),
        INITIALIZED("ObjectMonitor::wait", "initialize_impl"),
        INITIALIZED("ObjectSynchronizer::waitUninterruptibly", "initialize_impl"),
        INITIALIZED("ObjectLocker::wait_uninterruptibly", "initialize_impl"),
        INITIALIZED("Monitor::wait", "initialize_impl"),
        MONITOR("ObjectMonitor::ReenterI"),
        MONITOR("ObjectMonitor::reenter_internal"),
        MONITOR("ObjectMonitor::EnterI"),
        MONITOR("ObjectMonitor::enter_internal"),
        MONITOR("ObjectMonitor::enter_with_contention_mark"),
        MONITOR("ObjectMonitor::enter"),
        MONITOR("ObjectSynchronizer::enter"),
        REACQUIRED("acquire", "await"),
        REACQUIRED("acquire", "awaitNanos"),
        REACQUIRED("acquire", "awaitUntil"),
        REACQUIRED("acquire", "awaitUninterruptibly"),
        REACQUIRED("acquireQueued", "await"),
        REACQUIRED("acquireQueued", "awaitNanos"),
        REACQUIRED("acquireQueued", "awaitUntil"),
        REACQUIRED("acquireQueued", "awaitUninterruptibly"),
        OBJECT("ReentrantReadWriteLock$ReadLock.lock", "read lock", "ReentrantReadWriteLock"),
        OBJECT("ReentrantReadWriteLock$ReadLock.lockInterruptibly", "read lock", "ReentrantReadWriteLock"),
        OBJECT("ReentrantReadWriteLock$ReadLock.tryLock", "read lock", "ReentrantReadWriteLock"),
        OBJECT("ReentrantReadWriteLock$WriteLock.lock", "write lock", "ReentrantReadWriteLock"),
        OBJECT("ReentrantReadWriteLock$WriteLock.lockInterruptibly", "write lock", "ReentrantReadWriteLock"),
        OBJECT("ReentrantReadWriteLock$WriteLock.tryLock", "write lock", "ReentrantReadWriteLock"),
        OBJECT("ReentrantLock.lock", NULL, "ReentrantLock"),
        OBJECT("ReentrantLock.lockInterruptibly", NULL, "ReentrantLock"),
        OBJECT("ReentrantLock.tryLock", NULL, "ReentrantLock"),
        OBJECT("StampedLock.acquireRead", "read lock", "StampedLock"),
        OBJECT("StampedLock.acquireWrite", "write lock", "StampedLock"),
        EXCLUSIVE("acquire", SYNCHRONIZER "acquire"),
        EXCLUSIVE("acquireQueued", NULL),
        EXCLUSIVE("acquireInterruptibly", NULL),
        EXCLUSIVE("tryAcquireNanos", NULL),
        WAITED("java.lang.Thread.join", LOCK_JOIN),
        OTHER("java.util.concurrent.Semaphore.acquire", LOCK_SEMAPHORE),
        OTHER("java.util.concurrent.Semaphore.acquireUninterruptibly", LOCK_SEMAPHORE),
        OTHER("java.util.concurrent.Semaphore.tryAcquire", LOCK_SEMAPHORE),
        WAITED("java.lang.Object.wait", LOCK_CONDITION),
        OTHER(SYNCHRONIZER_CONDITION "await", LOCK_CONDITION),
        OTHER(SYNCHRONIZER_CONDITION "awaitNanos", LOCK_CONDITION),
        OTHER(SYNCHRONIZER_CONDITION "awaitUntil", LOCK_CONDITION),
        OTHER(SYNCHRONIZER_CONDITION "awaitUninterruptibly", LOCK_CONDITION),
        OTHER("java.util.concurrent.CountDownLatch.await", LOCK_CONDITION),
        OTHER("java.util.concurrent.locks.LockSupport.park", LOCK_PARK),
        OTHER("java.util.concurrent.locks.LockSupport.parkNanos", LOCK_PARK),
        OTHER("java.util.concurrent.locks.LockSupport.parkUntil", LOCK_PARK),
        {.at = {0}},
};

/* Of the JDK, Tomcat 9 to 11, Jetty 9 to 12, Netty 4, JBoss Threads 3 (WildFly, Undertow, Quarkus). */
static const char *const runs[] = {
        "java.util.concurrent.ThreadPoolExecutor.runWorker",
        "java.util.concurrent.ForkJoinTask.doExec",
        "java.lang.VirtualThread.run",
        "org.apache.tomcat.util.threads.ThreadPoolExecutor.runWorker",
        "org.eclipse.jetty.util.thread.QueuedThreadPool.runJob",
        "io.netty.util.concurrent.AbstractEventExecutor.runTask",
        "io.netty.util.concurrent.AbstractEventExecutor.safeExecute",
        "org.jboss.threads.EnhancedQueueExecutor.safeRun",
};
static const char *const packages[] = {"java.", "javax.", "jdk.", "sun.", "com.sun."};

enum function_role hotspot_role(const char *function)
{
	size_t len = strcspn(function, " (");

	for (u32 i = 0; i < sizeof(runs) / sizeof(runs[0]); i++)
		if (!strncmp(function, runs[i], len) && !runs[i][len])
			return ROLE_RUNS;
	for (u32 i = 0; i < sizeof(packages) / sizeof(packages[0]); i++)
		if (!strncmp(function, packages[i], strlen(packages[i])))
			return ROLE_LIBRARY;
	return strstr(function, "$$Lambda") || !memchr(function, '.', len) /* a stub */ ? ROLE_LIBRARY : ROLE_PROGRAM;
}
