/* SPDX-License-Identifier: Apache-2.0 */
#include "luajit_exits.h"

#include <string.h>

#include "binary/image_scan.h"

#define NEAR      64 /* bytes of code in front of the instruction, and behind it */
#define LEA_SIZE  7
#define LOAD_SIZE 5 /* with a SIB byte */

static const char text[] = "nexit";

/* lea to, [rip + distance] */
static bool takes_address(const u8 *code, u64 at, u64 of)
{
	s32 distance;

	memcpy(&distance, code + 3, sizeof(distance));
	return (code[0] & 0xf8) == 0x48 && code[1] == 0x8d && (code[2] & 0xc7) == 5 &&
	       at + LEA_SIZE + (u64)distance == of;
}

/* movzx to, word [base + offset of 8 bits] */
static void see_load(const u8 *code, struct luajit_exits *ret)
{
	bool sib = (code[2] & 7) == 4;
	u8 offset = code[3 + sib];

	if (code[0] == 0x0f && code[1] == 0xb7 && code[2] >> 6 == 1 && offset < 128)
		ret->at[offset / 64] |= 1ull << offset % 64;
}

bool luajit_exits_read(struct image *img, struct luajit_exits *ret)
{
	u64 of = image_scan_find(img, ".rodata", text, sizeof(text));
	struct image_scan scan;

	*ret = (struct luajit_exits){0};
	if (!of || !image_scan_start(&scan, img, ".text", 2 * NEAR))
		return false;
	while (image_scan_next(&scan)) {
		for (size_t i = 0; i + LEA_SIZE <= scan.size; i++) {
			size_t first = i < NEAR ? 0 : i - NEAR;

			if (!takes_address(scan.bytes + i, scan.addr + i, of))
				continue;
			for (size_t k = first; k < i + NEAR && k + LOAD_SIZE <= scan.size; k++)
				see_load(scan.bytes + k, ret);
		}
	}
	image_scan_end(&scan);
	return ret->at[0] || ret->at[1];
}

bool luajit_exits_have(const struct luajit_exits *exits, s32 nsnap)
{
	return nsnap >= 0 && nsnap < 128 && exits->at[nsnap / 64] >> nsnap % 64 & 1;
}
