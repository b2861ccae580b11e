/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes/hotspot/walk/hotspot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "hotspot_added.h"
#include "hotspot_calls.h"
#include "hotspot_check.h"
#include "hotspot_frozen.h"
#include "hotspot_instance.h"
#include "hotspot_natives.h"
#include "hotspot_tasks.h"
#include "hotspot_used.h"
#include "now.h"
#include "report.h"
#include "runtime.h"
#include "binary/image.h"
#include "binary/proc_path.h"
#include "runtimes/hotspot/alloc/hotspot_alloc.h"
#include "runtimes/hotspot/heap/hotspot_heap_view.h"
#include "runtimes/hotspot/layout/hotspot_flags.h"
#include "runtimes/hotspot/waits/hotspot_waits.h"
#include "symbols/symbols.h"

/* What the walker needs to find out what its thread waits for (hotspot_awaited_walk.h). */

#define MONITOR_HANDLE 16 /* the first whose ObjectMonitor has its object behind a handle (8247281); 8 says 25 */

static u32 version_of(const struct hotspot_heap_view *h, struct memory *m)
{
	u32 ret;
	u64 at;

	return vmstructs_static(h->v, "Abstract_VM_Version", "_vm_major_version", &at) &&
	                       memory_read(m, &ret, sizeof(ret), at)
	               ? ret
	               : 0;
}

/* Finds the java.lang.Thread object of any thread. Returns 0 if no thread has one yet. */
static u64 any_thread(struct hotspot_heap_view *h, struct memory *m)
{
	u64 ret = 0;

	if (!h->nplaces)
		hotspot_places_renew(h, m, false);
	for (u32 i = 0; !ret && i < h->nplaces; i++) {
		ret = hotspot_load_handle(h, m, h->places[i].at + h->l->thread_obj.at, h->at.thread_handle);
		ret = hotspot_object_class(h, m, ret) ? ret : 0;
	}
	return ret;
}

/* java.lang.Class is the class of each class's mirror, which is behind a handle since 10. */
static void find_mirrors(const struct hotspot_waits *w, struct hotspot_heap_view *h, struct memory *m, u64 klass,
        struct hotspot_awaited *ret)
{
	u64 mirror;
	u32 at;

	if (!w->mirror_at || !memory_read(m, &at, 4, w->mirror_at) || at > UINT16_MAX ||
	        !vmstructs_field(h->v, "Klass", "_java_mirror", &mirror, NULL))
		return;
	ret->mirrored = (u16)at;
	for (int handle = 1; handle >= 0 && !ret->class_klass; handle--) {
		u64 of = hotspot_object_class(h, m, hotspot_load_handle(h, m, klass + mirror, handle));

		if (of && hotspot_super_named(h, m, of, "java/lang/Class") == of)
			ret->class_klass = of;
	}
}

/* Where the JVM notes that it collects garbage with all threads standing; 0: not known. */
static u64 collecting_at(const struct hotspot_heap_view *h, struct memory *m)
{
	u64 heap;

	return h->at.collecting && memory_read(m, &heap, 8, h->collected_heap) && heap ? heap + h->at.collecting : 0;
}

/* ret->pending stays 0 where this is not known of the JDK, or the JVM is only starting. */
static void hotspot_awaited_find(
        struct hotspot_waits *w, struct hotspot_heap_view *h, struct memory *m, struct hotspot_awaited *ret)
{
	u32 version = version_of(h, m);
	u64 thread;

