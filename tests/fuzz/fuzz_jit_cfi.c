/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of any bytes in which a process may keep unwind information of code that it compiled: finding it, following
 * the code (the same bytes) that it leaves out, looking up what came out. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/param.h>

#include "unwind/cfi/jit_cfi.h"

#define CODE   0x10000u
#define TABLES 0x40000u
#define BYTES  0x10000u

struct bytes {
	struct memory memory;
	const uint8_t *data;
	size_t size;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool read_bytes(struct memory *mem, void *dst, size_t size, uint64_t addr)
{
	const struct bytes *b = (const struct bytes *)mem;

	if (addr == CODE && size == BYTES) {
		memset(dst, 0, size);
		memcpy(dst, b->data, MIN(b->size, size));
		return true;
	}
	if (addr < TABLES || addr - TABLES > b->size || size > b->size - (addr - TABLES))
		return false;
	memcpy(dst, b->data + (addr - TABLES), size);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes b = {.memory = {.read = read_bytes}, .data = data, .size = size};
	const struct mapping mappings[] = {
	        {.start = CODE, .end = CODE + BYTES, .prot = PROT_READ | PROT_EXEC, .anonymous = true, .name = ""},
	        {.start = TABLES, .end = TABLES + size, .prot = PROT_READ, .anonymous = true, .name = ""}};
	struct cfi_rule rule;
	struct cfi *cfi;
	u64 hash = 0;

	if (jit_cfi_find(&b.memory, mappings, 2, &hash, &cfi))
		abort();
	for (u32 i = 0; cfi && i < cfi->npieces; i++)
		for (u64 at = cfi->pieces[i].start; at < cfi->pieces[i].end; at += 7)
			cfi_find(cfi, at, &rule);
	cfi_destroy(cfi);
	return 0;
}
