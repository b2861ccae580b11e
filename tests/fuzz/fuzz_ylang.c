/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program of Y by a stranger: compiled without types of a target, exported to debuggers and to BPF (which is not
 * loaded), then run over memory that has little. Programs grow from the cases of tests/ylang and the analysers, word by
 * word: bytes alone hardly ever compile.
 */
#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontends/ylang/compile.h"
#include "frontends/ylang/emit/bpf.h"
#include "frontends/ylang/emit/emit.h"
#include "frontends/ylang/vm.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
size_t LLVMFuzzerCustomMutator(u8 *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerMutate(u8 *data, size_t size, size_t most);
int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define CASES_MOST 1000u

static struct text {
	const char *bytes;
	size_t len;
} cases[CASES_MOST];
static u32 ncases;

static const char *const points[] = {"_profile(99)", "syscall:openat", "syscall:read:return", "_timer(1s)", "_end"};

/* A case ends where the next begins. */
static void add_cases(const char *text)
{
	while (text && ncases < CASES_MOST) {
		const char *end = strstr(text, "\n//--- ");

		cases[ncases++] = (struct text){text, end ? (size_t)(end - text) + 1 : strlen(text)};
		text = end ? end + 1 : NULL;
	}
}

static void read_cases(const char *path)
{
	char *text = calloc(1, 65536);
	FILE *f = fopen(path, "r");

	if (!text || !f || !fread(text, 1, 65535, f))
		abort();
	fclose(f);
	add_cases(text);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	glob_t found = {0};

	if (glob(YRT_SOURCE_DIR "/tests/ylang/*.y", 0, NULL, &found) ||
	        glob(YRT_SOURCE_DIR "/library/*.y", GLOB_APPEND, NULL, &found))
		abort();
	for (size_t i = 0; i < found.gl_pathc; i++)
		if (!strstr(found.gl_pathv[i], "refused.y")) /* macros that are slow; what is refused comes by itself */
			read_cases(found.gl_pathv[i]);
	globfree(&found);
	return 0;
}

static u32 pick(unsigned *seed, size_t n)
{
	*seed = *seed * 1103515245 + 12345;
	return (*seed >> 8) % (u32)n;
}

/* A word or a mark at about a random place. */
static struct text word(const char *bytes, size_t len, unsigned *seed)
{
	const char *from = bytes + pick(seed, len), *to = from, *end = bytes + len;

	while (from > bytes && (isalnum((u8)from[-1]) || from[-1] == '_'))
		from--;
	while (to < end && (isalnum((u8)*to) || *to == '_'))
		to++;
	return (struct text){from, to > from ? (size_t)(to - from) : 1};
}

/* bytes instead of [at, at + gone); the same where that is too large. */
static size_t put(u8 *data, size_t size, size_t most, size_t at, size_t gone, struct text with)
{
	if (size - gone + with.len > most)
		return size;
	memmove(data + at + with.len, data + at + gone, size - at - gone);
	memcpy(data + at, with.bytes, with.len);
	return size - gone + with.len;
}

static size_t new_point(u8 *data, size_t size, size_t most, unsigned *seed)
{
	const char *point = points[pick(seed, sizeof(points) / sizeof(*points))];
	const u8 *at = memmem(data, size, "_oneshot", 8);

	return at ? put(data, size, most, (size_t)(at - data), 8, (struct text){point, strlen(point)}) : size;
}

size_t LLVMFuzzerCustomMutator(u8 *data, size_t size, size_t most, unsigned seed)
{
	struct text from = cases[pick(&seed, ncases)], other = word(from.bytes, from.len, &seed), own;
	u32 how = size ? pick(&seed, 16) : 0;

	if (how == 0)
		return new_point(data, put(data, size, most, 0, size, from), most, &seed);
	if (how == 1)
		return put(data, size, most, size, 0, from);
	if (how == 2)
		return new_point(data, size, most, &seed);
	if (how > 10)
		return LLVMFuzzerMutate(data, size, most);
	own = word((char *)data, size, &seed);
	if (how > 7)
		other = word((char *)data, size, &seed);
	other.bytes = memcpy(malloc(other.len), other.bytes, other.len);
	size = put(data, size, most, (size_t)(own.bytes - (char *)data), how == 3 ? 0 : own.len, other);
	free((void *)other.bytes);
	return size;
}

static bool read_little(struct memory *mem, void *dst, size_t size, uint64_t addr)
{
	if (addr < 0x1000 || addr + size > 0x9000)
		return false;
	for (size_t i = 0; i < size; i++)
		((u8 *)dst)[i] = (u8)((addr + i) * 7 >> 3);
	return true;
}

static void export(const struct y_program *p, FILE *out)
{
	for (int i = 0; i < 4; i++) {
		struct y_bpf_options o = {
		        .pid = 1, .program = "fuzz", .sleepable = i & 1, .check_pid = i & 2, .cpus = 2};
		struct y_bpf *b;

		error_free(y_bpf_make(p, &o, &b));
		if (b)
			y_bpf_print(b, p, out);
		y_bpf_free(b);
	}
	error_free(y_emit_script(p, Y_GDB, out));
	error_free(y_emit_script(p, Y_LLDB, out));
}

static void run(struct y_program *p, struct y_target *t, FILE *out)
{
	struct y_run_options o = {.out = out, .err = out, .duration_s = 0.001};
	struct y_run_stats stats;

	p->limits = (struct y_limits){.steps = 2000, .time_s = 1};
	for (u32 i = 0; i < p->nhandlers; i++)
		p->handlers[i].period_ns = 1000000;
	error_free(y_run(p, t, &o, &stats));
	y_run_stats_free(&stats);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static struct memory memory = {.read = read_little};
	static struct y_target t = {.memory = &memory, .comm = "fuzz"}; /* keeps the kernel's types */
	struct y_compile_options o = {.name = "fuzz.y", .text = (const char *)data, .size = size};
	struct y_program *p = NULL;
	FILE *out = fopen("/dev/null", "w");

	error_free(y_compile(&o, &t, &p));
	if (p) {
		y_program_print(p, out);
		export(p, out);
		run(p, &t, out);
	}
	y_program_free(p);
	fclose(out);
	return 0;
}
