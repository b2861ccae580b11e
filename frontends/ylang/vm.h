/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine that defines the language: an interpreter of ir.h over the memory of a live process or a core. It reads by
 * pages, each once (pages.h), stops nothing, and needs no more than the right to read the process.
 */
#ifndef YRT_YLANG_VM_H
#define YRT_YLANG_VM_H

#include <signal.h>
#include <stdio.h>

#include "ir.h"
#include "target.h"

struct y_entry;
struct y_table;
struct y_run_stats;

struct y_share { /* of the VM with the engine of probes */
	struct y_table *tables;
	u64 *globals, **global_arrays;
	FILE *out, *err;
	bool json; /* as in y_run_options */
	struct y_run_stats *stats;
};

/* The engine of a program's probes. It has maps and variables of its own, which handlers of the VM see as theirs. */
struct y_probe_ops {
	struct error *(*start)(void *ctx, const struct y_share *share);
	/* Takes what probes print, until then or somewhat earlier. False: one of them has ended the run. */
	bool (*wait)(void *ctx, u64 until_ns);
	void (*take)(void *ctx); /* its maps and variables become the VM's */
	void (*give)(void *ctx); /* and what the VM changed of variables its */
	/*
	 * The VM changes a map. Behind MAP_SET, MAP_ADD and AGG_ADD (by): of e, which it has changed already; before
	 * MAP_DELETE: e is what it has of the entry.
	 */
	void (*edit)(void *ctx, u32 map, enum y_op op, struct y_entry *e, u64 by);
	void (*stop)(void *ctx); /* with a last take(); stats gets its counts */
};

struct y_run_options {
	FILE *out, *err;
	bool json;                        /* out gets objects of JSON */
	double duration_s;                /* of _timer programs; 0: until stopped */
	volatile sig_atomic_t *stop;      /* ends the run; may be NULL */
	const struct y_probe_ops *probes; /* NULL: the program has none */
	void *probes_ctx;
};

struct y_failure { /* of handlers, by place and cause */
	u32 place, status;
	u64 at, count;
};

struct y_run_stats {
	u64 handlers, failed; /* that ran; of them, that ended by an error */
	u64 steps, pages, pages_changed;
	u64 lost;                  /* updates of full maps */
	u64 lost_records, not_run; /* of probes: output, and hits for which there was no room */
	u64 missed;                /* hits that the kernel kept from them */
	u64 hits;                  /* handlers of probes that ran */
	u32 not_ended;             /* handlers that ran when the run ended: what they add is lost */
	u64 cpu_ns;
	struct y_failure *failures;
	u32 nfailures;
	bool error; /* _error ended it */
};

struct error *y_run(
        const struct y_program *p, struct y_target *t, const struct y_run_options *o, struct y_run_stats *ret);
void y_run_stats_free(struct y_run_stats *s);
/* The kinds of handlers that need another engine: NULL, or what refuses the program. probes: there is one for these. */
struct error *y_vm_refuses(const struct y_program *p, bool core, bool probes);

#endif
