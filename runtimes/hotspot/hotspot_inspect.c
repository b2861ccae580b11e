/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_inspect.h"

#include <stdio.h>
#include <stdlib.h>

#include "binary/proc_path.h"
#include "runtimes/hotspot/alloc/hotspot_alloc.h"
#include "hotspot_check.h"
#include "hotspot_used.h"
#include "runtimes/hotspot/layout/hotspot_flags.h"

#define TEXT_BYTES  512
#define THREADS_MAX 4096
#define LEVELS      5

static void report_static_text(const struct hotspot_instance *instance, struct memory *m, const char *key,
        const char *field, struct report *out)
{
	char text[TEXT_BYTES];
	u64 at, addr;

	if (vmstructs_static(instance->v, "Abstract_VM_Version", field, &at) && memory_read(m, &addr, 8, at) &&
	        memory_string(m, text, sizeof(text), addr))
		report_text(out, key, NULL, "%s", text);
	else
		report_text(out, key, NULL, "unknown");
}

static void report_module(const struct hotspot_instance *instance, const struct runtime_process *p, struct report *out)
{
	image_report(instance->image->file, out);
	report_text(out, "load bias", NULL, "0x%lx", instance->bias);
	if (!instance->v) {
		report_text(
		        out, "state", NULL, instance->refused ? "not supported" : "only starting: no vmStructs yet");
		return;
	}
	report_static_text(instance, p->memory, "version", "_s_vm_release", out);
	report_static_text(instance, p->memory, "build", "_s_internal_vm_info_string", out);
}

static const char *find_collector(const struct vmstructs *v, struct memory *m)
{
	static const char *const names[] = {"Serial", "Parallel", "CMS", "G1", "ZGC", "Shenandoah", "Epsilon"};
	struct hotspot_flag flags[] = {{"UseSerialGC", 1, 0, 0}, {"UseParallelGC", 1, 0, 0},
	        {"UseConcMarkSweepGC", 1, 0, 0}, {"UseG1GC", 1, 0, 0}, {"UseZGC", 1, 0, 0},
	        {"UseShenandoahGC", 1, 0, 0}, {"UseEpsilonGC", 1, 0, 0}};

	hotspot_flags_read(v, m, flags, sizeof(flags) / sizeof(*flags));
	for (u32 i = 0; i < sizeof(flags) / sizeof(*flags); i++)
		if (flags[i].found && flags[i].value)
			return names[i];
	return "unknown";
}

static void report_flags(const struct hotspot_instance *instance, const struct runtime_process *p, struct report *out)
{
	struct hotspot_flag flags[] = {{"UseCompressedOops", 1, 0, 0}, {"UseCompressedClassPointers", 1, 0, 0},
	        {"UseCompactObjectHeaders", 1, 0, 0}, {"UseTLAB", 1, 0, 0}, {"SegmentedCodeCache", 1, 0, 0},
	        {"TieredCompilation", 1, 0, 0}, {"UseInterpreter", 1, 0, 0}, {"DebugNonSafepoints", 1, 0, 0},
	        {"PreserveFramePointer", 1, 0, 0}, {"EnableJVMCI", 1, 0, 0}, {"UseJVMCICompiler", 1, 0, 0},
	        {"UseLargePages", 1, 0, 0}, {"UseTransparentHugePages", 1, 0, 0}, {"ReservedCodeCacheSize", 8, 0, 0},
	        {"MaxHeapSize", 8, 0, 0}};

	report_section(out, "flags", NULL);
	report_text(out, "garbage collector", NULL, "%s", find_collector(instance->v, p->memory));
	hotspot_flags_read(instance->v, p->memory, flags, sizeof(flags) / sizeof(*flags));
	for (u32 i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		if (!flags[i].found)
			report_text(out, flags[i].name, NULL, "this JVM has no such flag");
		else if (flags[i].size == 1)
			report_text(out, flags[i].name, NULL, flags[i].value ? "true" : "false");
		else
			report_number(out, flags[i].name, flags[i].value, "bytes");
	}
}

struct usage {
	const struct hotspot_code *code;
	struct memory *m;
	u64 bytes;
	u32 blobs, nmethods, osr, native, level[LEVELS];
};

static bool count_blob(void *ctx, const struct hotspot_blob *blob)
{
	struct usage *u = ctx;
	struct hotspot_nmethod n;

	u->blobs++;
	u->bytes += blob->code_end - blob->at;
	if (blob->kind != BLOB_NMETHOD || !hotspot_nmethod_read(u->code, u->m, blob->at, 0, &n))
		return true;
	u->nmethods++;
	u->osr += n.entry_bci >= 0;
	u->native += n.pcs == n.pcs_end;
	if (n.level < LEVELS)
		u->level[n.level]++;
	return true;
}

