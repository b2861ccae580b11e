/* SPDX-License-Identifier: Apache-2.0 */
#include "prove.h"

#include <xxhash.h>

#include "cfi/frame_proof.h"
#include "process/module.h"

#define LOOKED_AT_MAX (200ull << 20) /* instructions: some seconds */

static bool find_place(const struct process *p, const struct frame *f, struct frame_place *ret)
{
	const struct module *m = NULL;

	if (p && frame_kind(f) == FRAME_NATIVE && frame_runtime(f) == RUNTIME_NATIVE)
		m = module_at(p->modules, (u32)f->detail);
	if (!m || !m->loaded->image)
		return false;
	*ret = (struct frame_place){m->loaded->image, frame_addr(f) - m->bias};
	return true;
}

static struct error *prove_step(
        struct proofs *proofs, const struct process *p, const struct frame *from, const struct frame *to, bool *ret)
{
	struct {
		struct frame_place from, to;
		u64 returned;
	} step = {.returned = frame_flags(from) & FRAME_RETADDR};
	u64 key, *known, left = LOOKED_AT_MAX - proofs->used;

	*ret = false;
	if (!find_place(p, from, &step.from) || !find_place(p, to, &step.to))
		return NULL;
	key = XXH3_64bits(&step, sizeof(step)) | 1;
	known = table_get(&proofs->known, key);
	if (known) {
		*ret = *known;
		return NULL;
	}
	*ret = frame_proof_holds(step.from, step.returned, step.to, &left);
	proofs->used = LOOKED_AT_MAX - left;
	return table_put(&proofs->known, key, *ret);
}

struct error *prove_frames(struct proofs *proofs, const struct process *p, struct frame *frames, u32 n)
{
	const u64 guess = (u64)FRAME_GUESS << FRAME_ADDR_BITS, chained = (u64)FRAME_CHAINED << FRAME_ADDR_BITS;
	bool sure = true;

	for (u32 i = 0; i < n; i++) {
		struct frame *f = &frames[i];
		struct error *err = NULL;
		bool proven = false;

		if (!(f->where & guess))
			continue;
		if (sure && i && f->where & chained)
			err = prove_step(proofs, p, f - 1, f, &proven);
		if (err)
			return err;
		sure &= proven || frame_kind(f) != FRAME_NATIVE;
		f->where &= ~chained & (proven ? ~guess : ~0ull);
	}
	return NULL;
}

void proofs_free(struct proofs *proofs)
{
	table_free(&proofs->known);
}
