/* SPDX-License-Identifier: Apache-2.0 */
#include "perl_image.h"

#include <stdlib.h>
#include <string.h>

#include "cfi/cfi.h"
#include "code/capstone_registers.h"
#include "code/disassembler.h"
#include "process/copies.h"
#include "symbols/symbols.h"

#define CODE_MAX (64u << 10) /* of a function */

struct scan {
	void (*look)(const cs_insn *in, struct scan *s);
	struct image *img;
	const struct perl_layout *l;
	struct perl_code *code;
	u64 start, end;   /* of the function */
	u64 runops, op;   /* PL_runops and PL_op, without MULTIPLICITY */
	x86_reg argument; /* what %rsi was moved from; X86_REG_INVALID: anything else */
	u64 counts;       /* the newest context, from behind this address on; 0: not seen */
	u64 complete;     /* its members are stored, up to this address */
	u64 catch;        /* docatch(); 0: not seen */
	u64 popped;       /* the innermost context, from behind this address to the return; 0: not seen */
	u64 returned;     /* to the loop, from a function of an op, and its result was not stored; 0: not seen */
	bool typed;       /* the type of the newest context was stored */
	bool late;        /* it is stored last */
	bool loops;       /* a call of a loop was seen */
	bool enters;      /* any other call by a pointer */
};

static void add(struct perl_code *code, u64 start, u64 end, u32 part)
{
	if (code->n < PERL_SITES_MAX)
		code->sites[code->n++] = (struct perl_site){start, end, (u8)part};
}

static bool look_at(void *ctx, const cs_insn *in)
{
	struct scan *s = ctx;

	s->look(in, s);
	return true;
}

/* Feeds the instructions of [s->start, s->end) to look(). */
static void scan(struct scan *s, void (*look)(const cs_insn *in, struct scan *s))
{
	s->look = look;
	if (s->end - s->start <= CODE_MAX)
		code_each(s->img, s->start, s->end, look_at, s);
}

static bool function(struct scan *s, const char *name)
{
	struct symbol symbol;

	if (!symbols_lookup(s->img, name, &symbol))
		return false;
	s->start = symbol.start;
	s->end = symbol.end;
	return true;
}

/* Ops whose functions matter: those from OP_ENTEREVAL on push a context, those from OP_LEAVESUB on take one away. */
enum op {
	OP_NULL,
	OP_NEXTSTATE,
	OP_DBSTATE,
	OP_ENTERSUB,
	OP_ENTERTRY,
	OP_SORT,
	OP_ENTEREVAL,
	OP_ENTER,
	OP_ENTERLOOP,
	OP_ENTERITER,
	OP_SUBST,
	OP_LEAVESUB,
	OP_LEAVESUBLV,
	OP_LEAVEEVAL,
	OP_LEAVEWRITE,
	OP_SCOPE,
	OPS
};
static const char *const op_names[OPS] = {"null", "nextstate", "dbstate", "entersub", "entertry", "sort", "entereval",
        "enter", "enterloop", "enteriter", "subst", "leavesub", "leavesublv", "leaveeval", "leavewrite", "scope"};

struct ops {
	u64 functions[OPS];
	u32 types[OPS];
	u64 calls[8];
};

/* A context's retop is what follows one of these (pp_hot.c, pp_ctl.c, pp_sys.c). */
static const char *const call_names[] = {
        "entersub", "entereval", "require", "dofile", "leavetry", "leavetrycatch", "enterwrite"};

static bool take_op(void *ctx, u32 type, const char *op, u64 function)
{
	struct ops *ops = ctx;

	for (u32 i = 0; i < sizeof(call_names) / sizeof(*call_names); i++)
		if (!strcmp(op, call_names[i]) && type < 64 * 8)
			ops->calls[type / 64] |= 1ull << type % 64;
	for (u32 i = 0; i < OPS; i++)
		if (!strcmp(op, op_names[i])) {
			ops->functions[i] = function;
			ops->types[i] = type;
		}
	return false;
}

