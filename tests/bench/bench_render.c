/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yrt render of a recording of 1,000,000 different stacks, made here: seconds and memory for each format, beside the
 * limits. The measure is CPU time, because other work on the machine does not lengthen it; render has one thread.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "frontends/format/format.h"

#define STACKS      1000000u
#define FUNCTIONS   20000u
#define SECONDS_MAX 2.0
#define KB_MAX      (300l << 10)

static u32 random_below(u64 *state, u32 n)
{
	*state = *state * 6364136223846793005 + 1442695040888963407;
	return (u32)(*state >> 33) % n;
}

static void make_functions(struct profile *p, u32 *functions)
{
	for (u32 i = 0; i < FUNCTIONS; i++) {
		char name[64], file[32];
		struct profile_function f = {.name = name,
		        .module = "server",
		        .file = file,
		        .line = i % 900 + 1,
		        .kind = i % 3 ? KIND_NATIVE : KIND_SCRIPT};

		snprintf(name, sizeof(name), "component_%u::handle_request_%u", i % 97, i);
		snprintf(file, sizeof(file), "source/part_%u.c", i % 300);
		die(profile_function(p, 0, &f, false, &functions[i]));
	}
}

/* Threads at the root, a trunk of callers 20 deep, and two frames that no other stack has there. */
static void make_stacks(struct profile *p, const u32 *functions)
{
	static u32 trunk[4096];
	u64 state = 1;

	for (u32 i = 0; i < 4096; i++) {
		char name[32];
		struct profile_function f = {.name = name, .module = "", .file = "", .kind = KIND_THREAD};
		u32 node = 0, function;

		snprintf(name, sizeof(name), "worker (tid %u)", 1000 + i % 16);
		die(profile_function(p, 0, &f, false, &function));
		die(profile_child(p, 0, function, &node));
		for (u32 d = 0; d < 20; d++)
			die(profile_child(
			        p, node, functions[(d * 131 + random_below(&state, d + 2)) % FUNCTIONS], &node));
		trunk[i] = node;
	}
	for (u32 made = 0; made < STACKS;) {
		u32 node, before = p->nnodes;

		die(profile_child(
		        p, trunk[random_below(&state, 4096)], functions[random_below(&state, FUNCTIONS)], &node));
		if (p->nnodes == before)
			continue;
		die(profile_child(p, node, functions[random_below(&state, FUNCTIONS)], &node));
		profile_add(p, node, 1 + random_below(&state, 9));
		made++;
	}
}

static void make_recording(const char *path)
{
	static u32 functions[FUNCTIONS];
	FILE *out = fopen(path, "we");
	struct profile *p;

	if (!out)
		die(error_new(ERROR_OUTPUT, "cannot write %s", path));
	die(profile_create(&p));
	make_functions(p, functions);
	make_stacks(p, functions);
	p->meta = (struct profile_meta){.title = "bench", .target = "made up", .frequency = 99};
	profile_finish(p);
	die(format_recording.write(p, out));
	printf("%u stacks, %u nodes: %ld KB\n", STACKS, p->nnodes, ftell(out) / 1024);
	fclose(out);
	profile_destroy(p);
}

/* Runs yrt render to /dev/null; false: it failed. */
static bool render(const char *yrt, const char *path, const char *format, bool threads, double ret[2], long *kb)
{
	struct rusage usage;
	double start = now_ms();
	pid_t pid = fork();
	int status;

	if (!pid) {
		execl(yrt, yrt, "render", path, "-o", "/dev/null", "-f", format, threads ? "-t" : NULL, NULL);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &usage) != pid)
		return false;
	ret[0] = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
	ret[1] = (now_ms() - start) / 1e3;
	*kb = usage.ru_maxrss;
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static bool bench(const char *yrt, const char *path, const char *format, bool threads)
{
	double best = 1e9, wall = 1e9, seconds[2];
	long most = 0, kb;

	for (int i = 0; i < 3; i++) {
		if (!render(yrt, path, format, threads, seconds, &kb)) {
			fprintf(stderr, "yrt render -f %s failed\n", format);
			return false;
		}
		best = seconds[0] < best ? seconds[0] : best;
		wall = seconds[1] < wall ? seconds[1] : wall;
		most = kb > most ? kb : most;
	}
	printf("%-10s%s %.2f s of CPU, %.2f of the limit (%.2f s by the clock); %ld MB, %.2f of the limit\n", format,
	        threads ? " -t" : "   ", best, best / SECONDS_MAX, wall, most / 1024, (double)most / KB_MAX);
	return best <= SECONDS_MAX && most <= KB_MAX;
}

int main(void)
{
	const char *yrt = getenv("YRT");
	char path[] = "/tmp/yrt-bench-XXXXXX";
	int fd = mkstemp(path);
	bool good = yrt && fd >= 0;

	if (!good)
		fprintf(stderr, "run this by ctest -C Bench, or set YRT to the executable\n");
	if (good)
		make_recording(path);
	for (const struct format *const *f = formats; fd >= 0 && yrt && *f; f++)
		good &= bench(yrt, path, (*f)->name, false);
	good = good && bench(yrt, path, "html", true);
	if (fd >= 0)
		remove(path);
	return !good;
}
