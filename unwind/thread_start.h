/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of yrt itself. */
#ifndef YRT_THREAD_START_H
#define YRT_THREAD_START_H

#include <pthread.h>
#include <signal.h>

/*
 * As pthread_create(), but the thread takes no signals: they are for the main thread. Those of its own faults it takes,
 * or the kernel would end the program without a word of a sanitizer. attr: NULL: the default.
 */
static inline int thread_start(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *arg), void *arg)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
	sigset_t all, before;
	int code;

	sigfillset(&all);
	for (unsigned i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		sigdelset(&all, faults[i]);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	code = pthread_create(thread, attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return code;
}

#endif
