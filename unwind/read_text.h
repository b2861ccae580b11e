/* SPDX-License-Identifier: Apache-2.0 */
/* Reads small text files, as those of /proc. */
#ifndef YRT_READ_TEXT_H
#define YRT_READ_TEXT_H

#include <sys/types.h>
#include <unistd.h>

/* The file's text, cut at size - 1 bytes; "" if it cannot be read, or fd is negative. */
static inline void read_text(int fd, char *ret, size_t size)
{
	size_t used = 0;
	ssize_t n = 1;

	while (fd >= 0 && n > 0 && used < size - 1) {
		n = read(fd, ret + used, size - 1 - used);
		used += n > 0 ? (size_t)n : 0;
	}
	ret[used] = '\0';
}

#endif
