/* SPDX-License-Identifier: Apache-2.0 */
#include "root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <types.h>
#include <unistd.h>

#include "cleanup.h"

int root_open(const char *root)
{
	return *root ? open(root, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
}

static int open_within(int root, const char *path, int flags)
{
	struct open_how how = {.flags = (u64)flags, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	int fd;

	if (root < 0)
		return open(path, flags);
	fd = syscall(SYS_openat2, root, path, &how, sizeof(how));
	if (fd < 0 && errno == ENOSYS)
		fd = openat(root, path[0] == '/' ? path + 1 : path, flags);
	return fd;
}

int root_open_file(int root, const char *path, int flags)
{
	return open_within(root, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags);
}

int root_open_regular(int root, const char *path)
{
	cleanup(close) int fd = open_within(root, path, O_PATH | O_CLOEXEC);
	char self[64];
	struct stat s;

	if (fd < 0 || fstat(fd, &s) || !S_ISREG(s.st_mode))
		return -1;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return open(self, O_RDONLY | O_CLOEXEC);
}

DIR *root_open_folder(int root, const char *path)
{
	int fd = root_open_file(root, path, O_DIRECTORY);
	DIR *ret = fd >= 0 ? fdopendir(fd) : NULL;

	if (fd >= 0 && !ret)
		close(fd);
	return ret;
}
