/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regular expressions over bytes, in time linear in the text: no backtracking. What is matched is what Perl matches
 * (the leftmost, and of alternatives the first), found by running all of them side by side (Thompson, Pike).
 *
 * Taken: . [..] [^..] | ( ) (?: ) * + ? {m,n} and their lazy forms, ^ $ \A \z \b \B, \d \w \s \D \W \S, \n \t …,
 * \xHH, and classes such as [:alpha:]. Refused by name: what cannot be linear (back references, look-around), and
 * what else Perl has.
 */
#ifndef YRT_YLANG_REGEX_H
#define YRT_YLANG_REGEX_H

#include <stdbool.h>
#include <types.h>

#define Y_REGEX_MOST     4096u /* instructions of one */
#define Y_REGEX_CAPTURES 10u

enum y_regex_op { Y_R_SET, Y_R_SPLIT, Y_R_JUMP, Y_R_SAVE, Y_R_ASSERT, Y_R_MATCH };
enum y_regex_assert { Y_A_BEGIN, Y_A_END, Y_A_END_LINE, Y_A_WORD, Y_A_NO_WORD };

struct y_regex_insn {
	u8 op;
	u32 x, y; /* SPLIT: to x, if that leads to nothing to y; JUMP: to x; SET: sets[x]; SAVE: x; ASSERT: x */
};

struct y_regex_set { /* of bytes */
	u32 bits[8];
};

struct y_regex {
	struct y_regex_insn *insns;
	u32 n;
	struct y_regex_set *sets;
	u32 nsets;
	u32 captures; /* with the whole one */
};

/* memory: y_memory_get(). NULL: *problem says what is wrong at byte *at of the pattern (NULL: no memory). */
struct y_memory;
struct y_regex *y_regex_compile(
        struct y_memory *memory, const char *pattern, u32 len, bool any_case, const char **problem, u32 *at);

/*
 * Does any part of the text match? saved: start and end of each capture, UINT32_MAX where it took no part. room: of
 * y_regex_room(r) bytes.
 */
bool y_regex_match(const struct y_regex *r, const char *text, u32 len, u32 saved[2 * Y_REGEX_CAPTURES], void *room);
size_t y_regex_room(const struct y_regex *r);

#endif
