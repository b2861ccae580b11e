/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the names of cgroups say about a process. Names: kubelet's cgroupfs and systemd drivers
 * (pkg/kubelet/cm/cgroup_manager_linux.go), runc's systemd scopes (libcontainer/cgroups/systemd: PREFIX-NAME.scope).
 */
#ifndef YRT_CGROUP_H
#define YRT_CGROUP_H

#include <stdbool.h>
#include <stddef.h>

#define CGROUP_TEXT 8192 /* bytes that are read of /proc/PID/cgroup */
#define CGROUP_ID   128

/* text: lines "N:controllers:path", all of them. */

/* A Kubernetes pod's UID, with '-'. False: it is in none. */
bool cgroup_pod(const char *text, char ret[CGROUP_ID]);
/* The 64 digits of a container's id, as containerd, CRI-O, Docker and Podman give it. */
bool cgroup_container(const char *text, char ret[CGROUP_ID]);
/* The innermost unit of systemd that is a service. */
bool cgroup_unit(const char *text, char ret[CGROUP_ID]);
/* Calls found with each part of each path, innermost first, until it says true. */
bool cgroup_any_part(const char *text, bool (*found)(const char *part, void *ctx), void *ctx);
/* The next path of the lines at *at, and its length; NULL: there are no more. */
const char *cgroup_next_path(const char **at, size_t *length);

#endif