/* From an address to the end of its function. */
static bool function_at(struct scan *s, u64 addr)
{
	const struct cfi_fde *fde = addr ? cfi_fde_at(s->img->cfi, addr) : NULL;

	if (!fde || fde->start != addr)
		return false;
	s->start = fde->start;
	s->end = fde->end;
	return true;
}

static bool is_indirect(const cs_insn *in)
{
	return in->id == X86_INS_CALL && in->detail->x86.operands[0].type != X86_OP_IMM;
}

/* pp_entersub() calls a function in C by CvXSUB(cv)(aTHX_ cv): the only calls there by a pointer. */
static void look_for_xs(const cs_insn *in, struct scan *s)
{
	const cs_x86_op *to = &in->detail->x86.operands[0], *from = &in->detail->x86.operands[1];
	x86_reg self = s->l->i_op.size ? X86_REG_RSI : X86_REG_RDI; /* without MULTIPLICITY there is no aTHX */
	u32 reg;

	if (is_indirect(in)) {
		reg = s->argument ? capstone_register(s->argument) : ARCH_NREGS;
		add(s->code, in->address, in->address + in->size, PERL_XS + (reg < ARCH_NREGS ? reg : ARCH_NREGS));
		s->code->nxs++;
	} else if (in->id == X86_INS_MOV && to->type == X86_OP_REG && to->reg == self) {
		s->argument = from->type == X86_OP_REG ? from->reg : X86_REG_INVALID;
	}
}

static bool fills(const cs_insn *in, u32 size, s64 at)
{
	const cs_x86_op *to = &in->detail->x86.operands[0];

	return in->id == X86_INS_MOV && to->type == X86_OP_MEM && to->size == size && to->mem.disp == at &&
	       to->mem.index == X86_REG_INVALID && to->mem.segment == X86_REG_INVALID && to->mem.base != X86_REG_RSP &&
	       to->mem.base != X86_REG_RIP;
}

static bool stores(const cs_insn *in, u32 size, s64 at)
{
	return fills(in, size, at) && in->detail->x86.operands[1].type == X86_OP_REG;
}

/* Where a context is pushed: si_cxix is stored, and later cv and retop; they are in one piece of code. */
static void look_for_push(const cs_insn *in, struct scan *s)
{
	if (!s->counts && stores(in, 4, s->l->si_cxix.at))
		s->counts = in->address + in->size;
	if (s->counts && (stores(in, 8, s->l->cx_cv.at) || stores(in, 8, s->l->cx_retop.at)) &&
	        in->address - s->counts < 512)
		s->complete = in->address + in->size;
}

static bool counts(const cs_insn *in, const struct scan *s)
{
	const cs_x86_op *to = &in->detail->x86.operands[0];

	return (in->id == X86_INS_MOV || in->id == X86_INS_ADD || in->id == X86_INS_SUB || in->id == X86_INS_INC ||
	               in->id == X86_INS_DEC) &&
	       to->type == X86_OP_MEM && to->size == 4 && to->mem.disp == s->l->si_cxix.at &&
	       to->mem.index == X86_REG_INVALID && to->mem.base != X86_REG_RSP && to->mem.base != X86_REG_RIP;
}

/* The same of any context: its type is stored within some instructions, an eval's other members later. */
static void look_for_context(const cs_insn *in, struct scan *s)
{
	if (!s->typed && counts(in, s)) {
		s->counts = in->address + in->size;
	} else if (s->counts && !s->typed && fills(in, 1, 0) && in->address - s->counts < (s->late ? 512 : 64)) {
		s->typed = true;
		s->complete = in->address + in->size;
	} else if (s->typed && !s->late && in->address - s->counts < 256 &&
	           (fills(in, 8, s->l->cx_oldcop.at) || fills(in, 8, s->l->cx_eval_retop.at) ||
	                   fills(in, 8, s->l->cx_namesv.at))) {
		s->complete = in->address + in->size;
	}
}

