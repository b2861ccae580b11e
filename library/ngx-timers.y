// SPDX-License-Identifier: Apache-2.0
// nginx: the timers of a worker: when each is due, and which handler it calls; how many there are of each handler
//
// Works without debug information (nginx 1.14 to 1.29); functions that the file has no name for are places in it then.
// Reads the tree of timers: a page or so each. Times count from nginx's own clock, which stands still in a core.

##ifndefvar ngx_event_timer_rbtree
#error "no nginx is in this process, or one that exports no names (built without dynamic modules)"
##endif

##ifndeftype ngx_event_t
/* src/core/ngx_rbtree.h, src/event/ngx_event.h */
typedef struct ngx_rbtree_node_s ngx_rbtree_node_t;
struct ngx_rbtree_node_s {
	unsigned long key;
	ngx_rbtree_node_t *left, *right, *parent;
	unsigned char color, data;
};
typedef struct { void *data; long flags; void *handler; long index, log; ngx_rbtree_node_t timer; } ngx_event_t;
##endif

_map long timers[_str];

void visit(ngx_rbtree_node_t *node, ngx_rbtree_node_t *end)
{
	ngx_event_t *event;

	if (node == end)
		return;
	visit(node->left, end);
	event = _container_of(node, ngx_event_t, timer);
	printf("%12ld  %s\n", (long)node->key - *(long *)&ngx_current_msec, _sym(event->handler));
	timers[_sym(event->handler)]++;
	visit(node->right, end);
}

_probe _oneshot {
	ngx_rbtree_node_t **tree = (ngx_rbtree_node_t **)&ngx_event_timer_rbtree; /* its root, what ends it */

	printf("%12s  %s\n", "DUE IN ms", "HANDLER");
	visit(tree[0], tree[1]);
	_foreach (handler : n _in timers, _top 100)
		printf("%12ld  of %s\n", n, handler);
}
