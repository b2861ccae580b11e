/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_class_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "binary/root.h"
#include "cleanup.h"
#include "now.h"

#define FILE_MOST      (1u << 20)  /* of a class */
#define DIRECTORY_MOST (32u << 20) /* of an archive */
#define ENTRIES_MOST   (1u << 20)
#define OPEN_MOST      4096
#define NESTED_MOST    64
#define LINE_MOST      (1u << 20) /* of a command */
#define ARCHIVES_NS    3000000000ull
#define END            22 /* bytes of the record at an archive's end, before its comment */
#define ENTRY          46
#define LOCAL          30
#define DEFLATED       8

struct entry {
	u32 packed, size, at;
	u16 method;
};

static u32 le(const u8 *p, u32 n)
{
	u32 ret = 0;

	while (n--)
		ret = ret << 8 | p[n];
	return ret;
}

/* malloc'd; NULL: it is not there whole. */
static u8 *bytes_at(int fd, u64 at, size_t size)
{
	u8 *ret = malloc(size + 1);

	if (ret && pread(fd, ret, size, (off_t)at) == (ssize_t)size)
		return ret;
	free(ret);
	return NULL;
}

static bool unpack(const u8 *packed, const struct entry *e, u8 *ret)
{
	z_stream z = {.next_in = (u8 *)packed, .avail_in = e->packed, .next_out = ret, .avail_out = e->size};
	bool whole;

	if (inflateInit2(&z, -MAX_WBITS) != Z_OK)
		return false;
	whole = inflate(&z, Z_FINISH) == Z_STREAM_END && !z.avail_out;
	inflateEnd(&z);
	return whole;
}

static struct error *give_entry(int fd, const struct entry *e, class_file *each, void *ctx)
{
	cleanup(free) u8 *local = NULL, *packed = NULL, *file = NULL;

	if (!e->size || e->size > FILE_MOST || e->packed > FILE_MOST)
		return NULL;
	local = bytes_at(fd, e->at, LOCAL);
	if (local)
		packed = bytes_at(fd, (u64)e->at + LOCAL + le(local + 26, 2) + le(local + 28, 2), e->packed);
	if (!packed)
		return NULL;
	if (!e->method)
		return e->packed == e->size ? each(ctx, packed, e->size) : NULL;
	file = e->method == DEFLATED ? malloc(e->size) : NULL;
	return file && unpack(packed, e, file) ? each(ctx, file, e->size) : NULL;
}

/* "com/acme/Store.class", "com/acme/Store$Entry.class", also below where frameworks keep a program's own classes. */
static bool is_of(const char *name, size_t length, const char *path)
{
	static const char *const below[] = {"", "BOOT-INF/classes/", "WEB-INF/classes/"};
	size_t n = strlen(path);

	for (size_t i = 0; i < sizeof(below) / sizeof(*below); i++) {
		size_t skip = strlen(below[i]);

		if (length > skip + n + 5 && !memcmp(name, below[i], skip) && !memcmp(name + skip, path, n) &&
		        (name[skip + n] == '.' || name[skip + n] == '$') && !memcmp(name + length - 6, ".class", 6))
			return true;
	}
	return false;
}

/* The list of what is in an archive, which its last record leads to; malloc'd. NULL: it is none. */
static u8 *read_directory(int fd, size_t *size)
{
	struct stat s;
	size_t tail;
	cleanup(free) u8 *end = NULL;

	if (fstat(fd, &s) || !S_ISREG(s.st_mode) || s.st_size < END)
		return NULL;
	tail = s.st_size < END + UINT16_MAX ? (size_t)s.st_size : END + UINT16_MAX;
	end = bytes_at(fd, (u64)s.st_size - tail, tail);
	for (size_t at = tail - END; end; at--) {
		if (!memcmp(end + at, "PK\5\6", 4)) {
			*size = le(end + at + 12, 4);
			return *size <= DIRECTORY_MOST ? bytes_at(fd, le(end + at + 16, 4), *size) : NULL;
		}
		if (!at)
			break;
	}
	return NULL;
}

struct error *hotspot_archive(int fd, const char *path, class_file *each, void *ctx)
{
	size_t size = 0;
	cleanup(free) u8 *all = read_directory(fd, &size);
	struct error *err = NULL;
	u32 found = 0;

	for (size_t at = 0, i = 0; all && !err && i < ENTRIES_MOST && at + ENTRY <= size && found < NESTED_MOST; i++) {
		const u8 *p = all + at;
		size_t name = le(p + 28, 2), next = at + ENTRY + name + le(p + 30, 2) + le(p + 32, 2);
		struct entry e = {.packed = le(p + 20, 4),
		        .size = le(p + 24, 4),
		        .at = le(p + 42, 4),
		        .method = (u16)le(p + 10, 2)};

		if (memcmp(p, "PK\1\2", 4) != 0 || next > size)
			break;
		if (is_of((const char *)p + ENTRY, name, path)) {
			err = give_entry(fd, &e, each, ctx);
			found++;
		}
		at = next;
	}
	return err;
}

