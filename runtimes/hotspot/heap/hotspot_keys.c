/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_keys.h"

#include <stdlib.h>
#include <string.h>

#include "cleanup.h"

#define MAP       "java/util/concurrent/ConcurrentHashMap"
#define NODE      "Ljava/util/concurrent/ConcurrentHashMap$Node;"
#define SLOTS_MAX (1u << 24)
#define TABLES    4 /* one that is being resized leads to the next */
#define HEADER    24

struct table_of_nodes {
	u64 at; /* of the first slot */
	u32 n, slot;
};

static bool read_table(struct hotspot_heap_view *h, struct memory *m, u64 array, struct table_of_nodes *ret)
{
	u8 header[HEADER];
	const struct hotspot_class *c;

	if (!array || array & 7 || !memory_read(m, header, sizeof(header), array))
		return false;
	c = hotspot_class_of(h, m, hotspot_header_class(h, header));
	if (!c || c->kind != SIZE_ARRAY || (1u << c->log2_element) != (h->oops == OOP_NARROW ? 4 : 8))
		return false;
	memcpy(&ret->n, header + hotspot_length_at(h), 4);
	ret->at = array + c->size;
	ret->slot = 1u << c->log2_element;
	return ret->n <= SLOTS_MAX;
}

/* What is in a slot but is no plain node: 0, or the first node of a tree. *resized: the table where the slot's are. */
static u64 other_node(
        struct hotspot_keys *k, struct hotspot_heap_view *h, struct memory *m, u64 node, u64 klass, u64 *resized)
{
	if (hotspot_super_named(h, m, klass, MAP "$TreeBin") == klass)
		return hotspot_declared_field(h, m, node, MAP "$TreeBin", "first",
		               "Ljava/util/concurrent/ConcurrentHashMap$TreeNode;", &k->first)
		               ? hotspot_load_oop(h, m, node + k->first)
		               : 0;
	if (hotspot_super_named(h, m, klass, MAP "$ForwardingNode") == klass &&
	        hotspot_declared_field(h, m, node, MAP "$ForwardingNode", "nextTable", "[" NODE, &k->resized))
		*resized = hotspot_load_oop(h, m, node + k->resized);
	return hotspot_super_named(h, m, klass, MAP "$TreeNode") == klass ? node : 0;
}

/* All nodes of a slot. */
static bool each_node(struct hotspot_keys *k, struct hotspot_heap_view *h, struct memory *m, u64 node, u64 *resized,
        bool (*each)(void *ctx, u64 key), void *ctx)
{
	u64 key;

	for (bool first = true; node && k->left; k->left--, first = false) {
		u64 klass = hotspot_object_class(h, m, node);

		if (!klass)
			return true;
		if (first && klass != k->node && hotspot_super_named(h, m, klass, MAP "$Node") != klass) {
			node = other_node(k, h, m, node, klass, resized);
			if (!node)
				return true;
		}
		if (!hotspot_declared_field(h, m, node, MAP "$Node", "key", "Ljava/lang/Object;", &k->key) ||
		        !hotspot_declared_field(h, m, node, MAP "$Node", "next", NODE, &k->next))
			return true;
		k->node = k->node ? k->node : hotspot_super_named(h, m, klass, MAP "$Node");
		key = hotspot_load_oop(h, m, node + k->key);
		if (key && !each(ctx, key))
			return false;
		node = hotspot_load_oop(h, m, node + k->next);
	}
	return true;
}

bool hotspot_each_key(struct hotspot_keys *k, struct hotspot_heap_view *h, struct memory *m, u64 set,
        bool (*each)(void *ctx, u64 key), void *ctx)
{
	u64 map = hotspot_object_field(h, m, set, "map", "L" MAP ";"), array, resized = 0;
	struct table_of_nodes t;

	map = map ? map : set;
	if (!map || !hotspot_declared_field(h, m, map, MAP, "table", "[" NODE, &k->table))
		return true;
	array = hotspot_load_oop(h, m, map + k->table);
	for (u32 i = 0; i < TABLES && read_table(h, m, array, &t); i++, array = resized, resized = 0)
		for (u32 slot = 0; slot < t.n && k->left; slot++)
			if (!each_node(k, h, m, hotspot_load_oop(h, m, t.at + (u64)slot * t.slot), &resized, each, ctx))
				return false;
	return true;
}
