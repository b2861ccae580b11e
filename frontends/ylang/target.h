/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program asks: a live process, a core file, or only the types of an ELF file. Its modules, with their types
 * (from the file itself, its separate debug file, or --types), symbols and memory. Nothing here writes to it or stops
 * it.
 */
#ifndef YRT_YLANG_TARGET_H
#define YRT_YLANG_TARGET_H

#include "unwind/binary/core_file.h"
#include "unwind/binary/image.h"
#include "unwind/binary/maps.h"
#include "unwind/binary/memory.h"
#include "unwind/dwarf/types.h"
#include "unwind/error.h"

struct y_target_module {
	struct image *image;
	struct image *debug; /* the separate debug file, or --types; NULL: none */
	const char *path;    /* of the image */
	u64 bias;
	struct types *types; /* NULL: none, or not yet asked for */
	bool asked;
};

struct y_target {
	pid_t pid;    /* 0: of a core, or none */
	bool machine; /* all processes: no files, no memory, only what the kernel's points bring */
	char comm[17];
	struct core_file *core;
	struct memory *memory; /* NULL: only types */
	struct maps maps;
	struct y_target_module *modules; /* the program itself first */
	u32 nmodules;
	char *root;                    /* where separate debug files are looked for */
	struct image *types;           /* --types */
	struct y_kernel_types *kernel; /* opened by the first question for it */
	bool asks_kernel;              /* for types: in handlers of the kernel's points, and of the whole machine */
	struct y_runtimes *runtimes;   /* opened when the first name is asked for that only they may know */
	struct error *failed;          /* the first error of reading types: no memory */
};

struct y_target_options {
	pid_t pid;
	const char *core, *root;
	const char
	        *types; /* an ELF file with the debug information of the same build as one of the modules; NULL: none */
	bool only_types; /* no process: types is the program */
	bool machine;    /* of struct y_target */
};

/* ERROR_NO_PROCESS, ERROR_PERMISSION, ERROR_INPUT; ERROR_UNSUPPORTED: --types is of another build than all modules. */
struct error *y_target_open(const struct y_target_options *o, struct y_target **ret);
void y_target_close(struct y_target *t);

/* The types of a module; NULL: it has none. */
struct types *y_target_types(struct y_target *t, u32 module);

/*
 * What would tell the types of a module that has none: "; PATH has no debug information: …"; "" if it has. Y_MODULES:
 * of the first that has none.
 */
#define Y_MODULES UINT32_MAX
#define Y_LACKS   640
const char *y_target_lacks(struct y_target *t, u32 module, char ret[Y_LACKS]);
/* "; without debug information are NAME, … and 3 others"; "" if all have it. */
const char *y_target_bare(struct y_target *t, char ret[Y_LACKS]);

/*
 * What runtimes know of themselves (runtimes.c): types that debug information lacks; "_luajit", the name of what all
 * else is found from, with the runtime's name and the type that these addresses lead to. complaint: why yrt does not
 * know the layout of a runtime that is there; NULL: it knows.
 */
#define Y_ROOTS_MOST 256
const struct type *y_runtimes_type(struct y_target *t, enum type_space space, const char *name);
bool y_runtimes_root(const char *name, const char **runtime, const char **type);
u32 y_runtimes_roots(struct y_target *t, const char *name, u64 ret[Y_ROOTS_MOST]);
/* The runtime whose type it is; NULL: no one's. */
const char *y_runtimes_of_type(const char *name);
const char *y_runtimes_complaint(const struct y_target *t);
void y_runtimes_free(struct y_runtimes *r);

/* The kernel's; NULL: it has no BTF. */
struct y_kernel_types *y_target_kernel(struct y_target *t);

/*
 * The first module that has it, or else a runtime, or the kernel (asks_kernel), then module: 0; those that have another
 * one of this name are asked, too: *other, or -1.
 */
const struct type *y_target_type(struct y_target *t, enum type_space space, const char *name, u32 *module, int *other);
/* In the first nmodules modules. */
bool y_target_enumerator(struct y_target *t, u32 nmodules, const char *name, s64 *value, const struct type **type);

struct y_target_object {         /* a variable or a function */
	const struct type *type; /* NULL: known by its symbol alone */
	u32 module;
	u64 addr; /* the file's own; of a thread's: its offset in what each thread has for the file */
	bool function, thread;
	bool exported; /* known by a symbol that the module exports */
	int other;     /* another library that has the name; -1: none. The program's own wins */
	bool several;  /* in this one */
};
/* module: its name, or the end of its path, or NULL: any. */
bool y_target_object(struct y_target *t, const char *module, const char *name, struct y_target_object *ret);
/* Looks up the function of a probe point ("serve", "libc:malloc"). Returns false if there is none. */
bool y_target_function(struct y_target *t, const char *spec, struct y_target_object *ret);
/* As y_target_object(), without asking debug information: type, function, thread, several are not known. */
bool y_target_place(struct y_target *t, const char *module, const char *name, struct y_target_object *ret);

/*
 * Thread-local variables. By what a thread's pointer leads to (its register fs on x86-64) in each thread:
 * the variable is at it + offset, or, of a library that was loaded late, at offset from the word at vector from the
 * word behind the pointer's own. vector 0: the former.
 */
struct y_thread_local {
	u64 offset, vector;
};
/* The C library's lists of its threads: heads of circles of links, link and number from the thread's pointer on. */
struct y_thread_lists {
	u64 heads[2]; /* addresses */
	u32 link, tid;
};

/* The address of these bytes in read-only data, the first in the order of modules. */
bool y_target_literal(struct y_target *t, const char *bytes, u32 len, u32 *module, u64 *addr);
/* "function+0x10"; "file+0x51340" where no symbol is; cut at size. False: no file has the address. */
bool y_target_symbol(struct y_target *t, u64 addr, char *ret, size_t size);

#endif
