/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cfi/cfi.h"
#include "now.h"
#include "perl_calls.h"
#include "perl_heap.h"
#include "perl_image.h"
#include "perl_names.h"
#include "perl_objects.h"
#include "perl_postgres.h"
#include "perl_values.h"
#include "report.h"
#include "runtime.h"
#include "runtime_check.h"
#include "symbols/symbols.h"
#include "symbols/tsd.h"

/*
 * Checks a layout on a live process (runtime_check.h): stacks of contexts are linked both ways, contexts have valid
 * kinds, subs in them are CVs, and statements are statements.
 */

struct perl_checked {
	struct perl_reader r;
	const struct perl_layout *l;
	u64 curstackinfo, curcop; /* where the pointers are; 0: it has no interpreter yet */
};

#define STACKS_MAX   64
#define CONTEXTS_MAX 256 /* of a stack that are looked at */
#define CX_KINDS     14
#define SI_TYPES     16

struct stack {
	u64 at, contexts, prev;
	s32 cxix, cxmax, type;
};

static bool word(const struct perl_checked *c, u64 *ret, u64 addr)
{
	return memory_read(c->r.mem, ret, sizeof(*ret), addr);
}

static bool half(const struct perl_checked *c, s32 *ret, u64 addr)
{
	return memory_read(c->r.mem, ret, sizeof(*ret), addr);
}

static bool read_stack(const struct perl_checked *c, u64 at, struct stack *ret)
{
	const struct perl_layout *l = c->l;

	ret->at = at;
	return word(c, &ret->contexts, at + l->si_cxstack.at) && word(c, &ret->prev, at + l->si_prev.at) &&
	       half(c, &ret->cxix, at + l->si_cxix.at) && half(c, &ret->cxmax, at + l->si_cxmax.at) &&
	       half(c, &ret->type, at + l->si_type.at) && ret->cxix >= -1 && ret->cxix <= ret->cxmax &&
	       ret->type >= -1 && ret->type < SI_TYPES && ret->contexts && ret->contexts % 8 == 0;
}

/* The outermost one is the main program's. */
static int check_stacks(void *subject)
{
	const struct perl_checked *c = subject;
	struct stack s;
	u32 n = 0;
	u64 at;

	if (!c->curcop)
		return 0;
	if (!word(c, &at, c->curstackinfo))
		return CHECK_FAILS;
	for (; at && n < STACKS_MAX; n++, at = s.prev) {
		if (!read_stack(c, at, &s))
			return CHECK_FAILS;
		if (!s.prev && s.type != PERL_STACK_MAIN)
			return CHECK_FAILS;
	}
	return (int)n;
}

static bool check_context(const struct perl_checked *c, u64 at)
{
	const struct perl_vm *vm = &c->r.image->vm;
	u8 type;
	u64 cv;

	if (!memory_read(c->r.mem, &type, sizeof(type), at + c->l->cx_type.at) || (type & PERL_CX_KIND) >= CX_KINDS)
		return false;
	if ((type & PERL_CX_KIND) == vm->kind_sub)
		return word(c, &cv, at + c->l->cx_cv.at) && perl_is_cv(&c->r, cv);
	return true;
}

static int check_contexts(void *subject)
{
	const struct perl_checked *c = subject;
	struct stack s;
	u32 seen = 0;
	u64 at;

	if (!c->curcop)
		return 0;
	if (!word(c, &at, c->curstackinfo))
		return CHECK_FAILS;
	for (u32 n = 0; at && n < STACKS_MAX; n++, at = s.prev) {
		if (!read_stack(c, at, &s))
			return CHECK_FAILS;
		for (s32 i = 0; i <= s.cxix && i < CONTEXTS_MAX; i++, seen++)
			if (!check_context(c, s.contexts + (u64)i * c->l->cx_size.at))
				return CHECK_FAILS;
	}
	return (int)seen;
}

