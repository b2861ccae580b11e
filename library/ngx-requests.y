// SPDX-License-Identifier: Apache-2.0
// nginx: the requests that a worker has now: client, URI, phase, age, bytes in the request's pool; largest first
//
// Reads the connections' array, each request and its pool: some ten pages a request. HTTP/1 requests of clients;
// streams of HTTP/2 share their connection and are not in that array. Large blocks count with the size that glibc's
// malloc has for them.

#define SIGNATURE 0x50545448 /* "HTTP" */

_map long size_of[ngx_http_request_t *];

long large_size(void *block)
{
	return (long)(*(size_t *)((char *)block - sizeof(size_t)) & ~7UL) - 8;
}

long pool_size(ngx_pool_t *pool)
{
	long total = 0;

	for (ngx_pool_t *p = pool; p; p = p->d.next)
		total += p->d.end - (u_char *)p;
	for (ngx_pool_large_t *l = pool->large; l; l = l->next)
		if (l->alloc)
			total += large_size(l->alloc);
	return total;
}

_str phase_of(ngx_http_request_t *r)
{
	ngx_http_core_main_conf_t *conf = r->main_conf[ngx_http_core_module.ctx_index];
	ngx_http_phase_handler_t *handlers = conf->phase_engine.handlers;

	if (!r->uri.len)
		return "reading request";
	if (r->header_sent)
		return "sending";
	if (r->upstream)
		return "upstream";
	return _str_or_empty(_sym(handlers[r->phase_handler].checker));
}

_str _str_or_empty(_str name)
{
	if (name ~~ rx/ngx_http_core_(\w+)_phase/)
		return $1;
	return name;
}

long age_ms(ngx_http_request_t *r)
{
	return (ngx_cached_time->sec - r->start_sec) * 1000 + (long)ngx_cached_time->msec - (long)r->start_msec;
}

_probe _oneshot {
	int n = ngx_cycle->connection_n, requests = 0;

	for (int i = 0; i < n; i++) {
		ngx_connection_t *c = &ngx_cycle->connections[i];
		ngx_http_request_t *r = c->data;

		if (c->fd == -1 || !r || (r->signature ?? 0) != SIGNATURE || r->connection != c)
			continue;
		size_of[r] = pool_size(r->pool) ?? -1;
		requests++;
	}
	printf("%d requests in %d connections\n", requests, n);
	printf("%10s %10s %-16s %-22s %s\n", "BYTES", "AGE ms", "PHASE", "CLIENT", "URI");
	_foreach (r : bytes _in size_of, _top 1000000)
		printf("%10ld %10ld %-16s %-22.*s %.*s\n", bytes, age_ms(r), phase_of(r), r->connection->addr_text.len,
		       r->connection->addr_text.data, r->unparsed_uri.len, r->unparsed_uri.data);
}
