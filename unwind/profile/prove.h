/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes the mark from guessed callers whose step by the frame pointer the code proves (cfi/frame_proof.h). The proof
 * needs a frame pointer that is right before the step: a guess that is not proven leaves those behind it.
 */
#ifndef YRT_PROVE_H
#define YRT_PROVE_H

#include "process/process.h"
#include "shared/frame.h"
#include "table.h"

/* The steps that were checked, so that each is checked once. Initialise with zeros. */
struct proofs {
	struct table known;
	u64 used; /* instructions that were looked at */
};

/* Changes the flags of frames, leaf first; none has FRAME_CHAINED afterwards. p: NULL if it is not known. */
struct error *prove_frames(struct proofs *proofs, const struct process *p, struct frame *frames, u32 n);
void proofs_free(struct proofs *proofs);

#endif
