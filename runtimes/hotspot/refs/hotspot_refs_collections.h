/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collections of java.util as people see them: a map has keys and values, a list items. Their tables, nodes and
 * arrays belong to them. What only leads back is passed over, and so is a tree's second way to its nodes, which nothing
 * but nodes depends on. By names of classes and fields (OpenJDK 8 to 28), as in Symbols.
 */
#ifndef YRT_HOTSPOT_REFS_COLLECTIONS_H
#define YRT_HOTSPOT_REFS_COLLECTIONS_H

#include <stdbool.h>
#include <types.h>

#include "runtime_heap.h"

#define REFS_SKIP UINT32_MAX

/* HEAP_ITEM, HEAP_KEY, HEAP_ENTRY, REFS_SKIP; HEAP_PART: to be added to the field's name; 0: nothing special. */
u32 hotspot_refs_collection_label(const char *class, const char *field);
/* Is this the class of a node, by its name with the ";" of an array's class behind it? */
bool hotspot_refs_is_node(const char *element);

#endif
