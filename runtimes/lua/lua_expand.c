/* SPDX-License-Identifier: Apache-2.0 */
#include "lua_expand.h"

#include <sys/mman.h>

#include "arch.h"
#include "cfi/cfi.h"
#include "lua.h"

#define C_FUNCTIONS 64 /* that called each other without Lua between them; more stay where they are */

/* A run of native frames, and the functions in C behind it. Leaf first, as all. */
struct run {
	const struct frame *frames;
	u32 start, end;    /* native */
	u32 functions, nc; /* in C: from where, how many */
	u32 idle;          /* of these, the innermost that do not run: the VM is about to call them, or they returned */
	u32 at[C_FUNCTIONS]; /* the index in frames that each goes in front of */
	bool leaf;           /* no function of Lua is inside of it */
};

static bool is_lua(const struct frame *f, u64 what)
{
	return frame_kind(f) == FRAME_SCRIPT && frame_runtime(f) == RUNTIME_LUA && f->detail & what;
}

static u64 code_of(const struct frame *f)
{
	return frame_addr(f) - (frame_flags(f) & FRAME_RETADDR ? ARCH_CALL_BACK : 0);
}

static bool begins_at(const struct runtime_process *p, const struct frame *f, u64 addr)
{
	const struct mapping *m = mapping_find(p->mappings, p->nmappings, code_of(f));
	const struct cfi_fde *fde = m && m->image ? cfi_fde_at(m->image->cfi, code_of(f) - m->bias) : NULL;

	return fde && fde->start + m->bias == addr;
}

/* Were the functions behind the run met in a luaV_execute() of this image? */
static bool is_own(const struct lua_image *image, u64 bias, const struct frame *frames, u32 i, u32 n)
{
	while (i < n && frame_kind(&frames[i]) == FRAME_SCRIPT)
		i++;
	for (u32 k = 0; i < n && k < image->nranges; k++)
		if (code_of(&frames[i]) - bias - image->ranges[k].start < image->ranges[k].end - image->ranges[k].start)
			return true;
	return false;
}

/* A function whose own code is not there is about to run, has just returned, or ended in a jump: right inside of the
 * VM's code that called it, which is the first in frames[inner] to frames[outer - 1]. */
static u32 inside_vm(const struct run *r, u32 inner, u32 outer)
{
	u32 i = outer;

	while (i > inner && !(frame_flags(&r->frames[i - 1]) & FRAME_VM))
		i--;
	if (i == inner)
		return outer;
	while (i > inner && frame_flags(&r->frames[i - 1]) & FRAME_VM)
		i--;
	return i;
}

/* From outside inwards: each function's code is further inside than that of its caller. */
static void find_places(const struct runtime_process *p, struct run *r)
{
	u32 outer = r->end, waiting = 0; /* functions without code of their own so far */

	for (u32 c = r->nc; c-- > r->idle;) {
		u32 x = outer;

		while (x > r->start && !begins_at(p, &r->frames[x - 1], frame_addr(&r->frames[r->functions + c])))
			x--;
		if (x == r->start) {
			waiting++;
			continue;
		}
		r->at[c] = x;
		for (; waiting; waiting--)
			r->at[c + waiting] = outer = inside_vm(r, x, outer);
		outer = x - 1;
	}
	if (r->leaf && frame_flags(&r->frames[r->start]) & FRAME_VM)
		r->idle += waiting;
	else
		for (; waiting; waiting--)
			r->at[r->idle + waiting - 1] = outer = inside_vm(r, r->start, outer);
}

/* What a slot of the Lua stack holds for a moment need not be a function. */
static bool is_code(const struct runtime_process *p, u64 addr)
{
	const struct mapping *m = mapping_find(p->mappings, p->nmappings, addr);

	return m && m->prot & PROT_EXEC;
}

static u32 put_all(const struct run *r, u32 gc, struct frame *ret)
{
	u32 put = 0, c = r->idle;

	for (u32 i = r->start;; i++) {
		if (i == gc && gc > r->start)
			ret[put++] = (struct frame){.where = frame_where(FRAME_SCRIPT, RUNTIME_LUA, 0, 0),
			        .detail = LUA_COLLECTS | LUA_NO_POS};
		while (c < r->nc && r->at[c] == i)
			ret[put++] = r->frames[r->functions + c++];
		if (i == r->end)
			return put;
		ret[put++] = r->frames[i];
	}
}

u32 lua_expand_native(const struct lua_image *image, u64 bias, const struct runtime_process *p,
        const struct frame *frames, u32 i, u32 n, struct frame *ret, u32 max, u32 *eaten)
{
	struct run r = {
	        .frames = frames, .start = i, .end = i, .leaf = !i || frame_kind(&frames[i - 1]) != FRAME_SCRIPT};
	u32 gc;

	*eaten = 0;
	if (frame_kind(&frames[i]) != FRAME_NATIVE ||
	        (i && frame_kind(&frames[i - 1]) == FRAME_NATIVE)) /* its run was looked at already */
		return 0;
	while (r.end < n && frame_kind(&frames[r.end]) == FRAME_NATIVE)
		r.end++;
	r.functions = r.end + (r.end < n && is_lua(&frames[r.end], LUA_STATE));
	while (r.functions + r.nc < n && r.nc < C_FUNCTIONS && is_lua(&frames[r.functions + r.nc], LUA_C_FUNCTION))
		r.nc++;
	if (!is_own(image, bias, frames, r.functions, n))
		r.nc = 0;
	while (r.idle < r.nc && !is_code(p, frame_addr(&frames[r.functions + r.idle])))
		r.idle++;
	gc = lua_gc_behind(&image->gc, bias, frames, r.start, r.end);
	if ((!r.nc && gc == r.start) || r.end - r.start + r.nc >= max)
		return 0;
	find_places(p, &r);
	*eaten = (r.nc ? r.functions : r.end) + r.nc - r.start;
	return put_all(&r, gc, ret);
}
