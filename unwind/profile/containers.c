/* SPDX-License-Identifier: Apache-2.0 */
#include "containers.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "binary/proc_path.h"
#include "binary/proc_stat.h"
#include "binary/root.h"
#include "cleanup.h"
#include "read_text.h"

#define ID_SHOWN   12
#define MOUNTS_MAX (64u << 10)
#define INIT_INODE 0xeffffffbu /* of the first cgroup namespace: PROC_CGROUP_INIT_INO of include/linux/proc_ns.h */

static const char *const keys[CONTAINER_TERMS] = {"pod", "namespace", "podname", "container", "name", "unit", "cgroup"};

void container_set(struct container *c, enum container_term term, const char *value, size_t n)
{
	char *to = c->term[term];

	n = n < CGROUP_ID ? n : CGROUP_ID - 1;
	for (size_t i = 0; i < n; i++)
		to[i] = (unsigned char)value[i] <= ' ' || strchr(",=\x7f", value[i]) ? '_' : value[i];
	to[n] = '\0';
}

static bool is_unit(const char *part, void *ret)
{
	size_t length = strlen(part);
	bool scope = length > 6 && !strcmp(part + length - 6, ".scope") && strcmp(part, "init.scope");

	if (!scope || length >= CGROUP_ID)
		return false;
	memcpy(ret, part, length + 1);
	return true;
}

static bool find_unit(const char *cgroup, char ret[CGROUP_ID])
{
	return cgroup_unit(cgroup, ret) || cgroup_any_part(cgroup, is_unit, ret);
}

/* Of the hierarchies the last one that says more than "/": that of cgroup v2 comes last. */
static void set_path(const char *cgroup, struct container *c)
{
	const char *path;
	size_t n;

	while ((path = cgroup_next_path(&cgroup, &n)))
		if (n > 1 || !*c->term[CONTAINER_CGROUP])
			container_set(c, CONTAINER_CGROUP, path, n);
}

void container_of_cgroup(const char *cgroup, struct container *ret)
{
	static const char lxc[] = "/lxc.payload.";
	const char *at = strstr(cgroup, lxc);
	char id[CGROUP_ID];

	*ret = (struct container){0};
	if (cgroup_pod(cgroup, id))
		container_set(ret, CONTAINER_POD, id, strlen(id));
	if (cgroup_container(cgroup, id))
		container_set(ret, CONTAINER_ID, id, ID_SHOWN);
	else if (at)
		container_set(ret, CONTAINER_ID, at + sizeof(lxc) - 1, strcspn(at + sizeof(lxc) - 1, "/\n"));
	if (*ret->term[CONTAINER_POD] || *ret->term[CONTAINER_ID])
		return;
	if (find_unit(cgroup, id))
		container_set(ret, CONTAINER_UNIT, id, strlen(id));
	else
		set_path(cgroup, ret);
}

void container_of_mounts(const char *mounts, struct container *ret)
{
	static const char pods[] = "/pods/", containers[] = "/containers/";

	for (const char *at = mounts; (at = strstr(at, pods)); at++) {
		const char *uid = at + sizeof(pods) - 1;
		size_t n = strspn(uid, "0123456789abcdef-"), name;

		if (n < 8 || strncmp(uid + n, containers, sizeof(containers) - 1))
			continue;
		if (!*ret->term[CONTAINER_POD])
			container_set(ret, CONTAINER_POD, uid, n);
		name = strcspn(uid + n + sizeof(containers) - 1, "/ \n");
		container_set(ret, CONTAINER_NAME, uid + n + sizeof(containers) - 1, name);
		return;
	}
}

static void read_proc(pid_t pid, const char *name, char *ret, size_t size)
{
	char path[64];

	proc_path(path, sizeof(path), pid, name);
	cleanup(close) int fd = open(path, O_RDONLY | O_CLOEXEC);

	read_text(fd, ret, size);
}

static void read_inside(int root, const char *path, char *ret, size_t size)
{
	cleanup(close) int fd = root_open_file(root, path, 0);

	read_text(fd, ret, size);
}

/* A pod on the host's network has the host's name. */
static void look_inside(pid_t pid, struct container *c)
{
	char path[64], text[256];

	proc_path(path, sizeof(path), pid, "root");
	cleanup(close) int root = root_open(path);

	if (root < 0)
		return;
	read_inside(root, "/var/run/secrets/kubernetes.io/serviceaccount/namespace", text, sizeof(text));
	container_set(c, CONTAINER_NAMESPACE, text, strcspn(text, "\n"));
	read_inside(root, "/etc/hosts", text, sizeof(text));
	if (strncmp(text, "# Kubernetes-managed", 20) || strstr(text, "(host network)"))
		return;
	read_inside(root, "/etc/hostname", text, sizeof(text));
	container_set(c, CONTAINER_POD_NAME, text, strcspn(text, "\n"));
}

/* In a cgroup namespace of our own "/" is the container that we are in. */
static bool is_own(const struct container *c)
{
	struct stat st;

	return !strcmp(c->term[CONTAINER_CGROUP], "/") && !stat("/proc/self/ns/cgroup", &st) && st.st_ino != INIT_INODE;
}