	if (!version || !hotspot_waits_ready(w, h, m) || !w->monitors || w->pending > UINT16_MAX ||
	        w->waiting > UINT16_MAX || w->object > UINT16_MAX || w->current > UINT16_MAX)
		return;
	thread = any_thread(h, m);
	if (!thread)
		return;
	*ret = (struct hotspot_awaited){
	        .oop_base = h->oop_base,
	        .klass_base = h->klass_base,
	        .collecting_at = collecting_at(h, m),
	        .pending = (u16)w->pending,
	        .waiting = (u16)w->waiting,
	        .object = (u16)w->object,
	        .thread_obj = (u16)w->current,
	        .klass_name = (u16)h->l->klass_name.at,
	        .monitor_place = h->at.thread_handle && version >= MONITOR_HANDLE ? HOTSPOT_IN_HANDLE : HOTSPOT_IN_VM,
	        .thread_place = h->at.thread_handle ? HOTSPOT_IN_HANDLE : HOTSPOT_IN_VM,
	        .oops = (u8)h->oops,
	        .oop_shift = (u8)h->oop_shift,
	        .narrow_klass = h->narrow_klass,
	        .klass_shift = (u8)h->klass_shift,
	        .mark_klass_shift = (u8)h->mark_klass_shift,
	};
	if (hotspot_declared_field(
	            h, m, thread, "java/lang/Thread", "parkBlocker", "Ljava/lang/Object;", &w->blocker) &&
	        w->blocker <= UINT16_MAX)
		ret->blocker = (u16)w->blocker;
	find_mirrors(w, h, m, hotspot_object_class(h, m, thread), ret);
}

/* What `yrt inspect` shows of a JVM: its version, flags, code, threads, layout, and the results of the checks. */

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

