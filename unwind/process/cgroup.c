/* SPDX-License-Identifier: Apache-2.0 */
#include "cgroup.h"

#include <limits.h>
#include <string.h>

#define CONTAINER_DIGITS 64

const char *cgroup_next_path(const char **at, size_t *length)
{
	while (**at) {
		const char *line = *at, *end = line + strcspn(line, "\n"), *path = memchr(line, ':', end - line);

		*at = end + (*end == '\n');
		path = path ? memchr(path + 1, ':', end - path - 1) : NULL;
		if (!path)
			continue;
		*length = end - path - 1;
		return path + 1;
	}
	return NULL;
}

bool cgroup_any_part(const char *text, bool (*found)(const char *part, void *ctx), void *ctx)
{
	const char *path;
	char part[NAME_MAX + 1];
	size_t length;

	while ((path = cgroup_next_path(&text, &length)))
		for (size_t end = length; end > 0;) {
			size_t begin = end;

			while (begin > 0 && path[begin - 1] != '/')
				begin--;
			if (end > begin && end - begin < sizeof(part)) {
				memcpy(part, path + begin, end - begin);
				part[end - begin] = '\0';
				if (found(part, ctx))
					return true;
			}
			end = begin ? begin - 1 : 0;
		}
	return false;
}

/*
 * "pod<UID>" as cgroupfs has it, "kubepods-burstable-pod<UID>.slice" as systemd; "…slice:cri-containerd:<ID>" where
 * kubelet uses one and containerd the other. Kubernetes' own folders: kubepods.
 */
static bool pod_of_part(const char *part, void *ctx)
{
	const char *uid = !strncmp(part, "pod", 3) ? part + 3 : NULL;
	const char *slice = strstr(part, ".slice");
	char *ret = ctx;
	size_t n;

	if (slice && (!slice[6] || slice[6] == ':') && strstr(part, "kubepods") && (uid = strstr(part, "-pod")))
		uid += 4;
	if (!uid)
		return false;
	n = strspn(uid, "0123456789abcdef-_");
	if (n < 8 || n >= CGROUP_ID || (uid[n] && uid + n != slice))
		return false;
	for (size_t i = 0; i < n; i++)
		ret[i] = uid[i] == '_' ? '-' : uid[i];
	ret[n] = '\0';
	return true;
}

bool cgroup_pod(const char *text, char ret[CGROUP_ID])
{
	return cgroup_any_part(text, pod_of_part, ret);
}

/*
 * "<ID>", "docker-<ID>.scope", "cri-containerd-<ID>.scope", "libpod-<ID>". Not "libpod-conmon-<ID>" and
 * "crio-conmon-<ID>": the monitor of a container, outside of it.
 */
static bool container_of_part(const char *part, void *ctx)
{
	static const char monitor[] = "conmon-";
	const size_t monitor_length = sizeof(monitor) - 1;
	size_t length = strlen(part), from;

	if (length > 6 && !strcmp(part + length - 6, ".scope"))
		length -= 6;
	if (length < CONTAINER_DIGITS)
		return false;
	from = length - CONTAINER_DIGITS;
	if ((from && part[from - 1] != '-' && part[from - 1] != ':') ||
	        strspn(part + from, "0123456789abcdef") != CONTAINER_DIGITS)
		return false;
	if (from >= monitor_length && !strncmp(part + from - monitor_length, monitor, monitor_length))
		return false;
	memcpy(ctx, part + from, CONTAINER_DIGITS);
	((char *)ctx)[CONTAINER_DIGITS] = '\0';
	return true;
}

bool cgroup_container(const char *text, char ret[CGROUP_ID])
{
	return cgroup_any_part(text, container_of_part, ret);
}

static bool unit_of_part(const char *part, void *ctx)
{
	size_t length = strlen(part);

	if (length <= 8 || length >= CGROUP_ID || strcmp(part + length - 8, ".service"))
		return false;
	memcpy(ctx, part, length + 1);
	return true;
}

bool cgroup_unit(const char *text, char ret[CGROUP_ID])
{
	return cgroup_any_part(text, unit_of_part, ret);
}