/* Where a context is taken away, up to the return or jump that comes next. */
static void look_for_pop(const cs_insn *in, struct scan *s)
{
	if (counts(in, s))
		s->popped = in->address + in->size;
	if (!s->popped || (in->id != X86_INS_RET && in->id != X86_INS_JMP))
		return;
	add(s->code, s->popped, in->address + in->size, PERL_POPPED);
	s->popped = 0;
}

/* docatch() puts the old PL_op back before it returns. */
static void look_for_old_op(const cs_insn *in, struct scan *s)
{
	const cs_x86_op *to = &in->detail->x86.operands[0];

	if (in->id == X86_INS_MOV && to->type == X86_OP_MEM && to->size == 8 &&
	        (s->l->i_op.size ? fills(in, 8, s->l->i_op.at)
	                         : to->mem.base == X86_REG_RIP && in->address + in->size + (u64)to->mem.disp == s->op))
		s->popped = in->address + in->size;
	else if (in->id == X86_INS_CALL || in->id == X86_INS_JMP)
		s->popped = 0;
	if (!s->popped || in->id != X86_INS_RET)
		return;
	add(s->code, s->popped, in->address + in->size, PERL_DONE);
	s->popped = 0;
}

static bool is_loop(const struct scan *s, const cs_insn *in, const cs_x86_op *op)
{
	if (op->type != X86_OP_MEM)
		return false;
	if (s->l->i_op.size)
		return op->mem.base != X86_REG_RIP && op->mem.disp == s->l->i_runops.at;
	return op->mem.base == X86_REG_RIP && in->address + in->size + (u64)op->mem.disp == s->runops;
}

static void look_for_loop(const cs_insn *in, struct scan *s)
{
	if (is_indirect(in) && is_loop(s, in, &in->detail->x86.operands[0]) && s->code->nentries < PERL_ENTRIES_MAX)
		s->code->entries[s->code->nentries++] = in->address + in->size;
}

/* call_sv() and the like call pp_entersub() or pp_entereval() by a pointer, as they call the loop, which is at
 * PL_runops. */
static void look_for_enter(const cs_insn *in, struct scan *s)
{
	s->enters |= is_indirect(in) && !is_loop(s, in, &in->detail->x86.operands[0]);
}

static void look_whether_loops(const cs_insn *in, struct scan *s)
{
	s->loops |= is_indirect(in) && is_loop(s, in, &in->detail->x86.operands[0]);
}

/* pp_entertry() ends with a jump to docatch(), or calls it: of all that it calls the one that runs a loop. */
static void look_for_catch(const cs_insn *in, struct scan *s)
{
	const cs_x86_op *op = &in->detail->x86.operands[0];
	struct scan there = *s;

	if ((in->id != X86_INS_JMP && in->id != X86_INS_CALL) || op->type != X86_OP_IMM || s->catch ||
	        ((u64)op->imm >= s->start && (u64)op->imm < s->end) || !function_at(&there, (u64)op->imm))
		return;
	there.loops = false;
	scan(&there, look_whether_loops);
	if (!there.loops)
		return;
	add(s->code, there.start, there.end, PERL_CATCH);
	s->code->catches = true;
	s->catch = there.start;
}

/* A loop calls the function of an op by a pointer in the op, and stores the result to PL_op. */
static void look_for_next(const cs_insn *in, struct scan *s)
{
	const cs_x86_op *to = &in->detail->x86.operands[0], *from = &in->detail->x86.operands[1];

	if (s->returned && in->id == X86_INS_MOV && to->type == X86_OP_MEM && from->type == X86_OP_REG &&
	        from->reg == X86_REG_RAX)
		add(s->code, s->returned, in->address + in->size, PERL_NEXT);
	s->returned =
	        is_indirect(in) && to->type == X86_OP_MEM && to->mem.base != X86_REG_RIP ? in->address + in->size : 0;
}

static void find_context(struct scan *s, bool late)
{
	s->counts = s->complete = 0;
	s->typed = false;
	s->late = late;
	scan(s, look_for_context);
	if (s->complete)
		add(s->code, s->counts, s->complete, PERL_PUSHING);
}

