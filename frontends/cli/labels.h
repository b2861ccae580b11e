/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a profile comes from, for stores, as lines "key=value": service.name, host.name, k8s.pod.uid, container.id,
 * systemd.unit (if all targets share it), process.executable.build_id.gnu. Names are those of OpenTelemetry's semantic
 * conventions.
 */
#ifndef YRT_LABELS_H
#define YRT_LABELS_H

#include <sys/types.h>

#include "unwind/profile/profile.h"

/* Of these processes, which may be none; fallback: the service, if they are several programs. The caller's. NULL: out
 * of memory. */
char *labels_of(const pid_t *pids, int n, const char *fallback);
/* Adds those of more (NULL: none), which stand in place of p's own of the same key, and the build of the service's
 * program. */
struct error *labels_merge(struct profile *p, const char *more);

#endif
