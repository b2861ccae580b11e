/* SPDX-License-Identifier: Apache-2.0 */
#include "processes.h"

#include <string.h>

struct error *processes_parse(const char *text, enum processes *ret)
{
	static const char *const words[] = {[PROCESSES_AUTO] = "auto",
	        [PROCESSES_EACH] = "each",
	        [PROCESSES_PROGRAM] = "program",
	        [PROCESSES_NONE] = "none"};

	for (u32 i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (words[i] && !strcmp(text, words[i])) {
			*ret = i;
			return NULL;
		}
	return error_new(ERROR_USAGE, "--processes takes auto, each, program or none, not \"%s\"", text);
}
