/* SPDX-License-Identifier: Apache-2.0 */
#include "lines.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unwind/cleanup.h"

#define BATCH (4u << 20)

static bool more_is_there(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* Until the buffer is full, nothing is there at the moment (but something was), or the end. */
static struct error *fill(int fd, char *buf, size_t *have, bool *end)
{
	bool got = false;

	while (*have < BATCH && (!got || more_is_there(fd))) {
		ssize_t n = read(fd, buf + *have, BATCH - *have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_errno(errno, "cannot read stdin");
		*end = !n;
		if (!n)
			return NULL;
		*have += n;
		got = true;
	}
	return NULL;
}

/* All whole lines; *used is where the first that is not whole starts. */
static struct error *split(
        char *buf, size_t have, bool end, size_t *used, struct error *(*line)(void *, const char *), void *ctx)
{
	struct error *err = NULL;
	char *newline;

	for (*used = 0; *used < have && !err; *used = newline + 1 - buf) {
		newline = memchr(buf + *used, '\n', have - *used);
		if (!newline && !end && (*used || have < BATCH))
			break;
		newline = newline ? newline : buf + have;
		*newline = 0;
		err = line(ctx, buf + *used);
	}
	return err;
}

struct error *lines_read(
        int fd, struct error *(*line)(void *ctx, const char *text), struct error *(*pause)(void *ctx), void *ctx)
{
	cleanup(free) char *buf = malloc(BATCH + 1);
	struct error *err = NULL;
	size_t have = 0, used = 0;
	bool end = false;

	if (!buf)
		return &error_no_memory;
	while (!end && !err) {
		err = fill(fd, buf, &have, &end);
		if (!err)
			err = split(buf, have, end, &used, line, ctx);
		if (!err)
			err = pause(ctx);
		used = used < have ? used : have;
		memmove(buf, buf + used, have - used);
		have -= used;
	}
	return err;
}

bool address_parse(const char *text, u64 *ret)
{
	int base = 10;
	char *end;

	text += strspn(text, " \t\r");
	if (!strncmp(text, "CODE ", 5))
		text += 5 + strspn(text + 5, " ");
	if (text[0] == '0' && (text[1] | 32) == 'x')
		base = 16;
	else if (text[0] == '0' && (text[1] | 32) == 'b')
		base = 2;
	else if (text[0] == '0' && text[1] == 'o')
		base = 8;
	else if (text[0] == '0' && text[1] >= '0' && text[1] <= '9')
		base = 8;
	text += base == 16 || base == 2 || text[1] == 'o' ? 2 : 0;
	if (!*text || strchr("+- \t", *text))
		return false;
	errno = 0;
	*ret = strtoull(text, &end, base);
	return !errno && end != text && (!*end || strchr(" \t\r", *end));
}
