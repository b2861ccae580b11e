// SPDX-License-Identifier: Apache-2.0
// LuaJIT 2.1: its allocator's memory: segments, used and free chunks, and a histogram of the free ones' sizes
//
// Needs LuaJIT's debug information. Finds the state as lj-gc-count does. Reads the head of each chunk, so a word of
// most pages of the heap. Much in small free chunks is fragmentation: it serves no larger object.

#ifndef STATE
##ifdefvar globalL
#define STATE globalL
##else
#define MAIN_CONF(module) (((ngx_http_conf_ctx_t *)ngx_cycle->conf_ctx[ngx_http_module.index])->main_conf[(module).ctx_index])
#define STATE (((ngx_http_lua_main_conf_t *)MAIN_CONF(ngx_http_lua_module))->lua)
##endif
#endif

##ifdeffield MRef ptr64
#define PTR(r) ((r).ptr64)
##else
#define PTR(r) ((unsigned long)(r).ptr32)
##endif

#define FENCE 11 /* the head behind a segment's last chunk */

_agg used;
_agg free;
_agg segments;

_probe _oneshot {
	global_State *g = (global_State *)PTR(STATE->glref);
	mstate m = (mstate)g->allocd;

	for (msegmentptr s = &m->seg; s; s = s->next) {
		char *end = s->base + s->size;
		mchunkptr c = (mchunkptr)(s->base + (-((unsigned long)s->base + 16) & 15));

		segments <<< (long)s->size;
		while ((char *)c < end && c != m->top && c->head != FENCE) {
			long size = (long)(c->head & ~3UL);

			if (!size)
				_error("a chunk of no size: the heap is being changed, or is not this allocator's");
			if (c->head & 2)
				used <<< size;
			else
				free <<< size;
			c = (mchunkptr)((char *)c + size);
		}
	}
	printf("%-10s %8s %12s %12s\n", "", "CHUNKS", "BYTES", "LARGEST");
	printf("%-10s %8ld %12ld %12ld\n", "used", _count(used), _sum(used), _max(used));
	printf("%-10s %8ld %12ld %12ld\n", "free", _count(free), _sum(free), _max(free));
	printf("%-10s %8d %12ld %12ld\n", "top", 1, (long)m->topsize, (long)m->topsize);
	printf("%-10s %8ld %12ld %12ld\n", "segments", _count(segments), _sum(segments), _max(segments));
	_hist(free);
}
