/* SPDX-License-Identifier: Apache-2.0 */
/* jemalloc in a fake process, of which the input overwrites words: (place, value) of 4 and 8 bytes. */
#include "../unit/jemalloc_fake.h"

static const struct jemalloc_layout layout = {"5.3", 17, 3, 20, 28};

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static const u64 places[] = {FAKE_ROOT & ~(PAGES_SIZE - 1), FAKE_BASE + 64, FAKE_EXTENTS};
	struct jemalloc_fake *f = jemalloc_fake_create(&layout);
	struct usage *u = NULL;
	struct error *err;

	for (u32 i = 0; i < 20; i++)
		jemalloc_fake_extent(f, i % 3, i % 4 ? JEMALLOC_ACTIVE : JEMALLOC_DIRTY, i % 4 ? 3 : JEMALLOC_CLASSES,
		        i % 4, i, 3 * PAGES_SIZE);
	for (size_t i = 0; i + 12 <= size; i += 12) {
		u64 word;
		u32 place;

		memcpy(&place, data + i, 4);
		memcpy(&word, data + i + 4, 8);
		jemalloc_fake_put(f, places[place % 3] + (place >> 2) % 0x1000, word);
	}
	err = allocators_read(&f->space, &u);
	error_free(err);
	usage_destroy(u);
	jemalloc_fake_destroy(f);
	return 0;
}
