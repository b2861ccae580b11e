// SPDX-License-Identifier: Apache-2.0
// nginx: the open connections of a worker: descriptor, peer, what it does, requests so far, bytes sent
//
// Reads the connections' array and one page or two of each open connection.

#define SIGNATURE 0x50545448 /* "HTTP" */

_agg by_state[_str];

_str state_of(ngx_connection_t *c)
{
	ngx_http_request_t *r = c->data;

	if (c->listening && c->read->accept)
		return "listening";
	if (c->idle)
		return "keepalive";
	if (!r || (r->signature ?? 0) != SIGNATURE)
		return "other";
	if (r->connection != c)
		return "upstream";
	return r->header_sent ? "sending" : "request";
}

_probe _oneshot {
	printf("%6s %-22s %-10s %8s %12s\n", "FD", "PEER", "STATE", "REQUESTS", "SENT");
	for (int i = 0; i < ngx_cycle->connection_n; i++) {
		ngx_connection_t *c = &ngx_cycle->connections[i];
		_str state;

		if (c->fd == -1)
			continue;
		state = state_of(c) ?? "unreadable";
		by_state[state] <<< 1;
		printf("%6d %-22.*s %-10s %8lu %12ld\n", c->fd, c->addr_text.len, c->addr_text.data, state, c->requests, c->sent);
	}
	printf("%lu of %lu connections are free\n", ngx_cycle->free_connection_n, ngx_cycle->connection_n);
	_foreach (s : n _in by_state, _top 10)
		printf("%6ld %s\n", n, s);
}
