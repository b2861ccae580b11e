// SPDX-License-Identifier: Apache-2.0
// LuaJIT 2.1: its allocator's memory: segments, used and free chunks, and a histogram of the free ones' sizes
//
// Works without debug information. STATE is as for lj-gc-count. Reads the head of each chunk, so a word of most pages of
// the heap. Much in small free chunks is fragmentation: it serves no larger object.

#ifndef STATE
#define STATE _luajit
#endif

##ifdeffield MRef ptr64
#define PTR(r) ((r).ptr64)
##else
#define PTR(r) ((unsigned long)(r).ptr32)
##endif

/* Of struct malloc_state (lj_alloc.c), whose name glibc has, too: words. */
#define WORD(p, n)  (((unsigned long *)(p))[n])
#define TOP_SIZE(m) WORD(m, 2)
#define TOP(m)      WORD(m, 4)
#define SEGMENTS(m) ((unsigned long *)(m) + 105) /* the first of: base, size, the next one */
#define HEAD(c)     WORD(c, 1)

#define FENCE 11 /* the head behind a segment's last chunk */

_agg used;
_agg free;
_agg segments;

_probe _oneshot {
	global_State *g = (global_State *)PTR(STATE->glref);
	unsigned long m = (unsigned long)g->allocd;

	for (unsigned long *s = SEGMENTS(m); s; s = (unsigned long *)s[2]) {
		unsigned long end = s[0] + s[1], c = s[0] + (-(s[0] + 16) & 15);

		segments <<< (long)s[1];
		while (c < end && c != TOP(m) && HEAD(c) != FENCE) {
			long size = (long)(HEAD(c) & ~3UL);

			if (!size)
				_error("a chunk of no size: the heap is being changed, or is not this allocator's");
			if (HEAD(c) & 2)
				used <<< size;
			else
				free <<< size;
			c += size;
		}
	}
	printf("%-10s %8s %12s %12s\n", "", "CHUNKS", "BYTES", "LARGEST");
	printf("%-10s %8ld %12ld %12ld\n", "used", _count(used), _sum(used), _max(used));
	printf("%-10s %8ld %12ld %12ld\n", "free", _count(free), _sum(free), _max(free));
	printf("%-10s %8d %12ld %12ld\n", "top", 1, (long)TOP_SIZE(m), (long)TOP_SIZE(m));
	printf("%-10s %8ld %12ld %12ld\n", "segments", _count(segments), _sum(segments), _max(segments));
	_hist(free);
}
