/* SPDX-License-Identifier: Apache-2.0 */
#include "python_image.h"

#include <capstone/capstone.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "binary/endbr64.h"
#include "cfi/cfi.h"
#include "cleanup.h"
#include "code/disassembler.h"
#include "process/copies.h"
#include "python_flow.h"
#include "symbols/symbols.h"

#define BEGINNING_MAX 512 /* instructions up to the store that links */
#define END_MAX       512 /* instructions from a store that unlinks to all returns */
#define ROUNDS_MAX    64

enum mark {
	ARRIVES = FLOW_OWN,     /* at the store that links, or out of the function */
	OUTSIDE = 2 * FLOW_OWN, /* before that store, or behind one that unlinks */
};

/* Perhaps to PyThreadState.frame, which is at an offset. */
static u32 stores(const cs_insn *in, const void *ts_frame)
{
	const cs_x86_op *to = &in->detail->x86.operands[0], *from = &in->detail->x86.operands[1];

	bool is = in->id == X86_INS_MOV && to->type == X86_OP_MEM && from->type == X86_OP_REG && to->size == 8 &&
	          to->mem.index == X86_REG_INVALID && to->mem.segment == X86_REG_INVALID &&
	          to->mem.disp == *(const u16 *)ts_frame && to->mem.base != X86_REG_RSP && to->mem.base != X86_REG_RIP;

	return is ? FLOW_STOPS : 0;
}

/* The first store on the straight way from the function's start. */
static u32 find_link(const struct python_flow *c, u64 start)
{
	u32 i = python_flow_find(c, start);

	for (u32 n = 0; n < BEGINNING_MAX && i != FLOW_NOWHERE && !(c->insns[i].flags & FLOW_STOPS); n++)
		i = python_flow_next(c, i) != FLOW_NOWHERE ? python_flow_next(c, i) : python_flow_jump(c, i);
	return i != FLOW_NOWHERE && (c->insns[i].flags & FLOW_STOPS) ? i : FLOW_NOWHERE;
}

static bool arrives(const struct python_flow *c, u32 i)
{
	return i != FLOW_NOWHERE && (c->insns[i].flags & ARRIVES);
}

/*
 * What lies between the start and the store that links, or leads from there out of the function again. Code behind a
 * call that never returns is reached as well, but leads elsewhere.
 */
static void mark_beginning(struct python_flow *c, u64 start, u32 link)
{
	bool more = true;
	u32 flags;

	python_flow_explore(c, python_flow_find(c, start), &flags);
	c->insns[link].flags |= ARRIVES;
	for (u32 round = 0; more && round < ROUNDS_MAX; round++) {
		more = false;
		for (u32 i = c->n; i-- > 0;) {
			struct python_insn *in = &c->insns[i];

			if (!(in->flags & FLOW_REACHED) || (in->flags & (ARRIVES | FLOW_STOPS)) ||
			        !((in->flags & FLOW_RETURNS) || arrives(c, python_flow_next(c, i)) ||
			                arrives(c, python_flow_jump(c, i))))
				continue;
			in->flags |= ARRIVES;
			more = true;
		}
	}
	for (u32 i = 0; i < c->n; i++)
		if (c->insns[i].flags & ARRIVES)
			c->insns[i].flags |= OUTSIDE;
}

/* Behind a store that all ways from lead out of the function; other members at the same offset are stored to elsewhere.
 */
static bool mark_end(struct python_flow *c, u32 store)
{
	u32 flags, n = python_flow_explore(c, python_flow_next(c, store), &flags);

	if (n > END_MAX || (flags & (FLOW_DISPATCHES | FLOW_STOPS)) || !(flags & FLOW_RETURNS))
		return false;
	for (u32 i = 0; i < c->n; i++)
		if (c->insns[i].flags & FLOW_REACHED)
			c->insns[i].flags |= OUTSIDE;
	return true;
}

static bool collect(const struct python_flow *c, struct python_eval *ret)
{
	for (u32 i = 0; i < c->n; i++) {
		const struct python_insn *in = &c->insns[i];
		struct python_range *last = ret->noutside ? &ret->outside[ret->noutside - 1] : NULL;

		if (!(in->flags & OUTSIDE))
			continue;
		if (last && last->end == in->addr)
			last->end += in->size;
		else if (ret->noutside == PYTHON_RANGES_MAX)
			return false;
		else
			ret->outside[ret->noutside++] = (struct python_range){in->addr, in->addr + in->size};
	}
	return true;
}