/* While code is compiled the current statement is a member of the interpreter, which has no function. */
static int check_statement(void *subject)
{
	const struct perl_checked *c = subject;
	u64 cop;
	char file[256];
	u32 line;

	if (!c->curcop)
		return 0;
	if (!word(c, &cop, c->curcop))
		return CHECK_FAILS;
	if (!cop || !perl_is_cop(&c->r, cop))
		return 0;
	return perl_cop_place(&c->r, cop, &line, file, sizeof(file)) ? 1 : CHECK_FAILS;
}

/* The interpreter at PL_curinterp. */
static void look(void *subject)
{
	struct perl_checked *c = subject;
	const struct perl_image *image = c->r.image;
	u64 interpreter;

	if (!image->vm.multiple) {
		c->curstackinfo = c->r.bias + image->curstackinfo;
		c->curcop = c->r.bias + image->curcop;
	} else if (word(c, &interpreter, c->r.bias + image->interpreter) && interpreter) {
		c->curstackinfo = interpreter + c->l->i_curstackinfo.at;
		c->curcop = interpreter + c->l->i_curcop.at;
	}
}

static const struct runtime_check checks[] = {
        {"stacks", "of contexts are linked up to the main program's", check_stacks},
        {"contexts", "have kinds that there are; those of subs have a CV", check_contexts},
        {"statement", "the current one has a line and a file", check_statement},
};

static const struct runtime_checks perl_checks = {
        .all = checks, .n = sizeof(checks) / sizeof(*checks), .attempts = 20, .look = look};

static struct perl_checked perl_checked_of(const struct perl_image *image, u64 bias, struct memory *mem)
{
	return (struct perl_checked){.r = {.mem = mem, .image = image, .bias = bias}, .l = image->layout};
}

/* What `yrt inspect` shows of Perl in a process. */

static void report_module(const struct perl_image *image, u64 bias, const struct runtime_process *p, struct report *out)
{
	const struct mapping *m = mapping_find(p->mappings, p->nmappings, image->start + bias);
	const struct perl_build *b = &image->build;

	image_report(m ? m->image : NULL, out);
	report_text(out, "version", NULL, "%u.%u.%u", b->revision, b->version, b->subversion);
	report_text(out, "options", "those that change the layout", "%s", b->options);
	report_text(out, "load bias", NULL, "0x%lx", bias);
}

static void report_code(const struct perl_image *image, u64 bias, struct report *out)
{
	static const char *const parts[] = {[PERL_RUNOPS] = "loop",
	        [PERL_RUN] = "perl_run",
	        [PERL_CATCH] = "docatch",
	        [PERL_SORT] = "pp_sort",
	        [PERL_REGEXEC] = "regexec",
	        [PERL_ENTER] = "calls from C",
	        [PERL_COMPILE] = "parser",
	        [PERL_SCOPE] = "eval made by C",
	        [PERL_UNWIND] = "die_unwind",
	        [PERL_PUSHING] = "context incomplete",
	        [PERL_POPPED] = "context popped",
	        [PERL_DONE] = "docatch returns",
	        [PERL_NEXT] = "op returned"};
	const struct perl_code *code = &image->code;

	report_section(out, "code", NULL);
	for (u32 i = 0; i < code->n; i++) {
		const struct perl_site *s = &code->sites[i];

		report_text(out, s->part < PERL_XS ? parts[s->part] : "function in C called", NULL, "0x%lx-0x%lx",
		        s->start + bias, s->end + bias);
	}
}

static void report_interpreter(const struct perl_image *image, u64 bias, const struct perl_vm *vm,
        const struct runtime_process *p, struct report *out)
{
	u64 interpreter = 0;

	report_section(out, "interpreter", NULL);
	if (!vm->multiple) {
		report_text(out, "found by", "built without MULTIPLICITY", "symbols");
		return;
	}
	if (memory_read(p->memory, &interpreter, sizeof(interpreter), bias + image->interpreter))
		report_text(out, "PL_curinterp", NULL, "0x%lx", interpreter);
	if (vm->via)
		report_text(out, "found by", "PL_thr_key's value, as the C library says", "%u, %d bytes", vm->via,
		        vm->slot);
	else
		report_text(out, "found by", NULL, "not known yet");
}

