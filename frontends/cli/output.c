/* SPDX-License-Identifier: Apache-2.0 */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NAMES_TRIED 10000

static struct error *unwritable(const char *name)
{
	return error_hint(error_new(ERROR_OUTPUT, "cannot write %s: %s", name, strerror(errno)),
	        "choose another place with -o, or -o - for stdout");
}

/*
 * A file without a name in that folder: nothing is left of it if yrt is killed. -1: the file system has none, or it
 * could not get a name later. A recording has a name at once: what there is of it can be read.
 */
static int open_nameless(const char *name)
{
	size_t len = strlen(name);
	char *folder, *slash;
	int fd;

	if (access("/proc/self/fd", X_OK) || (len > 4 && !strcmp(name + len - 4, ".yrt")))
		return -1;
	folder = strdup(name);
	if (!folder)
		return -1;
	slash = strrchr(folder, '/');
	if (slash)
		slash[slash == folder] = 0;
	fd = open(slash ? folder : ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
	free(folder);
	return fd;
}

/* Gives it a name that no other file has. */
static int name_it(FILE *file, const char *name, char **ret)
{
	char path[64];
	struct timespec now;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fileno(file));
	clock_gettime(CLOCK_REALTIME, &now);
	if (asprintf(ret, "%s.%d-%lx", name, getpid(), now.tv_nsec) < 0) {
		*ret = NULL;
		return -1;
	}
	if (!linkat(AT_FDCWD, path, AT_FDCWD, *ret, AT_SYMLINK_FOLLOW))
		return 0;
	free(*ret);
	*ret = NULL;
	return -1;
}

/* With the mode that open() would give it. */
static FILE *open_beside(const char *name, char **temporary)
{
	int fd = open_nameless(name);
	mode_t mask;

	if (fd >= 0)
		return fdopen(fd, "w");
	mask = umask(0);
	umask(mask);
	if (asprintf(temporary, "%s.XXXXXX", name) < 0) {
		*temporary = NULL;
		return NULL;
	}
	fd = mkostemp(*temporary, O_CLOEXEC);
	if (fd >= 0 && !fchmod(fd, 0666 & ~mask))
		return fdopen(fd, "w");
	if (fd >= 0) {
		close(fd);
		unlink(*temporary);
	}
	free(*temporary);
	*temporary = NULL;
	return NULL;
}

char *output_expand(const char *pattern, int pid)
{
	char *text = NULL, stamp[OUTPUT_STAMP];
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	output_stamp(stamp);
	for (; *pattern; pattern++) {
		if (*pattern != '%' || !pattern[1])
			fputc(*pattern, out);
		else if (*++pattern == 'p')
			fprintf(out, "%d", pid);
		else if (*pattern == 't')
			fputs(stamp, out);
		else
			fputc(*pattern, out);
	}
	fclose(out);
	return text;
}

struct error *output_open(char *name, struct output *ret)
{
	struct stat st;
	bool there;

	*ret = (struct output){.name = name};
	if (!name)
		return &error_no_memory;
	if (!strcmp(name, "-")) {
		ret->file = stdout;
		return NULL;
	}
	there = !lstat(name, &st);
	if ((!there || S_ISREG(st.st_mode)) && (!there || !access(name, W_OK)))
		ret->file = open_beside(name, &ret->temporary);
	ret->nameless = ret->file && !ret->temporary;
	if (!ret->file)
		ret->file = fopen(name, "we");
	return ret->file ? NULL : unwritable(name);
}

void output_stamp(char ret[OUTPUT_STAMP])
{
	time_t now = time(NULL);
	struct tm tm;

	strftime(ret, OUTPUT_STAMP, "%Y%m%d-%H%M%S", localtime_r(&now, &tm));
}

struct error *output_reserve(const char *stem, const char *kind, unsigned long first, char **ret)
{
	struct error *err;

	for (unsigned long n = first; n < first + NAMES_TRIED; n++) {
		char number[24] = "";
		int fd;

		if (n > 1)
			snprintf(number, sizeof(number), "-%lu", n);
		if (asprintf(ret, "%s%s%s", stem, number, kind) < 0) {
			*ret = NULL;
			return &error_no_memory;
		}
		fd = open(*ret, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd >= 0) {
			close(fd);
			return NULL;
		}
		err = errno == EEXIST ? NULL : unwritable(*ret);
		free(*ret);
		*ret = NULL;
		if (err)
			return err;
	}
	return error_new(ERROR_OUTPUT, "cannot find a name like %s%s", stem, kind);
}

void output_unreserve(const char *path)
{
	struct stat st;

	if (path && !stat(path, &st) && !st.st_size)
		unlink(path);
}

struct error *output_unread(FILE *file, struct error *err)
{
	struct pollfd reader = {.fd = fileno(file)};

	if (!err || err->kind != ERROR_OUTPUT || poll(&reader, 1, 0) <= 0 || !(reader.revents & POLLERR))
		return err;
	error_free(err);
	return NULL;
}

struct error *output_error(const struct output *o, struct error *err)
{
	if (!err && fflush(o->file))
		err = error_new(ERROR_OUTPUT, "%s", strerror(errno));
	err = output_unread(o->file, err);
	if (!err || err->kind != ERROR_OUTPUT)
		return err;
	return error_hint(err, "free some space or choose another place with -o: %s is %s", o->name,
	        o->nameless || o->temporary ? "as it was before" : "incomplete");
}

struct error *output_close(struct output *o, bool keep)
{
	struct error *err = NULL;
	bool failed = false;

	if (keep && o->nameless)
		failed = fflush(o->file) || name_it(o->file, o->name, &o->temporary);
	if (o->file && o->file != stdout)
		failed = fclose(o->file) != 0 || failed;
	if (keep && (failed || (o->temporary && rename(o->temporary, o->name))))
		err = error_hint(error_new(ERROR_OUTPUT, "cannot write %s: %s", o->name, strerror(errno)),
		        "free some space or choose another place with -o");
	if (o->temporary && (!keep || err))
		unlink(o->temporary);
	free(o->temporary);
	free(o->name);
	*o = (struct output){0};
	return err;
}

struct error *output_end(struct output *o, struct error *err)
{
	err = output_error(o, err);
	if (!err)
		return output_close(o, true);
	error_free(output_close(o, false));
	return err;
}