/* The kernel shows those that end as members of the first cgroup, whatever theirs was. */
static bool is_ending(pid_t pid)
{
	char stat[512], state;
	u32 flags;

	read_proc(pid, "stat", stat, sizeof(stat));
	return !proc_stat_flags(stat, &state, &flags) || flags & PF_EXITING;
}

void container_look(pid_t pid, struct container *ret)
{
	char cgroup[CGROUP_TEXT];
	cleanup(free) char *mounts = NULL;

	read_proc(pid, "cgroup", cgroup, sizeof(cgroup));
	container_of_cgroup(cgroup, ret);
	if (!strcmp(ret->term[CONTAINER_CGROUP], "/") && is_ending(pid)) {
		*ret = (struct container){0};
		return;
	}
	if (is_own(ret)) {
		*ret = (struct container){0};
		container_set(ret, CONTAINER_ID, "own", 3);
	}
	if (!*ret->term[CONTAINER_POD] && !*ret->term[CONTAINER_ID])
		return;
	mounts = malloc(MOUNTS_MAX);
	if (!mounts)
		return;
	read_proc(pid, "mountinfo", mounts, MOUNTS_MAX);
	container_of_mounts(mounts, ret);
	if (*ret->term[CONTAINER_POD])
		look_inside(pid, ret);
}

void container_text(const struct container *c, char ret[CONTAINER_TEXT])
{
	size_t used = 0;

	*ret = '\0';
	for (u32 i = 0; i < CONTAINER_TERMS; i++)
		if (*c->term[i])
			used += (size_t)snprintf(
			        ret + used, CONTAINER_TEXT - used, "%s%s=%s", used ? "," : "", keys[i], c->term[i]);
}

void container_parse(const char *text, struct container *ret)
{
	*ret = (struct container){0};
	if (!strchr(text, '=')) {
		container_set(ret, CONTAINER_ID, text, strlen(text));
		return;
	}
	for (size_t n; *text; text += n + (text[n] == ',')) {
		size_t key = strcspn(text, "=,");

		n = strcspn(text, ",");
		for (u32 i = 0; i < CONTAINER_TERMS; i++)
			if (text[key] == '=' && strlen(keys[i]) == key && !strncmp(text, keys[i], key))
				container_set(ret, i, text + key + 1, n - key - 1);
	}
}

/* above: of the node above it. A name may become known later: better. */
static struct error *add(struct profile *p, const char *name, bool better, enum container_term term, const char *value,
        u32 above, u32 *ret)
{
	char file[CGROUP_ID + 16];
	struct profile_function fn = {.name = name, .module = "", .file = file, .kind = KIND_CONTAINER};
	size_t n = (size_t)snprintf(file, sizeof(file), "%s=%s", keys[term], value);

	return profile_function(
	        p, XXH3_64bits_withSeed(file, n, (u64)above << 8 | KIND_CONTAINER) | 1, &fn, better, ret);
}

static struct error *add_pod(struct profile *p, const struct container *c, u32 *ret)
{
	const char *space = c->term[CONTAINER_NAMESPACE], *pod = c->term[CONTAINER_POD_NAME];
	char name[2 * CGROUP_ID + 16];

	pod = *pod ? pod : c->term[CONTAINER_POD];
	snprintf(name, sizeof(name), "pod %s%s%s", space, *space ? "/" : "", pod);
	return add(p, name, *c->term[CONTAINER_POD_NAME], CONTAINER_POD, c->term[CONTAINER_POD], 0, ret);
}

static struct error *add_container(struct profile *p, const struct container *c, u32 above, u32 *ret)
{
	bool known = *c->term[CONTAINER_NAME];
	const char *id = c->term[CONTAINER_ID], *shown = known ? c->term[CONTAINER_NAME] : id;
	char name[CGROUP_ID + 16];

	snprintf(name, sizeof(name), "container %s", shown);
	return add(p, name, known, CONTAINER_ID, *id ? id : shown, above, ret);
}

struct error *container_functions(struct profile *p, const char *text, u32 ret[CONTAINER_LEVELS], u32 *n)
{
	struct error *err = NULL;
	struct container c;

	*n = 0;
	container_parse(text, &c);
	if (*c.term[CONTAINER_POD])
		err = add_pod(p, &c, &ret[(*n)++]);
	if (!err && (*c.term[CONTAINER_ID] || *c.term[CONTAINER_NAME])) {
		err = add_container(p, &c, *n ? ret[0] : 0, &ret[*n]);
		(*n)++;
	}
	if (err || *n)
		return err;
	for (u32 i = CONTAINER_UNIT; i < CONTAINER_TERMS; i++)
		if (*c.term[i]) {
			bool host = i == CONTAINER_CGROUP && !strcmp(c.term[i], "/");

			*n = 1;
			return add(p, host ? "host" : c.term[i], false, i, c.term[i], 0, ret);
		}
	return NULL;
}
