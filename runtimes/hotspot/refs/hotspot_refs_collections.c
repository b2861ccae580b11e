/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_refs_collections.h"

#include <string.h>

#define CHM "concurrent/ConcurrentHashMap"
#define LBQ "concurrent/LinkedBlockingQueue"

static const struct {
	const char *class, *field;
	u32 label;
} fields[] = {
        {"HashMap", "table", HEAP_PART},
        {"HashMap$Node", "key", HEAP_KEY},
        {"HashMap$Node", "value", HEAP_ENTRY},
        {"HashMap$Node", "next", HEAP_PART},
        {"HashMap$TreeNode", "parent", REFS_SKIP},
        {"HashMap$TreeNode", "left", REFS_SKIP},
        {"HashMap$TreeNode", "right", REFS_SKIP},
        {"HashMap$TreeNode", "prev", REFS_SKIP},
        {"LinkedHashMap", "head", HEAP_PART},
        {"LinkedHashMap", "tail", HEAP_PART},
        {"LinkedHashMap$Entry", "before", HEAP_PART},
        {"LinkedHashMap$Entry", "after", HEAP_PART},
        {"HashSet", "map", HEAP_PART},
        {"Hashtable", "table", HEAP_PART},
        {"Hashtable$Entry", "key", HEAP_KEY},
        {"Hashtable$Entry", "value", HEAP_ENTRY},
        {"Hashtable$Entry", "next", HEAP_PART},
        {"WeakHashMap", "table", HEAP_PART},
        {"WeakHashMap$Entry", "value", HEAP_ENTRY},
        {"WeakHashMap$Entry", "next", HEAP_PART},
        {"TreeMap", "root", HEAP_PART},
        {"TreeMap$Entry", "key", HEAP_KEY},
        {"TreeMap$Entry", "value", HEAP_ENTRY},
        {"TreeMap$Entry", "left", HEAP_PART},
        {"TreeMap$Entry", "right", HEAP_PART},
        {"TreeMap$Entry", "parent", REFS_SKIP},
        {"TreeSet", "m", HEAP_PART},
        {CHM, "table", HEAP_PART},
        {CHM "$Node", "key", HEAP_KEY},
        {CHM "$Node", "val", HEAP_ENTRY},
        {CHM "$Node", "next", HEAP_PART},
        {CHM "$TreeBin", "first", HEAP_PART},
        {CHM "$TreeBin", "root", HEAP_PART},
        {CHM "$TreeNode", "parent", REFS_SKIP},
        {CHM "$TreeNode", "left", REFS_SKIP},
        {CHM "$TreeNode", "right", REFS_SKIP},
        {CHM "$TreeNode", "prev", REFS_SKIP},
        {"ArrayList", "elementData", HEAP_PART},
        {"Vector", "elementData", HEAP_PART},
        {"ArrayDeque", "elements", HEAP_PART},
        {"PriorityQueue", "queue", HEAP_PART},
        {"concurrent/CopyOnWriteArrayList", "array", HEAP_PART},
        {"concurrent/ArrayBlockingQueue", "items", HEAP_PART},
        {LBQ, "head", HEAP_PART},
        {LBQ, "last", HEAP_PART},
        {LBQ "$Node", "item", HEAP_ITEM},
        {LBQ "$Node", "next", HEAP_PART},
        {"LinkedList", "first", HEAP_PART},
        {"LinkedList", "last", HEAP_PART},
        {"LinkedList$Node", "item", HEAP_ITEM},
        {"LinkedList$Node", "next", HEAP_PART},
        {"LinkedList$Node", "prev", HEAP_PART},
};

/* Nodes that arrays hold. */
static const char *const nodes[] = {"java/util/HashMap$Node;", "java/util/Hashtable$Entry;",
        "java/util/WeakHashMap$Entry;", "java/util/" CHM "$Node;", "java/lang/ThreadLocal$ThreadLocalMap$Entry;"};

#define UTIL "java/util/"

u32 hotspot_refs_collection_label(const char *class, const char *field)
{
	if (!strcmp(class, "java/lang/String"))
		return strcmp(field, "value") ? 0 : HEAP_PART;
	if (!strcmp(class, "java/lang/ThreadLocal$ThreadLocalMap"))
		return strcmp(field, "table") ? 0 : HEAP_PART;
	if (!strcmp(class, "java/lang/ThreadLocal$ThreadLocalMap$Entry"))
		return strcmp(field, "value") ? 0 : HEAP_ENTRY;
	if (strncmp(class, UTIL, strlen(UTIL)) != 0)
		return 0;
	for (u32 i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		if (!strcmp(class + strlen(UTIL), fields[i].class) && !strcmp(field, fields[i].field))
			return fields[i].label;
	return 0;
}

bool hotspot_refs_is_node(const char *element)
{
	for (u32 i = 0; i < sizeof(nodes) / sizeof(*nodes); i++)
		if (!strcmp(element, nodes[i]))
			return true;
	return false;
}