/*
 * Up to 3.10: fills ret->outside. A native frame is linked by its first store to PyThreadState.frame, at the offset
 * ts_frame, and unlinked by stores there that lead to nothing but the function's end.
 */
static struct error *python_linked_find(struct image *img, u16 ts_frame, struct python_eval *ret)
{
	cleanup(python_flow) struct python_flow c = {0};
	u64 start = ret->ranges[0].start;
	u32 link, ends = 0;

	ret->noutside = 0;
	if (python_flow_decode(img, ret->ranges, ret->n, stores, &ts_frame, &c) &&
	        (link = find_link(&c, start)) != FLOW_NOWHERE) {
		mark_beginning(&c, start, link);
		for (u32 i = 0; i < c.n; i++)
			if ((c.insns[i].flags & FLOW_STOPS) && i != link)
				ends += mark_end(&c, i);
	}
	if (ends && collect(&c, ret))
		return NULL;
	return error_hint(error_new(ERROR_UNSUPPORTED,
	                          "%s: the eval loop at 0x%lx links its frames in a way that yrt does not know",
	                          img->path, start),
	        "its Python frames are left out; was it built without optimization?");
}

#define BYTES_MAX 128

/* "3.9.2", in a string of the file. */
static u32 parse(struct image *img, u64 addr)
{
	char text[16] = "";
	unsigned minor, micro;

	if (!image_read(img, text, sizeof(text) - 1, addr) || sscanf(text, "3.%2u.%3u", &minor, &micro) != 2)
		return 0;
	return 3u << 24 | (minor & 0xff) << 16 | (micro & 0xff) << 8;
}

/* An address that an instruction puts into a register. */
static u64 address(const cs_insn *in)
{
	const cs_x86_op *from = &in->detail->x86.operands[1];

	if (in->detail->x86.op_count != 2 || in->detail->x86.operands[0].type != X86_OP_REG)
		return 0;
	if (in->id == X86_INS_LEA && from->mem.base == X86_REG_RIP)
		return in->address + in->size + (u64)from->mem.disp;
	return in->id == X86_INS_MOV && from->type == X86_OP_IMM ? (u64)from->imm : 0;
}

struct search {
	struct image *img;
	u32 version;
};

static bool look(void *ctx, const cs_insn *in)
{
	struct search *s = ctx;

	s->version = parse(s->img, address(in));
	return !s->version && in->id != X86_INS_RET;
}

/* Up to 3.10 only Py_GetVersion() gives it; it puts its text together from constants, of which PY_VERSION is one. */
static u32 by_code(struct image *img)
{
	struct search s = {.img = img};
	struct symbol function;

	if (symbols_lookup(img, "Py_GetVersion", &function))
		code_each(img, function.start, function.start + BYTES_MAX, look, &s);
	return s.version;
}

/* PY_VERSION_HEX, in Py_Version from 3.11 on; before without its last byte, from the text that Py_GetVersion() makes.
 * 0: unknown. */
static u32 python_version(struct image *img)
{
	struct symbol s;
	u32 version;

	if (symbols_lookup(img, "Py_Version", &s) && image_read(img, &version, sizeof(version), s.start))
		return version;
	return by_code(img);
}

/* Where a lost walk can resume: most of the loop has one rule, which holds wherever its frame is set up. */

#define STRIDE    16
#define MOSTLY(n) ((n) / 4 * 3) /* of the loop */

static bool is_torn(const struct python_eval *eval, u64 addr)
{
	for (u32 i = 0; i < eval->ntorn; i++)
		if (addr >= eval->torn[i].start && addr < eval->torn[i].end)
			return true;
	return false;
}

static bool is_plain(const struct cfi_rule *rule)
{
	return rule->kind == CFI_REG && (rule->cfa_reg == REG_SP || rule->cfa_reg == REG_FP) && rule->cfa_off > 0 &&
	       rule->ra_reg == CFI_NO_REG;
}

/* How many places of the loop have this rule. */
static u32 count(struct image *img, const struct python_range *loop, const struct cfi_rule *rule)
{
	struct cfi_rule other;
	u32 n = 0;

	for (u64 at = loop->start; at < loop->end; at += STRIDE)
		n += cfi_find(img->cfi, at, &other) && !memcmp(&other, rule, sizeof(other));
	return n;
}

/*
 * Fills the place where a lost walk resumes (vm->resume_…): in the middle of the loop, with the rule of most of it. Not
 * where bytecodes are functions, and not up to 3.10, where nothing shows where the native frame is.
 */
