/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of yrt itself. */
#ifndef YRT_THREAD_START_H
#define YRT_THREAD_START_H

#include <pthread.h>
#include <signal.h>

/* As pthread_create(), but the thread takes no signals: they are for the main thread. attr: NULL: the default. */
static inline int thread_start(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *arg), void *arg)
{
	sigset_t all, before;
	int code;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	code = pthread_create(thread, attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return code;
}

#endif
