// SPDX-License-Identifier: Apache-2.0
// nginx: shared memory by zone: free and used pages, refused requests; of OpenResty's lua_shared_dict entries and bytes
//
// Works without debug information: nginx 1.14 to 1.29, its module for Lua 0.10.7 and later. FREE is what
// ngx.shared.DICT:free_space() says. Reads the heads of a zone's slabs, and each entry's head of a lua_shared_dict, a
// page for some ten small ones; -D ENTRIES=0 leaves these out. -D KEYS=10 also lists keys that nobody asked for the
// longest time: those that a full dictionary evicts first. Other processes go on meanwhile: what they move may be
// missed.

#ifndef ENTRIES
#define ENTRIES 1
#endif
#ifndef KEYS
#define KEYS 0
#endif

##ifndefvar ngx_cycle
#error "no nginx is in this process, or one that exports no names (built without dynamic modules)"
##endif

struct shm_module { unsigned long ctx_index, index; const char *name; unsigned long spares[2], version; };

##ifdeffield ngx_cycle_t shared_memory
#define MODULE(c) ((struct shm_module *)(c)->modules[0])
#define ZONES(c)  (&(c)->shared_memory)
##else
/* src/core of nginx: ngx_cycle.h, ngx_list.h, ngx_slab.h, ngx_shmtx.h */
typedef struct { unsigned long len; char *data; } ngx_str_t;
typedef struct ngx_list_part_s ngx_list_part_t;
struct ngx_list_part_s { void *elts; unsigned long nelts; ngx_list_part_t *next; };
typedef struct { ngx_list_part_t *last, part; } ngx_list_t;
typedef struct {
	void *data;
	struct { char *addr; unsigned long size; ngx_str_t name; void *log; unsigned long exists; } shm;
	void *init, *tag, *sync;
	unsigned long noreuse;
} ngx_shm_zone_t;
typedef struct { unsigned long total, used, reqs, fails; } ngx_slab_stat_t;
typedef struct { unsigned long slab; void *next; unsigned long prev; } ngx_slab_page_t;
typedef struct {
	unsigned long lock, wait, min_size, min_shift;
	ngx_slab_page_t *pages, *last, free;
	ngx_slab_stat_t *stats;
	unsigned long pfree;
	char *start, *end, mutex[64], *log_ctx;
	unsigned char zero;
	unsigned log_nomem : 1;
	void *data, *addr;
} ngx_slab_pool_t;
typedef struct { long before[17]; struct shm_module **modules; } ngx_cycle_t;
#define MODULE(c) (*(c)->modules)
#define ZONES(c)  ((ngx_list_t *)((char *)(c) + (MODULE(c)->version < 1019006 ? 424 : 432)))
##endif

/* ngx_http_lua_shdict.h, with the node of the tree that an entry is part of */
struct shm_queue { struct shm_queue *prev, *next; };
struct shm_dict { void *root, *sentinel, *insert; long node[5]; struct shm_queue lru; };
struct shm_entry {
	long node[4];
	unsigned char color, type;
	unsigned short key_len;
	unsigned value_len;
	unsigned long expires;
	struct shm_queue queue;
	unsigned flags;
	char data[1];
};

#define PAGE   4096UL
#define SLOTS  9 /* from 8 bytes to half a page */

/* By type as Lua numbers it: 1, 3, 4; a list: 5. */
long of_type[6];

/* Of a core: nginx's own clock, which stood while it waited. */
unsigned long now_ms(void)
{
	unsigned long *own = *(unsigned long **)&ngx_cached_time;

	return _wall ? _wall / 1000000 : own[0] * 1000 + own[1];
}

/* ngx_http_lua_module, ngx_http_limit_req_module: whose zone it is. */
_str owner(ngx_shm_zone_t *zone)
{
	_str name = _str(((struct shm_module *)zone->tag)->name ?? (const char *)0) ?? "";

	return name ~~ rx/^ngx_\w+_module/ ? name : "other";
}

