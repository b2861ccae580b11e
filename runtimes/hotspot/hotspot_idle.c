/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_idle.h"

/* java.base of JDK 8 to 26; Netty 4.1 and 4.2; Tomcat 9 to 11; Jetty 12. HotSpot names its threads itself. */
#define SERVES(name, methods)                                                                                          \
	{                                                                                                              \
		.frame = name, .within = 12, .near = (methods), .first = "main"                                        \
	}
/* Methods of the loop of a thread that waits for work, Thread.run() and a stub among them: Kafka has the longest. */
#define OWN_LOOP   4
#define QUEUE_LOOP 6
#define EVENT_LOOP 7

const struct idle_rule hotspot_idle[] = {
        {.frame = "java.util.concurrent.ThreadPoolExecutor.getTask", .within = 12},
        {.frame = "java.util.concurrent.ForkJoinPool.awaitWork", .within = 6},
        {.frame = "java.util.TimerThread.mainLoop", .within = 3},
        {.frame = "java.lang.ref.Reference.waitForReferencePendingList", .within = 2},
        {.frame = "java.lang.ref.Reference$ReferenceHandler.run", .within = 4},
        {.frame = "java.lang.ref.Finalizer$FinalizerThread.run", .within = 10},
        {.frame = "jdk.internal.ref.CleanerImpl.run", .within = 12},
        {.frame = "sun.misc.Cleaner.run", .within = 8},
        {.frame = "jdk.internal.net.http.HttpClientImpl$SelectorManager.run", .within = 6},
        {.frame = "sun.nio.ch.EPollPort$EventHandlerTask.poll", .within = 3},
        {.frame = "io.netty.channel.epoll.EpollEventLoop.epollWait", .within = 4},
        {.frame = "io.netty.channel.epoll.EpollIoHandler.epollWait", .within = 4},
        {.frame = "io.netty.channel.nio.NioEventLoop.select", .within = 8},
        {.frame = "io.netty.channel.nio.NioIoHandler.select", .within = 8},
        {.frame = "io.netty.util.concurrent.SingleThreadEventExecutor.takeTask", .within = 10},
        {.frame = "org.apache.tomcat.util.net.NioEndpoint$Poller.run", .within = 7},
        {.frame = "org.apache.tomcat.util.threads.ThreadPoolExecutor.getTask", .within = 14},
        {.frame = "org.apache.catalina.core.StandardServer.await", .within = 4},
        {.frame = "org.eclipse.jetty.io.ManagedSelector$SelectorProducer.select", .within = 8},
        {.frame = "org.eclipse.jetty.util.thread.QueuedThreadPool$Runner.idleJobPoll", .within = 10},
        {.frame = "CallJavaMainInNewThread", .within = 6}, /* the launcher waits for main() */
        {.frame = "jni_DestroyJavaVM", .within = 14},      /* and main() has returned */
        SERVES("java.util.concurrent.ArrayBlockingQueue.take", QUEUE_LOOP),
        SERVES("java.util.concurrent.ArrayBlockingQueue.poll", QUEUE_LOOP),
        SERVES("java.util.concurrent.LinkedBlockingQueue.take", QUEUE_LOOP),
        SERVES("java.util.concurrent.LinkedBlockingQueue.poll", QUEUE_LOOP),
        SERVES("java.util.concurrent.LinkedBlockingDeque.take", QUEUE_LOOP),
        SERVES("java.util.concurrent.LinkedBlockingDeque.poll", QUEUE_LOOP),
        SERVES("java.util.concurrent.PriorityBlockingQueue.take", QUEUE_LOOP),
        SERVES("java.util.concurrent.PriorityBlockingQueue.poll", QUEUE_LOOP),
        SERVES("java.util.concurrent.DelayQueue.take", QUEUE_LOOP),
        SERVES("java.util.concurrent.DelayQueue.poll", QUEUE_LOOP),
        SERVES("java.util.concurrent.LinkedTransferQueue.take", QUEUE_LOOP),
        SERVES("java.util.concurrent.LinkedTransferQueue.poll", QUEUE_LOOP),
        SERVES("java.util.concurrent.SynchronousQueue.take", QUEUE_LOOP),
        SERVES("java.util.concurrent.SynchronousQueue.poll", QUEUE_LOOP),
        SERVES("java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject.await", OWN_LOOP),
        SERVES("java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject.awaitNanos", OWN_LOOP),
        SERVES("java.lang.Object.wait", OWN_LOOP),
        SERVES("sun.nio.ch.SelectorImpl.select", EVENT_LOOP),
        SERVES("sun.nio.ch.SelectorImpl.lockAndDoSelect", EVENT_LOOP), /* JDK 8: select() may be inlined */
        {.thread = "VM Thread"},
        {.thread = "VM Periodic Tas"},
        {.thread = "GC Thread#"},
        {.thread = "G1 "},
        {.thread = "ParGC"},
        {.thread = "ZD"}, /* ZDriverMajor, ZDirector */
        {.thread = "ZWorker"},
        {.thread = "ZStat"},
        {.thread = "ZUn"},
        {.thread = "Shenandoah"},
        {.thread = "C1 CompilerThre"},
        {.thread = "C2 CompilerThre"},
        {.thread = "Sweeper thread"},
        {.thread = "Signal Dispatch"},
        {.thread = "Service Thread"},
        {.thread = "Notification Th"},
        {.thread = "Monitor Deflati"},
        {.thread = "StringDedupProc"},
        {.thread = "Attach Listener"},
        {0},
};
