/* SPDX-License-Identifier: Apache-2.0 */
/* A program of Y by a stranger: compiled without types of a target, then run over memory that has little. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontends/ylang/compile.h"
#include "frontends/ylang/vm.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

static bool read_little(struct memory *mem, void *dst, size_t size, uint64_t addr)
{
	if (addr < 0x1000 || addr + size > 0x9000)
		return false;
	for (size_t i = 0; i < size; i++)
		((u8 *)dst)[i] = (u8)((addr + i) * 7 >> 3);
	return true;
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
	struct memory memory = {.read = read_little};
	struct y_target t = {.memory = &memory, .comm = "fuzz"};
	struct y_compile_options o = {.name = "fuzz.y", .text = (const char *)data, .size = size};
	struct y_program *p = NULL;
	FILE *out = fopen("/dev/null", "w");

	error_free(y_compile(&o, &t, &p));
	if (p) {
		y_program_print(p, out);
		run(p, &t, out);
	}
	y_program_free(p);
	fclose(out);
	return 0;
}
