/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Epilogues that a file's CFI does not describe. gcc before 4.4, LLVM before 7 and some assembly do not say what `pop`,
 * `add $N, %rsp` and `leave` do at the end of a function. There the rows of the function's body apply and give wrong
 * callers.
 *
 * Such an epilogue is recognised from its own code, backwards from a return or a jump out of the function. Each
 * instruction shows how far the CFA was from the stack pointer before it, until that agrees with the file's CFI.
 */
#ifndef YRT_CFI_EPILOGUE_H
#define YRT_CFI_EPILOGUE_H

#include "cfi_internal.h"

struct cfi_epilogues;

/* For the code of img, which must stay. NULL: no memory. */
struct cfi_epilogues *cfi_epilogues_create(struct image *img);
void cfi_epilogues_destroy(struct cfi_epilogues *e);
/*
 * Corrects the rows of a function. False: no memory. The first CFI_EPILOGUES_SURVEY functions of at most
 * CFI_EPILOGUES_SHORT bytes that put something on the stack show whether the file's CFI describes epilogues: by a row
 * for a return, or else by their code, which takes much longer. If it does, only functions whose bytes look
 * like a missing epilogue are followed.
 */
#define CFI_EPILOGUES_SURVEY 64
#define CFI_EPILOGUES_SHORT  512
bool cfi_epilogues_mend(struct cfi_epilogues *e, const struct cfi_function *fn, struct cfi_rows *rows);

#endif