static void find_functions(struct scan *s)
{
	static const struct {
		const char *name;
		enum perl_part part;
	} functions[] = {
	        {"Perl_runops_standard", PERL_RUNOPS},
	        {"Perl_runops_debug", PERL_RUNOPS},
	        {"perl_run", PERL_RUN},
	        {"Perl_regexec_flags", PERL_REGEXEC},
	        {"Perl_die_unwind", PERL_UNWIND},
	        {"Perl_yyparse", PERL_COMPILE},
	        {"Perl_create_eval_scope", PERL_SCOPE},
	        {"Perl_delete_eval_scope", PERL_SCOPE},
	};

	for (u32 i = 0; i < sizeof(functions) / sizeof(*functions); i++)
		if (function(s, functions[i].name))
			add(s->code, s->start, s->end, functions[i].part);
	if (function(s, "Perl_runops_standard"))
		scan(s, look_for_next);
	if (function(s, "Perl_create_eval_scope"))
		find_context(s, false);
}

static void find_ops(struct scan *s, const u64 *ops)
{
	if (function_at(s, ops[OP_SORT]))
		add(s->code, s->start, s->end, PERL_SORT);
	if (function_at(s, ops[OP_ENTERSUB])) {
		s->counts = s->complete = 0;
		scan(s, look_for_xs);
		scan(s, look_for_push);
	}
	if (s->complete) {
		add(s->code, s->counts, s->complete, PERL_PUSHING);
		s->code->pushes = true;
	}
	if (function_at(s, ops[OP_ENTERTRY]))
		scan(s, look_for_catch);
	for (u32 i = OP_ENTEREVAL; i < OP_LEAVESUB; i++)
		if (function_at(s, ops[i]))
			find_context(s, i == OP_SUBST);
	for (u32 i = OP_LEAVESUB; i <= OP_LEAVEWRITE; i++)
		if (function_at(s, ops[i])) {
			s->popped = 0;
			scan(s, look_for_pop);
		}
}

/* All that is code, for image->code. */
static void scan_all(struct image *img, struct perl_image *image, const struct ops *ops)
{
	static const char *const enters[] = {"Perl_call_sv", "Perl_eval_sv", "Perl_amagic_call"};
	struct scan s = {.img = img, .l = image->layout, .code = &image->code};
	struct symbol runops, op;

	s.runops = symbols_lookup(img, "PL_runops", &runops) ? runops.start : 0;
	s.op = symbols_lookup(img, "PL_op", &op) ? op.start : 0;
	find_functions(&s);
	find_ops(&s, ops->functions);
	for (u32 i = 0; i < sizeof(enters) / sizeof(*enters); i++)
		if (function(&s, enters[i])) {
			s.enters = false;
			scan(&s, look_for_enter);
			scan(&s, look_for_loop);
			if (s.enters)
				add(s.code, s.start, s.end, PERL_ENTER);
		}
	if (function_at(&s, s.catch)) {
		scan(&s, look_for_loop);
		s.popped = 0;
		scan(&s, look_for_old_op);
	}
	if (function(&s, "perl_run"))
		scan(&s, look_for_loop);
}

/* Finds the code of enum perl_part and of COPs. An error: not what it is in any build that is known. */
static struct error *perl_code_find(struct image *img, struct perl_image *image)
{
	struct ops ops = {.types = {0}};
	struct error *err = perl_ops(img, take_op, &ops);

	if (err)
		return err;
	if (!perl_code_load(img, image->layout, &image->code)) {
		scan_all(img, image, &ops);
		perl_code_store(img, image->layout, &image->code);
	}
	image->null = ops.functions[OP_NULL];
	image->nextstate = ops.functions[OP_NEXTSTATE];
	image->dbstate = ops.functions[OP_DBSTATE];
	image->type = ops.types[OP_NEXTSTATE];
	image->dbtype = ops.types[OP_DBSTATE];
	image->scope = ops.types[OP_SCOPE];
	image->subst = ops.types[OP_SUBST];
	memcpy(image->calls, ops.calls, sizeof(image->calls));
	if (image->code.nxs && image->nextstate && image->dbstate)
		return NULL;
	return error_hint(error_new(ERROR_UNSUPPORTED, "%s: yrt does not know the functions of its ops", img->path),
	        "its Perl frames are left out; was it built in a special way?");
}

