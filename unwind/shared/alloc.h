/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What the programs of java-alloc and user space share (probes/tlab/tlab.h). Plain data.
 */
#ifndef YRT_SHARED_ALLOC_H
#define YRT_SHARED_ALLOC_H

#include "record.h"

#define ALLOC_PROBES_MAX 4096 /* sites of all targets */
#define ALLOC_NO_OFFSET  0xffff

/* A site under its number, which is the cookie of its uprobe. */
struct alloc_probe {
	u32 kind;   /* enum alloc_site_kind */
	u16 thread; /* where in pt_regs its values are; ALLOC_NO_OFFSET: nowhere */
	u16 klass;
	u16 object;
	u16 size;
	u16 buffer_size;
	u16 early;           /* the thread's structure does not describe the new buffer yet */
	u32 start, top, end; /* of the buffer, in the thread's structure */
	u32 prompt;          /* nothing reports collections: classes are to be read at once */
	u32 checked;         /* runtime_alloc.checked: what makes no sense is no event of this site */
	u32 reserved;
	u64 collections; /* where the target counts its collections (u32); 0: not known */
};

/* What a thread is watched for, by its tid as the kernel counts. */
struct alloc_watch {
	u64 addr;  /* 0: nothing; in a request: it was hit and is written on, switch it off */
	u64 start; /* of the buffer that it lies in */
	u64 thread;
	u64 interval; /* mean distance of the draw that chose it */
	u32 probe;
	u32 duty; /* as in struct alloc_record */
};

#define ALLOC_ALWAYS (1u << 16)

/* What a process's threads were given: buffers, or objects outside all. */
struct alloc_handed {
	u32 tgid;       /* as yrt sees it */
	u32 size_class; /* alloc_size_class() of such objects; ALLOC_BUFFERS */
};

#define ALLOC_BUFFERS 0xffffffffu

/* The buffer that a thread has, chosen to be looked into. */
struct alloc_buffer {
	u64 start, end;  /* behind what will fill it */
	u64 interval;    /* mean distance of the draw that chose it */
	u32 duty;        /* as in struct alloc_record */
	u32 collections; /* when it was made: alloc_ops.collections() */
};

/* To the watchpoint's watchpoint thread of this CPU. */
struct watch_request {
	u32 key;       /* of struct alloc_watch */
	u32 tgid, tid; /* as yrt sees them; tgid 0: a collection begins, classes are to be read now */
	u32 reserved;
	u64 top_at, start_at; /* where the thread's buffer is described, in the target; 0: not yet there */
	u64 end;
	struct alloc_watch watch;
};

enum alloc_how {
	ALLOC_BY_WATCH,  /* addr was written: the first write to this address of its buffer */
	ALLOC_BY_REFILL, /* addr: the object that a buffer was made for */
	ALLOC_BY_SLOW,   /* addr: an object outside all buffers */
	ALLOC_BY_SURVEY, /* a buffer that was given up, from start to end; no stack follows */
};

/* A sample: the stack that follows has the same id as its hash. */
struct alloc_record {
	u32 tgid, tid;
	u32 instance;
	u32 how; /* enum alloc_how */
	u64 id;
	u64 thread;
	u64 start; /* of the buffer */
	u64 addr;
	u64 end;    /* ALLOC_BY_WATCH: top of the buffer, where the object ends */
	u64 klass;  /* 0: the site does not give it */
	u64 size;   /* of the object; 0: unknown */
	u64 stands; /* bytes that were sampled as one: the object's, or (without watchpoints) the whole buffer's */
	u64 interval;
	u32 duty; /* the part of time that sites were placed, of ALLOC_ALWAYS */
	u32 reserved;
	u32 gc;       /* ALLOC_BY_WATCH: alloc_ops.collections() then; 0: not known */
	u32 switches; /* how often the thread had blocked until then */
};

struct alloc_stats { /* one for each CPU */
	u64 bytes;   /* handed out as buffers and objects outside them */
	u64 refills, slow;
	u64 traps;   /* watchpoints hit */
	u64 stale;   /* of them not by an allocation */
	u64 skipped; /* samples that a burst would have made too many */
	u64 buffers; /* that were given up and looked into: ALLOC_BY_SURVEY */
	u64 strange; /* events of a checked site that make no sense */
};

#endif
