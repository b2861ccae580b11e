// SPDX-License-Identifier: Apache-2.0
// nginx: the timers of a worker: when each is due, and which handler it calls; how many there are of each handler
//
// Reads the tree of timers: a page or so each. Times count from nginx's own clock, which stands still in a core.

_map long timers[_str];

void visit(ngx_rbtree_node_t *node, ngx_rbtree_node_t *end)
{
	ngx_event_t *event;

	if (node == end)
		return;
	visit(node->left, end);
	event = _container_of(node, ngx_event_t, timer);
	printf("%12ld  %s\n", (long)(node->key - ngx_current_msec), _sym(event->handler));
	timers[_sym(event->handler)]++;
	visit(node->right, end);
}

_probe _oneshot {
	printf("%12s  %s\n", "DUE IN ms", "HANDLER");
	visit(ngx_event_timer_rbtree.root, ngx_event_timer_rbtree.sentinel);
	_foreach (handler : n _in timers, _top 100)
		printf("%12ld  of %s\n", n, handler);
}
