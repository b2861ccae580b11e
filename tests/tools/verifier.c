/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many instructions the kernel's verifier looks at, and how many bytes of machine code it makes: yrt-verifier loads
 * each program with no runtime's walker and with all, and those that take stacks with each alone, and prints a line
 * "program runtime instructions bytes" for each. Of a program that the kernel refuses it prints the end of the
 * verifier's log.
 * None has other maps than those that it seems to use (probes/used_maps.h).
 * yrt-verifier DIR: loads each with the types of the kernel that are kept in DIR (probes/kernel_types.h), and with the
 * kernel's own, and prints "program tag tag": the kernel's hash of the instructions that it got.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <err.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/skeleton.h"
#include "probes/used_maps.h"
#include "process/module.h"
#include "sample.skel.h"

#define LOG_PATH  1 /* <linux/bpf_verifier.h>: BPF_LOG_LEVEL1, BPF_LOG_STATS */
#define LOG_STATS 4
#define LOG_SHOWN 4096 /* bytes of the log of a refusal */

static char log_text[16 << 20];
static bool refused;

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, format, args) : 0;
}

/* Opens the object for this program alone. */
static struct sample *open_alone(const char *program, unsigned walkers, const char *cache_dir, unsigned log_level)
{
	struct sample *skel = skeleton_open(walkers, cache_dir);
	struct bpf_program *p;

	if (!skel)
		err(1, "cannot open the BPF object");
	skeleton_fit_fault(skel);
	bpf_object__for_each_program(p, skel->obj)
	{
		bool wanted = !strcmp(bpf_program__name(p), program);

		bpf_program__set_autoload(p, wanted);
		if (wanted && log_level) {
			bpf_program__set_log_level(p, log_level);
			bpf_program__set_log_buf(p, log_text, sizeof(log_text));
		}
	}
	if (!used_maps_only(skel))
		errx(1, "no memory");
	return skel;
}

static void tell_refusal(const char *program, unsigned walkers)
{
	struct sample *skel = open_alone(program, walkers, NULL, LOG_PATH);
	size_t len;

	sample__load(skel);
	len = strlen(log_text);
	fprintf(stderr, "the kernel refuses %s with the walkers %#x:\n%s\n", program, walkers,
	        log_text + (len > LOG_SHOWN ? len - LOG_SHOWN : 0));
	sample__destroy(skel);
	refused = true;
}

/* NULL: refused. */
static struct sample *load(const char *program, unsigned walkers, const char *cache_dir, unsigned log_level)
{
	struct sample *skel = open_alone(program, walkers, cache_dir, log_level);

	if (!sample__load(skel))
		return skel;
	sample__destroy(skel);
	tell_refusal(program, walkers);
	return NULL;
}

static struct bpf_prog_info info_of(struct sample *skel, const char *program)
{
	struct bpf_program *p = bpf_object__find_program_by_name(skel->obj, program);
	struct bpf_prog_info info = {0};
	unsigned size = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(p), &info, &size))
		err(1, "the kernel does not describe %s", program);
	return info;
}

/* The kernel's own count, since 5.16. The log of 7.2 leaves out global functions. */
static void print_count(const char *program, const char *runtime, unsigned walkers)
{
	struct sample *skel = load(program, walkers, NULL, LOG_STATS);
	struct bpf_prog_info info = {0};
	const char *at = strstr(log_text, "processed ");
	unsigned long n;

	if (skel)
		info = info_of(skel, program);
	n = info.verified_insns;
	if (skel && !n && (!at || sscanf(at, "processed %lu", &n) != 1))
		errx(1, "the verifier does not say how many instructions of %s it looked at", program);
	printf("%s %s %lu %u\n", program, runtime, n, info.jited_prog_len);
	sample__destroy(skel);
}

static void print_tag(const char *program, const char *cache_dir)
{
	struct sample *skel = load(program, WALKERS_ALL, cache_dir, 0);
	struct bpf_prog_info info;

	if (!skel)
		return;
	info = info_of(skel, program);

	printf(" ");
	for (size_t i = 0; i < sizeof(info.tag); i++)
		printf("%02x", info.tag[i]);
	sample__destroy(skel);
}

/* WALKING() of event.bpf.h */
static bool is_walking(const char *name)
{
	size_t len = strlen(name);

	return len > 5 && !strcmp(name + len - 5, "_walk");
}

static void print_counts(const char *name)
{
	print_count(name, "native", 0);
	for (const struct runtime_ops *const *r = runtimes; *r && is_walking(name); r++)
		print_count(name, (*r)->name, 1u << (*r)->id);
	print_count(name, "all", WALKERS_ALL);
}

static void print_tags(const char *name, const char *cache_dir)
{
	printf("%s", name);
	print_tag(name, cache_dir);
	print_tag(name, NULL);
	printf("\n");
}

int main(int argc, char **argv)
{
	struct bpf_program *p;
	struct sample *skel;

	libbpf_set_print(quiet);
	skel = skeleton_open(WALKERS_ALL, NULL);
	if (!skel)
		err(1, "cannot open the BPF object");
	bpf_object__for_each_program(p, skel->obj)
	{
		if (argc > 1)
			print_tags(bpf_program__name(p), argv[1]);
		else
			print_counts(bpf_program__name(p));
	}
	sample__destroy(skel);
	return refused;
}
