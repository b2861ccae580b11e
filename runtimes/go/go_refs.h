/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who keeps the objects of a Go program alive (runtime_heap.h): from its global variables, the stacks of its
 * goroutines and the runtime's own variables on. An address belongs to the object of its span.
 *
 * Types: objects of more than 512 bytes with pointers begin with theirs (go_spans.h). For the others it is what leads
 * to them: a field of a known type, an interface, or a global variable, of which DWARF says where Go's own description
 * is (DW_AT_go_runtime_type). An object whose first word is the start of a function is a closure of it. Others are
 * shown by size class, and each of their words that is the address of an object is a reference, marked "?".
 *
 * Sources: internal/abi/type.go, runtime/runtime2.go (itab), runtime/mheap.go of Go 1.22 to 1.26.
 */
#ifndef YRT_GO_REFS_H
#define YRT_GO_REFS_H

#include "runtime_heap.h"

extern const struct runtime_heap_ops go_refs;

#endif