static struct error *open_archives(pid_t pid, const char *path, class_file *each, void *ctx)
{
	char folder[64], file[PATH_MAX], link[PATH_MAX];
	u64 until = now_ns() + ARCHIVES_NS;
	struct error *err = NULL;
	struct dirent *d;
	DIR *all;

	snprintf(folder, sizeof(folder), "/proc/%d/fd", (int)pid);
	all = opendir(folder);
	for (u32 i = 0; all && !err && i < OPEN_MOST && now_ns() < until && (d = readdir(all)); i++) {
		ssize_t n;
		int fd;

		snprintf(file, sizeof(file), "%s/%s", folder, d->d_name);
		n = readlink(file, link, sizeof(link));
		if (n < 5 || (memcmp(link + n - 4, ".jar", 4) != 0 && memcmp(link + n - 4, ".war", 4) != 0))
			continue;
		fd = root_open_regular(-1, file);
		if (fd < 0)
			continue;
		err = hotspot_archive(fd, path, each, ctx);
		close(fd);
	}
	if (all)
		closedir(all);
	return err;
}

static struct error *give_file(int root, const char *path, class_file *each, void *ctx)
{
	cleanup(close) int fd = root_open_regular(root, path);
	cleanup(free) u8 *file = NULL;
	struct stat s;

	if (fd >= 0 && !fstat(fd, &s) && s.st_size > 0 && s.st_size <= FILE_MOST)
		file = bytes_at(fd, 0, (size_t)s.st_size);
	return file ? each(ctx, file, (size_t)s.st_size) : NULL;
}

struct process {
	int root;
	char cwd[PATH_MAX];
};

/* folder: of the class path, as the process sees it; its first n bytes. */
static struct error *look_in(
        const struct process *p, const char *folder, size_t n, const char *path, class_file *each, void *ctx)
{
	const char *package = strrchr(path, '/'), *from = *folder == '/' && n ? "" : p->cwd;
	char where[PATH_MAX], file[PATH_MAX];
	struct error *err = NULL;
	struct dirent *d;
	DIR *all;

	if (n >= PATH_MAX || (size_t)snprintf(where, sizeof(where), "%s/%.*s/%.*s", from, (int)n, folder,
	                             package ? (int)(package - path) : 0, path) >= sizeof(where))
		return NULL;
	all = root_open_folder(p->root, where);
	for (u32 i = 0; all && !err && i < OPEN_MOST && (d = readdir(all)); i++)
		if (is_of(d->d_name, strlen(d->d_name), package ? package + 1 : path) &&
		        (size_t)snprintf(file, sizeof(file), "%s/%s", where, d->d_name) < sizeof(file))
			err = give_file(p->root, file, each, ctx);
	if (all)
		closedir(all);
	return err;
}

/* What comes after -cp in the process's command; NULL: nothing. line: its words, which end in NULs. */
static const char *class_path(const char *line, size_t size)
{
	static const char *const names[] = {"-cp", "-classpath", "--class-path"};

	for (size_t at = 0; at < size; at += strlen(line + at) + 1) {
		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
			if (!strcmp(line + at, names[i]))
				return at + strlen(line + at) + 1 < size ? line + at + strlen(line + at) + 1 : NULL;
		if (!strncmp(line + at, "--class-path=", 13))
			return line + at + 13;
	}
	return NULL;
}

/* Its command, at most LINE_MOST bytes of it; -1: it is gone. */
static ssize_t read_command(pid_t pid, char *ret)
{
	char file[64];
	ssize_t n;
	int fd;

	snprintf(file, sizeof(file), "/proc/%d/cmdline", (int)pid);
	fd = open(file, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, ret, LINE_MOST) : -1;
	if (fd >= 0)
		close(fd);
	return n;
}

static struct error *look_in_folders(pid_t pid, const char *path, class_file *each, void *ctx)
{
	cleanup(free) char *line = calloc(1, LINE_MOST + 1);
	struct error *err = NULL;
	struct process p = {0};
	const char *folders;
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/cwd", (int)pid);
	if (!line || readlink(link, p.cwd, sizeof(p.cwd) - 1) <= 0)
		return line ? NULL : &error_no_memory;
	snprintf(link, sizeof(link), "/proc/%d/root", (int)pid);
	p.root = root_open(link);
	n = p.root >= 0 ? read_command(pid, line) : -1;
	folders = n > 0 ? class_path(line, (size_t)n) : NULL;
	if (!folders)
		folders = ".";
	for (u32 i = 0; p.root >= 0 && !err && i < OPEN_MOST; i++) {
		size_t length = strcspn(folders, ":");

		err = look_in(&p, folders, length, path, each, ctx);
		if (!folders[length])
			break;
		folders += length + 1;
	}
	if (p.root >= 0)
		close(p.root);
	return err;
}

struct error *hotspot_class_files(pid_t pid, const char *name, class_file *each, void *ctx)
{
	cleanup(free) char *path = strdup(name);
	struct error *err;

	if (!path)
		return &error_no_memory;
	if (strstr(name, "..") || strchr(name, '/'))
		return NULL;
	for (char *at = path; (at = strchr(at, '.'));)
		*at = '/';
	err = open_archives(pid, path, each, ctx);
	return err ? err : look_in_folders(pid, path, each, ctx);
}