static struct error *perl_inspect(const struct perl_image *image, u64 bias, const struct perl_vm *vm,
        const struct runtime_process *p, struct report *out)
{
	struct perl_checked subject = perl_checked_of(image, bias, p->memory);

	report_module(image, bias, p, out);
	report_code(image, bias, out);
	report_interpreter(image, bias, vm, p, out);
	runtime_check_inspect(&perl_checks, &subject, out);
	layout_report(image->origins, out);
	return NULL;
}

/*
 * A loop of a module. PL_runops says which function runs ops, and a module may put its own there (Devel::Cover). It
 * does what Perl_runops_standard() does, and something more for each op.
 */

static bool is_own(const struct perl_code *code, u64 function)
{
	for (u32 i = 0; i < code->n; i++)
		if (code->sites[i].part == PERL_RUNOPS &&
		        function - code->sites[i].start < code->sites[i].end - code->sites[i].start)
			return true;
	return false;
}

/* Where it is in the process. False: it is Perl's own, or its bounds are not known. */
static bool perl_runops_find(
        const struct perl_image *image, u64 bias, const struct runtime_process *p, u64 *start, u64 *end)
{
	u64 at = bias + image->runops, function;

	if (image->vm.multiple) {
		if (!memory_read(p->memory, &at, sizeof(at), bias + image->interpreter) || !at)
			return false;
		at += image->layout->i_runops.at;
	}
	if (!memory_read(p->memory, &function, sizeof(function), at) || is_own(&image->code, function - bias))
		return false;
	for (u32 i = 0; i < p->nmappings; i++) {
		const struct mapping *m = &p->mappings[i];
		const struct cfi_fde *fde = m->image && m->prot & PROT_EXEC && function - m->start < m->end - m->start
		                                    ? cfi_fde_at(m->image->cfi, function - m->bias)
		                                    : NULL;

		if (fde && fde->start == function - m->bias) {
			*start = function;
			*end = m->bias + fde->end;
			return true;
		}
	}
	return false;
}

/*
 * Coro's coroutines, each with a native stack of its own. libcoro (coro.c, coro_create() for x86-64; in Coro 6.57) puts
 * two words on a new stack: the entry, a static function of Coro's library, and above it the address of abort(), as the
 * return address of that function.
 */

/* Coro's library in a process. */
struct perl_coro {
	u64 start, end; /* its code; 0: not loaded */
	u64 base;       /* abort() */
};

static bool is_coro(struct image *img)
{
	const char *slash = strrchr(img->path, '/');
	struct symbol boot;

	return slash && !strcmp(slash, "/State.so") && symbols_lookup(img, "boot_Coro__State", &boot);
}

/* Finds it, if it is loaded. */
static bool perl_coro_find(const struct runtime_process *p, struct perl_coro *ret)
{
	struct symbol base;

	memset(ret, 0, sizeof(*ret));
	for (u32 i = 0; i < p->nmappings && !ret->start; i++) {
		const struct mapping *m = &p->mappings[i];

		if (m->image && m->prot & PROT_EXEC && is_coro(m->image)) {
			ret->start = m->start;
			ret->end = m->end;
		}
	}
	for (u32 i = 0; i < p->nmappings && ret->start && !ret->base; i++) {
		const struct mapping *m = &p->mappings[i];

		if (m->image && m->prot & PROT_EXEC && symbols_lookup(m->image, "abort", &base))
			ret->base = m->bias + base.start;
	}
	return ret->base;
}

int perl_step(struct walk *w);

struct perl_instance {
	const struct perl_image *image;
	struct perl_image *copied; /* it is this one: perl_image_copied() */
	u64 bias;
	u32 config; /* struct perl_vm in the arena */
	struct perl_names *names;
	bool keyless; /* it does not know yet how threads find their interpreters */
	struct runtime_belief belief;
	bool named; /* a frame of it was */
};

