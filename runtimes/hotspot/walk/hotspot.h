/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * HotSpot, what the walker and user space share: the configuration of a code heap in the arena, and the meaning of a
 * frame. Names are those of HotSpot's sources (src/hotspot/share/code/{codeBlob,nmethod,codeCache}.hpp,
 * memory/heap.hpp, cpu/x86/frame_x86.hpp).
 */
#ifndef YRT_HOTSPOT_H
#define YRT_HOTSPOT_H

#include <types.h>

#include "shared/frame.h"

/* Parts of the code. */
enum hotspot_part {
	HOTSPOT_HEAP,        /* a code heap: its segment map says which blob the program counter is in */
	HOTSPOT_INTERPRETER, /* the template interpreter's codelets */
	HOTSPOT_STUBS,       /* blobs that yrt has rows for (hotspot_stubs.h): steps by them */
	HOTSPOT_ENTRY,       /* the interpreter before it has made the frame of a method; has rows */
	HOTSPOT_POLLED, /* a safepoint's handler whose return address is in the JavaThread still; has rows for the rest
	                 */
};

/*
 * FRAME_SCRIPT of RUNTIME_HOTSPOT. The lowest four bits of detail say what addr is:
 *
 *	HOTSPOT_NMETHOD	a frame of compiled code as the walker sees it; expand makes methods of it. addr: the nmethod.
 *			detail: kind:4 | pc - code_begin:28 | compile_id:32
 *	HOTSPOT_METHOD	a method that executes. addr: Method*. detail: kind:4 | tier:4 | bci:16 (HOTSPOT_NO_BCI:
 * unknown, or a native method) | HOTSPOT_CLASSED | 0:7 | cookie:32. HOTSPOT_CLASSED: the cookie is made of its texts,
 * too; the walker pushes none such, hotspot_expand() leaves none else. tier 0: interpreted; 1 to 4: CompLevel of the
 * nmethod. FRAME_INLINED: inlined into the next frame (towards the root). FRAME_APPROX: see hotspot_expand().
 *	HOTSPOT_STUB	code without a method: stub, adapter, runtime blob, codelet of the interpreter. addr: the
 * program counter. detail: kind:4 | cookie of the blob's name:32 above
 *	HOTSPOT_COLLECTOR	not code: what is inside of it collects garbage. addr 0
 *	HOTSPOT_CLASS	not code: the class of the object that was allocated (java-alloc) or that is waited for
 *			(FRAME_AWAITED). addr: Klass*. detail: kind:4 | cookie of the name's Symbol*:32 above
 *	HOTSPOT_MIRROR	the same, and the object is the java.lang.Class of that class
 *
 * Cookies: objects that were freed and replaced meanwhile are noticed when a frame is named.
 */
enum hotspot_frame {
	HOTSPOT_NMETHOD,
	HOTSPOT_METHOD,
	HOTSPOT_STUB,
	HOTSPOT_CLASS,
	HOTSPOT_COLLECTOR,
	HOTSPOT_MIRROR,
};

#define HOTSPOT_NO_BCI  0xffffu
#define HOTSPOT_CLASSED (1ull << 24)
#define HOTSPOT_PC_MASK 0xfffffffu

static inline u32 hotspot_kind(const struct frame *f)
{
	return f->detail & 15;
}

static inline u64 hotspot_nmethod(u32 compile_id, u64 pc_offset)
{
	return (u64)compile_id << 32 | (pc_offset & HOTSPOT_PC_MASK) << 4 | HOTSPOT_NMETHOD;
}

static inline u32 hotspot_pc_offset(const struct frame *f)
{
	return f->detail >> 4 & HOTSPOT_PC_MASK;
}

/* compile_id of HOTSPOT_NMETHOD, the cookie of others. */
static inline u32 hotspot_cookie(const struct frame *f)
{
	return f->detail >> 32;
}

