/* SPDX-License-Identifier: Apache-2.0 */
#include "skeleton.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel_types.h"
#include "sample.skel.h"
#include "skeleton_elf.h"
#include "unwind/cleanup.h"
#include "unwind/shared/frame.h"

#define MISSING   "walker_missing" /* of sample.bpf.c */
#define AHEAD_MAX 16384            /* elements of a map that are allocated ahead */

/* Does the driver call this function for a walker that is not wanted? */
static bool is_unwanted(const char *name, u32 walkers)
{
	static const struct {
		const char *name;
		u32 runtime;
	} calls[] = {
#define RUNTIME(id, name) {#name "_step", id},
#define RESUMES(id, name) {#name "_resume", id},
#include "runtimes/list.h"
#undef RESUMES
#undef RUNTIME
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (!strcmp(calls[i].name, name))
			return !(walkers & 1u << calls[i].runtime);
	return false;
}

static u64 find_missing(const struct elf *elf, const Elf64_Shdr *symbols)
{
	u64 n = symbols->sh_size / sizeof(Elf64_Sym), i = 0;

	while (i < n && strcmp(symbol_name(elf, symbols, i), MISSING))
		i++;
	return i;
}

static void cut_calls(const struct elf *elf, u32 walkers)
{
	u64 missing = 0;

	for (u32 i = 0; i < elf->n; i++) {
		const Elf64_Shdr *s = &elf->sections[i], *symbols = &elf->sections[s->sh_link];
		Elf64_Rel *rel = (Elf64_Rel *)(elf->bytes + s->sh_offset);

		if (!relocates_code(elf, s))
			continue;
		if (!missing) /* all have the same symbols */
			missing = find_missing(elf, symbols);
		for (u64 k = 0; k < s->sh_size / sizeof(*rel); k++)
			if (is_unwanted(symbol_name(elf, symbols, ELF64_R_SYM(rel[k].r_info)), walkers))
				rel[k].r_info = ELF64_R_INFO(missing, ELF64_R_TYPE(rel[k].r_info));
	}
}

/* As sample__open_opts(), of other bytes. */
static struct sample *open_bytes(void *bytes, size_t size, const struct bpf_object_open_opts *options)
{
	struct sample *skel = calloc(1, sizeof(*skel));
	int code = skel ? sample__create_skeleton(skel) : -ENOMEM;

	if (!code) {
		skel->skeleton->data = bytes;
		skel->skeleton->data_sz = size;
		code = bpf_object__open_skeleton(skel->skeleton, options);
	}
	if (!code)
		return skel;
	sample__destroy(skel);
	errno = -code;
	return NULL;
}

/* Before Linux 6.1 programs of perf events may not use a map whose elements are allocated on demand. */
static bool allocates_on_demand(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_NO_PREALLOC);
	int map = bpf_map_create(BPF_MAP_TYPE_HASH, NULL, sizeof(u32), sizeof(u32), 1, &options), program;
	const struct bpf_insn insns[] = {
	        {.code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = BPF_REG_1, .src_reg = BPF_PSEUDO_MAP_FD, .imm = map},
	        {0},
	        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
	        {.code = BPF_JMP | BPF_EXIT},
	};

	if (map < 0)
		return true; /* loading will say why */
	program = bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, NULL, "GPL", insns, sizeof(insns) / sizeof(*insns), NULL);
	close(map);
	if (program >= 0)
		close(program);
	return program >= 0;
}

/* Task storage is always allocated on demand; the kernel refuses it otherwise. */
static void allocate_ahead(struct sample *skel)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, skel->obj)
	{
		u32 flags = bpf_map__map_flags(map);

		if (bpf_map__type(map) == BPF_MAP_TYPE_TASK_STORAGE || !(flags & BPF_F_NO_PREALLOC))
			continue;
		bpf_map__set_map_flags(map, flags & ~BPF_F_NO_PREALLOC);
		if (bpf_map__max_entries(map) > AHEAD_MAX)
			bpf_map__set_max_entries(map, AHEAD_MAX);
	}
}

static void fit_to_kernel(struct sample *skel)
{
	skel->rodata->with_loop = !getenv("YRT_NO_LOOP") && /* for tests */
	                          libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_loop, NULL) == 1;
	if (!allocates_on_demand())
		allocate_ahead(skel);
}

void skeleton_fit_fault(struct sample *skel)
{
	skel->rodata->with_find_vma = libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_find_vma, NULL) == 1;
}

/* A copy of the object. The pages of yrt's file that it was read from need not stay: they are a tenth of its memory. */
static void *copy_object(size_t *ret_size)
{
	const u8 *whole = sample__elf_bytes(ret_size);
	uintptr_t page = sysconf(_SC_PAGESIZE), start = ((uintptr_t)whole + page - 1) & -page;
	uintptr_t end = ((uintptr_t)whole + *ret_size) & -page;
	void *bytes = malloc(*ret_size);

	if (!bytes)
		return NULL;
	memcpy(bytes, whole, *ret_size);
	if (start < end)
		madvise((void *)start, end - start, MADV_DONTNEED);
	return bytes;
}

struct sample *skeleton_open(u32 walkers, const char *cache_dir)
{
	LIBBPF_OPTS(bpf_object_open_opts, options);
	size_t size;
	cleanup(free) void *bytes = copy_object(&size);
	cleanup(free) char *types = NULL;
	const Elf64_Shdr *btf;
	struct sample *skel;
	struct elf elf;

	if (!bytes) {
		errno = ENOMEM;
		return NULL;
	}
	elf = elf_of(bytes);
	cut_calls(&elf, walkers);
	btf = find_section(&elf, ".BTF");
	types = btf ? kernel_types(cache_dir, elf.bytes + btf->sh_offset, btf->sh_size) : NULL;
	options.btf_custom_path = types;
	skel = open_bytes(bytes, size, &options);
	if (!skel)
		return NULL;
	skel->rodata->walkers = walkers;
	fit_to_kernel(skel);
	return skel;
}
