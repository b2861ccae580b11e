/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Perl's values in memory that the input overwrites: the first byte says whether from the roots, the second which read
 * fails; then, again and again, two bytes where, one how many, and the bytes.
 */
#include <stdlib.h>

#include "heap/heap_draw.h"
#include "overwrite.h"
#include "tests/unit/perl_heap_fake.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct values v;
	struct profile *p;
	struct error *err;
	struct heap *h;

	if (size < 4)
		return 0;
	values_make(&v);
	v.fail_at = data[1];
	overwrite(v.bytes, VALUES_BYTES, data + 2, size - 2);
	h = values_heap(&v, data[0] & 1, &err);
	error_free(err);
	if (data[0] & 1) {
		if (heap_settle(h) || profile_create(&p) || heap_draw_refs(h, p))
			abort();
		profile_finish(p);
		profile_destroy(p);
	}
	heap_destroy(h);
	return 0;
}
