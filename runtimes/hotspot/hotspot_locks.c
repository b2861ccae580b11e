/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_locks.h"

#define NATIVE                 10 /* frames: some of libc's lie inside */
#define SCRIPT                 8  /* frames of java.util.concurrent inside */
#define LOCKS                  "java.util.concurrent.locks."
#define SYNCHRONIZER           LOCKS "AbstractQueuedSynchronizer."
#define SYNCHRONIZER_CONDITION LOCKS "AbstractQueuedSynchronizer$ConditionObject."

#define SAFEPOINT(name)                                                                                                \
	{                                                                                                              \
		.at = {.frame = name, .within = NATIVE}, .kind = LOCK_VM, .word = "safepoint", .each = true            \
	}
#define MONITOR(name)                                                                                                  \
	{                                                                                                              \
		.at = {.frame = name, .within = NATIVE}, .kind = LOCK_MONITOR, .each = true                            \
	}
#define OBJECT(name, what)                                                                                             \
	{                                                                                                              \
		.at = {.frame = LOCKS name, .within = SCRIPT}, .kind = LOCK_OBJECT, .word = what, .each = true         \
	}
#define REACQUIRED(inner, outer)                                                                                       \
	{                                                                                                              \
		.at = {.frame = SYNCHRONIZER inner, .within = SCRIPT, .caller = SYNCHRONIZER_CONDITION outer},         \
		.kind = LOCK_OBJECT, .word = "lock of a Condition", .each = true                                       \
	}
#define OTHER(name, of)                                                                                                \
	{                                                                                                              \
		.at = {.frame = name, .within = SCRIPT}, .kind = of, .each = true                                      \
	}

/*
 * objectMonitor.cpp of JDK 8 to 26, java.base of the same. A thread waits on an event of its own (ParkEvent, Parker),
 * so the futex does not identify the lock.
 */
const struct lock_rule hotspot_locks[] = {
        SAFEPOINT("SafepointSynchronize::block"), /* also with a monitor that it has just got */
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
        OBJECT("ReentrantReadWriteLock$ReadLock.lock", "ReentrantReadWriteLock read lock"),
        OBJECT("ReentrantReadWriteLock$ReadLock.lockInterruptibly", "ReentrantReadWriteLock read lock"),
        OBJECT("ReentrantReadWriteLock$ReadLock.tryLock", "ReentrantReadWriteLock read lock"),
        OBJECT("ReentrantReadWriteLock$WriteLock.lock", "ReentrantReadWriteLock write lock"),
        OBJECT("ReentrantReadWriteLock$WriteLock.lockInterruptibly", "ReentrantReadWriteLock write lock"),
        OBJECT("ReentrantReadWriteLock$WriteLock.tryLock", "ReentrantReadWriteLock write lock"),
        OBJECT("ReentrantLock.lock", "ReentrantLock"),
        OBJECT("ReentrantLock.lockInterruptibly", "ReentrantLock"),
        OBJECT("ReentrantLock.tryLock", "ReentrantLock"),
        OBJECT("StampedLock.acquireRead", "StampedLock read lock"),
        OBJECT("StampedLock.acquireWrite", "StampedLock write lock"),
        OTHER("java.lang.Thread.join", LOCK_JOIN),
        OTHER("java.util.concurrent.Semaphore.acquire", LOCK_SEMAPHORE),
        OTHER("java.util.concurrent.Semaphore.acquireUninterruptibly", LOCK_SEMAPHORE),
        OTHER("java.util.concurrent.Semaphore.tryAcquire", LOCK_SEMAPHORE),
        OTHER("java.lang.Object.wait", LOCK_CONDITION),
        OTHER(SYNCHRONIZER_CONDITION "await", LOCK_CONDITION),
        OTHER(SYNCHRONIZER_CONDITION "awaitNanos", LOCK_CONDITION),
        OTHER(SYNCHRONIZER_CONDITION "awaitUntil", LOCK_CONDITION),
        OTHER("java.util.concurrent.CountDownLatch.await", LOCK_CONDITION),
        OTHER("java.util.concurrent.locks.LockSupport.park", LOCK_PARK),
        OTHER("java.util.concurrent.locks.LockSupport.parkNanos", LOCK_PARK),
        OTHER("java.util.concurrent.locks.LockSupport.parkUntil", LOCK_PARK),
        {.at = {0}},
};