static void python_resume_find(struct image *img, const struct python_eval *eval, struct python_vm *vm)
{
	const struct python_range *loop = &eval->ranges[0];
	u64 from = eval->link_end > loop->start ? eval->link_end : loop->start;
	struct cfi_rule rule;

	if (!img->cfi || !eval->n || !eval->dispatches)
		return;
	for (u64 at = from + (loop->end - from) / 2; at < loop->end; at += STRIDE) {
		if (is_torn(eval, at) || !cfi_find(img->cfi, at, &rule) || !is_plain(&rule))
			continue;
		if (count(img, loop, &rule) < MOSTLY((loop->end - loop->start) / STRIDE))
			return;
		vm->resume_pc = at + ARCH_CALL_BACK;
		vm->resume_reg = rule.cfa_reg;
		vm->resume_off = (u32)rule.cfa_off;
		return;
	}
}

#define OLDEST        0x03060000
#define NEWEST        0x03100000 /* below 3.16 */
#define NO_RUNTIME    0x03070000 /* below 3.7 there is no _PyRuntime */
#define FRAME_OBJECTS 0x030b0000 /* below 3.11 */
#define JIT           0x030e0000 /* from 3.14 on */
#define TLS           0x030e0000 /* in development versions after 3.14, and from 3.15 on */

/* Variables that a Python exports; the last one only from 3.7 on. */
static const struct copies_variable variables[] = {
        {"PyCode_Type", offsetof(struct python_image, code_type)},
        {"PyFrame_Type", offsetof(struct python_image, frame_type)},
        {"PyType_Type", offsetof(struct python_image, types.type)},
        {"PyTuple_Type", offsetof(struct python_image, types.tuple)},
        {"PyBytes_Type", offsetof(struct python_image, types.bytes)},
        {"PyUnicode_Type", offsetof(struct python_image, types.str)},
        {"PyFunction_Type", offsetof(struct python_image, types.function)},
        {"PyLong_Type", offsetof(struct python_image, types.integer)},
        {"PyBool_Type", offsetof(struct python_image, types.boolean)},
        {"PyFloat_Type", offsetof(struct python_image, types.real)},
        {"PyList_Type", offsetof(struct python_image, types.list)},
        {"PyDict_Type", offsetof(struct python_image, types.dict)},
        {"PyCoro_Type", offsetof(struct python_image, coro_type)},
        {"_PyRuntime", offsetof(struct python_image, runtime)},
};
#define NVARIABLES (sizeof(variables) / sizeof(*variables))

void python_image_destroy(void *data)
{
	struct python_image *image = data;

	layout_destroy(image->origins);
	free(image);
}

static struct error *unsupported(const struct image *img, u32 version)
{
	struct error *err;

	if (!version)
		err = error_new(ERROR_UNSUPPORTED, "%s holds a Python of unknown version", img->path);
	else
		err = error_new(
		        ERROR_UNSUPPORTED, "%s holds Python %u.%u", img->path, version >> 24, version >> 16 & 0xff);
	return error_hint(err, "its Python frames are left out: yrt knows 3.6 to 3.15");
}

/* What the list of interpreters begins at: _PyRuntime, of which a member does; up to 3.6 what PyInterpreterState_Head()
 * loads. */
static bool find_runtime(struct image *img, u32 version, u64 *ret)
{
	struct symbol s;
	u8 code[16];
	s32 displacement;
	u32 at = 0;

	if (version >= NO_RUNTIME) {
		*ret = symbols_lookup(img, "_PyRuntime", &s) ? s.start : 0;
		return *ret;
	}
	if (!symbols_lookup(img, "PyInterpreterState_Head", &s) || !image_read(img, code, sizeof(code), s.start))
		return false;
	if (is_endbr64(code))
		at = ENDBR64_SIZE;
	if (memcmp(code + at, "\x48\x8b\x05", 3)) /* mov displacement(%rip), %rax */
		return false;
	memcpy(&displacement, code + at + 3, sizeof(displacement));
	*ret = s.start + at + 7 + (u64)(s64)displacement;
	return true;
}

static struct error *find_symbols(struct image *img, struct python_image *image)
{
	struct symbol s;

	if (!find_runtime(img, image->version, &image->runtime))
		return error_new(ERROR_UNSUPPORTED, "%s holds Python without its symbol _PyRuntime", img->path);
	for (u32 i = 0; i < NVARIABLES - 1; i++) {
		if (!symbols_lookup(img, variables[i].name, &s))
			return error_new(ERROR_UNSUPPORTED, "%s holds Python without its symbol %s", img->path,
			        variables[i].name);
		memcpy((u8 *)image + variables[i].at, &s.start, sizeof(s.start));
	}
	return NULL;
}

