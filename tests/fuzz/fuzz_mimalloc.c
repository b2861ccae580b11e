/* SPDX-License-Identifier: Apache-2.0 */
/* mimalloc 2 and 3 in a fake process, of which the input overwrites words: (place, value) of 4 and 8 bytes. */
#include "../unit/mimalloc_fake.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static const u64 places[] = {FAKE_MAP, FAKE_SUB, FAKE_META, FAKE_ARENA, FAKE_SEGMENT, FAKE_PART};
	const struct mimalloc_layout *l = size % 2 ? &mimalloc_fake_late : &mimalloc_fake_early;
	struct mimalloc_fake *f = mimalloc_fake_create();
	struct usage *u = NULL;
	struct error *err;

	mimalloc_fake_segment(f, l);
	for (u32 i = 1; i < 32; i++)
		mimalloc_fake_slices(f, l, 1 + i % 3, 16 * i, i, 2 * i, 3 * i);
	mimalloc_fake_slices(f, l, MIMALLOC_SLICES - f->slice, 0, 0, 0, 0);
	mimalloc_fake_arena(f);
	for (u32 i = 1; i < 20; i++)
		mimalloc_fake_page(f, i % 2, 1 + i % 3, 16 * i, i, 2 * i, 3 * i);
	for (size_t i = 0; i + 12 <= size; i += 12) {
		u64 word;
		u32 place;

		memcpy(&place, data + i, 4);
		memcpy(&word, data + i + 4, 8);
		mimalloc_fake_put(f, places[place % 6] + (place >> 3) % 0x1000, word);
	}
	err = allocators_read(&f->space, &u);
	error_free(err);
	usage_destroy(u);
	mimalloc_fake_destroy(f);
	return 0;
}
