/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the BPF engine's compiler (bpf*.c) share. */
#ifndef YRT_YLANG_BPF_MAKE_H
#define YRT_YLANG_BPF_MAKE_H

#include "bpf.h"
#include "bpf_code.h"

/* The kernel's numbers of helpers: enum bpf_func_id. All that a program may call. */
enum bpf_helper {
	HELPER_MAP_LOOKUP = 1,
	HELPER_MAP_UPDATE = 2,
	HELPER_MAP_DELETE = 3,
	HELPER_KTIME = 5,
	HELPER_CPU = 8,
	HELPER_TAIL_CALL = 12,
	HELPER_PID_TGID = 14,
	HELPER_UID_GID = 15,
	HELPER_COMM = 16,
	HELPER_TASK = 35,
	HELPER_CGROUP = 80,
	HELPER_READ_USER = 112,
	HELPER_READ_KERNEL = 113,
	HELPER_READ_USER_STR = 114,
	HELPER_READ_KERNEL_STR = 115,
	HELPER_NS_PID = 120,
	HELPER_RING_OUTPUT = 130,
	HELPER_COPY_USER = 148,
	HELPER_COOKIE = 174,
};

/* The stack. */
#define AT_ITER (-8)
#define AT_WORD (-16)
#define AT_PID  (-24)
#define AT_KEY  (-32)
#define AT_LEFT (-48)

#define R_CTX   R6
#define R_STATE R7

struct bpf_make {
	const struct y_program *p;
	const struct y_bpf_options *o;
	struct y_bpf *ret;
	struct bpf_code code;
	struct error *error;
	u32 *literal_offsets;
	/* of the handler */
	const struct y_handler *handler;
	bool loops;
	bool stacks;  /* it takes its stack */
	bool threads; /* it asks which thread */
	bool registers;
	bool sleepable;      /* reads may wait for absent pages */
	u32 place;           /* the last that was seen */
	u32 keys, keys_size; /* room for a key in the state */
	u32 used;            /* of the state, so far */
	u32 end, failed;     /* labels */
	u32 depth;
};

struct bpf_call { /* a function where it is inlined */
	const struct y_function *f;
	u32 *slots; /* offsets in the state */
	u32 *arrays;
	u32 first_block; /* label of block 0; the others follow */
	u32 returned;    /* offset of what it returns, or Y_NONE */
	u32 to, fail;    /* labels: where it returns to, where it fails to */
};

#define BPF_SMALLER                                                                                                    \
	"functions are inlined where they are called: call fewer here, and let _timer or _end do the rest with the "   \
	"same maps"
#define BPF_FLOATS "print it, or keep it in a map as it is and compute in _timer or _end"

/* hint: what to write instead. */
void bpf_refuse(struct bpf_make *m, const struct y_insn *i, const char *what, const char *hint);
void bpf_state_address(struct bpf_make *m, u8 reg, u32 off);
/* R0 = the entry, or NULL, of one of yrt's own maps (enum y_map) whose key is on the stack at `key`. */
void bpf_lookup(struct bpf_make *m, u32 map, s32 key);
void bpf_copy_text(struct bpf_make *m, u32 to, u32 from);
/* Fails the instruction; at: a register with an address, or -1. */
void bpf_fail(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i, enum y_status status, int at);
void bpf_count(struct bpf_make *m, u32 offset_of_control);

/* bpf_value.c: numbers and reads */
void bpf_value(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i);
/* R0 = what reading from R8, which R3 is, to R1 gives: R2 bytes, or a string. kernel: it may be the kernel's. */
void bpf_read(struct bpf_make *m, bool kernel, bool text);
/* The read of i failed, of the address in R8. */
void bpf_fail_read(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i);
/* An argument of a language's function (struct y_argument). */
void bpf_call_argument(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i);
s16 bpf_register_offset(u64 number); /* in the context of a probe, by DWARF's number */
/* bpf_text.c */
void bpf_text(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i);
void bpf_text_compare(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i);
/* bpf_table.c: maps and aggregates */
void bpf_table(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i);
/* How handlers use each map; false: no memory. */
bool bpf_table_look(struct bpf_make *m);
void bpf_table_describe(struct bpf_make *m);
u32 bpf_key_size(const struct bpf_make *m, u32 map);
/* The programs by which timers add to maps that handlers read. */
void bpf_table_edits(struct bpf_make *m);
/* bpf_print.c */
void bpf_print(struct bpf_make *m, const struct bpf_call *c, const struct y_insn *i);
void bpf_flush(struct bpf_make *m);

#endif
