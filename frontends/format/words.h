/* SPDX-License-Identifier: Apache-2.0 */
/* The words for kinds of frames: for code of a language those of its runtime ("C2"), for the rest that of the kind. */
#ifndef YRT_FORMAT_WORDS_H
#define YRT_FORMAT_WORDS_H

#include "unwind/profile/profile.h"

struct runtime_ops;

/* Of a function of this module and kind. Static. */
const char *words_of(const char *module, enum profile_kind kind);
/* Of a runtime's code; kind: KIND_SCRIPT, KIND_SCRIPT_BASELINE or KIND_SCRIPT_JIT. Static. */
const char *words_of_runtime(const struct runtime_ops *ops, enum profile_kind kind);
/* What a function is to those who know no runtime: of code that was compiled ahead of time KIND_NATIVE. */
enum profile_kind words_kind(const struct profile_function *f);
/* Of all functions of a kind: "C2", and with the language where p has code of several: "Lua compiled, Java C2". */
#define WORDS_LEGEND 192
const char *words_legend(const struct profile *p, enum profile_kind kind, char ret[WORDS_LEGEND]);

#endif
