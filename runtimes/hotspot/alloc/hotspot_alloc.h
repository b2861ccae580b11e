/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where probes on a JVM's allocation are placed. HotSpot calls AllocTracer (gc/shared/allocTracer.cpp; 8:
 * gc_implementation/shared) for each object that it makes outside TLABs, and for the first object in each new TLAB,
 * whether or not JFR listens:
 *
 *	send_allocation_in_new_tlab(klass, object, tlab bytes, object bytes, thread)	10 and later
 *	send_allocation_outside_tlab(klass, object, object bytes, thread)
 *	…_event(klass, object, tlab bytes, object bytes, thread), …			8u262 and later
 *	…_event(klass, tlab bytes, object bytes), …_event(klass, object bytes)		9, and 8 before
 *
 * These functions are not exported. They are found by .symtab, a separate debug file, .gnu_debugdata, else by code
 * (hotspot_alloc_code.c).
 */
#ifndef YRT_HOTSPOT_ALLOC_H
#define YRT_HOTSPOT_ALLOC_H

#include "runtimes/hotspot/layout/hotspot_layout.h"
#include "runtime_alloc.h"

/* Sites by the symbols of a file (its own or of its debug file), in file offsets of img. False: they are not there. */
bool hotspot_alloc_symbols(struct image *img, struct image *names, struct runtime_alloc *ret);

/* Sites, wherever they can be had from, and their origin. root: as for symbols_debug_file(). */
struct error *hotspot_alloc_sites(struct image *img, const char *root, struct runtime_alloc *ret);

#endif
