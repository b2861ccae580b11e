/* SPDX-License-Identifier: Apache-2.0 */
#include "disassembler.h"

#include <stdlib.h>

#include "cleanup.h"

void disassembler_close(struct disassembler *d)
{
	if (d->in)
		cs_free(d->in, 1);
	if (d->handle)
		cs_close(&d->handle);
	*d = (struct disassembler){0};
}

bool disassembler_open(struct disassembler *d)
{
	*d = (struct disassembler){0};
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &d->handle) != CS_ERR_OK)
		return false;
	cs_option(d->handle, CS_OPT_DETAIL, CS_OPT_ON);
	d->in = cs_malloc(d->handle);
	if (!d->in)
		disassembler_close(d);
	return d->in;
}

size_t disassemble(struct disassembler *d, const u8 *bytes, size_t size, u64 addr, code_look *look, void *ctx)
{
	while (size && cs_disasm_iter(d->handle, &bytes, &size, &addr, d->in) && look(ctx, d->in))
		;
	return size;
}

bool disassemble_file(struct disassembler *d, struct image *img, u64 start, u64 end, code_look *look, void *ctx)
{
	size_t size = end - start;
	cleanup(free) u8 *code = end > start && size <= CODE_EACH_MAX ? malloc(size) : NULL;

	if (!code || !image_read(img, code, size, start))
		return false;
	disassemble(d, code, size, start, look, ctx);
	return true;
}

bool code_each(struct image *img, u64 start, u64 end, code_look *look, void *ctx)
{
	struct disassembler d;
	bool ok = disassembler_open(&d) && disassemble_file(&d, img, start, end, look, ctx);

	disassembler_close(&d);
	return ok;
}