static void report_heap(const struct hotspot_instance *instance, struct memory *m, const struct hotspot_heap *heap,
        struct usage *total, struct report *out)
{
	struct usage u = {.code = instance->code, .m = m};
	char remark[160];

	hotspot_each_blob(instance->code, m, heap, count_blob, &u);
	snprintf(remark, sizeof(remark), "%u blobs, %lu KB of them, %lu KB committed, %lu KB reserved", u.blobs,
	        u.bytes >> 10, (heap->high - heap->low) >> 10, (heap->reserved_high - heap->low) >> 10);
	report_text(out, heap->name, remark, "0x%lx-0x%lx", heap->low, heap->reserved_high);
	total->nmethods += u.nmethods;
	total->osr += u.osr;
	total->native += u.native;
	for (u32 i = 0; i < LEVELS; i++)
		total->level[i] += u.level[i];
}

static void report_code(const struct hotspot_instance *instance, const struct runtime_process *p, struct report *out)
{
	static const char *const levels[LEVELS] = {NULL, "by C1 (level 1)", "by C1, counting (level 2)",
	        "by C1, profiled (level 3)", "by C2 or JVMCI (level 4)"};
	struct hotspot_heap heaps[HOTSPOT_HEAPS_MAX];
	struct usage total = {0};
	u32 n = hotspot_heaps(instance->code, p->memory, heaps);
	u64 start, end;

	report_section(out, "code", NULL);
	for (u32 i = 0; i < n; i++)
		report_heap(instance, p->memory, &heaps[i], &total, out);
	if (hotspot_interpreter(instance->code, p->memory, &start, &end))
		report_text(out, "interpreter", NULL, "0x%lx-0x%lx", start, end);
	report_number(out, "nmethods", total.nmethods, NULL);
	for (u32 i = 1; i < LEVELS; i++)
		report_number(out, levels[i], total.level[i], NULL);
	report_number(out, "native wrappers", total.native, NULL);
	report_number(out, "for on-stack replacement", total.osr, NULL);
}

static struct error *report_threads(
        const struct hotspot_instance *instance, const struct runtime_process *p, struct report *out)
{
	struct hotspot_thread *threads = calloc(THREADS_MAX, sizeof(*threads));
	u64 allocated = 0, used = p->pid ? hotspot_used(p->pid) : 0;
	u32 n;

	if (!threads)
		return &error_no_memory;
	n = hotspot_threads(instance->heap, p->memory, threads, THREADS_MAX, false);
	for (u32 i = 0; i < n; i++)
		allocated += threads[i].allocated;
	report_section(out, "threads", NULL);
	report_number(out, "Java threads", n, NULL);
	report_number(out, "allocated by them so far", allocated, "bytes");
	report_number(out, "collections so far", hotspot_collections(instance->heap, p->memory), NULL);
	if (used)
		report_number(out, "left in use by the last one", (s64)used, "bytes, in the old generation");
	free(threads);
	return NULL;
}

/* How java-alloc would find where objects are made. */
static struct error *report_allocation(
        const struct hotspot_instance *instance, const struct runtime_process *p, struct report *out)
{
	struct runtime_alloc places = {0};
	struct error *err;
	char root[64];

	proc_path(root, sizeof(root), p->pid, "root");
	err = hotspot_alloc_sites(instance->image->file, root, &places);
	if (err == &error_no_memory)
		return err;
	report_section(out, "allocation", NULL);
	if (err)
		report_text(out, "places", NULL, "not known");
	else
		report_text(out, "places", "where uprobes of java-alloc go", "by %s", places.origin);
	error_free(err);
	return NULL;
}

static void report_checks(const struct hotspot_instance *instance, const struct runtime_process *p, struct report *out)
{
	int found[RUNTIME_CHECKS_MAX];

	hotspot_check(instance->v, instance->layout, instance->code, p->memory, found);
	runtime_check_report(&hotspot_checks, found, NULL, out);
}

struct error *hotspot_inspect(
        const struct hotspot_instance *instance, const struct runtime_process *p, struct report *out)
{
	struct error *err;

	report_module(instance, p, out);
	if (!instance->v)
		return NULL;
	report_flags(instance, p, out);
	report_code(instance, p, out);
	err = report_threads(instance, p, out);
	if (!err)
		err = report_allocation(instance, p, out);
	report_checks(instance, p, out);
	layout_report(instance->origins, out);
	return err;
}
