/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of LuaJIT's VMs, for lua-heap and lua-refs (runtime_heap.h). Their structures (GCtab, GCupval, GCudata,
 * GCcdata, Node: lj_obj.h) are the same in all of 2.1 but for the size of references; where the layout
 * (luajit_layout.h) has a member, it is taken from there.
 *
 * Roots are what the garbage collector marks: the registry, the main thread, metatables of the VM, traces. To people
 * the values of package.loaded and of the globals are roots of their own: so a module is not "shared" by all that
 * require() it.
 */
#ifndef YRT_LUAJIT_HEAP_H
#define YRT_LUAJIT_HEAP_H

#include "luajit_image.h"
#include "runtime.h"
#include "runtime_heap.h"

struct luajit_names;

struct error *luajit_heap_open(const struct luajit_image *image, u64 bias, struct luajit_names *names,
        const struct runtime_process *p, struct heap *h, void **ret);
void luajit_heap_close(void *reader);
struct error *luajit_heap_roots(void *reader);
/* Strings that nothing refers to, and the VM's own memory: luajit_heap_own.c. */
struct error *luajit_heap_own(void *reader);
/* The collector's list (GCState.root), in which the registry is. */
struct error *luajit_heap_all(void *reader);
enum heap_seen luajit_heap_object(void *reader, u64 addr, u32 label, struct heap_object *ret);

#endif
