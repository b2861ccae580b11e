/* SPDX-License-Identifier: Apache-2.0 */
#include "prefetch.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cleanup.h"
#include "now.h"
#include "open_files.h"

#define SCRIPTS_MAX  4 /* interpreters that are scripts themselves */
#define NAMED_MAX    5 /* programs: the first, and those that its arguments name */
#define SEGMENTS_MAX 64
#define LIST_MAX     (64u << 10)
#define LIST_MS      500

/* The line of our own maps of a file's mapping: its numbers and path as the kernel shows them for any process. */
static struct error *own_line(const void *at, struct maps *maps, const struct map_line **ret)
{
	struct error *err = maps_read(getpid(), maps);

	*ret = NULL;
	for (u32 i = 0; !err && i < maps->nlines; i++)
		if (maps->lines[i].start <= (u64)at && (u64)at < maps->lines[i].end)
			*ret = &maps->lines[i];
	return err;
}

static struct error *prepare_file(struct modules *m, const char *path)
{
	cleanup(close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const size_t size = 4096;
	const struct map_line *line;
	struct maps maps = {0};
	struct loaded *loaded;
	struct error *err;
	void *at = fd < 0 ? MAP_FAILED : mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);

	if (at == MAP_FAILED)
		return NULL;
	err = own_line(at, &maps, &line);
	if (!err && line && line->ino)
		err = modules_load(m, getpid(), line, &loaded);
	maps_free(&maps);
	munmap(at, size);
	return err;
}

/* PT_INTERP. False: it has none, or is no ELF file. */
static bool read_interpreter(const char *path, char *ret, size_t size)
{
	cleanup(close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	Elf64_Ehdr eh;
	Elf64_Phdr ph;

	if (fd < 0 || pread(fd, &eh, sizeof(eh), 0) != sizeof(eh) || memcmp(eh.e_ident, ELFMAG, SELFMAG) ||
	        eh.e_ident[EI_CLASS] != ELFCLASS64)
		return false;
	for (u32 i = 0; i < eh.e_phnum && i < SEGMENTS_MAX; i++) {
		if (pread(fd, &ph, sizeof(ph), (off_t)(eh.e_phoff + i * sizeof(ph))) != sizeof(ph))
			return false;
		if (ph.p_type != PT_INTERP || ph.p_filesz >= size)
			continue;
		ret[ph.p_filesz] = '\0';
		return pread(fd, ret, ph.p_filesz, (off_t)ph.p_offset) == (ssize_t)ph.p_filesz && ret[0] == '/';
	}
	return false;
}

/* All that a program writes, until it ends or is late. NULL: nothing. */
static char *output_of(char *const *argv)
{
	u64 end = now_ns() + LIST_MS * 1000000ull;
	char *text = calloc(1, LIST_MAX);
	size_t have = 0;
	int out[2];
	ssize_t n = 1;
	pid_t pid;

	if (!text || pipe2(out, O_CLOEXEC))
		return text;
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, 0);
		dup2(out[1], 1);
		dup2(null, 2);
		open_files_restore();
		execv(argv[0], argv);
		_exit(127);
	}
	close(out[1]);
	while (pid > 0 && n > 0 && have < LIST_MAX - 1 && now_ns() < end) {
		struct pollfd ready = {.fd = out[0], .events = POLLIN};

		n = poll(&ready, 1, LIST_MS) > 0 ? read(out[0], text + have, LIST_MAX - 1 - have) : 0;
		have += n > 0 ? (size_t)n : 0;
	}
	close(out[0]);
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	return text;
}

/* What it is linked with, as its own dynamic linker finds it (glibc's and musl's have --list): "name => /path (0x…)",
 * "/path (0x…)". */
static struct error *prepare_linked(struct modules *m, char *interpreter, const char *program)
{
	char *argv[] = {interpreter, "--list", (char *)program, NULL};
	cleanup(free) char *text = output_of(argv);
	struct error *err = prepare_file(m, interpreter);
	char *line, *rest = NULL;

