/* SPDX-License-Identifier: Apache-2.0 */
/* A hostile class file: as it is, and behind a header with as many constants as it says in its first two bytes. */
#include <stdlib.h>
#include <string.h>

#include "runtimes/hotspot/hotspot_added.h"

static const uint8_t header[8] = {0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 65};

static struct error *place(void *ctx, const char *function, const char *file, u32 line)
{
	if (strlen(function) > 1024 || strlen(file) > 1024 || line > UINT16_MAX)
		abort();
	return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *file = malloc(sizeof(header) + size); /* exactly as long: a read behind its end is seen */

	if (!file)
		abort();
	hotspot_added_in(data, size, "acme.Store", "lists", place, NULL);
	memcpy(file, header, sizeof(header));
	if (size)
		memcpy(file + sizeof(header), data, size);
	hotspot_added_in(file, sizeof(header) + size, "acme.Store", "lists", place, NULL);
	free(file);
	return 0;
}
