/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that leave registers alone which the calling convention lets them change, for callers that rely on it:
 * assembly by hand keeps its CFA in rax across calls of its own (AES-GCM of OpenSSL, GnuTLS and others). At such a call
 * the row says CFI_KEPT, if no instruction of the callee, or of what that calls, names the register but to use memory.
 */
#ifndef YRT_CFI_KEPT_H
#define YRT_CFI_KEPT_H

#include "cfi_internal.h"

struct cfi_kept;

/* For the code of img, which must stay. NULL: no memory. */
struct cfi_kept *cfi_kept_create(struct image *img);
void cfi_kept_destroy(struct cfi_kept *k);
/* Splits rows of a function at calls. text: of img. False: no memory. */
bool cfi_kept_mend(struct cfi_kept *k, struct image_pages *text, const struct cfi_function *fn, struct cfi_rows *rows);

#endif
