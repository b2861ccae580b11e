/* SPDX-License-Identifier: Apache-2.0 */
/* tcmalloc in a fake process, of which the input overwrites words: (place, value) of 4 and 8 bytes. */
#include "../unit/tcmalloc_fake.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	const u64 places[] = {FAKE_SIZES, size % 2 ? FAKE_GOOGLE_WORDS : FAKE_NODE, FAKE_SPANS};
	bool google = size % 2;
	struct tcmalloc_fake *f = google ? tcmalloc_fake_google() : tcmalloc_fake_create();
	struct usage *u = NULL;
	struct error *err;

	for (u32 i = 0; i < 12; i++)
		if (google)
			tcmalloc_fake_google_span(f, i % 3 ? 0 : i, i, 1 + i % 4);
		else
			tcmalloc_fake_span(f, i % 3, i % 3 ? 0 : i, i, 1 + i % 4);
	for (size_t i = 0; i + 12 <= size; i += 12) {
		u64 word;
		u32 place;

		memcpy(&place, data + i, 4);
		memcpy(&word, data + i + 4, 8);
		tcmalloc_fake_put(f, places[place % 3] + (place >> 2) % 0x1000, word);
	}
	err = allocators_read(&f->space, &u);
	error_free(err);
	usage_destroy(u);
	tcmalloc_fake_destroy(f);
	return 0;
}
