/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many instructions the kernel's verifier looks at: yrt-verifier loads each program with no runtime's walker and
 * with all, and those that take stacks with each alone, and prints a line "program runtime instructions" for each load.
 * Before Linux 6.8 the verifier looks at all functions whether they are called or not: then all these numbers of a
 * program are the same.
 */
#include <bpf/libbpf.h>
#include <err.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process/module.h"
#include "sample.skel.h"

#define LOG_STATS 4 /* BPF_LOG_STATS of <linux/bpf_verifier.h> */

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, format, args) : 0;
}

static unsigned long processed(const char *program, unsigned walkers)
{
	static char log[1 << 16];
	struct sample *skel = sample__open();
	struct bpf_program *p;
	const char *at;
	unsigned long n;

	if (!skel)
		err(1, "cannot open the BPF object");
	skel->rodata->walkers = walkers;
	bpf_object__for_each_program(p, skel->obj)
	{
		bool wanted = !strcmp(bpf_program__name(p), program);

		bpf_program__set_autoload(p, wanted);
		if (wanted) {
			bpf_program__set_log_level(p, LOG_STATS);
			bpf_program__set_log_buf(p, log, sizeof(log));
		}
	}
	if (sample__load(skel))
		errx(1, "the kernel refuses %s with the walkers %#x:\n%s", program, walkers, log);
	at = strstr(log, "processed ");
	if (!at || sscanf(at, "processed %lu", &n) != 1)
		errx(1, "the verifier does not tell how many instructions of %s it looked at", program);
	sample__destroy(skel);
	return n;
}

/* WALKING() of event.bpf.h */
static bool is_walking(const char *name)
{
	size_t len = strlen(name);

	return len > 5 && !strcmp(name + len - 5, "_walk");
}

int main(void)
{
	struct bpf_program *p;
	struct sample *skel;

	libbpf_set_print(quiet);
	skel = sample__open();
	if (!skel)
		err(1, "cannot open the BPF object");
	bpf_object__for_each_program(p, skel->obj)
	{
		const char *name = bpf_program__name(p);

		printf("%s native %lu\n", name, processed(name, 0));
		for (const struct runtime_ops *const *r = runtimes; *r && is_walking(name); r++)
			printf("%s %s %lu\n", name, (*r)->name, processed(name, 1u << (*r)->id));
		printf("%s all %lu\n", name, processed(name, ~0u));
	}
	sample__destroy(skel);
	return 0;
}
