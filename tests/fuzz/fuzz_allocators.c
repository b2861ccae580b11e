/* SPDX-License-Identifier: Apache-2.0 */
/* glibc's malloc in a fake process, of which the input overwrites words: (place, value) of 4 and 8 bytes. */
#include "../unit/glibc_fake.h"

static const u64 layouts[] = {0x70, 0x18, 0x68};

static void make_chunks(struct glibc_fake *f, bool other)
{
	u64 arena = glibc_fake_begin(f, other), cache = glibc_fake_chunk(f, 0x290, true);
	u64 a = glibc_fake_chunk(f, 64, true), b = glibc_fake_chunk(f, 64, true);

	glibc_fake_put(f, cache + 16, 2ull << 32);
	glibc_fake_put(f, cache + 16 + 128 + 16, a + 16);
	glibc_fake_put(f, a + 16, glibc_link(a + 16, b + 16, true));
	glibc_fake_put(f, b + 16, glibc_link(b + 16, 0, true));
	for (u32 i = 0; i < 40; i++)
		glibc_fake_chunk(f, 32 + 16 * (i * i % 50), i % 3);
	glibc_fake_top(f, arena, (other ? FAKE_OTHER : FAKE_HEAP) + FAKE_SIZE);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct glibc_fake *f = glibc_fake_create(layouts[size ? data[0] % 3 : 0], size && data[0] & 8);
	struct usage *u = NULL;
	struct error *err;

	if (!f)
		return 0;
	make_chunks(f, false);
	if (size && data[0] & 8)
		make_chunks(f, true);
	for (size_t i = 1; i + 12 <= size; i += 12) {
		u64 word;
		u32 place;

		memcpy(&place, data + i, 4);
		memcpy(&word, data + i + 4, 8);
		memcpy(f->bytes[place % FAKE_MAPPINGS] + (place >> 2) % (FAKE_SIZE - 8), &word, 8);
	}
	err = allocators_read(&f->space, &u);
	error_free(err);
	usage_destroy(u);
	free(f);
	return 0;
}
