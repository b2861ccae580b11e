/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Perl made of fake memory: native frames of C and of the interpreter on the stack of native_fake.h; an interpreter,
 * stacks of contexts, CVs and COPs above it. Offsets are those of 5.36 with threads.
 */
#ifndef YRT_PERL_FAKE_H
#define YRT_PERL_FAKE_H

#include "native_fake.h"
#include "runtimes/perl/perl.h"
#include "runtimes/perl/perl_layout.h"
#include "runtimes/perl/perl_names.h"

#define PERL_FAKE_STACK_BYTES (6 * FAKE_PAGE)
#define PERL_FAKE_HEAP        (FAKE_STACK + PERL_FAKE_STACK_BYTES)
#define PERL_FAKE_POINTER     (PERL_FAKE_HEAP + 64) /* thread pointer */
#define PERL_FAKE_VIA         16
#define PERL_FAKE_SLOT        8
#define PERL_FAKE_BLOCK       (PERL_FAKE_HEAP + 128)
#define PERL_FAKE_FIRST       (PERL_FAKE_HEAP + 512)
#define PERL_FAKE_C_BYTES     32
#define PERL_FAKE_CV_REGISTER DWREG_R15
#define PERL_FAKE_CONTEXTS    64
#define PERL_FAKE_NEXTSTATE   0x1234560ull
#define PERL_FAKE_NULL        0x1234570ull
enum { PERL_FAKE_OP_NEXTSTATE = 186, PERL_FAKE_OP_SCOPE = 191, PERL_FAKE_OP_ENTERSUB = 172, PERL_FAKE_OP_SUBST = 33 };

struct perl_fake {
	struct fake *f;
	struct perl_vm vm;
	struct perl_layout layout;
	struct perl_image image;
	u64 root, c, other, runops, run, catch, unwind, sort, regexec, enter, compile, xs, pushing; /* functions */
	u64 interpreter, stack, heap, sp, pc, cv;
	struct walk_cache *caches; /* WALK_CACHES of them, or NULL */
	struct perl_vm *config;    /* as the walker has it */
};

static inline struct perl_layout perl_fake_layout(void)
{
	return (struct perl_layout){.i_size = {3768, 3768},
	        .i_op = {8, 8},
	        .i_curcop = {208, 8},
	        .i_curstackinfo = {224, 8},
	        .i_runops = {240, 8},
	        .i_cop_seqmax = {248, 4},
	        .si_cxstack = {8, 8},
	        .si_prev = {16, 8},
	        .si_cxix = {32, 4},
	        .si_cxmax = {36, 4},
	        .si_type = {44, 4},
	        .cx_size = {104, 104},
	        .cx_type = {0, 1},
	        .cx_oldcop = {16, 8},
	        .cx_retop = {48, 8},
	        .cx_cv = {72, 8},
	        .cx_format_cv = {72, 8},
	        .cx_eval_retop = {48, 8},
	        .cx_namesv = {64, 8},
	        .sv_any = {0, 8},
	        .sv_flags = {12, 4},
	        .sv_u = {16, 8},
	        .cv_stash = {32, 8},
	        .cv_start = {40, 8},
	        .cv_root = {48, 8},
	        .cv_gv = {56, 8},
	        .cv_flags = {92, 4},
	        .pv_cur = {16, 8},
	        .gv_namehek = {32, 8},
	        .gv_stash = {40, 8},
	        .hek_len = {4, 4},
	        .hek_key = {8, 1},
	        .hv_max = {24, 8},
	        .hv_aux = {32, 56},
	        .aux_name = {0, 8},
	        .aux_name_count = {28, 4},
	        .op_next = {0, 8},
	        .op_ppaddr = {16, 8},
	        .op_targ = {24, 8},
	        .cop_line = {36, 4},
	        .cop_stash = {40, 8},
	        .cop_file = {48, 8}};
}

static inline u64 perl_fake_function(struct perl_fake *p, const struct cfi_rule *rule, u32 part, u32 config)
{
	u64 start = fake_function(p->f, rule);
	struct region *r = &p->f->region[p->f->nregions - 1];

	r->runtime = RUNTIME_PERL;
	r->part = (u8)part;
	r->vm = config;
	return start;
}

static inline u64 perl_fake_alloc(struct perl_fake *p, u64 size)
{
	u64 at = p->heap;

	p->heap += (size + 15) & ~15ull;
	if (p->heap > FAKE_STACK + FAKE_BYTES)
		abort();
	return at;
}

static inline void perl_fake_half(struct perl_fake *p, u64 addr, u32 value)
{
	memcpy(p->f->stack + (addr - FAKE_STACK), &value, sizeof(value));
}