static void detach(void *data, const struct runtime_process *p)
{
	struct perl_instance *instance = data;

	arena_free(p->arena, instance->config, sizeof(struct perl_vm));
	perl_names_destroy(instance->names);
	free(instance->copied);
	free(instance);
}

static struct error *attach(const struct runtime_process *p, void *data, u64 bias, void **ret)
{
	const struct perl_image *image = data;
	struct perl_instance *instance = calloc(1, sizeof(*instance));
	struct perl_vm vm = image->vm;
	struct error *err;

	if (!instance)
		return &error_no_memory;
	err = perl_image_copied(image, bias, p, &instance->copied);
	if (err) {
		free(instance);
		return err;
	}
	image = instance->copied ? instance->copied : image;
	instance->image = image;
	instance->bias = bias;
	instance->names = perl_names_create(image, bias);
	err = instance->names ? arena_alloc(p->arena, sizeof(vm), &instance->config) : &error_no_memory;
	if (err) {
		perl_names_destroy(instance->names);
		free(instance->copied);
		free(instance);
		return err;
	}
	vm.identity = bias + image->start;
	instance->belief.since_ns = now_ns();
	vm.attachment = instance->belief.since_ns << 8 ^ (u64)p->pid;
	if (!vm.multiple) {
		vm.op = bias + image->op;
		vm.curcop = bias + image->curcop;
		vm.curstackinfo = bias + image->curstackinfo;
		vm.cop_seqmax = image->cop_seqmax ? bias + image->cop_seqmax : 0;
		vm.compiling = bias + image->compiling;
	}
	for (u32 i = 0; i < image->code.nentries; i++)
		vm.entries[i] = bias + image->code.entries[i];
	if (vm.multiple)
		vm.first = bias + image->interpreter;
	instance->keyless = vm.multiple;
	memcpy(arena_at(p->arena, instance->config, sizeof(vm)), &vm, sizeof(vm));
	*ret = instance;
	return NULL;
}

/* The key is made with the first interpreter (perl_alloc(), perl.c), and never changes. */
static void find_key(struct perl_instance *instance, const struct runtime_process *p)
{
	struct perl_vm *vm = arena_at(p->arena, instance->config, sizeof(*vm));
	struct tsd_way way;
	u64 interpreter;
	u32 key;

	if (!instance->keyless ||
	        !memory_read(
	                p->memory, &interpreter, sizeof(interpreter), instance->bias + instance->image->interpreter) ||
	        !interpreter || !memory_read(p->memory, &key, sizeof(key), instance->bias + instance->image->key))
		return;
	for (u32 i = 0; instance->keyless && i < p->nmappings; i++) {
		const struct mapping *m = &p->mappings[i];

		if (!m->image || !(m->prot & PROT_EXEC) || !tsd_find(m->image, key, &way))
			continue;
		vm->slot = way.slot;
		vm->via = way.via;
		vm->interpreter = interpreter;
		instance->keyless = false;
	}
}

static bool is_believed(const struct perl_instance *instance)
{
	return instance->belief.state == BELIEVED;
}

static bool starting(void *data)
{
	const struct perl_instance *instance = data;

	return runtime_is_starting(&instance->belief, instance->keyless);
}

/* Coro is loaded by the program itself, and may be at any time. */
static struct error *add_coro(struct perl_instance *instance, const struct runtime_process *p,
        struct error *(*add)(void *ctx, const struct runtime_region *r), void *ctx)
{
	struct perl_vm *vm = arena_at(p->arena, instance->config, sizeof(*vm));
	struct runtime_region r = {.part = PERL_CORO, .vm = instance->config};
	struct perl_coro coro;

	if (!perl_coro_find(p, &coro))
		return NULL;
	vm->coro_base = coro.base;
	r.start = coro.start;
	r.end = coro.end;
	return add(ctx, &r);
}

/* A module puts a loop of its own in the place of Perl's when it is loaded. */
static struct error *add_loop(struct perl_instance *instance, const struct runtime_process *p,
        struct error *(*add)(void *ctx, const struct runtime_region *r), void *ctx)
{
	struct runtime_region r = {.part = PERL_RUNOPS, .vm = instance->config};

