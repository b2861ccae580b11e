/* SPDX-License-Identifier: Apache-2.0 */
/* Frames that a walk of HotSpot's stacks should give, as a text, and a parked virtual thread. */
#ifndef YRT_HOTSPOT_STACK_FAKE_H
#define YRT_HOTSPOT_STACK_FAKE_H

#include "unit.h"

#include "hotspot_fake.h"

/* Expected frames, leaf first: digit 1 or 2: the nmethod; a to d: method 0 to 3, interpreted; S: a stub; N: native. */
static inline void expect(const struct fake *f, const char *kinds)
{
	assert_int_equal(f->walk.nframes, strlen(kinds));
	for (u32 i = 0; kinds[i]; i++) {
		const struct frame *frame = &f->frames[i];

		if (kinds[i] == 'N') {
			assert_int_equal(frame_kind(frame), FRAME_NATIVE);
		} else if (kinds[i] == 'S') {
			assert_int_equal(hotspot_kind(frame), HOTSPOT_STUB);
		} else if (kinds[i] >= 'a') {
			assert_int_equal(hotspot_kind(frame), HOTSPOT_METHOD);
			assert_int_equal(frame_addr(frame), fake_method(kinds[i] - 'a'));
			assert_int_equal(hotspot_tier(frame), 0);
		} else {
			assert_int_equal(hotspot_kind(frame), HOTSPOT_NMETHOD);
			assert_int_equal(frame_addr(frame), fake_nmethod(kinds[i] - '0'));
			assert_int_equal(hotspot_cookie(frame), kinds[i] - '0');
		}
	}
}

/* On the stack enterSpecial and one thawed frame; in two chunks, with an empty one between and one on top, those that
 * it returns to. */
static inline struct fake *parked(void)
{
	struct fake *f = fake_create();
	struct fake_chunk c;

	fake_enter(f);
	c = fake_chunk(f, 1);
	fake_frozen_interpreted(f, &c, 0, 5);
	fake_frozen_compiled(f, &c, 1, 64);
	fake_frozen_interpreted(f, &c, 1, 9);
	fake_chunk(f, 2);
	c = fake_chunk(f, 3);
	fake_frozen_compiled(f, &c, 1, 72);
	fake_frozen_compiled(f, &c, 1, 80);
	fake_frozen_interpreted(f, &c, 2, 11);
	fake_frozen_interpreted(f, &c, 0, 12);
	fake_chunk(f, 4);
	f->pc = fake_vm.return_barrier;
	fake_compiled(f, 1, 88);
	return f;
}

#endif
