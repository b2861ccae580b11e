/* SPDX-License-Identifier: Apache-2.0 */
/* Goes through the instructions of code, with their details. For much code there is insn.h. */
#ifndef YRT_DISASSEMBLER_H
#define YRT_DISASSEMBLER_H

#include <capstone/capstone.h>
#include <types.h>

#include "binary/image.h"

#define CODE_EACH_MAX (4u << 20) /* bytes of one function */

struct disassembler {
	csh handle;
	cs_insn *in; /* where cs_disasm_iter() puts an instruction */
};

/* False: no memory. */
bool disassembler_open(struct disassembler *d);
void disassembler_close(struct disassembler *d); /* also one that is all zeroes, or could not be opened */

/* Sees one instruction; false: the rest does not matter. */
typedef bool code_look(void *ctx, const cs_insn *in);

/* Shows the instructions of size bytes at addr, up to one that is not valid. Returns how many bytes are left. */
size_t disassemble(struct disassembler *d, const u8 *bytes, size_t size, u64 addr, code_look *look, void *ctx);

/* The same of [start, end) in a file. False: it can not be read, or is larger than CODE_EACH_MAX. */
bool disassemble_file(struct disassembler *d, struct image *img, u64 start, u64 end, code_look *look, void *ctx);

/* The same with a disassembler of its own, which may fail, too. */
bool code_each(struct image *img, u64 start, u64 end, code_look *look, void *ctx);

#endif
