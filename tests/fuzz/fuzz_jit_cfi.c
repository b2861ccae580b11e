/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of any bytes in which a process may keep unwind information of code that it compiled: finding it, following
 * the code (the same bytes) that it leaves out, or that nothing describes, looking up what came out. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/param.h>

#include "unwind/cfi/jit_cfi.h"
#include "unwind/cfi/jit_code.h"

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

	if (addr >= CODE && addr - CODE < BYTES && size <= BYTES - (addr - CODE)) {
		memset(dst, 0, size);
		if (addr - CODE < b->size)
			memcpy(dst, b->data + (addr - CODE), MIN(b->size - (addr - CODE), size));
		return true;
	}
	if (addr < TABLES || addr - TABLES > b->size || size > b->size - (addr - TABLES))
		return false;
	memcpy(dst, b->data + (addr - TABLES), size);
	return true;
}

static void look_up(struct cfi *cfi)
{
	struct cfi_rule rule;

	for (u32 i = 0; cfi && i < cfi->npieces; i++)
		for (u64 at = cfi->pieces[i].start; at < cfi->pieces[i].end; at += 7)
			cfi_find(cfi, at, &rule);
	cfi_destroy(cfi);
}

static void follow_seen(struct bytes *b)
{
	const struct jit_range range = {CODE, CODE + BYTES};
	struct jit_code *c = jit_code_create();
	struct cfi *cfi;
	bool changed;

	for (u64 at = 0; at < MIN(b->size, BYTES); at += b->size / 2 + 1)
		jit_code_saw(c, CODE + at);
	if (jit_code_find(c, 0, &b->memory, &range, 1, &changed, &cfi))
		abort();
	look_up(cfi);
	jit_code_destroy(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes b = {.memory = {.read = read_bytes}, .data = data, .size = size};
	const struct mapping mappings[] = {
	        {.start = CODE, .end = CODE + BYTES, .prot = PROT_READ | PROT_EXEC, .anonymous = true, .name = ""},
	        {.start = TABLES, .end = TABLES + size, .prot = PROT_READ, .anonymous = true, .name = ""}};
	struct cfi *cfi;
	u64 hash = 0;

	if (jit_cfi_find(&b.memory, mappings, 2, &hash, &cfi))
		abort();
	look_up(cfi);
	follow_seen(&b);
	return 0;
}
