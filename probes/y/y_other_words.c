/* SPDX-License-Identifier: Apache-2.0 */
#include "y_other_words.h"

#include <string.h>
#include <strings.h>

#include <types.h>

const char *y_other_words(const char *text)
{
	static const char *const words[][2] = {{"begin", "_probe _begin { … }"}, {"end", "_probe _end { … }"},
	        {"oneshot", "_probe _oneshot { … }"}, {"timer", "_probe _timer(1s) { … }"},
	        {"interval", "_probe _timer(1s) { … }"}, {"tick", "_probe _timer(1s) { … }"},
	        {"profile", "_probe _profile(99) { … }"},
	        {"kprobe", "functions of the kernel are not probed; tracepoint:NAME and syscall:NAME are"},
	        {"kretprobe", "functions of the kernel are not probed; tracepoint:NAME and syscall:NAME:return are"},
	        {"uretprobe", "_probe NAME:return { … }"}, {"process", "_probe NAME { … }, and -p chooses the process"},
	        {"kernel.function", "functions of the kernel are not probed; tracepoint:NAME and syscall:NAME are"},
	        {"kernel.trace", "_probe tracepoint:NAME { … }"},
	        {"pid", "_probe NAME { … }, and -p chooses the process"},
	        {"sched", "_probe tracepoint:sched:NAME { … }"}, {"syscalls", "_probe syscall:NAME { … }"}};
	size_t len = strcspn(text, ":(-");

	for (u32 i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (len == strlen(words[i][0]) && !strncasecmp(text, words[i][0], len))
			return words[i][1];
	return NULL;
}