struct error *python_image_copied(
        const struct python_image *image, u64 bias, const struct runtime_process *p, struct python_image **ret)
{
	void *copy;
	struct error *err = copies_apply(p, bias, variables, NVARIABLES, image, sizeof(*image), &copy);
	u64 moved;

	*ret = copy;
	if (err || !copy || image->version < NO_RUNTIME)
		return err;
	moved = (*ret)->runtime - image->runtime;
	(*ret)->key += image->key ? moved : 0;
	(*ret)->current += image->current ? moved : 0;
	return NULL;
}

static u64 find_current(struct image *img, const struct python_image *image)
{
	struct symbol s;

	if (image->vm.linkage != PYTHON_FRAME_OBJECT)
		return 0;
	if (image->version < NO_RUNTIME)
		return symbols_lookup(img, "_PyThreadState_Current", &s) ? s.start : 0;
	return image->layout->runtime_current.size == 8 ? image->runtime + image->layout->runtime_current.at : 0;
}

/* A build with Py_DEBUG: what else is inlined, as a frame's end, is called. */
static bool is_debug(struct image *img)
{
	struct symbol s;

	return symbols_lookup(img, "_Py_NegativeRefcount", &s);
}

/* How native frames of the eval loop lead to Python frames. */
static struct error *find_links(struct image *img, struct python_image *image)
{
	struct error *err;

	if (image->vm.linkage == PYTHON_FRAME_OBJECT)
		return python_linked_find(img, image->vm.ts_frame, &image->eval);
	err = python_entry_find(img, &image->vm, image->layout->ts_cframe.at, &image->eval);
	image->vm.cframe_below = image->eval.cframe_below;
	image->vm.entry_below = image->eval.entry_below;
	image->vm.calls_late = !image->eval.dispatches || is_debug(img);
	if (!err && image->vm.linkage != PYTHON_NO_CFRAME)
		python_torn_find(img, &image->vm, &image->eval);
	if (!err && !image->eval.dispatches)
		err = python_inlined_find(img, &image->vm, image->layout->gen_frame.at, &image->eval);
	if (!err)
		python_resume_find(img, &image->eval, &image->vm);
	memcpy(image->vm.inlined_below, image->eval.below, sizeof(image->vm.inlined_below));
	return err;
}

static struct error *probe(struct image *img, u64 start, u64 end, struct python_image *image)
{
	struct error *err;

	image->version = python_version(img);
	if (image->version < OLDEST || image->version >= NEWEST)
		return unsupported(img, image->version);
	err = find_symbols(img, image);
	if (!err)
		err = python_layout_find(img, image->version >> 8, &image->origins);
	if (err)
		return err;
	image->layout = image->origins->values;
	image->vm = python_vm_of(image->layout);
	image->current = find_current(img, image);
	if (image->version >= TLS)
		image->tls = python_tls_find(img);
	if (!image->tls.model)
		image->key = python_tls_key(img, image->runtime);
	if ((image->vm.linkage == PYTHON_FRAME_OBJECT) != (image->version < FRAME_OBJECTS))
		return error_new(ERROR_UNSUPPORTED, "%s: the layout found for it belongs to another version of Python",
		        img->path);
	if (image->version >= JIT)
		image->jit = python_jit_find(img, start);
	err = python_eval_find(img, start, end, &image->eval);
	return err ? err : find_links(img, image);
}

static struct error *pypy(struct image *img)
{
	struct symbol s;

	if (!symbols_lookup(img, "pypy_execute_source", &s))
		return NULL;
	return error_hint(error_new(ERROR_UNSUPPORTED, "%s is PyPy", img->path),
	        "its Python frames are left out: yrt knows CPython");
}

struct error *python_image_probe(struct image *img, void **ret)
{
	struct python_image *image;
	struct symbol eval;
	struct error *err;

	*ret = NULL;
	if (!symbols_lookup(img, "_PyEval_EvalFrameDefault", &eval))
		return pypy(img);
	if (img->machine != EM_X86_64)
		return NULL;
	image = calloc(1, sizeof(*image));
	if (!image)
		return &error_no_memory;
	err = probe(img, eval.start, eval.end, image);
	if (err) {
		python_image_destroy(image);
		return err;
	}
	*ret = image;
	return NULL;
}