	return perl_runops_find(instance->image, instance->bias, p, &r.start, &r.end) ? add(ctx, &r) : NULL;
}

static struct error *regions(void *data, const struct runtime_process *p,
        struct error *(*add)(void *ctx, const struct runtime_region *r), void *ctx)
{
	struct perl_instance *instance = data;
	const struct perl_code *code = &instance->image->code;
	struct perl_checked subject = perl_checked_of(instance->image, instance->bias, p->memory);
	struct error *err = runtime_believe(&instance->belief, &perl_checks, &subject, p, "Perl");

	if (err || !is_believed(instance))
		return err;
	find_key(instance, p);
	for (u32 i = 0; !err && i < code->n; i++) {
		struct runtime_region r = {.part = code->sites[i].part,
		        .vm = instance->config,
		        .start = code->sites[i].start + instance->bias,
		        .end = code->sites[i].end + instance->bias};

		err = add(ctx, &r);
	}
	if (!err)
		err = add_loop(instance, p, add, ctx);
	return err ? err : add_coro(instance, p, add, ctx);
}

static bool name_frame(
        void *data, const struct runtime_process *p, const struct frame *frames, u32 i, u32 n, struct frame_name *ret)
{
	struct perl_instance *instance = data;
	struct frame frame = frames[i];
	bool entered = perl_is_entered(frames, i, n) && !perl_has_line(&frame);

	if (!instance->named)
		perl_names_set_postgres(instance->names, perl_postgres_find(p));
	instance->named = true;
	if (entered)
		frame.detail = perl_without_cop(frame.detail);
	if (!perl_name_frame(instance->names, p->memory, &frame, ret))
		return false;
	if (entered)
		ret->line = ret->definition;
	return true;
}

static struct error *inspect(void *data, const struct runtime_process *p, struct report *out)
{
	const struct perl_instance *instance = data;

	return perl_inspect(
	        instance->image, instance->bias, arena_at(p->arena, instance->config, sizeof(struct perl_vm)), p, out);
}

/* Callers of the loop, and what lies between it and main() (perl.c, pp_ctl.c, pp_hot.c, gv.c, mg.c, sv.c of 5.24
 * to 5.42). */
static const char *const glue[] = {"Perl_amagic_call", "Perl_call_list", "Perl_call_method", "Perl_call_pv",
        "Perl_call_sv", "Perl_despatch_signals", "Perl_eval_pv", "Perl_eval_sv", "Perl_magic_methcall",
        "Perl_pp_entereval", "Perl_pp_entersub", "Perl_pp_entertry", "Perl_pp_entertrycatch", "Perl_pp_require",
        "Perl_runops_debug", "Perl_runops_standard", "S_docatch", "S_run_body", "S_sortcv", "S_sortcv_stacked",
        "S_sortcv_xsub", "docatch", "main", "perl_parse", "perl_run"};

/* A compiler's clones are "name.isra.0" and the like. */
static bool is_name(const char *symbol, const char *name)
{
	size_t n = strlen(name);

	return !strncmp(symbol, name, n) && (!symbol[n] || symbol[n] == '.');
}

/* Does this function of the interpreter only lead from one Perl frame to another? */
static bool is_runtime_internal(void *data, const char *symbol)
{
	for (u32 i = 0; i < sizeof(glue) / sizeof(*glue); i++)
		if (is_name(symbol, glue[i]))
			return true;
	return false;
}

static bool begin_reading(const struct perl_instance *instance, const struct runtime_process *p, struct perl_reader *r)
{
	*r = (struct perl_reader){.mem = p->memory, .image = instance->image, .bias = instance->bias};
	return is_believed(instance) && instance->image->interpreter &&
	       memory_read(p->memory, &r->interpreter, sizeof(r->interpreter),
	               instance->bias + instance->image->interpreter);
}

