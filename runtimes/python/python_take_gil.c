/* SPDX-License-Identifier: Apache-2.0 */
#include "python_take_gil.h"

#include <string.h>

#include "binary/image_calls.h"
#include "symbols/symbols.h"

#define WAIT          "pthread_cond_timedwait@plt"
#define FUNCTION_MAX  2048
#define FUNCTION_SIZE 1024 /* of one without a symbol: what follows it may count, too */
#define CALLEES_MAX   16
#define DEPTH         3 /* _PyThreadState_Attach(), _PyEval_AcquireLock(), take_gil() */

struct callees {
	u64 at[CALLEES_MAX];
	u32 n;
};

static bool add(void *ctx, u64 target)
{
	struct callees *c = ctx;

	c->at[c->n++] = target;
	return c->n < CALLEES_MAX;
}

static struct callees callees_of(struct image *img, u64 start, u64 end)
{
	struct callees ret = {.n = 0};

	image_calls(img, start, end < start + FUNCTION_MAX ? end : start + FUNCTION_MAX, add, &ret);
	return ret;
}

static struct callees callees_by_name(struct image *img, const char *name)
{
	struct symbol symbol;

	return symbols_lookup(img, name, &symbol) ? callees_of(img, symbol.start, symbol.end)
	                                          : (struct callees){.n = 0};
}

static bool has_name(struct image *img, u64 addr)
{
	struct symbol symbol;

	return symbols_find(img, addr, &symbol) && symbol.start == addr;
}

static bool is_wait(struct image *img, u64 addr)
{
	struct symbol symbol;

	return symbols_find(img, addr, &symbol) && symbol.start == addr && !strcmp(symbol.name, WAIT);
}

static bool leads_to_wait(struct image *img, u64 addr, u32 depth)
{
	struct callees callees;

	if (is_wait(img, addr))
		return true;
	if (!depth)
		return false;
	callees = callees_of(img, addr, addr + FUNCTION_SIZE);
	for (u32 i = 0; i < callees.n; i++)
		if (leads_to_wait(img, callees.at[i], depth - 1))
			return true;
	return false;
}

static bool has(const struct callees *c, u64 addr)
{
	for (u32 i = 0; i < c->n; i++)
		if (c->at[i] == addr)
			return true;
	return false;
}

struct error *python_take_gil(struct image *img, struct c_names *ret)
{
	struct callees restore = callees_by_name(img, "PyEval_RestoreThread"), acquire;
	u64 found = 0;

	if (!restore.n) /* most files are not the interpreter */
		return NULL;
	acquire = callees_by_name(img, "PyEval_AcquireThread");
	for (u32 i = 0; i < restore.n; i++) {
		u64 addr = restore.at[i];

		if (addr == found || !has(&acquire, addr) || has_name(img, addr) || !leads_to_wait(img, addr, DEPTH))
			continue;
		if (found)
			return NULL;
		found = addr;
	}
	return found ? c_names_add(ret, found, "take_gil") : NULL;
}
