// SPDX-License-Identifier: Apache-2.0
// glibc's malloc: each arena's bytes from the system, in use and free (top, bins, fast bins), as malloc_stats() says
//
// Needs libc's debug information (libc6-dbg). Walks the chunks of all bins: a page or less for each free chunk. Chunks
// in threads' caches count as in use, as in malloc_stats().

#define SIZE(chunk) ((chunk)->mchunk_size & ~7UL)

_probe _oneshot {
	struct malloc_state *arena = &main_arena;
	int number = 0;

	printf("%5s %14s %14s %14s %10s %8s\n", "ARENA", "SYSTEM", "IN USE", "FREE", "CHUNKS", "THREADS");
	do {
		unsigned long fast = 0, binned = 0, chunks = 0;

		for (int i = 0; i < 10; i++)
			for (struct malloc_chunk *c = arena->fastbinsY[i]; c;
			     c = (struct malloc_chunk *)((unsigned long)&c->fd >> 12 ^ (unsigned long)c->fd)) {
				fast += SIZE(c);
				chunks++;
			}
		for (int i = 0; i < 127; i++) {
			struct malloc_chunk *bin = _container_of(&arena->bins[2 * i], struct malloc_chunk, fd);

			for (struct malloc_chunk *c = bin->fd; c != bin; c = c->fd) {
				binned += SIZE(c);
				chunks++;
			}
		}
		unsigned long free = fast + binned + SIZE(arena->top);
		printf("%5d %14lu %14lu %14lu %10lu %8lu\n", number++, arena->system_mem, arena->system_mem - free, free, chunks,
		       arena->attached_threads);
		arena = arena->next;
	} while (arena != &main_arena);
}
