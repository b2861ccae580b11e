/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function's prototype, copied from the target as a whole: bytecode, addresses of constants, lines, names of
 * variables.
 */
#ifndef YRT_LUAJIT_PROTO_H
#define YRT_LUAJIT_PROTO_H

#include "luajit_bytecode.h"
#include "luajit_image.h"
#include "binary/memory.h"

#define LUAJIT_NAME_MAX 512

struct luajit_proto {
	struct luajit_proto *next; /* of a cache's bucket */
	const struct luajit_layout *layout;
	u64 addr;
	u32 size;
	u32 sizebc;
	char chunk[LUAJIT_NAME_MAX]; /* GCproto.chunkname, cut */
	u64 text;                    /* hash of the whole chunk name, set with definition */
	char *definition;            /* what the source calls it, "" if it gives no name; NULL: not looked up yet */
	char *owner;                 /* set with definition: what its text belongs to; NULL: nothing that is known */
	u8 bytes[];
};

/* NULL: unreadable, not a prototype, or no memory. Free with luajit_proto_free(). */
struct luajit_proto *luajit_proto_read(const struct luajit_layout *layout, struct memory *mem, u64 addr);

void luajit_proto_free(struct luajit_proto *pt);

/* The whole of its chunk name, for free(): of code that was loaded from a string its source. NULL: unreadable, longer
 * than 1 MiB, or no memory. */
char *luajit_proto_text(const struct luajit_proto *pt, struct memory *mem, size_t *len);

u32 luajit_proto_first_line(const struct luajit_proto *pt);
u32 luajit_proto_line_count(const struct luajit_proto *pt);
/* The instruction at pos, 0 if there is none. */
u32 luajit_proto_instruction(const struct luajit_proto *pt, u32 pos);
/* How many parameters it has by name, self included; *vararg: and "...". */
u32 luajit_proto_parameters(const struct luajit_proto *pt, bool *vararg);
/* The line at pos; 0 if the debug information was stripped. */
u32 luajit_proto_line(const struct luajit_proto *pt, u32 pos);
/* What the function that is called (or the metamethod that is run) at pos is called there. False: unknown. */
bool luajit_proto_callee(const struct luajit_proto *pt, struct memory *mem, u32 pos, char *ret);

/* Calls each() with the prototype of each function that it makes. */
struct error *luajit_proto_inner(
        const struct luajit_proto *pt, struct error *(*each)(void *ctx, u64 maker, u64 inner), void *ctx);
/* What parameter `number` is called. False: unknown. */
bool luajit_proto_parameter(const struct luajit_proto *pt, u32 number, char *ret);
/* Is its first argument called self? */
bool luajit_proto_is_method(const struct luajit_proto *pt);
/* What the variable or field is called that it stores this function in, which it makes: "f", "t.f". False: unknown. */
bool luajit_proto_defines(const struct luajit_proto *pt, struct memory *mem, u64 inner, char *ret);

#endif
