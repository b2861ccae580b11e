/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "python_image.h"

#include "binary/endbr64.h"

#define CODE_BYTES 16

static const struct {
	enum python_part part;
	u32 len;
	const char *code;
} forms[] = {
        /* sub $8, %rsp; call *%rcx; add $8, %rsp; ret */
        {PYTHON_TRAMPOLINE, 11, "\x48\x83\xec\x08\xff\xd1\x48\x83\xc4\x08\xc3"},
        /* push %rbp; mov %rsp, %rbp; call *%rcx; pop %rbp; ret */
        {PYTHON_TRAMPOLINE_FP, 8, "\x55\x48\x89\xe5\xff\xd1\x5d\xc3"},
};

bool python_trampoline(struct memory *mem, u64 start, enum python_part *ret)
{
	u8 code[CODE_BYTES];
	u32 at = 0;

	if (!memory_read(mem, code, sizeof(code), start))
		return false;
	if (is_endbr64(code))
		at = ENDBR64_SIZE;
	for (u32 i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		if (!memcmp(code + at, forms[i].code, forms[i].len)) {
			*ret = forms[i].part;
			return true;
		}
	return false;
}