static inline u64 perl_fake_text(struct perl_fake *p, const char *text)
{
	u64 at = perl_fake_alloc(p, strlen(text) + 1);

	memcpy(p->f->stack + (at - FAKE_STACK), text, strlen(text) + 1);
	return at;
}

/* Begins a stack of contexts of this type; it becomes the current one. */
static inline void perl_fake_stack(struct perl_fake *p, u32 type)
{
	u64 si = perl_fake_alloc(p, 56);

	fake_put(p->f, si + p->layout.si_cxstack.at, perl_fake_alloc(p, PERL_FAKE_CONTEXTS * p->layout.cx_size.at));
	fake_put(p->f, si + p->layout.si_prev.at, p->stack);
	perl_fake_half(p, si + p->layout.si_cxix.at, UINT32_MAX);
	perl_fake_half(p, si + p->layout.si_type.at, type);
	fake_put(p->f, p->interpreter + p->layout.i_curstackinfo.at, si);
	p->stack = si;
}

static inline struct perl_fake *perl_fake_create(void)
{
	struct cfi_rule root = fake_rule(CFI_ROOT, DWREG_RSP, 8), c = fake_rule(CFI_REG, DWREG_RSP, PERL_FAKE_C_BYTES);
	struct perl_fake *p = calloc(1, sizeof(*p));
	u32 config;

	if (!p)
		abort();
	p->f = fake_create();
	p->layout = perl_fake_layout();
	p->image.layout = &p->layout;
	p->image.nextstate = PERL_FAKE_NEXTSTATE;
	p->image.null = PERL_FAKE_NULL;
	p->image.dbstate = PERL_FAKE_NULL + 16;
	p->image.type = PERL_FAKE_OP_NEXTSTATE;
	p->image.scope = PERL_FAKE_OP_SCOPE;
	p->image.subst = PERL_FAKE_OP_SUBST;
	p->image.calls[PERL_FAKE_OP_ENTERSUB / 64] = 1ull << PERL_FAKE_OP_ENTERSUB % 64;
	p->image.build.version = 36;
	p->vm = perl_vm_of(&p->layout, 36);
	p->vm.identity = 1;
	p->vm.via = PERL_FAKE_VIA;
	p->vm.slot = PERL_FAKE_SLOT;
	p->vm.entries[0] = FAKE_CODE + FAKE_PAGE + FAKE_RETURN; /* of c */
	if (arena_alloc(p->f->arena, sizeof(p->vm), &config))
		abort();
	p->config = arena_at(p->f->arena, config, sizeof(p->vm));
	*p->config = p->vm;
	p->root = fake_function(p->f, &root);
	p->c = fake_function(p->f, &c);
	p->other = fake_function(p->f, &c);
	p->runops = perl_fake_function(p, &c, PERL_RUNOPS, config);
	p->run = perl_fake_function(p, &c, PERL_RUN, config);
	p->catch = perl_fake_function(p, &c, PERL_CATCH, config);
	p->sort = perl_fake_function(p, &c, PERL_SORT, config);
	p->regexec = perl_fake_function(p, &c, PERL_REGEXEC, config);
	p->unwind = perl_fake_function(p, &c, PERL_UNWIND, config);
	p->enter = perl_fake_function(p, &c, PERL_ENTER, config);
	p->compile = perl_fake_function(p, &c, PERL_COMPILE, config);
	p->xs = perl_fake_function(p, &c, PERL_XS + PERL_FAKE_CV_REGISTER, config);
	p->pushing = perl_fake_function(p, &c, PERL_PUSHING, config);
	p->heap = PERL_FAKE_FIRST;
	p->interpreter = perl_fake_alloc(p, 512);
	fake_put(p->f, PERL_FAKE_POINTER + PERL_FAKE_VIA, PERL_FAKE_BLOCK);
	fake_put(p->f, PERL_FAKE_BLOCK + PERL_FAKE_SLOT, p->interpreter);
	fake_put(p->f, p->interpreter + p->layout.i_op.at, 8);
	perl_fake_stack(p, PERL_STACK_MAIN);
	p->sp = PERL_FAKE_HEAP - 64;
	p->pc = p->root + FAKE_RETURN;
	return p;
}

static inline void perl_fake_destroy(struct perl_fake *p)
{
	fake_destroy(p->f);
	free(p);
}

/* A statement. */
static inline u64 perl_fake_cop(struct perl_fake *p, u32 line)
{
	u64 cop = perl_fake_alloc(p, 88);

	fake_put(p->f, cop + p->layout.op_ppaddr.at, PERL_FAKE_NEXTSTATE);
	perl_fake_half(p, cop + p->layout.cop_line.at, line);
	fake_put(p->f, cop + p->layout.cop_file.at, perl_fake_text(p, "x.pl"));
	return cop;
}