/* The address of a dictionary, by what its zone is called where its memory runs out. */
struct shm_dict *dict_of(ngx_slab_pool_t *pool)
{
	_str context = _str(pool->log_ctx) ?? "";

	return context ~~ rx/^ in lua_shared_dict zone / ? pool->data : (struct shm_dict *)0;
}

ngx_slab_pool_t *pool_of(ngx_shm_zone_t *zone)
{
	return (ngx_slab_pool_t *)zone->shm.addr;
}

void print_zone(ngx_shm_zone_t *zone)
{
	ngx_slab_pool_t *pool = pool_of(zone);
	unsigned long used = 0, fails = 0;

	for (int i = 0; i < SLOTS; i++) {
		used += pool->stats[i].used * (pool->min_size << i);
		fails += pool->stats[i].fails;
	}
	printf("%12lu %12lu %9lu %12lu %9lu  %-28s %.*s\n", zone->shm.size, pool->pfree * PAGE,
	       (unsigned long)(pool->last - pool->pages) - pool->pfree, used, fails, owner(zone), zone->shm.name.len,
	       zone->shm.name.data);
}

void print_keys(struct shm_dict *d)
{
	struct shm_queue *q = d->lru.prev;

	for (int i = 0; i < KEYS && q != &d->lru; i++) {
		struct shm_entry *e = _container_of(q, struct shm_entry, queue);

		printf("%23s %12u  %.*s\n", "evicted next", e->value_len, e->key_len, e->data);
		q = q->prev;
	}
}

void print_dict(ngx_shm_zone_t *zone, struct shm_dict *d)
{
	unsigned long n = 0, expired = 0, limited = 0, keys = 0, values = 0, now = now_ms();
	long most = (pool_of(zone)->last - pool_of(zone)->pages) * 64;

	for (int i = 0; i < 6; i++)
		of_type[i] = 0;
	for (struct shm_queue *q = d->lru.prev; q != &d->lru && n < most; q = q->prev) {
		struct shm_entry *e = _container_of(q, struct shm_entry, queue);

		n++;
		keys += e->key_len;
		values += e->value_len;
		limited += e->expires != 0;
		expired += e->expires && e->expires <= now;
		of_type[e->type < 6 ? e->type : 0]++;
	}
	printf("%10lu %10lu %10lu %12lu %12lu %9ld %9ld %9ld %9ld  %.*s\n", n, limited, expired, keys, values, of_type[4],
	       of_type[3], of_type[1], of_type[5], zone->shm.name.len, zone->shm.name.data);
	print_keys(d);
}

void each_zone(int dicts)
{
	for (ngx_list_part_t *part = &ZONES(*(ngx_cycle_t **)&ngx_cycle)->part; part; part = part->next)
		for (unsigned long i = 0; i < part->nelts; i++) {
			ngx_shm_zone_t *zone = (ngx_shm_zone_t *)part->elts + i;
			struct shm_dict *d = dict_of(pool_of(zone));

			if (!dicts)
				print_zone(zone);
			else if (d)
				print_dict(zone, d);
		}
}

_probe _oneshot {
	printf("%12s %12s %9s %12s %9s  %-28s %s\n", "SIZE", "FREE", "USED", "IN SLABS", "REFUSED", "MODULE", "ZONE");
	printf("%12s %12s %9s %12s %9s\n", "", "BYTES", "PAGES", "BYTES", "REQUESTS");
	each_zone(0);
	if (!ENTRIES)
		_exit();
	printf("\n%10s %10s %10s %12s %12s %9s %9s %9s %9s  %s\n", "ENTRIES", "WITH TTL", "EXPIRED", "KEY BYTES",
	       "VALUE BYTES", "TEXTS", "NUMBERS", "BOOLEANS", "LISTS", "DICT");
	each_zone(1);
}
