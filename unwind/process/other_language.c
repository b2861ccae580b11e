/* SPDX-License-Identifier: Apache-2.0 */
#include "other_language.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <types.h>

#include "unwind/binary/image.h"
#include "unwind/binary/maps.h"
#include "unwind/binary/proc_path.h"
#include "unwind/cleanup.h"

#define ARGUMENTS_MAX  (256 << 10)
#define CONSTANTS_MAX  (64u << 20)
#define DESCRIBED_PART 64 /* GHC's code has no unwind information: what there is of it is of the runtime system, in C */

/* A JIT is known by any mapped file, an interpreter by the program: others load it as a library for a small part. */
static const struct other {
	const char *language, *files[4];
	const char *option, *word; /* what enables a perf map, and the part to search for; NULL: it has none */
} others[] = {
        /* https://nodejs.org/api/cli.html#--perf-basic-prof */
        {"JavaScript", {"node", "nodejs", "libnode.so"}, "node --perf-basic-prof --interpreted-frames-native-stack",
                "--perf-basic-prof"},
        /* https://learn.microsoft.com/dotnet/core/runtime-config/debugging-profiling */
        {"C#", {"libcoreclr.so"}, "DOTNET_PerfMapEnabled=1 in its environment", "PerfMapEnabled"},
        /* https://www.erlang.org/doc/apps/erts/beamasm.html */
        {"Erlang", {"beam.smp"}, "erl +JPperf true", "JPperf"},
        {"Ruby", {"ruby"}, NULL, NULL},
        {"PHP", {"php", "php-fpm"}, NULL, NULL},
        {"R", {"R"}, NULL, NULL},
        {"Scheme", {"guile"}, NULL, NULL},
        {"Tcl", {"tclsh"}, NULL, NULL},
        {"OCaml's bytecode", {"ocamlrun"}, NULL, NULL},
};

/* Is it among the strings of /proc/PID/cmdline or environ? */
static bool has_word(pid_t pid, const char *file, const char *word)
{
	cleanup(fclose) FILE *in = NULL;
	cleanup(free) char *bytes = malloc(ARGUMENTS_MAX);
	char path[64];
	size_t n;

	proc_path(path, sizeof(path), pid, file);
	in = fopen(path, "re");
	n = in && bytes ? fread(bytes, 1, ARGUMENTS_MAX, in) : 0;
	return n && memmem(bytes, n, word, strlen(word));
}

/* The file's name, perhaps with a version behind it. */
static bool is_named(const char *path, const char *file)
{
	const char *slash = strrchr(path, '/');
	size_t n = strlen(file);

	if (!slash || strncmp(slash + 1, file, n))
		return false;
	return !slash[1 + n] || slash[1 + n] == '.' || isdigit((unsigned char)slash[1 + n]);
}

static bool is_mapped(const struct maps *maps, const char *file)
{
	for (u32 i = 0; i < maps->nlines; i++)
		if (maps->lines[i].ino && is_named(maps->lines[i].path, file))
			return true;
	return false;
}

static const struct other *find_other(const char *program, const struct maps *maps)
{
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		for (const char *const *file = others[i].files; *file; file++)
			if (is_named(program, *file) || (others[i].option && is_mapped(maps, *file)))
				return &others[i];
	return NULL;
}

/* Does its .rodata have what the runtime system says of itself (rts/RtsMessages.c, GHC 6 to 9)? */
static bool has_ghc_message(struct image *img)
{
	static const char message[] = "(GHC version %s for ";
	cleanup(free) char *bytes = NULL;
	u64 addr, size;

	if (!image_section_range(img, ".rodata", &addr, &size) || size > CONSTANTS_MAX || !(bytes = malloc(size)))
		return false;
	return image_read(img, bytes, size, addr) && memmem(bytes, size, message, sizeof(message) - 1);
}

static bool is_ghc(pid_t pid)
{
	u64 addr, code, described;
	struct image *img = NULL;
	char path[64];
	bool is;
	int fd;

	proc_path(path, sizeof(path), pid, "exe");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	error_free(image_open(fd, path, &img));
	if (!img)
		return false;
	is = image_section_range(img, ".text", &addr, &code) &&
	     image_section_range(img, ".eh_frame", &addr, &described) && described < code / DESCRIBED_PART &&
	     has_ghc_message(img);
	image_put(img);
	return is;
}

static bool is_told(pid_t pid, const struct other *o)
{
	char map[64], path[64];

	snprintf(map, sizeof(map), "root/tmp/perf-%d.map", pid);
	proc_path(path, sizeof(path), pid, map);
	return !access(path, F_OK) || has_word(pid, "cmdline", o->word) || has_word(pid, "environ", o->word);
}

bool other_language_of(pid_t pid, struct other_language *ret)
{
	char path[64], program[PATH_MAX];
	struct maps maps = {0};
	const struct other *o;
	ssize_t n;

	proc_path(path, sizeof(path), pid, "exe");
	n = readlink(path, program, sizeof(program) - 1);
	program[n > 0 ? n : 0] = '\0';
	error_free(maps_read(pid, &maps));
	o = find_other(program, &maps);
	maps_free(&maps);
	if (o ? o->option && is_told(pid, o) : !is_ghc(pid))
		return false;
	ret->name = o ? o->language : "Haskell";
	if (!o)
		snprintf(ret->limits, sizeof(ret->limits), "stacks show the function that runs, but not its callers");
	else if (!o->option)
		snprintf(ret->limits, sizeof(ret->limits), "stacks show the functions of its interpreter");
	else
		snprintf(ret->limits, sizeof(ret->limits),
		        "functions that its JIT compiled have no names unless it writes a perf map (%s)", o->option);
	return true;
}
