/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process that maps a Go program waits for: the program is recognised and its runtime's code read, and its rows
 * are made, or taken from the cache. bench_go FILE: by default Debian's hugo (53 MB), which the limits are for.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench.h"
#include "unwind/cfi/cfi.h"
#include "unwind/runtime.h"

#define ROUNDS        9u
#define COLD_LIMIT_MS 150.0
#define WARM_LIMIT_MS 5.0

struct times {
	double probe, rows;
};

static struct times time_load(const char *path, const char *cache)
{
	struct cfi_options options = {.cache_dir = cache, .providers = {go_runtime.cfi_provider}};
	struct times ret = {.probe = now_ms()};
	struct image *img;
	struct cfi *cfi;
	void *image;

	die(image_open(open(path, O_RDONLY | O_CLOEXEC), path, &img));
	die(go_runtime.image_probe(img, &image));
	if (!image) {
		fprintf(stderr, "%s is no Go program\n", path);
		exit(1);
	}
	ret.rows = now_ms();
	ret.probe = ret.rows - ret.probe;
	die(cfi_load(img, &options, &cfi));
	ret.rows = now_ms() - ret.rows;
	cfi_destroy(cfi);
	go_runtime.image_destroy(image);
	image_put(img);
	return ret;
}

static double time_loads(const char *path, const char *cache, const char *what, double limit)
{
	double probe[ROUNDS], rows[ROUNDS], all[ROUNDS], ret;

	time_load(path, cache); /* the file into the page cache, the rows into ours */
	for (u32 i = 0; i < ROUNDS; i++) {
		struct times t = time_load(path, cache);

		probe[i] = t.probe;
		rows[i] = t.rows;
		all[i] = t.probe + t.rows;
	}
	ret = median(all, ROUNDS);
	printf("%s: %.1f ms (%.2f of the limit of %.0f ms): recognised in %.1f ms, rows in %.1f ms\n", what, ret,
	        ret / limit, limit, median(probe, ROUNDS), median(rows, ROUNDS));
	return ret / limit;
}

int main(int argc, char **argv)
{
	char dir[] = "/tmp/yrt-bench-go.XXXXXX", command[64];
	struct rusage use;
	double cold, warm;

	const char *path = argc > 1 ? argv[1] : "/usr/bin/hugo";

	if (!mkdtemp(dir)) {
		perror(dir);
		return 1;
	}
	cold = time_loads(path, NULL, "cold", COLD_LIMIT_MS);
	warm = time_loads(path, dir, "from the cache", WARM_LIMIT_MS);
	getrusage(RUSAGE_SELF, &use);
	printf("memory: %ld MB\n", use.ru_maxrss >> 10);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command) || cold > 1 || warm > 1;
}
