/* SPDX-License-Identifier: Apache-2.0 */
/* Lua's source text: the first bytes say which function is looked for. */
#include <stdlib.h>
#include <string.h>

#include "runtimes/luajit/luajit_source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct luajit_definition d;
	char *text, name[16];

	if (size < 4)
		return 0;
	d = (struct luajit_definition){
	        .line = data[0], .last = data[0] + data[1] % 4u, .parameters = data[2] % 8u, .vararg = data[3] & 1};
	text = malloc(size - 4 ? size - 4 : 1); /* nothing behind its end may be read */
	memcpy(text, data + 4, size - 4);
	if (luajit_source_parse(text, size - 4, &d, name, sizeof(name)) && (!name[0] || strlen(name) >= sizeof(name)))
		abort();
	free(text);
	return 0;
}