#define OLDEST       16
#define NEWEST       44
#define OPTIONS_MAX  2048
#define RUNOPS_CALLS 2 /* of call_sv(), eval_sv() and others that must agree */

void perl_image_destroy(void *data)
{
	struct perl_image *image = data;

	layout_destroy(image->origins);
	free(image);
}

static bool read_byte(struct image *img, const char *name, u32 *ret)
{
	struct symbol s;
	u8 byte;

	if (!symbols_lookup(img, name, &s) || !image_read(img, &byte, sizeof(byte), s.start))
		return false;
	*ret = byte;
	return true;
}

/* Those that change where members are (perl.h, intrpvar.h, sv.h, op.h), in alphabetical order as PL_bincompat_options
 * has them. */
static const char *const options[] = {"DEBUGGING", "DEBUG_LEAKING_SCALARS", "MULTIPLICITY", "NO_TAINT_SUPPORT",
        "PERL_OP_PARENT", "PERL_POISON", "PERL_RC_STACK", "PERL_TRACK_MEMPOOL", "USE_ITHREADS", "USE_LONG_DOUBLE",
        "USE_QUADMATH"};

static bool has_option(const char *text, const char *option)
{
	size_t n = strlen(option);

	for (const char *at = text; (at = strstr(at, option)); at += n)
		if ((at == text || at[-1] == ' ') && (!at[n] || at[n] == ' '))
			return true;
	return false;
}

/* 5.22 made op_sibparent unconditional where PERL_OP_PARENT was; from 5.26 on all have it. */
static bool is_constant(const char *option)
{
	return !strcmp(option, "PERL_OP_PARENT");
}

static bool read_options(struct image *img, char *ret, size_t size)
{
	char text[OPTIONS_MAX];
	struct symbol s;
	size_t n = 0, len;

	if (!symbols_lookup(img, "PL_bincompat_options", &s))
		return false;
	len = s.end - s.start < sizeof(text) ? s.end - s.start : sizeof(text) - 1;
	if (!image_read(img, text, len, s.start))
		return false;
	text[len] = 0;
	*ret = 0;
	for (u32 i = 0; i < sizeof(options) / sizeof(*options); i++)
		if (!is_constant(options[i]) && has_option(text, options[i]) && n < size)
			n += (size_t)snprintf(ret + n, size - n, "%s%s", n ? " " : "", options[i]);
	if (!n)
		snprintf(ret, size, "plain");
	return true;
}

static bool read_build(struct image *img, struct perl_build *ret)
{
	struct symbol s;
	u16 size;

	if (!read_byte(img, "PL_revision", &ret->revision) || !read_byte(img, "PL_version", &ret->version) ||
	        !read_byte(img, "PL_subversion", &ret->subversion) ||
	        !read_options(img, ret->options, sizeof(ret->options)))
		return false;
	if (symbols_lookup(img, "PL_interp_size", &s) && image_read(img, &size, sizeof(size), s.start))
		ret->interpreter_size = size;
	return true;
}

static struct error *unsupported(const struct image *img, const struct perl_build *build)
{
	struct error *err;

	if (!build->revision)
		err = error_new(ERROR_UNSUPPORTED, "%s holds a Perl of unknown version", img->path);
	else
		err = error_new(ERROR_UNSUPPORTED, "%s holds Perl %u.%u.%u", img->path, build->revision, build->version,
		        build->subversion);
	return error_hint(err, "its Perl frames are left out: yrt knows 5.%u to 5.%u", OLDEST, NEWEST);
}

