/* SPDX-License-Identifier: Apache-2.0 */
#include "lua_reference.h"

u64 lua_reference_find(struct image *img, u64 to)
{
	struct image_scan scan;
	u64 found = 0;

	if (!image_scan_start(&scan, img, ".text", LUA_REFERENCE))
		return 0;
	while (!found && image_scan_next(&scan))
		for (size_t i = lua_reference_next(&scan, 0); !found && i < scan.own && i + LUA_REFERENCE <= scan.size;
		        i = lua_reference_next(&scan, i + 1))
			if (lua_referred(scan.bytes + i, scan.addr + i) == to)
				found = scan.addr + i;
	image_scan_end(&scan);
	return found;
}
