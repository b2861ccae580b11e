/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CFI of a large library (an argument, else libjvm.so) to rows: cold, and from the cache, beside the limits and beside
 * libdw in the same run: iterating the same CFI, and looking up the rule at the start of each function.
 */
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "unwind/cfi/cfi.h"

#define ROUNDS        9u
#define COLD_LIMIT_MS 100.0
#define WARM_LIMIT_MS 5.0

/* Opens the file and gets its rows: what a process that maps it waits for. */
static double time_load(const char *path, const char *cache, struct cfi **ret)
{
	struct cfi_options options = {.cache_dir = cache};
	double start = now_ms();
	struct image *img;

	die(image_open(open(path, O_RDONLY | O_CLOEXEC), path, &img));
	die(cfi_load(img, &options, ret));
	start = now_ms() - start;
	image_put(img);
	return start;
}

static double time_loads(const char *path, const char *cache)
{
	double times[ROUNDS];
	struct cfi *cfi;

	time_load(path, cache, &cfi); /* the file into the page cache, the rows into ours */
	for (u32 i = 0; i < ROUNDS; i++) {
		cfi_destroy(cfi);
		times[i] = time_load(path, cache, &cfi);
		if (cfi->from_cache != !!cache) {
			fprintf(stderr, "the cache in %s is not used\n", cache ? cache : "(none)");
			exit(1);
		}
	}
	cfi_destroy(cfi);
	return median(times, ROUNDS);
}

static void print_sizes(const char *path)
{
	u64 bytes = 0, rows = 0, rules = 0;
	struct cfi *cfi;

	time_load(path, NULL, &cfi);
	for (u32 i = 0; i < cfi->npieces; i++) {
		const struct cfi_table *t = cfi->pieces[i].bytes;

		bytes += cfi->pieces[i].size;
		rows += t->nrows;
		rules += t->nrules;
	}
	printf("%s: %u FDEs, %llu rows, %llu rules in %u pieces, %llu KiB: %.1f bytes an FDE\n", path, cfi->nfdes,
	        (unsigned long long)rows, (unsigned long long)rules, cfi->npieces, (unsigned long long)bytes / 1024,
	        cfi->nfdes ? (double)bytes / cfi->nfdes : 0.0);
	cfi_destroy(cfi);
}

static Elf_Data *eh_frame(Elf *elf)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	size_t names;

	elf_getshdrstrndx(elf, &names);
	while ((scn = elf_nextscn(elf, scn)))
		if (gelf_getshdr(scn, &sh) && !strcmp(elf_strptr(elf, names, sh.sh_name), ".eh_frame"))
			return elf_rawdata(scn, NULL);
	fprintf(stderr, "no .eh_frame\n");
	exit(1);
}

/* libdw over the same bytes. It parses no instructions while it iterates. */
static double time_libdw_iterate(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	double start = now_ms();
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	Elf_Data *data = eh_frame(elf);
	Dwarf_Off off = 0, next;
	Dwarf_CFI_Entry entry;

	for (; !dwarf_next_cfi((void *)elf_getident(elf, NULL), data, true, off, &next, &entry); off = next)
		;
	start = now_ms() - start;
	elf_end(elf);
	close(fd);
	return start;
}

static double time_libdw_rules(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	Dwarf_CFI *dw = dwarf_getcfi_elf(elf);
	struct cfi *cfi;
	double start;

	time_load(path, NULL, &cfi);
	start = now_ms();
	for (u32 i = 0; i < cfi->nfdes; i++) {
		Dwarf_Frame *frame = NULL;

		dwarf_cfi_addrframe(dw, cfi->fdes[i].start, &frame);
		free(frame);
	}
	start = now_ms() - start;
	cfi_destroy(cfi);
	dwarf_cfi_end(dw);
	elf_end(elf);
	close(fd);
	return start;
}

static int bench(const char *path)
{
	char dir[] = "/tmp/yrt-bench-cfi-XXXXXX", command[64];
	double cold, warm, iterate, rules;

	if (!mkdtemp(dir))
		return 1;
	elf_version(EV_CURRENT);
	print_sizes(path);
	cold = time_loads(path, NULL);
	warm = time_loads(path, dir);
	iterate = time_libdw_iterate(path);
	rules = time_libdw_rules(path);
	printf("cold %.1f ms, %.2f of the limit of %.0f ms; from the cache %.2f ms, %.2f of the limit of %.0f ms\n",
	        cold, cold / COLD_LIMIT_MS, COLD_LIMIT_MS, warm, warm / WARM_LIMIT_MS, WARM_LIMIT_MS);
	printf("libdw: iterating %.1f ms, %.2f times as long as cold; the first rule of each function %.1f ms, %.2f "
	       "times\n",
	        iterate, iterate / cold, rules, rules / cold);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	if (system(command))
		return 1;
	return cold > COLD_LIMIT_MS || warm > WARM_LIMIT_MS;
}

int main(int argc, char **argv)
{
	glob_t found = {.gl_pathc = 0};
	int ret = 1;

	if (argc > 1)
		ret = bench(argv[1]);
	else if (!glob("/usr/lib/jvm/*/lib/server/libjvm.so", 0, NULL, &found))
		ret = bench(found.gl_pathv[found.gl_pathc - 1]);
	else
		fprintf(stderr, "no libjvm.so here: name a large library, or install openjdk-17-jre-headless\n");
	globfree(&found);
	return ret;
}
