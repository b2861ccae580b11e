/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process is called if each has a node of its own: its command line at this moment (programs change theirs). Its
 * function is KIND_PROCESS: module is the program's name, line the pid, file where it runs (containers.h), image the
 * program's file. A profile is drawn with shorter names: profile_processes.h.
 */
#ifndef YRT_PROCESS_NAMES_H
#define YRT_PROCESS_NAMES_H

#include "process/process.h"
#include "profile.h"
#include "shared/record.h"
#include "table.h"

#define PROCESS_NAME_MAX 240  /* bytes of a command line that are kept */
#define PROCESSES_APART  1024 /* processes with a function each; those that come later have one a program */

/*
 * The function that stands for the process of a stack. known: what is known of processes so far, empty at first, freed
 * with table_free(). p: NULL: unknown, the kernel's name of the thread is taken.
 */
struct error *process_function(struct table *known, struct profile *profile, const struct process *p,
        const struct stack_record *record, u32 *ret);

/* The arguments that lie in size bytes of /proc/PID/cmdline as one line. */
void process_command_line(const char *bytes, size_t size, char ret[PROCESS_NAME_MAX]);
#endif
