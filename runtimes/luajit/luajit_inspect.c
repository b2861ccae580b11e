/* SPDX-License-Identifier: Apache-2.0 */
#include "luajit_inspect.h"

#include <stdio.h>
#include <stdlib.h>

#include "cleanup.h"
#include "luajit_check.h"
#include "luajit_vms.h"

#define AREAS_MAX   4096
#define TRACES_MAX  65536 /* trace numbers have 16 bits */
#define FLAG_ON     1     /* JIT_F_ON */
#define FLAG_OPT    16    /* bit of the first optimisation flag */
#define VMSTATE_ASM 6

/* lj_jit.h: JIT_F_OPTSTRING, the same since 2.1 beta3 but for fma, which 2023 added. */
static const char *const optimisations[] = {
        "fold", "cse", "dce", "fwd", "dse", "narrow", "loop", "abc", "sink", "fuse", "fma"};

struct vm {
	const struct luajit_layout *layout;
	struct memory *memory;
	u64 gg, g, j;
};

static void report_module(
        const struct luajit_image *image, u64 bias, const struct runtime_process *p, struct report *out)
{
	const struct mapping *m = mapping_find(p->mappings, p->nmappings, image->blob.start + bias);

	image_report(m ? m->image : NULL, out);
	report_text(out, "version", NULL, "%s", image->version);
	report_text(out, "GC64", luajit_gc64(image->layout) ? "references have 64 bits" : "references have 32 bits",
	        "%s", luajit_gc64(image->layout) ? "yes" : "no");
	report_text(out, "load bias", NULL, "0x%lx", bias);
}

static void report_code(const struct luajit_blob *blob, u64 bias, struct report *out)
{
	static const char *const parts[] = {[LUAJIT_GLUE] = "glue and helpers",
	        [LUAJIT_INTERP] = "interpreter",
	        [LUAJIT_INTERP_8] = "one word pushed",
	        [LUAJIT_INTERP_16] = "before a trace",
	        [LUAJIT_ENTER] = "entered from C",
	        [LUAJIT_LEAVE] = "left to C",
	        [LUAJIT_CALL] = "calls",
	        [LUAJIT_EXIT] = "trace exits",
	        [LUAJIT_TRACE] = ""};
	u64 bytes[LUAJIT_TRACE + 1] = {[LUAJIT_INTERP] = blob->end - blob->start};

	for (u32 i = 0; i < blob->nstretches; i++) {
		bytes[blob->stretches[i].part] += blob->stretches[i].end - blob->stretches[i].start;
		bytes[LUAJIT_INTERP] -= blob->stretches[i].end - blob->stretches[i].start;
	}
	report_section(out, "code", NULL);
	report_text(out, "range", NULL, "0x%lx-0x%lx", blob->start + bias, blob->end + bias);
	report_number(out, "unwind rows", blob->nentries, NULL);
	for (u32 i = 0; i < LUAJIT_TRACE; i++)
		report_number(out, parts[i], (s64)bytes[i], "bytes");
}

/* --- one VM --- */

static u64 read_g(const struct vm *vm, struct layout_member member)
{
	return luajit_vms_read(vm->memory, vm->g, member);
}

static u64 read_j(const struct vm *vm, struct layout_member member)
{
	return luajit_vms_read(vm->memory, vm->j, member);
}

static void report_state(const struct vm *vm, struct report *out)
{
	static const char *const words[] = {"interpreter", "C function", "garbage collector", "trace exit",
	        "trace recorder", "trace optimizer", "trace assembler"};
	s32 state = (s32)read_g(vm, vm->layout->g_vmstate);

	if (state > 0)
		report_text(out, "state", "on a trace", "trace %d", state);
	else if (~state >= 0 && ~state <= VMSTATE_ASM)
		report_text(out, "state", NULL, "%s", words[~state]);
	else
		report_text(out, "state", "unknown", "%d", state);
}

static void report_jit(const struct vm *vm, struct report *out)
{
	u32 flags = (u32)read_j(vm, vm->layout->j_flags);
	char list[256] = "";
	int n = 0;

	for (u32 i = 0; i < sizeof(optimisations) / sizeof(*optimisations); i++)
		if (flags & 1u << (FLAG_OPT + i))
			n += snprintf(list + n, sizeof(list) - n, "%s%s", n ? " " : "", optimisations[i]);
	report_text(out, "JIT", NULL, "%s", flags & FLAG_ON ? "on" : "off");
	report_text(out, "optimisations", NULL, "%s", n ? list : "none");
}