static inline u64 hotspot_method(u32 tier, u32 bci, u32 cookie)
{
	return (u64)cookie << 32 | (u64)(bci & 0xffff) << 8 | (tier & 15) << 4 | HOTSPOT_METHOD;
}

static inline u32 hotspot_tier(const struct frame *f)
{
	return f->detail >> 4 & 15;
}

static inline u32 hotspot_bci(const struct frame *f)
{
	return f->detail >> 8 & 0xffff;
}

static inline u64 hotspot_detail(enum hotspot_frame kind, u32 cookie)
{
	return (u64)cookie << 32 | kind;
}

/*
 * The cookie of a method: its ConstMethod, which the interpreter's frames need anyway. Only redefinition replaces it.
 */
static inline u32 hotspot_method_cookie(u64 const_method)
{
	return (u32)(const_method >> 3);
}

/* A field of a blob; at: from the HeapBlock in front of it. size 0: there is none. */
struct hotspot_field {
	u16 at, size;
};

/* How references are kept in the heap. Coloured: generational ZGC, address << n | colour. */
enum hotspot_reference { HOTSPOT_OOP_PLAIN, HOTSPOT_OOP_NARROW, HOTSPOT_OOP_COLOURED };

/*
 * Where generational ZGC records which objects it has moved (hotspot_objects.h): for each generation a table of the
 * ZForwarding of each granule of the heap. Offsets in bytes, of a ZForwarding.
 */
struct hotspot_z {
	u64 good_mask_at; /* address of ZPointerLoadGoodMask */
	u64 young, old;   /* addresses of the tables */
	u64 granules;     /* in each */
	u64 offset_mask;  /* of an address: where it is in the heap */
	u16 start, alignment, length, entries;
	u16 ref_count; /* 0: not known */
	u8 granule_shift;
};

/*
 * Where the frames of a virtual thread are that are not on the stack (hotspot_frames.h). Offsets in bytes; those of
 * StackChunk's fields are at most 124.
 */
struct hotspot_frozen {
	u64 entry_pc; /* where enterSpecial stands; 0: to be read at entry_pc_at (ContinuationEntry::_return_pc) */
	u64 entry_pc_at;
	u64 oop_base;
	u64 klass;      /* of StackChunk, as an object's header has it */
	u8 klass_shift; /* it is in the mark word from that bit on; 1: the half of the second word; 0: the second word
	                 */
	u8 oops;        /* enum hotspot_reference */
	u8 oop_shift;
	bool bottom_is_args;            /* bottom counts from the end */
	u16 stack;                      /* in a StackChunk; 0: nothing of all this is known */
	u16 cont_entry, last_java_sp;   /* of JavaThread */
	u16 tail, cont_parent;          /* of jdk.internal.vm.Continuation */
	u16 thread_handle, thread_cont; /* coloured references only: JavaThread._threadObj, java.lang.Thread.cont */
	u16 parent, size, sp, bottom, max_thawing, flags, cont; /* of jdk.internal.vm.StackChunk */
	struct hotspot_z z;                                     /* coloured references only */
};

/* Where a thread that left Java has stored its last frame (hotspot_resume_walk.h). Offsets in bytes. */
struct hotspot_anchor {
	u64 list;            /* address of what points to the ThreadsList or, in 8 and 9, the first JavaThread; 0: not
	                        known */
	u16 length, threads; /* of ThreadsList; threads 0: it is JavaThreads, linked */
	u16 next, osthread;  /* of JavaThread */
	u16 pthread_id;      /* of OSThread */
	u16 sp, pc, fp;      /* of JavaThread */
};

/*
 * Where a reference is: in a field of an object, in one of the VM's structures, or in the word that an OopHandle there
 * points to.
 */
enum hotspot_place { HOTSPOT_IN_HEAP, HOTSPOT_IN_VM, HOTSPOT_IN_HANDLE };

