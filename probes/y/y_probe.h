/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a Y program's probes into the kernel, places them in a process, and brings back what they say and count. */
#ifndef YRT_Y_PROBE_H
#define YRT_Y_PROBE_H

#include <sys/types.h>

#include "unwind/binary/image.h"
#include "unwind/error.h"
#include "y_object.h"

struct y_kernel {       /* what this kernel has */
	bool multi;     /* uprobes of multi links (uprobe.h) */
	bool sleepable; /* such programs may wait for absent pages (Linux 6.0) */
	u32 cpus;
};
/* ERROR_PERMISSION. */
struct error *y_kernel_ask(struct y_kernel *ret);

struct y_probe_file { /* of the target */
	struct image *image;
	const char *path; /* for the kernel */
};

struct y_probe_options {
	pid_t pid;
	const struct y_kernel *kernel;
	const struct y_probe_file *files;
	u32 nfiles;
	int pending, on_y[Y_KINDS], handlers, arguments; /* of y_stacks_maps(), if the object has stacks or calls */
	const char *root;                                /* as for symbols_load() */
	void (*record)(void *ctx, const struct y_record *record);
	void *ctx;
};

/* What -e of `yrt probe` says of the handler's point, at its place in the program. Takes err over. */
struct error *y_probe_at(struct error *err, const struct y_object_handler *h);

struct y_probe;
/* ERROR_USAGE: a place is not there. ERROR_UNSUPPORTED: the kernel refuses the program. o's pointers are kept. */
struct error *y_probe_open(const struct y_object *object, const struct y_probe_options *o, struct y_probe **ret);
void y_probe_close(struct y_probe *p); /* NULL is fine */
/* The descriptor of a handler's program, for who attaches it in place of y_probe_start(). */
int y_probe_program(const struct y_probe *p, u32 handler);
struct error *y_probe_start(struct y_probe *p);
/* Waits for records, at most so long. False: interrupted. */
bool y_probe_wait(struct y_probe *p, u32 ms);
/* Takes the probes away, and the last records. */
void y_probe_stop(struct y_probe *p);
/*
 * Begins a generation (struct y_control), and returns one that no handler is in any more, nor in one before: the
 * generations below it have all that they will have. Waits at most so long for handlers of the last one.
 */
u64 y_probe_turn(struct y_probe *p, u32 ms);
/* Handlers that have not ended. */
u32 y_probe_running(const struct y_probe *p);
/* Hits that the kernel kept from the handlers, as one of them or of another program was running on that CPU. */
u64 y_probe_missed(const struct y_probe *p);

/* Of Y_MAP_GLOBALS, as handlers see it. */
void *y_probe_globals(struct y_probe *p);
bool y_probe_counted(struct y_probe *p, u32 number, struct y_counted *ret);

/* The program's own maps, from 0. next: false: key was the last one (NULL: before the first). */
bool y_probe_next(struct y_probe *p, u32 map, const void *key, void *next);
/* value: of an aggregate one for each CPU (struct y_kernel.cpus), each a multiple of 8 bytes. */
bool y_probe_get(struct y_probe *p, u32 map, const void *key, void *value);
bool y_probe_set(struct y_probe *p, u32 map, const void *key, const void *value);
void y_probe_delete(struct y_probe *p, u32 map, const void *key);
/* The same, and *value is what it was then. False: it was not there. */
bool y_probe_take_out(struct y_probe *p, u32 map, const void *key, void *value);
/* Adds to an entry, which is made if need be, beside handlers. *ret is what it is then. False: nothing was added. */
bool y_probe_add(struct y_probe *p, u32 map, const void *key, u64 by, u64 *ret);

/* How many instructions the verifier looked at for a handler; 0: unknown. */
u32 y_probe_verified(struct y_probe *p, u32 handler);

#endif
