/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a process runs: its pod and container, else its systemd unit, else its cgroup. In profiles that is a text of
 * terms as --select takes them, "pod=UID,container=ID", and a name for people. It is the file of a process's function,
 * and of the nodes above it (KIND_CONTAINER).
 *
 * The name comes from what kubelet mounts into a container: /etc/hostname and /etc/hosts (does the pod have its own
 * name there: pkg/kubelet/kubelet_pods.go), the service account's namespace, and the source of the mount of
 * /dev/termination-log, ".../pods/UID/containers/NAME/FILE" (pkg/kubelet/kuberuntime/kuberuntime_container.go). All of
 * it is untrusted.
 */
#ifndef YRT_CONTAINERS_H
#define YRT_CONTAINERS_H

#include <sys/types.h>

#include "process/cgroup.h"
#include "profile.h"

enum container_term {
	CONTAINER_POD, /* UID */
	CONTAINER_NAMESPACE,
	CONTAINER_POD_NAME,
	CONTAINER_ID, /* the first 12 digits, or LXC's name */
	CONTAINER_NAME,
	CONTAINER_UNIT,
	CONTAINER_CGROUP, /* only if no other term is known; "/" is the host itself */
	CONTAINER_TERMS
};

struct container {
	char term[CONTAINER_TERMS][CGROUP_ID]; /* "": not known */
};

#define CONTAINER_TEXT (CONTAINER_TERMS * (CGROUP_ID + 16))

/* What the text of /proc/PID/cgroup says. */
void container_of_cgroup(const char *cgroup, struct container *ret);
/* What a text of /proc/PID/mountinfo adds: the pod, and the container's name in it. */
void container_of_mounts(const char *mounts, struct container *ret);
/* All that is known of a process now; empty if it is gone. */
void container_look(pid_t pid, struct container *ret);

/* "pod=UID,podname=web-1,container=0123456789ab"; "" if nothing is known. */
/* value: n untrusted bytes; characters that separate the terms of a text are replaced by '_'. */
void container_set(struct container *c, enum container_term term, const char *value, size_t n);

void container_text(const struct container *c, char ret[CONTAINER_TEXT]);
/* The other way round; text of old recordings is the container's id alone. */
void container_parse(const char *text, struct container *ret);

/* The functions of the nodes above processes with this text, outermost first; *n 0: not known. */
#define CONTAINER_LEVELS 2
struct error *container_functions(struct profile *p, const char *text, u32 ret[CONTAINER_LEVELS], u32 *n);

#endif