/* What a thread waits for (hotspot_awaited_walk.h). Offsets in bytes. */
struct hotspot_awaited {
	u64 oop_base, klass_base;
	u64 class_klass;          /* java.lang.Class; 0: not known */
	u64 collecting_at;        /* a byte: all threads stand, and objects are moved; 0: not known */
	u16 pending, waiting;     /* of JavaThread: the ObjectMonitor; pending 0: not wanted, or nothing is known */
	u16 object;               /* of ObjectMonitor */
	u16 thread_obj, blocker;  /* of JavaThread: whose code it runs; parkBlocker, 0: not known */
	u16 mirrored, klass_name; /* of a java.lang.Class: the Klass; of Klass */
	u8 monitor_place, thread_place; /* enum hotspot_place of object and thread_obj */
	u8 oops, oop_shift;             /* enum hotspot_reference */
	u8 narrow_klass, klass_shift;
	u8 mark_klass_shift; /* the class is in the mark word from that bit on; 0: behind it */
};

#define HOTSPOT_HEAPS 8 /* of code, at most; power of two */

/* A heap of code. size: as far as it is reserved. */
struct hotspot_vm_heap {
	u64 low, size;
	u64 segmap; /* a byte for each segment from low on */
};

#define HOTSPOT_LANDING                                                                                                \
	5 /* bytes at the end of a stub that thaws, before ret: the stack pointer is at what was thawed */

/* The configuration of a code heap, in the arena: hotspot_vm_of() makes it. */
struct hotspot_vm {
	u64 low;                                    /* of the heap: where its blocks begin */
	u64 segmap;                                 /* a byte for each segment from low on */
	u64 cache_low, cache_high;                  /* all heaps of code */
	struct hotspot_vm_heap heap[HOTSPOT_HEAPS]; /* each of them; size 0: none */
	u64 interpreter_low;
	u32 interpreter_size;
	u64 thaw; /* the stub cont_thaw and, thaw_size bytes behind, the barrier; thaws_size: up to the last ret. 0: not
	             known */
	u32 thaw_size, thaws_size;
	u32 thaw_landing, barrier_landing; /* how many bytes before that ret, or cont_thaw's, what was thawed is at rbx;
	                                      HOTSPOT_LANDING: not known */
	u64 preempt; /* the stub that a preempted thread returns to (24 on); 0: none, or not known */
	u32 preempt_size, preempt_moved, preempt_left; /* the stack pointer is moved, and enterSpecial's frame left, so
	                                                  many bytes behind its begin */
	u64 return_barrier; /* what a frame of a virtual thread returns to whose caller is in the heap still (21 on); 0:
	                       none */
	u32 log2_segment;
	u32 block_size; /* of HeapBlock, in front of each blob */
	u32 head_size;  /* of the piece that holds all fields: HeapBlock and the beginning of the blob, a multiple of 8
	                   bytes */
	u32 kind_nmethod; /* what `kind` is of an nmethod: CodeBlobKind from 23 on, before that the size of its header
	                   */
	struct hotspot_field length, used; /* of HeapBlock: segments, and whether it is no free block */
	struct hotspot_field kind;
	struct hotspot_field code_begin; /* 8 bytes: an address; else from the blob */
	struct hotspot_field frame_size; /* words */
	struct hotspot_field frame_complete;
	struct hotspot_field compile_id;
	struct hotspot_field method;          /* Method* */
	struct hotspot_field orig_pc;         /* from the stack pointer */
	struct hotspot_field deopt, deopt_mh; /* handlers; 8 bytes: an address; else from the blob */
	u32 bcp;                              /* of an interpreted frame: bytes below rbp */
	u32 method_const, const_size, const_code_size;
	u32 saved_pc; /* JavaThread::_saved_exception_pc: where a poll has trapped; 0: not known */
	struct hotspot_anchor anchor;
	struct hotspot_frozen frozen;
	struct hotspot_awaited awaited;
};

#endif
