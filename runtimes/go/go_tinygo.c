/* SPDX-License-Identifier: Apache-2.0 */
#include "go_tinygo.h"

#include <string.h>

#include "symbols/symbols.h"

static bool begins(void *part, const char *string)
{
	return !strncmp(string, part, strlen(part));
}

bool go_is_tinygo(struct image *img)
{
	static char assembly[] = "tinygo_", package[] = "runtime.";

	return symbols_search(img, assembly, begins, assembly) && symbols_search(img, package, begins, package);
}
