/* SPDX-License-Identifier: Apache-2.0 */
#include "hit_usdt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/arch/x86_64/arch.h"

/* The number of "%edi"; HIT_USDT_NONE: not a general-purpose register. */
static u8 register_of(const char *at, size_t len)
{
	static const struct {
		const char *names; /* of 8, 4, 2 and 1 bytes */
		u8 number;
	} all[] = {{" rax eax ax al ", DWREG_RAX}, {" rbx ebx bx bl ", DWREG_RBX}, {" rcx ecx cx cl ", DWREG_RCX},
	        {" rdx edx dx dl ", DWREG_RDX}, {" rsi esi si sil ", DWREG_RSI}, {" rdi edi di dil ", DWREG_RDI},
	        {" rbp ebp bp bpl ", DWREG_RBP}, {" rsp esp sp spl ", DWREG_RSP}, {" r8 r8d r8w r8b ", DWREG_R8},
	        {" r9 r9d r9w r9b ", DWREG_R9}, {" r10 r10d r10w r10b ", DWREG_R10},
	        {" r11 r11d r11w r11b ", DWREG_R11}, {" r12 r12d r12w r12b ", DWREG_R12},
	        {" r13 r13d r13w r13b ", DWREG_R13}, {" r14 r14d r14w r14b ", DWREG_R14},
	        {" r15 r15d r15w r15b ", DWREG_R15}};
	char name[8];

	if (len < 3 || len > 5 || *at != '%')
		return HIT_USDT_NONE;
	snprintf(name, sizeof(name), " %.*s ", (int)len - 1, at + 1);
	for (u32 i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (strstr(all[i].names, name))
			return all[i].number;
	return HIT_USDT_NONE;
}

/* "16(%rsp)", "(%rax)", "-8(%rbp,%rcx,4)" */
static bool parse_memory(const char *at, const char *end, struct hit_usdt_argument *ret)
{
	char *open;
	const char *comma, *close = end - 1;

	ret->value = strtoll(at, &open, 0);
	if (open >= end || *open != '(' || *close != ')')
		return false;
	at = open + 1;
	comma = memchr(at, ',', (size_t)(close - at));
	ret->base = register_of(at, (size_t)((comma ? comma : close) - at));
	ret->index = HIT_USDT_NONE;
	ret->scale = 1;
	if (comma) {
		const char *second = memchr(comma + 1, ',', (size_t)(close - comma - 1));

		ret->index = register_of(comma + 1, (size_t)((second ? second : close) - comma - 1));
		ret->scale = second ? (u8)strtoul(second + 1, NULL, 10) : 1;
		if (ret->index == HIT_USDT_NONE || (ret->scale & (ret->scale - 1)) || !ret->scale || ret->scale > 8)
			return false;
	}
	ret->kind = HIT_USDT_MEMORY;
	return ret->base != HIT_USDT_NONE;
}

static void parse_one(const char *at, const char *end, struct hit_usdt_argument *ret)
{
	char *behind;
	long size = strtol(at, &behind, 10);
	bool known = false;

	*ret = (struct hit_usdt_argument){.kind = HIT_USDT_UNKNOWN};
	if (behind == at || *behind != '@' || behind + 1 >= end ||
	        !(labs(size) == 1 || labs(size) == 2 || labs(size) == 4 || labs(size) == 8))
		return;
	ret->size = (u8)labs(size);
	ret->is_signed = size < 0;
	at = behind + 1;
	if (*at == '$') {
		ret->value = strtoll(at + 1, &behind, 0);
		known = behind == end && behind > at + 1;
		ret->kind = HIT_USDT_CONSTANT;
	} else if (*at == '%') {
		ret->base = register_of(at, (size_t)(end - at));
		known = ret->base != HIT_USDT_NONE;
		ret->kind = HIT_USDT_REGISTER;
	} else {
		known = parse_memory(at, end, ret);
	}
	if (!known)
		ret->kind = HIT_USDT_UNKNOWN;
}

u32 hit_usdt_parse(const char *text, struct hit_usdt_argument ret[HIT_USDT_ARGUMENTS])
{
	u32 n = 0;

	for (text += strspn(text, " "); *text && n < HIT_USDT_ARGUMENTS; text += strspn(text, " ")) {
		size_t len = strcspn(text, " ");

		parse_one(text, text + len, &ret[n++]);
		text += len;
	}
	return n;
}
