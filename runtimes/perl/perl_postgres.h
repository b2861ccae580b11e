/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of PL/Perl. PostgreSQL compiles each as a sub without a name (plperl.c of 11 to 18), and Perl cannot get
 * from the sub to the SQL function. The server can: below TopMemoryContext, which its program exports, each function
 * has a memory context "PL/Perl function". Its identifier is the function's name, and it contains a struct
 * plperl_proc_desc, which leads to the sub.
 */
#ifndef YRT_PERL_POSTGRES_H
#define YRT_PERL_POSTGRES_H

#include "perl_objects.h"
#include "runtime.h"

/* Where TopMemoryContext is in this process; 0: it is no server of PostgreSQL. */
u64 perl_postgres_find(const struct runtime_process *p);

/* The SQL function whose sub is this CV, or has this code (its first op). top: of perl_postgres_find(), not 0. */
bool perl_postgres_name(const struct perl_reader *r, u64 top, u64 cv, u64 start, char *ret, size_t size);

#endif
