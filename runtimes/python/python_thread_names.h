/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program calls its threads. threading._active of each interpreter has a Thread object for each thread that the
 * module knows, with _name and, from 3.8 on, _native_id (Lib/threading.py). The kernel's own name is "python" for all
 * up to 3.13, and cut at 15 bytes from 3.14 on.
 */
#ifndef YRT_PYTHON_THREAD_NAMES_H
#define YRT_PYTHON_THREAD_NAMES_H

#include "python_objects.h"
#include "table.h"

/* What was found in one process, so that for a new thread only the newest entries are read. All 0 at first. */
struct python_thread_names {
	struct table objects; /* Thread objects by native id */
	bool listed;
	u32 nmodules;
	struct python_threading {
		u64 interp, dict; /* the module's */
		u64 seen;         /* hash of the threads that it listed when all were looked at */
	} modules[PYTHON_INTERPRETERS_MAX];
};

void python_thread_names_free(struct python_thread_names *names);

/*
 * native: the thread's number as the program itself knows it; main: it is the number of the process too. runtime:
 * address of _PyRuntime. False: no such thread, or it has no name.
 */
bool python_thread_name(struct python_thread_names *names, const struct python_reader *r, u64 runtime, u64 native,
        bool main, char *ret, size_t size);

#endif