/* Number 0 is unused; the one being compiled is not in the heap yet, but in jit_State. False: unreadable. */
static bool count_traces(const struct vm *vm, u64 *live, u64 *bytes)
{
	const struct luajit_layout *l = vm->layout;
	u64 array = read_j(vm, l->j_trace), n = read_j(vm, l->j_sizetrace);
	u32 size = l->l_glref.size;
	cleanup(free) u8 *refs = n <= TRACES_MAX ? calloc(n + 1, size) : NULL;

	*live = *bytes = 0;
	if (!refs || (n && !memory_read(vm->memory, refs, n * size, array)))
		return false;
	for (u64 i = 1; i < n; i++) {
		u64 trace = size == 8 ? ((u64 *)refs)[i] : ((u32 *)refs)[i];

		if (!trace || trace - vm->gg < l->gg_dispatch.at)
			continue;
		(*live)++;
		*bytes += (u32)luajit_vms_read(vm->memory, trace, l->trace_szmcode);
	}
	return true;
}

static void report_traces(const struct vm *vm, struct report *out)
{
	u64 live, bytes;

	if (!count_traces(vm, &live, &bytes)) {
		report_text(out, "traces", "the array of traces can not be read", "?");
		return;
	}
	report_number(out, "traces", (s64)live, NULL);
	report_number(out, "code of traces", (s64)bytes, "bytes");
}

/* Most areas lie side by side. */
static void report_areas(const struct luajit_image *image, const struct vm *vm, struct report *out)
{
	cleanup(free) struct luajit_area *areas = calloc(AREAS_MAX, sizeof(*areas));
	u32 n = areas ? luajit_vms_areas(image, vm->memory, vm->g, areas, AREAS_MAX) : 0;
	u64 start, end;

	for (u32 i = 0; i < n;) {
		start = areas[i].start;
		end = areas[i++].end;
		for (; i < n && (areas[i].end == start || areas[i].start == end); i++) {
			start = areas[i].end == start ? areas[i].start : start;
			end = areas[i].start == end ? areas[i].end : end;
		}
		report_text(out, "code", NULL, "0x%lx-0x%lx", start, end);
	}
	report_number(out, "code areas", n, NULL);
	report_number(out, "bytes of code areas", (s64)read_j(vm, vm->layout->j_szallmcarea), NULL);
	if (!areas)
		out->no_memory = true;
}

static void report_vm(const struct luajit_image *image, struct memory *memory, u64 g, struct report *out)
{
	const struct luajit_layout *l = image->layout;
	struct vm vm = {.layout = l, .memory = memory, .gg = g - l->gg_g.at, .g = g};
	char subject[32];

	vm.j = vm.gg + l->gg_j.at;
	snprintf(subject, sizeof(subject), "0x%lx", g);
	report_section(out, "vm", subject);
	report_text(out, "main thread", "lua_State", "0x%lx", read_g(&vm, l->g_mainthref));
	report_text(out, "running thread", "lua_State", "0x%lx", read_g(&vm, l->g_cur_l));
	report_state(&vm, out);
	report_number(out, "heap", (s64)read_g(&vm, l->g_gc_total), "bytes");
	report_jit(&vm, out);
	report_traces(&vm, out);
	report_areas(image, &vm, out);
}

static void report_checks(
        const struct luajit_image *image, u64 bias, const struct runtime_process *p, u64 g, struct report *out)
{
	struct luajit_checked vm = {.l = image->layout, .p = p, .g = g};
	int found[RUNTIME_CHECKS_MAX];
	char of[32];

	snprintf(of, sizeof(of), "of vm 0x%lx", g);
	runtime_check(&luajit_checks, &vm, found);
	if (luajit_vms_is_vm(image, bias, p->memory, g)) {
		runtime_check_report(&luajit_checks, found, of, out);
	} else {
		report_section(out, "checks", of);
		report_text(out, "VM", "not to be trusted", "closed meanwhile");
	}
}

static void report_search(const struct luajit_vms *vms, struct report *out)
{
	report_section(out, "search", NULL);
	report_number(out, "VMs", vms->n, vms->n ? NULL : "none is open");
	report_number(out, "memory searched", (s64)vms->searched, "bytes in use");
	if (vms->left)
		report_number(out, "not searched", (s64)vms->left,
		        "bytes of the largest mappings: VMs in them are not shown");
}

struct error *luajit_inspect(
        const struct luajit_image *image, u64 bias, const struct runtime_process *p, struct report *out)
{
	struct luajit_vms vms;
	struct error *err = luajit_vms_find(image, bias, p, LUAJIT_VMS_MEMORY, &vms);

	if (err)
		return err;
	report_module(image, bias, p, out);
	report_code(&image->blob, bias, out);
	report_search(&vms, out);
	for (u32 i = 0; i < vms.n; i++) {
		report_vm(image, p->memory, vms.g[i], out);
		report_checks(image, bias, p, vms.g[i], out);
	}
	layout_report(image->origins, out);
	free(vms.g);
	return NULL;
}
