/* SPDX-License-Identifier: Apache-2.0 */
#include "blockers.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "unwind/cleanup.h"

#define LOCKS_MAX  1048576 /* bytes of /proc/locks */
#define TITLE      256
#define SESSIONS   3 /* named in the text */
#define FDS_LOOKED 4096

static bool is_one_of(pid_t pid, const pid_t *pids, u32 n)
{
	for (u32 i = 0; i < n; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

/*
 * "1: FLOCK  ADVISORY  WRITE 733 08:01:1048577 0 EOF", a holder, and below it "1: -> FLOCK  ADVISORY  WRITE 734 …",
 * who waits for it. Both parts have the same number.
 */
static bool parse_line(const char *line, bool *waits, struct file_lock *ret)
{
	char kind[16], how[16], mode[16];
	const char *at = strchr(line, ':');
	unsigned long inode;
	int pid;

	if (!at)
		return false;
	at += 1 + strspn(at + 1, " ");
	*waits = !strncmp(at, "->", 2);
	at += *waits ? 2 : 0;
	if (sscanf(at, " %15s %15s %15s %d %x:%x:%lu", kind, how, mode, &pid, &ret->major, &ret->minor, &inode) != 7)
		return false;
	ret->holder = pid;
	ret->inode = inode;
	return true;
}

bool blockers_find_lock(const char *locks, const pid_t *pids, u32 n, struct file_lock *ret)
{
	struct file_lock held = {0}, line;
	bool waits;

	for (const char *at = locks, *end; at && *at; at = end ? end + 1 : NULL) {
		end = strchr(at, '\n');
		if (!parse_line(at, &waits, &line))
			continue;
		if (!waits) {
			held = line;
		} else if (held.holder > 0 && is_one_of(line.holder, pids, n) && held.inode == line.inode) {
			*ret = held;
			return true;
		}
	}
	return false;
}

/* Its command line, blanks between the arguments, without what a terminal would obey. */
static void read_title(pid_t pid, char ret[TITLE])
{
	char path[64];
	ssize_t n = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, ret, TITLE - 1);
		close(fd);
	}
	for (ssize_t i = 0; i < n; i++)
		if ((unsigned char)ret[i] < ' ' || ret[i] == 127)
			ret[i] = ' ';
	while (n > 0 && ret[n - 1] == ' ')
		n--;
	ret[n < 0 ? 0 : n] = '\0';
}

/* The path of a file that a process has open. */
static bool find_path(pid_t pid, const struct file_lock *l, char *ret, size_t size)
{
	char folder[64];
	DIR *dir;
	bool found = false;
	u32 looked = 0;

	snprintf(folder, sizeof(folder), "/proc/%d/fd", pid);
	dir = opendir(folder);
	for (struct dirent *e; dir && !found && looked++ < FDS_LOOKED && (e = readdir(dir));) {
		struct stat s;
		ssize_t n;

		if (*e->d_name == '.' || fstatat(dirfd(dir), e->d_name, &s, 0) || s.st_ino != l->inode ||
		        major(s.st_dev) != l->major || minor(s.st_dev) != l->minor)
			continue;
		n = readlinkat(dirfd(dir), e->d_name, ret, size - 1);
		found = n > 0;
		ret[found ? n : 0] = '\0';
	}
	if (dir)
		closedir(dir);
	return found;
}

static void file_facts(const pid_t *pids, u32 n, struct facts *f)
{
	cleanup(free) char *text = malloc(LOCKS_MAX);
	char title[TITLE], path[512] = "a file", *told = NULL;
	struct file_lock l;
	size_t length = 0;
	FILE *in;

	if (facts_find(f, "lock.file.pid") || !text)
		return;
	in = fopen("/proc/locks", "re");
	if (in) {
		length = fread(text, 1, LOCKS_MAX - 1, in);
		fclose(in);
	}
	text[length] = '\0';
	if (!blockers_find_lock(text, pids, n, &l))
		return;
	read_title(l.holder, title);
	find_path(l.holder, &l, path, sizeof(path));
	facts_set(f, "lock.file.pid", l.holder);
	if (asprintf(&told, "pid %d (%s) holds %s", l.holder, *title ? title : "which is gone", path) < 0)
		return;
	facts_set_text(f, "lock.file.holder", told);
	free(told);
}

static void session_facts(const pid_t *pids, u32 n, struct facts *f)
{
	char *text = NULL, title[TITLE];
	size_t size;
	FILE *out = open_memstream(&text, &size);
	u32 found = 0;

	if (!out)
		return;
	for (u32 i = 0; i < n; i++) {
		read_title(pids[i], title);
		if (strncmp(title, "postgres: ", 10) != 0 || !strstr(title, "idle in transaction"))
			continue;
		if (found++ < SESSIONS)
			fprintf(out, "%spid %d (%s)", found > 1 ? ", " : "", pids[i], title);
	}
	if (found > SESSIONS)
		fprintf(out, " and %u more", found - SESSIONS);
	fclose(out);
	if (found && found > facts_number(f, "sessions.idle")) {
		facts_set(f, "sessions.idle", found);
		facts_set_text(f, "sessions.idle.text", text);
	}
	free(text);
}

void blockers_facts(const pid_t *pids, u32 n, struct facts *ret)
{
	file_facts(pids, n, ret);
	session_facts(pids, n, ret);
}

void blockers_unseen(struct facts *f)
{
	static const char *const texts[][2] = {{"sessions.idle.text", "none was seen"},
	        {"lock.file.holder", "who holds it was not seen"}, {"lock.file.does", ""}};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (!facts_find(f, texts[i][0]))
			facts_set_text(f, texts[i][0], texts[i][1]);
}
