/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a core file, as if the kernel had just handed them over: none of them will run. */
#ifndef YRT_CORE_THREADS_H
#define YRT_CORE_THREADS_H

#include "threads.h"

struct core_file;

struct error *core_threads(const struct core_file *core, struct thread_list *ret);

#endif
