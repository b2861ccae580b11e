/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The classes of sampled objects. The class is in the object's header, but only until a collection moves the object,
 * and a program may collect a hundred times a second. So records have a ring of their own, and a thread that does
 * nothing else reads them regularly. When a collection begins, all threads stand and all objects that they have begun
 * to allocate are complete. Then the watchpoint thread (watchpoints.h) of that CPU reads the records before the
 * collection goes on. If collections are not reported, each sample wakes the thread, which runs at real-time priority
 * (an interrupt: 15 us on some virtual machines).
 */
#ifndef YRT_TLAB_CLASSES_H
#define YRT_TLAB_CLASSES_H

#include <types.h>

#include "tlab_object.h"
#include "unwind/error.h"
#include "unwind/runtime_alloc.h"

struct tlab_classes;

struct tlab_class { /* what became of a record */
	struct alloc_record record;
	struct frame frame;
	u64 size;           /* of the object; 0: not known; by survey: of an average one */
	u64 bytes, objects; /* by survey */
	u64 whole;          /* by survey: bytes of all kinds in that buffer */
	bool known;
};

/* o outlives it. */
struct error *tlab_classes_create(struct object *o, struct tlab_classes **ret);
void tlab_classes_destroy(struct tlab_classes *c);
/*
 * Records of this process (struct alloc_record.instance) are read by reader, which ops->open() made. Takes ownership of
 * reader.
 */
struct error *tlab_classes_add(struct tlab_classes *c, u32 process, const struct runtime_alloc_ops *ops, void *reader);
/* Reads all that is there to be read at once: a collection begins. Of any thread. */
void tlab_classes_read_now(void *classes);
/* Moves new results into *ret (malloc'd, or NULL), in no order. Returns how many. */
u32 tlab_classes_take(struct tlab_classes *c, struct tlab_class **ret);
/* Call when no more records come: ends the thread. Classes that it has not found by then are reported as unknown. */
void tlab_classes_stop(struct tlab_classes *c);

#endif
