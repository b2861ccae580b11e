/* SPDX-License-Identifier: Apache-2.0 */
/* What users of other tools (bpftrace, DTrace, SystemTap) write as a probe's point, and what it is in Y. */
#ifndef YRT_Y_OTHER_WORDS_H
#define YRT_Y_OTHER_WORDS_H

/* "timer:1s", "kprobe:vfs_read": what to write in its place, or why there is nothing. NULL: it is no such word. */
const char *y_other_words(const char *text);

#endif
