/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The level of processes in a drawn profile. It is left out if only one process was seen. A program that runs many
 * times is one box. Processes of one program have short names that distinguish them: "python3 worker.py --id 7 (pid
 * 42)", "cc1 (37 processes)". If processes are in several pods, containers or units, there is a level of these above,
 * and programs are counted separately in each.
 */
#ifndef YRT_PROFILE_PROCESSES_H
#define YRT_PROFILE_PROCESSES_H

#include "profile.h"

#define PROCESSES_MANY 8  /* of one program: more become one, if nobody asks for each */
#define PROCESS_SHOWN  64 /* bytes of a process's name, before its pid */

/* p is finished, and is. */
struct error *profile_show_processes(struct profile *p, enum processes how);
/*
 * For n profiles that will be compared, in which pids and containers mean nothing: a level by program if one profile
 * has several, else none.
 */
struct error *profile_match_processes(struct profile *const *profiles, u32 n);

#endif
