/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects processes by properties instead of pids: --select exe=envoy,pod=UID. A selection is a list of rules; a
 * process is selected if all terms of any rule match it.
 *
 *	exe=NAME	the program's file: its name, or its path if there is a '/' in NAME
 *	comm=NAME	what the process calls itself (/proc/PID/comm), of which the kernel keeps 15 bytes
 *	cgroup=PATH	its cgroup, or one above it, of any hierarchy; "kubepods*" as a pattern
 *	pod=UID		a Kubernetes pod: "pod<UID>" in the cgroup, with '-' or, as systemd writes it, '_'
 *	container=ID	a container of containerd, CRI-O, Docker or Podman: 12 digits or more of the id, also
 *			behind "containerd://"
 *	unit=NAME	a systemd unit: "nginx.service"
 *
 * exe, comm and cgroup take the patterns of fnmatch(3). The properties come from /proc/PID as the reader sees it: in a
 * cgroup namespace, paths of other containers begin with "/../".
 */
#ifndef YRT_SELECT_H
#define YRT_SELECT_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>
#include <types.h>

#include "unwind/error.h"
#include "unwind/process/cgroup.h"

#define SELECT_TERMS    16 /* of a rule, at most */
#define SELECT_ID       CGROUP_ID
#define SELECT_ID_LEAST 12 /* digits of a container's id */

enum select_key { SELECT_EXE, SELECT_COMM, SELECT_CGROUP_PATH, SELECT_POD, SELECT_CONTAINER, SELECT_UNIT, SELECT_KEYS };

struct select_rule {
	struct {
		enum select_key key;
		char *value;
	} term[SELECT_TERMS];
	u32 nterms;
	char *text; /* as it was given */
};

struct selection {
	struct select_rule *rules;
	u32 nrules;
	char *text; /* of all rules, for titles; NULL: none */
};

/* What a process is, as far as rules ask. */
struct process_facts {
	pid_t pid;
	char place[32];     /* in /proc: pid, or behind it a thread of it, once the first one has ended (proc_path.h) */
	char exe[PATH_MAX]; /* "": it may not be looked at */
	char comm[64];
	char cgroup[CGROUP_TEXT]; /* lines "N:controllers:path" */
};

/* Adds a rule "key=value,key=value". A usage error lists the keys. */
struct error *selection_add(struct selection *s, const char *text);
void selection_free(struct selection *s);

/* False: there is no such process (any more), or it has no program: a zombie, a kernel thread. proc: where /proc is. */
bool facts_read(const char *proc, pid_t pid, struct process_facts *ret);
/* Is this process selected? No more of it is read than that takes. False, too: it is gone, or has no program. */
bool selection_matches_pid(const struct selection *s, const char *proc, pid_t pid);
/* All terms of a rule but the first, which may be mistyped. */
bool rule_rest_matches(const struct select_rule *rule, const struct process_facts *facts);
bool rule_begin_matches(const struct select_rule *rule, const struct process_facts *facts); /* the first */
/* It may match: its program may not be looked at, but its comm fits what a rule says of the program. */
bool selection_hides(const struct selection *s, const struct process_facts *facts);
/* The last part of exe; comm where there is none. */
const char *facts_name(const struct process_facts *facts);
/* The pod, with '-', and the container of a process, from its cgroup. False: it is in none. */
bool facts_pod(const struct process_facts *facts, char ret[SELECT_ID]);
bool facts_container(const struct process_facts *facts, char ret[SELECT_ID]);
/* The innermost unit of systemd that is a service; "" and false: none. */
bool facts_unit(const struct process_facts *facts, char ret[SELECT_ID]);
const char *select_key_name(enum select_key key);

#endif
