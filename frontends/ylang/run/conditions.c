/* SPDX-License-Identifier: Apache-2.0 */
#include "conditions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontends/ylang/compile.h"
#include "probes.h"
#include "probes/hit/hit_find.h"
#include "probes/y/y_condition.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"

struct compiled {
	struct y_target *target;
	struct y_program *program;
	char *text; /* equal: the programs do the same in both processes */
};

struct seen { /* a process that was asked for */
	u32 process;
	bool fits;
};

struct y_conditions {
	struct hit_fit fit; /* the first member */
	char *source;
	struct compiled of; /* all processes */
	struct seen *seen;
	u32 nseen;
	struct y_bpf *bpf;
	struct y_condition *put;
};

static void forget(struct compiled *c)
{
	y_program_free(c->program);
	y_target_close(c->target);
	free(c->text);
	*c = (struct compiled){0};
}

static bool names_program(const struct y_program *p)
{
	for (u32 i = 0; i < p->nfunctions; i++)
		for (u32 k = 0; k < p->functions[i].ninsns; k++)
			if (p->functions[i].insns[k].op == Y_OP_CONTEXT && p->functions[i].insns[k].imm == Y_PROG)
				return true;
	return false;
}

/* With where its modules are: addresses are said by their place in the file. */
static char *text_of(const struct y_program *p, const struct y_target *t)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	y_program_print(p, out);
	for (u32 i = 0; i < p->nmodules; i++)
		fprintf(out, "%lx\n", p->modules[i].bias);
	if (names_program(p) && t->nmodules)
		fputs(t->modules[0].path, out);
	if (!fclose(out))
		return text;
	free(text);
	return NULL;
}

static struct error *compile(const char *source, pid_t pid, struct compiled *ret)
{
	struct error *err;

	*ret = (struct compiled){0};
	err = y_target_open(&(struct y_target_options){.pid = pid}, &ret->target);
	if (!err)
		err = y_compile(&(struct y_compile_options){.name = "--if", .text = source, .size = strlen(source)},
		        ret->target, &ret->program);
	if (err && err->kind == ERROR_USAGE)
		err = error_hint(err, "arguments are $NAME where names are known, and _arg(0), _arg(1)");
	if (!err)
		ret->text = text_of(ret->program, ret->target);
	if (!err && !ret->text)
		err = &error_no_memory;
	if (err)
		forget(ret);
	return err;
}

/* Has the process a function of each -e with a condition? Of languages that is not known here. */
static bool has_functions(struct y_target *t, const struct hit_options *o)
{
	for (u32 i = 0; i < o->n; i++) {
		bool any = !o->condition[i] || o->spec[i].language;

		for (u32 k = 0; !any && k < t->nmodules; k++) {
			struct hit_found found;

			error_free(hit_find(&o->spec[i], t->modules[k].image, t->root ? t->root : "", &found));
			any = found.n;
			free(found.others);
		}
		if (!any)
			return false;
	}
	return true;
}

/* For the first process that has the functions, or else the first that it can be compiled for. */
static struct error *compile_any(
        const char *source, const pid_t *pids, u32 n, const struct hit_options *o, struct compiled *ret)
{
	struct error *first = NULL;

	*ret = (struct compiled){0};
	for (u32 i = 0; i < n; i++) {
		struct compiled one;
		struct error *err = compile(source, pids[i], &one);
		bool has = !err && has_functions(one.target, o);

		if (has || (!err && !ret->program)) {
			forget(ret);
			*ret = one;
		} else {
			forget(&one);
		}
		if (err && !first)
			first = err;
		else
			error_free(err);
		if (has)
			break;
	}
	if (!ret->program)
		return first;
	error_free(first);
	return NULL;
}

static struct error *other_program(const struct y_conditions *c, pid_t pid)
{
	return error_hint(error_new(ERROR_USAGE,
	                          "--if is not the same in process %d as in %d: they run different files, or what it "
	                          "names is elsewhere",
	                          (int)pid, (int)c->of.target->pid),
	        "a run of its own: -p %d", (int)pid);
}

/* A process that ended meanwhile has no calls. */
static struct error *compare(const struct y_conditions *c, pid_t pid, bool *fits)
{
	struct compiled other;
	struct error *err;

	*fits = pid == c->of.target->pid;
	if (*fits)
		return NULL;
	err = compile(c->source, pid, &other);
	*fits = !err && !strcmp(other.text, c->of.text);
	forget(&other);
	if (err == &error_no_memory)
		return err;
	if (*fits || (err && err->kind == ERROR_NO_PROCESS)) {
		error_free(err);
		return NULL;
	}
	error_free(err);
	return other_program(c, pid);
}

static bool fits(struct hit_fit *fit, u32 process, pid_t pid, struct error **why)
{
	struct y_conditions *c = (struct y_conditions *)fit;
	struct seen *s;

	*why = NULL;
	for (u32 i = 0; i < c->nseen; i++)
		if (c->seen[i].process == process)
			return c->seen[i].fits;
	*why = grow(&c->seen, c->nseen, sizeof(*c->seen));
	if (*why)
		return false;
	s = &c->seen[c->nseen++];
	s->process = process;
	*why = compare(c, pid, &s->fits);
	return s->fits;
}

struct error *y_conditions_make(
        char *source, const pid_t *pids, u32 n, struct hit_options *o, struct y_conditions **ret)
{
	struct y_conditions *c = calloc(1, sizeof(*c));
	struct y_target any;
	struct error *err;

	*ret = NULL;
	if (!c) {
		free(source);
		return &error_no_memory;
	}
	*c = (struct y_conditions){.fit.fits = fits, .source = source};
	err = compile_any(source, pids, n, o, &c->of);
	if (!err) {
		any = *c->of.target;
		any.pid = 0;
		err = y_probes_make(c->of.program, &any, &c->bpf);
	}
	if (!err)
		err = y_condition_new(&c->bpf->object, Y_KIND, o, &c->put);
	o->fit = &c->fit;
	*ret = err ? NULL : c;
	if (err)
		y_conditions_free(c);
	return err;
}

void y_conditions_free(struct y_conditions *c)
{
	if (!c)
		return;
	y_condition_free(c->put);
	y_bpf_free(c->bpf);
	forget(&c->of);
	free(c->seen);
	free(c->source);
	free(c);
}
