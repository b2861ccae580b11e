/* SPDX-License-Identifier: Apache-2.0 */
#include "conditions.h"

#include <stdlib.h>
#include <string.h>

#include "frontends/ylang/compile.h"
#include "probes.h"
#include "probes/y/y_condition.h"

struct y_conditions {
	struct y_target *target;
	struct y_program *program;
	struct y_bpf *bpf;
	struct y_condition *put;
};

struct error *y_conditions_make(const char *source, pid_t pid, struct hit_options *o, struct y_conditions **ret)
{
	struct y_conditions *c = calloc(1, sizeof(*c));
	struct error *err = c ? y_target_open(&(struct y_target_options){.pid = pid}, &c->target) : &error_no_memory;

	if (!err)
		err = y_compile(&(struct y_compile_options){.name = "--if", .text = source, .size = strlen(source)},
		        c->target, &c->program);
	if (!err)
		err = y_probes_make(c->program, c->target, &c->bpf);
	if (!err)
		err = y_condition_new(&c->bpf->object, Y_KIND, o, &c->put);
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
	y_program_free(c->program);
	y_target_close(c->target);
	free(c);
}
