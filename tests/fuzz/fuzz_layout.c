/* SPDX-License-Identifier: Apache-2.0 */
/* A layout file of a user, and LuaJIT's arrays of builtin functions: both from bytes that nobody vouches for. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtimes/luajit/luajit_builtins.h"
#include "runtimes/luajit/luajit_layout.h"

static void parse(const uint8_t *data, size_t size)
{
	static const char head[] = "runtime luajit\n";
	char *text = malloc(sizeof(head) + size);
	struct layout_file *file = NULL;
	FILE *out = fopen("/dev/null", "w");

	if (!text || !out)
		abort();
	memcpy(text, head, sizeof(head) - 1);
	memcpy(text + sizeof(head) - 1, data, size);
	error_free(layout_parse(&luajit_layout_schema, "fuzz", text, sizeof(head) - 1 + size, &file));
	if (file)
		layout_print(file->layout, out);
	layout_file_destroy(file);
	fclose(out);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct luajit_builtins builtins;
	struct error *err;

	parse(data, size);
	err = luajit_builtins_parse(data, size < 4096 ? size : 4096, &builtins);
	if (!err)
		luajit_builtins_free(&builtins);
	error_free(err);
	return 0;
}
