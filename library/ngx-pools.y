// SPDX-License-Identifier: Apache-2.0
// nginx: memory pools of a worker's cycle, connections and requests: how many, their bytes, large blocks and theirs
//
// Reads each pool's blocks: a page or two each. Large blocks count with the size that glibc's malloc has for them.

#define SIGNATURE 0x50545448 /* "HTTP" */

_agg bytes[_str];
_agg large[_str];

void add_pool(_str owner, ngx_pool_t *pool)
{
	long total = 0;

	for (ngx_pool_t *p = pool; p; p = p->d.next)
		total += p->d.end - (u_char *)p;
	bytes[owner] <<< total;
	for (ngx_pool_large_t *l = pool->large; l; l = l->next)
		if (l->alloc)
			large[owner] <<< (long)(*(size_t *)((char *)l->alloc - sizeof(size_t)) & ~7UL) - 8;
}

_probe _oneshot {
	add_pool("cycle", ngx_cycle->pool);
	for (int i = 0; i < ngx_cycle->connection_n; i++) {
		ngx_connection_t *c = &ngx_cycle->connections[i];
		ngx_http_request_t *r = c->data;

		if (c->fd == -1 || !c->pool || c->pool == ngx_cycle->pool)
			continue;
		_try {
			add_pool("connection", c->pool);
			if (r && r->signature == SIGNATURE && r->connection == c && r->pool)
				add_pool("request", r->pool);
		} _catch {
			_warn("a pool that cannot be read");
		}
	}
	printf("%-12s %8s %12s %12s %12s %12s\n", "POOLS OF", "POOLS", "BYTES", "LARGEST", "LARGE BLOCKS", "THEIR BYTES");
	_foreach (owner : total _in bytes, _top 10)
		printf("%-12s %8ld %12ld %12ld %12ld %12ld\n", owner, _count(bytes[owner]), total, _max(bytes[owner]),
		       _count(large[owner]), _sum(large[owner]));
}