static inline u64 perl_fake_hek(struct perl_fake *p, const char *name)
{
	u64 hek = perl_fake_alloc(p, 8 + strlen(name) + 2);

	perl_fake_half(p, hek + p->layout.hek_len.at, (u32)strlen(name));
	memcpy(p->f->stack + (hek + p->layout.hek_key.at - FAKE_STACK), name, strlen(name));
	return hek;
}

/* A package. */
static inline u64 perl_fake_package(struct perl_fake *p, const char *name)
{
	u64 hv = perl_fake_alloc(p, 24), body = perl_fake_alloc(p, 96);

	fake_put(p->f, hv + p->layout.sv_any.at, body);
	perl_fake_half(p, hv + p->layout.sv_flags.at, 0x02000000);
	fake_put(p->f, body + p->layout.hv_aux.at + p->layout.aux_name.at, perl_fake_hek(p, name));
	return hv;
}

/* A sub by its GV, or (named) by its own name. */
static inline u64 perl_fake_cv(struct perl_fake *p, u64 package, const char *name, u32 line, bool named)
{
	u64 cv = perl_fake_alloc(p, 24), body = perl_fake_alloc(p, 104), gv = perl_fake_alloc(p, 24),
	    gv_body = perl_fake_alloc(p, 48);
	u64 hek = perl_fake_hek(p, name), cop = perl_fake_cop(p, line);

	fake_put(p->f, cop + p->layout.cop_stash.at, package);
	fake_put(p->f, cv + p->layout.sv_any.at, body);
	perl_fake_half(p, cv + p->layout.sv_flags.at, 13);
	fake_put(p->f, body + p->layout.cv_stash.at, package);
	fake_put(p->f, body + p->layout.cv_start.at, cop);
	fake_put(p->f, body + p->layout.cv_root.at, body + 8);
	fake_put(p->f, body + p->layout.cv_gv.at, named ? hek : gv);
	perl_fake_half(p, body + p->layout.cv_flags.at, named ? PERL_CV_NAMED : 0);
	fake_put(p->f, gv + p->layout.sv_any.at, gv_body);
	fake_put(p->f, gv_body + p->layout.gv_namehek.at, hek);
	fake_put(p->f, gv_body + p->layout.gv_stash.at, package);
	return cv;
}

static inline u64 perl_fake_word(const struct perl_fake *p, u64 addr)
{
	u64 ret;

	memcpy(&ret, p->f->stack + (addr - FAKE_STACK), sizeof(ret));
	return ret;
}

/* Pushes a context onto the current stack, entered at the statement `line`; retop 0: from C. */
static inline u64 perl_fake_context(struct perl_fake *p, u8 type, u64 cv, u64 retop, u32 line)
{
	u32 ix = (u32)perl_fake_word(p, p->stack + p->layout.si_cxix.at) + 1;
	u64 at = perl_fake_word(p, p->stack + p->layout.si_cxstack.at) + ix * p->layout.cx_size.at;

	perl_fake_half(p, p->stack + p->layout.si_cxix.at, ix);
	fake_put(p->f, at, type);
	fake_put(p->f, at + p->layout.cx_oldcop.at, perl_fake_cop(p, line));
	fake_put(p->f, at + p->layout.cx_retop.at, retop);
	fake_put(p->f, at + p->layout.cx_cv.at, cv);
	fake_put(p->f, at + p->layout.cx_namesv.at, 0);
	return at;
}

/* The code that runs calls this function, which is the leaf then. */
static inline void perl_fake_call(struct perl_fake *p, u64 function)
{
	p->sp -= PERL_FAKE_C_BYTES;
	fake_put(p->f, p->sp + PERL_FAKE_C_BYTES - 8, p->pc);
	p->pc = function + FAKE_RETURN;
}

static inline int perl_fake_walk(struct perl_fake *p)
{
	u64 reg[ARCH_NREGS] = {0};
	int stop = STOP_NONE;

	reg[REG_PC] = p->pc;
	reg[REG_SP] = p->sp;
	reg[PERL_FAKE_CV_REGISTER] = p->cv;
	fake_start(p->f, reg);
	p->f->walk.thread_pointer = PERL_FAKE_POINTER;
	p->f->walk.target.caches = p->caches;
	for (u32 i = 0; i < walk_steps_max(&p->f->walk) && stop == STOP_NONE; i++)
		stop = walk_step(&p->f->walk);
	return (int)walk_end(&p->f->walk, (u32)stop);
}

#endif