static struct error *list_calls(void *data, const struct runtime_process *p, const char *pattern,
        struct error *(*add)(void *ctx, const struct runtime_callee *c), void *ctx)
{
	struct perl_reader r;

	return begin_reading(data, p, &r) ? perl_calls(&r, add, ctx) : NULL;
}

static bool field(void *data, const struct runtime_process *p, const struct runtime_callee *of, u32 i, const char *way,
        struct value_places *v, u32 slot)
{
	struct perl_reader r;

	return begin_reading(data, p, &r) && perl_field(&r, i, way, v, slot);
}

/* *ret NULL: it has no interpreter yet. */
static struct error *open_heap(void *data, const struct runtime_process *p, struct heap *h, void **ret)
{
	const struct perl_instance *instance = data;
	u64 interpreter = 0;

	*ret = NULL;
	if (instance->belief.state == REFUSED ||
	        (instance->image->vm.multiple && (!memory_read(p->memory, &interpreter, sizeof(interpreter),
	                                                  instance->bias + instance->image->interpreter) ||
	                                                 !interpreter)))
		return NULL;
	return perl_heap_open(instance->image, instance->bias, interpreter, p, h, ret);
}

static const struct runtime_heap_ops heap = {
        .objects = "values",
        .text = "Perl: 5.22 to 5.44 with MULTIPLICITY. All values of the interpreter's arenas by package, or else by "
                "what "
                "reftype() says; STASH is a package, PAD the lexical variables of a sub at one depth of calls, UNDEF a "
                "value without one. Sizes are those of head, body, text, elements and keys.",
        .walk = "Perl: 5.22 to 5.44 with MULTIPLICITY. Roots are packages, the lexical variables of the program, and "
                "what the interpreter points to. Weak references are not followed. What only C code keeps, or a "
                "constant in a Perl without threads, is missing.",
        .open = open_heap,
        .close = perl_heap_close,
        .roots = perl_heap_roots,
        .object = perl_heap_object,
        .copied = true,
        .blocks = perl_heap_blocks,
        .all = perl_heap_all,
        .leaks = perl_heap_leaks,
        .blocks_are_all = true,
};

#define PSGI(arg) arg "[REQUEST_METHOD]," arg "[PATH_INFO]" /* PSGI.pod, "The Environment" */

static const struct runtime_server servers[] = {
        /* Mojolicious.pm, Mojo/Message/Request.pm, Mojo/URL.pm, Mojo/Path.pm */
        {"Mojolicious", "perl:Mojolicious::handler", "1[req][method],1[req][url][path][path]", 0},
        {"Dancer2", "perl:Dancer2::Core::App::dispatch", PSGI("1"), 0}, /* Dancer2/Core/App.pm */
        {"Catalyst", "perl:Catalyst::handle_request", PSGI("2"), 0},    /* Catalyst.pm: ($class, env => $env) */
        {"PSGI", "perl:Plack::Util::run_app", PSGI("1"), 1}, /* Plack/Util.pm, of servers in Perl: ($app, $env) */
        {0},
};
static const char *const files[] = {"perl", "libperl", NULL};

static const struct runtime_calls_ops calls = {.form = "perl:PACKAGE::SUB",
        .list = list_calls,
        .field = field,
        .value = perl_value,
        .servers = servers,
        .files = files};

const struct runtime_ops perl_runtime = {
        .name = "perl",
        .view = "perl",
        .language = "Perl",
        .id = RUNTIME_PERL,
        .supported = "Perl 5.16 to 5.44, with threads and without (x86-64)",
        .layout = &perl_layout_schema,
        .files = (const char *const[]){"/perl", "/libperl", NULL},
        .rules = perl_rules,
        .image_probe = perl_image_probe,
        .image_destroy = perl_image_destroy,
        .attach = attach,
        .detach = detach,
        .regions = regions,
        .starting = starting,
        .name_frame = name_frame,
        .c_names = perl_op_names,
        .is_runtime_internal = is_runtime_internal,
        .inspect = inspect,
        .heap = &heap,
        .calls = &calls,
};
