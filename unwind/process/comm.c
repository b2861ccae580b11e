/* SPDX-License-Identifier: Apache-2.0 */
#include "comm.h"

#include <stdio.h>
#include <string.h>

#include "binary/proc_path.h"
#include "cleanup.h"

/*
 * A program that gives itself a path for a title (Perl's $0) is called after its first 15 bytes. The title is where the
 * arguments were: the file's name in it says more.
 */
static void read_title(pid_t pid, char ret[COMM_TEXT])
{
	cleanup(fclose) FILE *file = NULL;
	char path[64], title[1024] = "", *slash;

	proc_path(path, sizeof(path), pid, "cmdline");
	file = fopen(path, "re");
	if (!file || !fgets(title, sizeof(title), file) || strncmp(title, ret, strlen(ret)))
		return;
	title[strcspn(title, " :")] = '\0';
	slash = strrchr(title, '/');
	if (slash && slash[1])
		snprintf(ret, COMM_TEXT, "%.63s", slash + 1);
}

void comm_read(pid_t pid, char ret[COMM_TEXT])
{
	cleanup(fclose) FILE *file = NULL;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	file = fopen(path, "re");
	if (!file || !fgets(ret, COMM_TEXT, file))
		*ret = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	if (strchr(ret, '/'))
		read_title(pid, ret);
}
