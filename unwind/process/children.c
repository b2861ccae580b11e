/* SPDX-License-Identifier: Apache-2.0 */
#include "children.h"

#include <dirent.h>
#include <stdio.h>

#include "cleanup.h"
#include "grow.h"

static struct error *add_of_thread(pid_t pid, const char *tid, pid_t **list, u32 *n)
{
	cleanup(fclose) FILE *file = NULL;
	struct error *err = NULL;
	char path[320];
	pid_t child;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/children", pid, tid);
	file = fopen(path, "re");
	while (!err && file && fscanf(file, "%d", &child) == 1) {
		err = grow(list, *n, sizeof(**list));
		if (!err)
			(*list)[(*n)++] = child;
	}
	return err;
}

struct error *children_list(pid_t pid, pid_t **ret, u32 *n)
{
	cleanup(free) pid_t *list = NULL;
	struct error *err = NULL;
	struct dirent *entry;
	char path[64];
	DIR *dir;

	*ret = NULL;
	*n = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (!err && dir && (entry = readdir(dir)))
		if (*entry->d_name != '.')
			err = add_of_thread(pid, entry->d_name, &list, n);
	if (dir)
		closedir(dir);
	if (!err)
		*ret = TAKE(list);
	return err;
}

u32 children_count(pid_t pid)
{
	cleanup(free) pid_t *list = NULL;
	u32 n;

	error_free(children_list(pid, &list, &n));
	return n;
}
