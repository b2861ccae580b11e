/* SPDX-License-Identifier: Apache-2.0 */
#include "lua_reference.h"

#include <string.h>

#include "binary/image_scan.h"

u64 lua_referred(const u8 *code, u64 addr)
{
	s32 distance;
	u32 absolute;

	if ((code[0] & 0xfb) == 0x48 && code[1] == 0x8d && (code[2] & 0xc7) == 5) { /* lea reg, [rip + disp32] */
		memcpy(&distance, code + 3, sizeof(distance));
		return addr + LUA_REFERENCE + (u64)distance;
	}
	if ((code[0] & 0xf8) != 0xb8) /* mov reg, imm32 */
		return 0;
	memcpy(&absolute, code + 1, sizeof(absolute));
	return absolute;
}

u64 lua_reference_find(struct image *img, u64 to)
{
	struct image_scan scan;
	u64 found = 0;

	if (!image_scan_start(&scan, img, ".text", LUA_REFERENCE))
		return 0;
	while (!found && image_scan_next(&scan))
		for (size_t i = 0; !found && i < scan.own && i + LUA_REFERENCE <= scan.size; i++)
			if (lua_referred(scan.bytes + i, scan.addr + i) == to)
				found = scan.addr + i;
	image_scan_end(&scan);
	return found;
}
