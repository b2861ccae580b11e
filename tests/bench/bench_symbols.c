/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of 10,000 addresses of a large library (an argument, else libjvm.so) beside llvm-symbolizer, which gets the
 * same list in the same run.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "unwind/symbols/symbols.h"
#include "unwind/symbols/symbols_table.h"

#define ADDRESSES 10000u
#define ROUNDS    5u
#define SYMBOLIZER                                                                                                     \
	"$(command -v llvm-symbolizer || command -v llvm-symbolizer-14) --obj=%s --functions=linkage --no-demangle "   \
	"--no-inlines --output-style=GNU <%s"

static size_t heap(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

static struct image *open_library(const char *path)
{
	struct image *img;

	die(image_open(open(path, O_RDONLY | O_CLOEXEC), path, &img));
	die(symbols_load(img, ""));
	return img;
}

/* Opens the file and makes the table; *ret is the last one. */
static double time_open(const char *path, struct image **ret)
{
	double times[ROUNDS], start;
	struct image *img = NULL;
	struct symbol sym;
	size_t before = 0;
	u32 i;

	for (i = 0; i < ROUNDS; i++) {
		image_put(img);
		before = heap();
		start = now_ms();
		img = open_library(path);
		symbols_find(img, 0, &sym);
		times[i] = now_ms() - start;
	}
	printf("%s: %u symbols in %zu KiB\n", path, img->symbols->count, (heap() - before) / 1024);
	*ret = img;
	return median(times, ROUNDS);
}

static void choose(const struct image *img, const char *list, u64 *addrs)
{
	const struct symbols *s = img->symbols;
	FILE *f = fopen(list, "w");
	u32 i;

	srandom(1);
	for (i = 0; i < ADDRESSES; i++) {
		const struct symbol_entry *e = &s->entries[random() % s->count];

		addrs[i] = s->base + entry_start(e) + random() % e->size;
		fprintf(f, "0x%lx\n", addrs[i]);
	}
	fclose(f);
}

static double time_names(struct image *img, const u64 *addrs)
{
	double start = now_ms();
	struct symbol sym;
	u32 i, found = 0;

	for (i = 0; i < ADDRESSES; i++)
		found += symbols_find(img, addrs[i], &sym);
	if (found != ADDRESSES)
		printf("only %u of %u addresses named\n", found, ADDRESSES);
	return now_ms() - start;
}

static double time_peer(struct image *img, const char *path, const char *list, const u64 *addrs)
{
	char command[1024], *line = NULL;
	double start = now_ms();
	struct symbol sym;
	size_t room = 0;
	u32 i, same = 0;
	FILE *f;

	snprintf(command, sizeof(command), SYMBOLIZER, path, list);
	f = popen(command, "r");
	for (i = 0; i < 2 * ADDRESSES && getline(&line, &room, f) > 0; i++) {
		line[strcspn(line, "@\n")] = 0;
		if (!(i & 1) && symbols_find(img, addrs[i / 2], &sym))
			same += !strcmp(line, sym.name);
	}
	if (pclose(f) || i != 2 * ADDRESSES) {
		fprintf(stderr, "llvm-symbolizer did not run; its package is llvm\n");
		exit(1);
	}
	printf("the same name as llvm-symbolizer's: %u of %u\n", same, ADDRESSES);
	return now_ms() - start;
}

static void bench_library(const char *path)
{
	char list[] = "/tmp/yrt-addresses-XXXXXX";
	double open_ms, first, again, peer;
	u64 addrs[ADDRESSES];
	struct image *img;

	close(mkstemp(list));
	open_ms = time_open(path, &img);
	choose(img, list, addrs);
	first = time_names(img, addrs);
	again = time_names(img, addrs);
	peer = time_peer(img, path, list, addrs);
	printf("open %.1f ms, %u names %.1f ms, again %.2f ms; llvm-symbolizer %.0f ms: %.0f times as long\n", open_ms,
	        ADDRESSES, first, again, peer, peer / (open_ms + first));
	unlink(list);
	image_put(img);
}

int main(int argc, char **argv)
{
	glob_t found = {.gl_pathc = 0};

	if (argc > 1)
		bench_library(argv[1]);
	else if (!glob("/usr/lib/jvm/*/lib/server/libjvm.so", 0, NULL, &found))
		bench_library(found.gl_pathv[found.gl_pathc - 1]);
	else
		fprintf(stderr, "no libjvm.so here: name a large library, or install openjdk-17-jre-headless\n");
	globfree(&found);
	return argc < 2 && !found.gl_pathc;
}
