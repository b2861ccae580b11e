/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "binary/core_file.h"
#include "process.h"

static struct error *fill(struct process *p)
{
	struct error *err = core_maps(p->core, &p->maps);

	if (err)
		return err;
	err = core_complaint(p->core);
	if (err)
		p->modules->complain(p->modules->complain_ctx, err);
	return process_renew(p);
}

struct error *process_create_core(struct modules *modules, struct core_file *core, u32 number, struct process **ret)
{
	struct process *p = calloc(1, sizeof(*p));
	struct error *err;

	if (!p)
		return &error_no_memory;
	p->number = number;
	p->core = core;
	p->modules = modules;
	p->memory = core_memory(core);
	p->entry.instance = number;
	snprintf(p->comm, sizeof(p->comm), "%s", core->comm);
	err = p->memory ? fill(p) : &error_no_memory;
	if (err) {
		process_destroy(p);
		return err;
	}
	*ret = p;
	return NULL;
}