/* As runtime_ops.inspect. */
static struct error *hotspot_inspect(
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

/*
 * Why a JVM ended itself: what its report (hs_err_pid.log) begins with. VMError keeps it in static variables
 * (share/utilities/vmError.hpp of 8 to 28), which libjvm's .symtab or its debug file names.
 */

#define TEXT_MOST 400

static bool reports(const struct hotspot_instance *instance, const struct runtime_process *p, const struct frame *f)
{
	static const char report[] = "_ZN7VMError14report_and_die";
	struct symbol s;
	const struct mapping *m = symbols_of_frame(p->mappings, p->nmappings, f, &s);

	return m && m->image == instance->image->file && !strncmp(s.name, report, sizeof(report) - 1);
}

static u64 variable(const struct hotspot_instance *instance, const char *name)
{
	struct symbol s;

	return symbols_lookup(instance->image->file, name, &s) ? s.start + instance->bias : 0;
}

/* "" if it is not there. */
static void read_text(struct memory *m, u64 addr, char ret[TEXT_MOST])
{
	if (!addr || !memory_line(m, ret, TEXT_MOST, addr))
		ret[0] = '\0';
}

/* runtime_ops.last_words: "fatal error: OutOfMemory encountered: Java heap space" */
static bool hotspot_last_words(void *instance, const struct runtime_dying *t, char *ret, size_t size)
{
	u64 message = variable(instance, "_ZN7VMError8_messageE"), pointer;
	struct memory *m = t->p->memory;
	char said[TEXT_MOST], detail[TEXT_MOST];
	u32 i = 0;

	while (i < t->n && !reports(instance, t->p, &t->frames[i]))
		i++;
	if (i == t->n)
		return false;
	read_text(m, message && memory_read(m, &pointer, sizeof(pointer), message) ? pointer : 0, said);
	read_text(m, variable(instance, "_ZN7VMError11_detail_msgE"), detail);
	snprintf(ret, size, "%s%s%s", said, *said && *detail ? ": " : "", detail);
	return *ret;
}

/*
 * Java that is not HotSpot, recognised so that it is refused by name.
 *
 * Eclipse OpenJ9: its VM is libj9vm29.so (the number is that of its release); its libjvm.so only redirects to it and
 * exports no vmStructs. Images that GraalVM's native-image compiled ahead of time: a program or library with the
 * section .svm_heap (SubstrateVM, NativeImage.java; seen in google-closure-compiler-linux 20261015, made by GraalVM 25,
 * which has no symbols but the section).
 */

static bool is_openj9(const struct image *img)
{
	static const char name[] = "libj9vm";
	const char *slash = strrchr(img->path, '/'), *base = slash ? slash + 1 : img->path;

	return !strncmp(base, name, sizeof(name) - 1) && strstr(base, ".so");
}

static bool is_native_image(struct image *img)
{
	u64 addr, size;

	return image_section_range(img, ".svm_heap", &addr, &size);
}

/* An error that names the JVM, if it is one that yrt does not read; else NULL. */
static struct error *hotspot_refuse_other(struct image *img)
{
	if (is_openj9(img))
		return error_hint(error_new(ERROR_UNSUPPORTED, "%s is a JVM of Eclipse OpenJ9, not HotSpot", img->path),
		        "its Java frames are left out; run the program with a JDK that is built with HotSpot to see "
		        "them");
	if (is_native_image(img))
		return error_hint(error_new(ERROR_UNSUPPORTED, "%s is a native image of GraalVM", img->path),
		        "its frames are those of native code: there is no JVM in it");
	return NULL;
}

#define CHECKS_MAX     50
#define CHECK_EVERY_NS 100000000ull /* at first; then when twice as much time again has gone by */

int hotspot_step(struct walk *w);

static void image_destroy(void *data)
{
	struct hotspot_image *image = data;

	free(image->symbols);
	free(image);
}

static struct error *image_probe(struct image *img, void **ret)
{
	struct vmstructs_symbols *symbols;
	struct hotspot_image *image;
	struct error *err;

	*ret = NULL;
	if (img->machine != EM_X86_64)
		return NULL;
	err = vmstructs_symbols_find(img, &symbols);
	if (err)
		return err;
	if (!symbols)
		return hotspot_refuse_other(img);
	image = malloc(sizeof(*image));
	if (!image) {
		free(symbols);
		return &error_no_memory;
	}
	*image = (struct hotspot_image){.file = img, .symbols = symbols};
	*ret = image;
	return NULL;
}

/* All but the rows of stubs, which regions may be made of. */
static void forget(struct hotspot_instance *instance)
{
	hotspot_heap_view_destroy(instance->heap);
	hotspot_names_destroy(instance->names);
	hotspot_code_destroy(instance->code);
	layout_destroy(instance->origins);
	vmstructs_destroy(instance->v);
	instance->heap = NULL;
	instance->names = NULL;
	instance->code = NULL;
	instance->layout = NULL;
	instance->origins = NULL;
	instance->v = NULL;
}

static void destroy(struct hotspot_instance *instance)
{
	forget(instance);
	hotspot_stubs_destroy(instance->stubs);
	free(instance);
}

/* A search of tens of thousands of symbols, for all JVMs of a file. Its debug file may be found later than one. */
static void find_stub_list(struct hotspot_instance *instance)
{
	struct hotspot_image *image = instance->image;
	u8 sources = image->file->symbols ? 2 : 1;
	struct symbol s;

	if (!image->stub_list && image->stub_list_sought < sources) {
		image->stub_list = symbols_lookup(image->file, "_ZN12StubCodeDesc5_listE", &s) ? s.start : 0;
		image->stub_list_sought = sources;
	}
	if (image->stub_list)
		hotspot_names_stub_list(instance->names, instance->bias + image->stub_list);
}

/* Zero's interpreter is compiled C++, and its Java frames are on a stack of its own. */
static struct error *refuse_zero(const struct hotspot_instance *instance, struct memory *m)
{
	char text[256];
	u64 at, addr;

	if (!vmstructs_static(instance->v, "Abstract_VM_Version", "_s_internal_vm_info_string", &at) ||
	        !memory_read(m, &addr, 8, at) || !memory_string(m, text, sizeof(text), addr) ||
	        !strstr(text, " Zero VM "))
		return NULL;
	return error_hint(error_new(ERROR_UNSUPPORTED, "%s is HotSpot's Zero VM, an interpreter without assembly",
	                          instance->image->file->path),
	        "its Java frames are left out; run the program with the JDK's server VM to see them");
}

/* Reads the JVM's description of itself, which may not be there yet. */
static struct error *start(struct hotspot_instance *instance, const struct runtime_process *p)
{
	struct error *err = vmstructs_read(instance->image->symbols, p->memory, instance->bias, &instance->v);

	if (err || !instance->v)
		return err;
	err = refuse_zero(instance, p->memory);
	if (!err)
		err = hotspot_layout_find(instance->v, &instance->origins);
	if (err)
		return err;
	instance->layout = instance->origins->values;
	err = hotspot_code_create(instance->v, instance->layout, &instance->code);
	if (!err)
		err = hotspot_names_create(instance->v, instance->layout, instance->code, &instance->names);
	if (!err) {
		find_stub_list(instance);
		hotspot_frozen_find(instance, p->memory);
	}
	if (!err)
		err = hotspot_heap_view_create(instance->v, instance->layout, &instance->heap);
	if (!err)
		err = hotspot_stubs_create(instance->v, &instance->stubs);
	return err;
}

static bool check_due(const struct hotspot_instance *instance, u64 now)
{
	u64 wait = 2 * (instance->checked_ns - instance->first_checked_ns);

	return instance->checks < CHECKS_MAX &&
	       now - instance->checked_ns >= (wait > CHECK_EVERY_NS ? wait : CHECK_EVERY_NS);
}

/* Does the layout hold? Tried until there was something for each check, which may never be (-Xint). */
static struct error *check(struct hotspot_instance *instance, const struct runtime_process *p)
{
	u64 now = now_ns();
	bool conclusive;
	struct error *err;

	if (!check_due(instance, now))
		return NULL;
	err = hotspot_check_process(instance->v, instance->layout, instance->code, p->memory, &conclusive);
	instance->checks = conclusive ? CHECKS_MAX : instance->checks + 1;
	instance->checked_ns = now;
	if (!instance->first_checked_ns)
		instance->first_checked_ns = now;
	return err;
}

/* As far as the JVM is by now: called again and again. What is refused stays so. */
static struct error *try_start(struct hotspot_instance *instance, const struct runtime_process *p)
{
	struct error *err = NULL;

	if (instance->refused)
		return NULL;
	if (!instance->v)
		err = start(instance, p);
	if (!err && instance->v)
		err = check(instance, p);
	if (!err)
		return NULL;
	forget(instance);
	instance->refused = true;
	return err == &error_no_memory ? err : error_hint(err, "the Java frames of process %d are left out", p->pid);
}

static struct error *attach(const struct runtime_process *p, void *image, u64 bias, void **ret)
{
	struct hotspot_instance *instance = calloc(1, sizeof(*instance));
	struct error *err;

	if (!instance)
		return &error_no_memory;
	instance->image = image;
	instance->bias = bias;
	err = try_start(instance, p);
	if (err) {
		destroy(instance);
		return err;
	}
	*ret = instance;
	return NULL;
}

static void detach(void *data, const struct runtime_process *p)
{
	struct hotspot_instance *instance = data;

	for (u32 i = 0; i < instance->nclaims; i++)
		arena_free(p->arena, instance->claims[i].config, sizeof(struct hotspot_vm));
	destroy(instance);
}

static struct error *configure(
        struct hotspot_instance *instance, const struct runtime_process *p, const struct hotspot_heap *heap, u32 *ret)
{
	struct hotspot_claim *claim = instance->claims;
	struct error *err;

	for (u32 i = 0; i < instance->nclaims; i++, claim++)
		if (claim->low == heap->low) {
			*ret = claim->config;
			return NULL;
		}
	if (instance->nclaims == HOTSPOT_HEAPS_MAX)
		return error_new(ERROR_UNSUPPORTED, "process %d has more code heaps than a JVM has", p->pid);
	err = arena_alloc(p->arena, sizeof(struct hotspot_vm), &claim->config);
	if (err)
		return err;
	claim->low = heap->low;
	*(struct hotspot_vm *)arena_at(p->arena, claim->config, sizeof(struct hotspot_vm)) =
	        hotspot_vm_of(instance->layout, heap);
	*ret = claim->config;
	instance->nclaims++;
	return NULL;
}

typedef struct error *add_region(void *ctx, const struct runtime_region *r);

/* What is known by now of what all heaps have in common. */
static void fill_config(struct hotspot_instance *instance, const struct runtime_process *p,
        const struct hotspot_heap *heaps, u32 n, u32 config)
{
	struct hotspot_vm *vm = arena_at(p->arena, config, sizeof(struct hotspot_vm));
	u64 start, end;

	hotspot_vm_heaps(vm, heaps, n);
	hotspot_frozen_tell(instance, vm);
	hotspot_anchor_find(instance->heap, &vm->anchor);
	if (p->features & FEATURE_AWAITED) {
		hotspot_frozen_objects(instance, p->memory, vm);
		if (!vm->awaited.pending)
			hotspot_awaited_find(&instance->waits, instance->heap, p->memory, &vm->awaited);
	}
	if (hotspot_interpreter(instance->code, p->memory, &start, &end) && end - start <= UINT32_MAX) {
		vm->interpreter_low = start;
		vm->interpreter_size = (u32)(end - start);
	}
}

/* What is committed, and what may be by the time of a sample. */
static struct error *add_heap(const struct hotspot_heap *heap, u32 config, add_region *add, void *ctx)
{
	struct runtime_region r = {.part = HOTSPOT_HEAP, .vm = config, .start = heap->low, .end = heap->reserved_high};
	struct error *err = add(ctx, &r);

	r.unmapped = true;
	return err ? err : add(ctx, &r);
}

static struct error *add_interpreter(struct hotspot_instance *instance, const struct runtime_process *p,
        const struct hotspot_heap *heap, u32 config, add_region *add, void *ctx)
{
	struct runtime_region r = {.part = HOTSPOT_INTERPRETER, .vm = config};

	if (!hotspot_interpreter(instance->code, p->memory, &r.start, &r.end) || r.start < heap->low ||
	        r.end > heap->high)
		return NULL;
	return add(ctx, &r);
}

/* Stubs, and the pieces of the interpreter that have rows: after the code around them. */
static struct error *add_stubs(
        struct hotspot_instance *instance, const struct hotspot_heap *heap, u32 config, add_region *add, void *ctx)
{
	const struct hotspot_stub_range *ranges;
	u32 n = hotspot_stubs_ranges(instance->stubs, &ranges);
	struct error *err = NULL;

	for (u32 i = 0; !err && i < n; i++) {
		struct runtime_region r = {ranges[i].start, ranges[i].end, ranges[i].part, .vm = config,
		        .entries = ranges[i].entries, .nentries = ranges[i].nentries};

		if (r.start >= heap->low && r.end <= heap->high)
			err = add(ctx, &r);
	}
	return err;
}

static struct error *regions(void *data, const struct runtime_process *p, add_region *add, void *ctx)
{
	struct hotspot_instance *instance = data;
	struct hotspot_heap heaps[HOTSPOT_HEAPS_MAX];
	struct error *err = try_start(instance, p);
	u32 n, config = 0;

	if (err || !instance->v)
		return err;
	err = hotspot_stubs_update(instance->stubs, instance->code, p->memory);
	if (!err)
		err = hotspot_frozen_look(instance, p->memory);
	n = hotspot_heaps(instance->code, p->memory, heaps);
	for (u32 i = 0; !err && i < n; i++) {
		err = configure(instance, p, &heaps[i], &config);
		if (!err)
			fill_config(instance, p, heaps, n, config);
		if (!err)
			err = add_heap(&heaps[i], config, add, ctx);
		if (!err)
			err = add_interpreter(instance, p, &heaps[i], config, add, ctx);
		if (!err)
			err = add_stubs(instance, &heaps[i], config, add, ctx);
	}
	return err;
}

static u32 resume(void *data, bool *exact)
{
	const struct hotspot_instance *instance = data;

	return instance->nclaims ? instance->claims[0].config : 0;
}

/* Code heaps come one by one, and are there before the list of them is. Stubs come at any time. */
static bool starting(void *data)
{
	const struct hotspot_instance *instance = data;

	u64 now = now_ns();

	return !instance->refused && (!instance->v || check_due(instance, now) || hotspot_frozen_due(instance, now) ||
	                                     hotspot_stubs_wanted(instance->stubs, now));
}

static bool name_frame(
        void *data, const struct runtime_process *p, const struct frame *frames, u32 i, u32 n, struct frame_name *ret)
{
	struct hotspot_instance *instance = data;

	return instance->names && hotspot_name_frame(instance->names, p->memory, &frames[i], ret);
}

static u32 expand(void *data, const struct runtime_process *p, const struct frame *frames, u32 i, u32 n, u32 flags,
        struct frame *ret, u32 max, u32 *eaten)
{
	struct hotspot_instance *instance = data;

	*eaten = 0;
	if (!instance->names)
		return 0;
	if (frame_kind(&frames[i]) == FRAME_NATIVE)
		return hotspot_natives(instance, p, frames, i, n, ret, max, eaten);
	if (hotspot_kind(&frames[i]) == HOTSPOT_STUB)
		hotspot_stubs_saw(
		        instance->stubs, frame_addr(&frames[i]) - !!(frame_flags(&frames[i]) & FRAME_RETADDR));
	hotspot_names_stack(instance->names, p->stack);
	return hotspot_expand(instance->names, p->memory, frames, i, n, flags, ret, max, eaten);
}

static bool thread_name(void *data, const struct runtime_process *p, pid_t tid, char *ret, size_t size)
{
	struct hotspot_instance *instance = data;

	return instance->heap && hotspot_thread_name(instance->heap, p->memory, p->pid, tid, ret, size);
}

static bool waits_for(
        void *data, const struct runtime_process *p, const struct runtime_thread *t, struct runtime_wait *ret)
{
	struct hotspot_instance *instance = data;

	return instance->heap && hotspot_waits_for(&instance->waits, instance->heap, p->memory, t, ret);
}

static bool is_runtime_internal(void *data, const char *symbol)
{
	return hotspot_is_internal(symbol);
}

static bool begins(const char *symbol)
{
	return hotspot_is_thread_entry(symbol);
}

static struct error *inspect(void *data, const struct runtime_process *p, struct report *out)
{
	return hotspot_inspect(data, p, out);
}

const struct runtime_ops hotspot_runtime = {
        .name = "hotspot",
        .view = "java",
        .language = "Java",
        .words = {"interpreted", "C1", "C2"},
        .id = RUNTIME_HOTSPOT,
        .frame_type = "jvm",
        .supported = "HotSpot of OpenJDK 8 to 28 (x86-64, stripped or not): interpreter, C1, C2, inlined methods, "
                     "stubs, allocation",
        .layout = &hotspot_layout_schema,
        .files = (const char *const[]){"/libjvm.so", NULL},
        .deferrable = true,
        .image_probe = image_probe,
        .image_destroy = image_destroy,
        .attach = attach,
        .detach = detach,
        .regions = regions,
        .resume = resume,
        .starting = starting,
        .name_frame = name_frame,
        .expands_native = true,
        .expand = expand,
        .thread_name = thread_name,
        .is_runtime_internal = is_runtime_internal,
        .is_thread_entry = begins,
        .last_words = hotspot_last_words,
        .inspect = inspect,
        .alloc = &hotspot_alloc_ops,
        .heap = &hotspot_heap_ops,
        .used_after_collection = hotspot_used,
        .added = hotspot_added,
        .rules = hotspot_rules,
        .waits_for = waits_for,
        .tasks = &hotspot_tasks,
        .calls = &hotspot_calls,
};
