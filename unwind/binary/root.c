/* SPDX-License-Identifier: Apache-2.0 */
#include "root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

int root_open(const char *root)
{
	return *root ? open(root, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
}

int root_open_file(int root, const char *path, int flags)
{
	struct open_how how = {
	        .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags,
	        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int fd;

	if (root < 0)
		return open(path, how.flags);
	fd = syscall(SYS_openat2, root, path, &how, sizeof(how));
	if (fd < 0 && errno == ENOSYS)
		fd = openat(root, path[0] == '/' ? path + 1 : path, how.flags);
	return fd;
}
