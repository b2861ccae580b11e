/* SPDX-License-Identifier: Apache-2.0 */
#include "tsd.h"

#include <sys/param.h>

#include "code/disassembler.h"
#include "symbols.h"

#define CODE_MAX 64

struct values {
	x86_reg pointer, block;
	s64 at;
	bool found;
};

static bool look(void *ctx, const cs_insn *in)
{
	const cs_x86_op *to = &in->detail->x86.operands[0], *from = &in->detail->x86.operands[1];
	struct values *v = ctx;

	if (in->id != X86_INS_MOV || to->type != X86_OP_REG || from->type != X86_OP_MEM)
		return in->id != X86_INS_RET;
	v->found = v->block && from->mem.base == v->block && from->mem.index == X86_REG_RDI && from->mem.scale == 8 &&
	           !from->mem.disp;
	if (from->mem.segment == X86_REG_FS) {
		v->pointer = from->mem.base == X86_REG_INVALID && !from->mem.disp ? to->reg : X86_REG_INVALID;
	} else if (v->pointer && from->mem.base == v->pointer && from->mem.index == X86_REG_INVALID) {
		v->block = to->reg;
		v->at = from->mem.disp;
	}
	return !v->found;
}

static u16 find_values(struct image *img)
{
	struct values v = {.found = false};
	struct symbol function;

	if (symbols_lookup(img, "pthread_getspecific", &function))
		code_each(img, function.start, MIN(function.end, function.start + CODE_MAX), look, &v);
	return v.found && v.at > 0 && v.at < UINT16_MAX && v.at % 8 == 0 ? (u16)v.at : 0;
}

u16 tsd_values(struct image *img)
{
	if (!img->tsd)
		img->tsd = find_values(img) + 1u;
	return (u16)(img->tsd - 1);
}

/* As libthread_db reads it: the size of an element in bits, how many there are, their offset. */
struct described {
	u32 bits, n, offset;
};

static bool describe(struct image *img, const char *name, struct described *ret)
{
	struct symbol s;

	return symbols_lookup(img, name, &s) && image_read(img, ret, sizeof(*ret), s.start) &&
	       ret->offset < UINT16_MAX / 2;
}

/* pthread.specific[key / n] leads to a block of n pairs of a sequence number and the value. */
static bool glibc(struct image *img, u32 key, struct tsd_way *ret)
{
	struct described specific, pairs, value;

	if (!describe(img, "_thread_db_pthread_specific", &specific) ||
	        !describe(img, "_thread_db_pthread_key_data_level2_data", &pairs) ||
	        !describe(img, "_thread_db_pthread_key_data_data", &value) || !pairs.n || pairs.n > TSD_KEYS_MAX ||
	        pairs.bits % 64 || pairs.bits > 1024)
		return false;
	ret->via = (u16)(specific.offset + key / pairs.n * 8);
	ret->slot = (u16)(pairs.offset + key % pairs.n * (pairs.bits / 8) + value.offset);
	return true;
}

bool tsd_find(struct image *img, u32 key, struct tsd_way *ret)
{
	u16 values;

	if (key >= TSD_KEYS_MAX)
		return false;
	if (glibc(img, key, ret))
		return true;
	values = tsd_values(img);
	*ret = (struct tsd_way){values, (u16)(8 * key)};
	return values;
}