static const struct copies_variable variables[] = {
        {"PL_thr_key", offsetof(struct perl_image, key)},
        {"PL_curinterp", offsetof(struct perl_image, interpreter)},
        {"PL_op", offsetof(struct perl_image, op)},
        {"PL_curcop", offsetof(struct perl_image, curcop)},
        {"PL_curstackinfo", offsetof(struct perl_image, curstackinfo)},
        {"PL_compiling", offsetof(struct perl_image, compiling)},
        {"PL_runops", offsetof(struct perl_image, runops)},
        {"PL_cop_seqmax", offsetof(struct perl_image, cop_seqmax)},
        {"PL_ppaddr", offsetof(struct perl_image, ppaddr)},
};
#define NVARIABLES (sizeof(variables) / sizeof(*variables))

static bool is_needed(const struct perl_image *image, size_t at)
{
	switch (at) {
	case offsetof(struct perl_image, key):
		return image->vm.multiple;
	case offsetof(struct perl_image, op):
	case offsetof(struct perl_image, curcop):
	case offsetof(struct perl_image, curstackinfo):
	case offsetof(struct perl_image, compiling):
		return !image->vm.multiple;
	default:
		return false;
	}
}

static struct error *find_symbols(struct image *img, struct perl_image *image)
{
	struct symbol s;

	for (u32 i = 0; i < NVARIABLES; i++) {
		if (symbols_lookup(img, variables[i].name, &s))
			memcpy((u8 *)image + variables[i].at, &s.start, sizeof(s.start));
		else if (is_needed(image, variables[i].at))
			return error_new(
			        ERROR_UNSUPPORTED, "%s holds Perl without its symbol %s", img->path, variables[i].name);
	}
	return NULL;
}

struct error *perl_image_copied(
        const struct perl_image *image, u64 bias, const struct runtime_process *p, struct perl_image **ret)
{
	void *copy;
	struct error *err = copies_apply(p, bias, variables, NVARIABLES, image, sizeof(*image), &copy);

	*ret = copy;
	return err;
}

/*
 * The end of struct interpreter has buffers of the C library's reentrant functions (reentr.h), of another size with
 * musl and with another glibc. All that is read lies before it; PL_runops is the last of it that is needed, and calls
 * of it show where it is.
 */
static struct error *check_size(const struct image *img, const struct perl_image *image)
{
	u32 size = image->build.interpreter_size;

	if (!image->vm.multiple || image->layout->i_size.at == size || image->code.nentries >= RUNOPS_CALLS)
		return NULL;
	return error_hint(error_new(ERROR_UNSUPPORTED,
	                          "%s: its interpreter has %u bytes, the known layout %u, and the code does not show "
	                          "that they agree",
	                          img->path, size, image->layout->i_size.at),
	        "its Perl frames are left out; run `yrt layout` on a build of it with -g and name the folder of the "
	        "result in YRT_LAYOUTS");
}

static struct error *probe(struct image *img, struct perl_image *image)
{
	struct perl_build *build = &image->build;
	struct error *err;

	if (!read_build(img, build) || build->revision != 5 || build->version < OLDEST || build->version > NEWEST)
		return unsupported(img, build);
	err = perl_layout_find(img, build, &image->origins);
	if (err)
		return err;
	image->layout = image->origins->values;
	image->vm = perl_vm_of(image->layout, build->version);
	err = find_symbols(img, image);
	if (!err)
		err = perl_code_find(img, image);
	return err ? err : check_size(img, image);
}

struct error *perl_image_probe(struct image *img, void **ret)
{
	struct perl_image *image;
	struct symbol runops;
	struct error *err;

	*ret = NULL;
	if (img->machine != EM_X86_64 || !symbols_lookup(img, "Perl_runops_standard", &runops))
		return NULL;
	image = calloc(1, sizeof(*image));
	if (!image)
		return &error_no_memory;
	image->start = runops.start;
	image->end = runops.end;
	err = probe(img, image);
	if (err) {
		perl_image_destroy(image);
		return err;
	}
	*ret = image;
	return NULL;
}