	for (line = text ? strtok_r(text, "\n", &rest) : NULL; line && !err; line = strtok_r(NULL, "\n", &rest)) {
		char *path = strchr(line, '/'), *end = path ? strstr(path, " (") : NULL;

		if (!end)
			continue;
		*end = '\0';
		err = prepare_file(m, path);
	}
	return err;
}

static struct error *prepare_program(struct modules *m, const char *path)
{
	char interpreter[PATH_MAX];
	struct error *err = prepare_file(m, path);

	return !err && read_interpreter(path, interpreter, sizeof(interpreter)) ? prepare_linked(m, interpreter, path)
	                                                                        : err;
}

/* As execvp() looks for it. */
static bool find_program(const char *name, char *ret)
{
	const char *at = getenv("PATH");

	if (strchr(name, '/'))
		return snprintf(ret, PATH_MAX, "%s", name) < PATH_MAX;
	while (at && *at) {
		int len = (int)strcspn(at, ":");

		if (snprintf(ret, PATH_MAX, "%.*s/%s", len, at, name) < PATH_MAX && access(ret, X_OK) == 0)
			return true;
		at += len + (at[len] == ':');
	}
	return false;
}

/* The program that a script's first line names; that which env is to look for, if it names env. */
static bool read_script(const char *path, char *ret)
{
	cleanup(fclose) FILE *file = fopen(path, "re");
	char line[PATH_MAX], *word, *rest = NULL;

	if (!file || !fgets(line, sizeof(line), file) || strncmp(line, "#!", 2))
		return false;
	word = strtok_r(line + 2, " \t\n", &rest);
	if (word && !strcmp(word, "/usr/bin/env"))
		word = strtok_r(NULL, " \t\n", &rest);
	return word && find_program(word, ret);
}

/* What name comes to in the end, behind scripts. */
static bool resolve(const char *name, char *path)
{
	char next[PATH_MAX];

	if (!find_program(name, path))
		return false;
	for (u32 i = 0; i < SCRIPTS_MAX && read_script(path, next); i++)
		memcpy(path, next, sizeof(next));
	return true;
}

/* A word need not be meant as a program: nothing of a stranger is given to a dynamic linker for that. */
static bool is_trusted(const char *path)
{
	char interpreter[PATH_MAX];
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0 &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH)) && (!st.st_uid || st.st_uid == geteuid()) &&
	       read_interpreter(path, interpreter, sizeof(interpreter));
}

struct named {
	char path[NAMED_MAX][PATH_MAX];
	u32 n;
};

static bool is_new(const struct named *named, const char *path)
{
	for (u32 i = 0; i < named->n; i++)
		if (!strcmp(named->path[i], path))
			return false;
	return true;
}

/* The words of an argument that are programs. */
static struct error *prepare_named(struct modules *m, const char *argument, struct named *named)
{
	static const char between[] = " \t\n;&|()<>{}'\"`$=";
	cleanup(free) char *text = strdup(argument);
	char *word, *rest = NULL;
	struct error *err = text ? NULL : &error_no_memory;

	for (word = text ? strtok_r(text, between, &rest) : NULL; word && named->n < NAMED_MAX && !err;
	        word = strtok_r(NULL, between, &rest)) {
		char *path = named->path[named->n];

		if (!resolve(word, path) || !is_trusted(path) || !is_new(named, path))
			continue;
		err = prepare_program(m, path);
		named->n++;
	}
	return err;
}

struct error *prefetch_prepare(struct modules *m, char *const *argv)
{
	struct named named = {.n = 0};
	struct error *err = resolve(argv[0], named.path[0]) ? prepare_program(m, named.path[named.n++]) : NULL;

	for (u32 i = 1; !err && argv[i]; i++)
		err = prepare_named(m, argv[i], &named);
	return err;
}
