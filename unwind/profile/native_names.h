/* SPDX-License-Identifier: Apache-2.0 */
/* Names of a module's functions: by symbol, by C++ class, or by what a language calls them. */
#ifndef YRT_NATIVE_NAMES_H
#define YRT_NATIVE_NAMES_H

#include "names.h"
#include "symbols/c_names.h"
#include "table.h"

#define SHOWN_MAX (4 * NAME_MAX_BYTES)

/* A function of a module as people know it. */
struct native_name {
	char text[SHOWN_MAX];
	char mangled[SHOWN_MAX];
	u64 start; /* file address; 0: nothing is known of it */
	u64 addr;  /* that was looked up */
};

struct native_names { /* starts as zeroes, but for mangled */
	bool mangled;
	struct table c_names; /* a struct c_names by the file */
};

/*
 * A function's name: by symbol, else by its class, else by what a language calls it, else by module and the start of
 * its FDE, else by module. addr is a file address inside the function.
 */
struct error *native_names_find(struct native_names *names, const struct module *m, u64 addr, struct native_name *ret);
/* Keeps what languages call functions of a file, unless that is known. Takes over found. */
void native_names_keep(struct native_names *names, const struct loaded *loaded, struct c_names *found);
void native_names_free(struct native_names *names);

#endif
