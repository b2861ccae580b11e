/* SPDX-License-Identifier: Apache-2.0 */
#include "python_inspect.h"

#include "python_check.h"
#include "python_threads.h"

#define THREADS_MAX 512

static void report_module(
        const struct python_image *image, u64 bias, const struct runtime_process *p, struct report *out)
{
	const struct mapping *m = mapping_find(p->mappings, p->nmappings, image->eval.ranges[0].start + bias);
	u32 v = image->version;

	image_report(m ? m->image : NULL, out);
	report_text(out, "version", NULL, "%u.%u.%u", v >> 24, v >> 16 & 0xff, v >> 8 & 0xff);
	report_text(out, "load bias", NULL, "0x%lx", bias);
	report_text(out, "_PyRuntime", NULL, "0x%lx", image->runtime + bias);
}

static void report_code(const struct python_image *image, u64 bias, struct report *out)
{
	const struct python_eval *eval = &image->eval;

	report_section(out, "code", NULL);
	for (u32 i = 0; i < eval->n; i++)
		report_text(out, i ? "cold part" : "eval loop", NULL, "0x%lx-0x%lx", eval->ranges[i].start + bias,
		        eval->ranges[i].end + bias);
	for (u32 i = 0; i < eval->noutside; i++)
		report_text(out, "not linked", "before its first store to the thread state, or behind the last",
		        "0x%lx-0x%lx", eval->outside[i].start + bias, eval->outside[i].end + bias);
	if (image->vm.linkage == PYTHON_FRAME_OBJECT)
		return;
	if (!eval->dispatches)
		report_text(out, "bytecodes", "built with --with-tail-call-interp", "functions of their own");
	if (eval->ncopies)
		report_number(out, "copies of the loop", eval->ncopies, "in other functions");
	if (eval->nbare)
		report_number(out, "without a frame", eval->nbare, "stretches that are described wrongly");
	report_text(out, "linked from", "the beginning's stores were followed", "0x%lx", eval->link_end + bias);
	if (image->vm.linkage != PYTHON_NO_CFRAME)
		report_number(out, "_PyCFrame below the CFA", eval->cframe_below, "bytes");
	if (image->vm.linkage != PYTHON_ENTRY_FLAG)
		report_number(out, "entry frame below the CFA", eval->entry_below, "bytes");
}

/* The offsets of the loads from the thread pointer, the last one's is that of the state's address. */
static void report_way(const struct python_vm *vm, bool variable, struct report *out)
{
	const char *how =
	        variable ? "a thread-local variable, by the code that reads it" : "a key's value, seen in the process";

	if (vm->nvia == 2)
		report_text(out, "found by", how, "%d, %d, %d bytes", vm->via[0], vm->via[1], vm->slot);
	else if (vm->nvia)
		report_text(out, "found by", how, "%d, %d bytes", vm->via[0], vm->slot);
	else
		report_text(out, "found by", how, "%d bytes", vm->slot);
}

/* How its threads find their thread state; 3.11 and 3.12 need it not. */
static void report_threads(const struct python_image *image, u64 bias, const struct python_vm *vm,
        const struct runtime_process *p, struct report *out)
{
	struct python_thread threads[THREADS_MAX];
	u32 n = python_threads(p->memory, image->layout, image->runtime + bias, threads, THREADS_MAX), agree = 0;

	report_section(out, "threads", NULL);
	report_number(out, "thread states", n, NULL);
	if (!python_needs_thread(vm)) {
		report_text(out, "found by", NULL, "nothing: each native frame leads to its Python frames");
		return;
	}
	for (u32 i = 0; (vm->slot || vm->nvia) && i < n; i++) {
		u64 state;

		agree += python_threads_state(p->memory, vm, threads[i].pointer, &state) && state == threads[i].state;
	}
	if (vm->slot || vm->nvia)
		report_way(vm, image->tls.model, out);
	else
		report_text(out, "found by", NULL, vm->key ? "the TSS key at 0x%lx" : "not known yet", vm->key);
	report_text(out, "states found so", agree == n ? "ok" : "differs: threads begin or end, or have several",
	        "%u of %u", agree, n);
}

static void report_checks(
        const struct python_image *image, u64 bias, const struct runtime_process *p, struct report *out)
{
	struct python_checked subject = {.image = image, .l = image->layout, .mem = p->memory, .bias = bias};
	int found[RUNTIME_CHECKS_MAX];

	runtime_check(&python_checks, &subject, found);
	runtime_check_report(&python_checks, found, NULL, out);
}

struct error *python_inspect(const struct python_image *image, u64 bias, const struct python_vm *vm,
        const struct runtime_process *p, struct report *out)
{
	report_module(image, bias, p, out);
	report_code(image, bias, out);
	report_threads(image, bias, vm, p, out);
	report_checks(image, bias, p, out);
	layout_report(image->origins, out);
	return NULL;
}
