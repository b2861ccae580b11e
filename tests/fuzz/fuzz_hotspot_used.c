/* SPDX-License-Identifier: Apache-2.0 */
/* A hostile file of a JVM's performance counters: as it is, and behind a prologue that leads to its entries. */
#include <stdlib.h>
#include <string.h>

#include "runtimes/hotspot/hotspot_used.h"

static const uint8_t prologue[32] = {0xca, 0xfe, 0xc0, 0xc0, 1, 2, 0, 1, [24] = 32, [28] = 64};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *file = malloc(sizeof(prologue) + size); /* exactly as long: a read behind its end is seen */

	if (!file)
		abort();
	hotspot_used_of(data, size);
	memcpy(file, prologue, sizeof(prologue));
	if (size)
		memcpy(file + sizeof(prologue), data, size);
	hotspot_used_of(file, sizeof(prologue) + size);
	free(file);
	return 0;
}
