/* SPDX-License-Identifier: Apache-2.0 */
#include "c_names.h"

#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "runtime.h"
#include "search.h"

struct error *c_names_add(struct c_names *c, u64 function, const char *name)
{
	if (c->n == C_NAMES_MAX)
		return NULL;
	if (grow(&c->list, c->n, sizeof(*c->list)))
		return &error_no_memory;
	c->list[c->n] = (struct c_name){function, strdup(name)};
	return c->list[c->n].name ? (c->n++, NULL) : &error_no_memory;
}

static int compare(const void *a, const void *b)
{
	const struct c_name *x = a, *y = b;

	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	if (strlen(x->name) != strlen(y->name))
		return strlen(x->name) > strlen(y->name) ? -1 : 1;
	return strcmp(x->name, y->name);
}

void c_names_sort(struct c_names *c)
{
	if (c->n)
		qsort(c->list, c->n, sizeof(*c->list), compare);
}

const char *c_names_find(const struct c_names *c, u64 function)
{
	u32 at = SEARCH(c->n, k, c->list[k].function < function);

	return at < c->n && c->list[at].function == function ? c->list[at].name : NULL;
}

void c_names_free(struct c_names *c)
{
	for (u32 i = 0; i < c->n; i++)
		free(c->list[i].name);
	free(c->list);
	*c = (struct c_names){0};
}

struct error *c_names_read(struct image *img, struct c_names *ret)
{
	struct error *err = NULL;

	*ret = (struct c_names){0};
	for (const struct runtime_ops *const *r = runtimes; !err && *r; r++)
		if ((*r)->c_names)
			err = (*r)->c_names(img, ret);
	if (err)
		c_names_free(ret);
	else
		c_names_sort(ret);
	return err;
}
