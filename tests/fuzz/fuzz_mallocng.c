/* SPDX-License-Identifier: Apache-2.0 */
/* musl's malloc in a fake process, of which the input overwrites words: (place, value) of 4 and 8 bytes. */
#include "../unit/mallocng_fake.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static const u64 places[] = {FAKE_DATA + 0x100, FAKE_HEAP, FAKE_HEAP + 0x1000};
	struct mallocng_fake *f = mallocng_fake_create();
	struct usage *u = NULL;
	struct error *err;

	for (u32 i = 0; i < 8; i++) {
		mallocng_fake_group(f, FAKE_HEAP + 0x1000 * (1 + i), 24, 2, i & 1, 0, 1);
		mallocng_fake_group(f, FAKE_HEAP + 0x1000 * (1 + i) + 16, 1, 10, 0x3, 0x30, 0);
	}
	for (size_t i = 0; i + 12 <= size; i += 12) {
		u64 word;
		u32 place;

		memcpy(&place, data + i, 4);
		memcpy(&word, data + i + 4, 8);
		mallocng_fake_put(f, places[place % 3] + (place >> 2) % 0x1000, word);
	}
	err = allocators_read(&f->space, &u);
	error_free(err);
	usage_destroy(u);
	mallocng_fake_destroy(f);
	return 0;
}
