/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `yrt dump --json` says, as evidence: all threads' stacks as the view "dump", that of the thread that a
 * signal hit as "crash" (unit: threads), deadlocks and the signal of a core as facts.
 */
#ifndef YRT_REPORT_DUMP_FACTS_H
#define YRT_REPORT_DUMP_FACTS_H

#include "evidence.h"

struct error *dump_facts_read(struct evidence *e, const char *path);
/* What the first thread of a dump does, as the fact "lock.file.does": a sentence. */
void holder_facts_read(struct evidence *e, const char *path);
/* The text of `yrt heap --core`: whether the heap is broken, where, and what memory is used for. */
void heap_facts_read(struct evidence *e, const char *path);

#endif
