/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract between yrt and a language runtime, and the guide to adding one.
 *
 * A runtime lives in runtimes/<name>/:
 *
 *	<name>.h           plain data that BPF and user space share: configuration in the arena, meaning of frame bits
 *	<name>_walk.c      int <name>_step(struct walk *w): includes walk.h and <name>.h only; compiled twice
 *	<name>.c           recognises images, finds VM instances, ends with the one const table of these operations
 *	<name>_*.c         layout, naming, whatever else it needs
 *	README.md          invariants, versions, limits
 *
 * and one line in runtimes/list.h. Numbers: enum runtime_id in shared/frame.h.
 *
 * There are three lifetimes. *Image*, once per file: does this ELF file hold the runtime, and what does it show of the
 * layout? *Process*, one runtime in one process: the rest of its layout, its roots, its code regions. *Frame*: naming
 * one. A runtime includes no other runtime and nothing of probes/ or frontends/. An operation may be NULL where its
 * comment says so.
 */
#ifndef YRT_RUNTIME_H
#define YRT_RUNTIME_H

#include <types.h>

#include "arena.h"
#include "error.h"
#include "runtime_rules.h"
#include "binary/image.h"
#include "binary/memory.h"
#include "shared/frame.h"
#include "shared/region.h"

struct walk;
struct report;
struct process_entry;
struct c_names;
struct runtime_alloc_ops;
struct runtime_allocator_ops;
struct runtime_calls_ops;
struct runtime_heap_ops;
struct runtime_snapshot_ops;
struct runtime_tasks_ops;
struct runtime_types_ops;
struct cfi_provider;

/* A mapping of the process, from /proc/PID/maps or a core's notes. */
struct mapping {
	u64 start, end, offset;
	u32 prot;            /* PROT_READ … */
	bool anonymous;      /* no file behind it */
	bool unfinished;     /* the file's tables are still being made: its code is not known yet */
	struct image *image; /* NULL: anonymous, or not ELF */
	u64 bias;            /* process address - file address, if image */
	u32 module;          /* number of (image, bias) in this process; 0: none */
	const char *name;    /* path or [name], for people */
};

/* The mapping that contains addr, of n sorted ones; NULL: none. */
const struct mapping *mapping_find(const struct mapping *mappings, u32 n, u64 addr);

/* Facts that cost something to find out, and are only found out on demand. */
enum feature {
	FEATURE_LOCK = 1,     /* walkers set FRAME_LOCK where the thread holds the VM's lock */
	FEATURE_AWAITERS = 2, /* behind a task's own frames those of the tasks that await it */
	FEATURE_CREATORS = 4, /* behind the frames of a runtime's own thread who created it */
	FEATURE_LABELS = 8,   /* the same with what the program has labelled its work with */
	FEATURE_TASKS = 16,   /* the same with its number: FRAME_THREAD */
	FEATURE_AWAITED = 32, /* before a runtime's innermost frame what the thread waits for: FRAME_AWAITED */
};

/* A place in a program. file: "" if it is not known; line: 0. */
typedef struct error *runtime_place(void *ctx, const char *function, const char *file, u32 line);

/* What a runtime sees of a process. */
struct runtime_process {
	pid_t pid;    /* 0: of a core file */
	pid_t first;  /* number of its first thread */
	u32 features; /* enum feature */
	struct memory *memory;
	struct arena *arena;
	const struct mapping *mappings; /* sorted; valid during the call only */
	u32 nmappings;
	const struct process_entry *entry; /* its regions, for unwind_task(); valid as long */
	u64 stack; /* in expand(): the number of the stack, whose frames were all on it before the first call for it;
	              else 0 */
};

/* A thread of a core in which the process may have ended. */
struct runtime_dying {
	const struct runtime_process *p;
	const struct frame *frames; /* as walked */
	u32 n;
	u64 thread_pointer, sp; /* of the innermost frame */
};

/*
 * Code that the runtime claims. It overrides or splits what the mappings say. entries (may be NULL) are CFI rows of the
 * runtime, in file addresses if module is set, else in process addresses. They must stay valid until detach.
 */
struct runtime_region {
	u64 start, end; /* in the process */
	u8 part;        /* for the step function */
	bool unmapped;  /* claims what is no code now but may be by the time of a sample, and only that; no entries */
	u32 vm;         /* arena offset of the configuration that walk_arena() of the step function reads */
	const struct cfi_entry *entries;
	u32 nentries;
};

/*
 * Where the current stack of a thread is described, for a runtime that moves stacks while calls are under way. The word
 * at `pointer` bytes from the thread pointer leads to that description (Go: g). In it, `bounds` is the offset of the
 * stack's lowest address and its end. The word at its offset `thread` leads to a structure (Go: m), in which the word
 * at `own` leads to the description of the thread's first stack, which does not move.
 */
struct runtime_stacks {
	s64 pointer;
	u32 bounds, thread, own;
	const char *parks; /* the function in which an owner leaves the thread to others until it may go on; or NULL */
};

/* What a frame of a language is. */
enum frame_form {
	FORM_INTERPRETED, /* or nothing more is known */
	FORM_BASELINE,    /* of a compiler that counts what is worth the next one */
	FORM_JIT,         /* of the last compiler, just in time or ahead of it */
	FORM_NATIVE,      /* a function of the language that is written in C */
	FORM_STUB,        /* code of the runtime's own */
	FORM_WORK,        /* the runtime's own work, as one frame */
	FORM_CLASS,       /* no code: what an object is */
	FORM_LABEL, /* no code: the name is "labels: key=value, key=value", with a backslash before , and \, and in keys
	               before = */
};

/* How a frame is shown. Strings belong to the caller's buffers; hostile bytes may be in them. */
#define NAME_MAX_BYTES 512
struct frame_name {
	char name[NAME_MAX_BYTES]; /* function; "" if the runtime does not know it (yet) */
	char file[NAME_MAX_BYTES]; /* "" if none */
	u32 definition;            /* line where the function is defined; 0: none */
	u32 line;                  /* being executed; 0: unknown */
	u64 identity;              /* the same for all frames of one function, whatever the line */
	enum frame_form form;
	bool entry;     /* only leads into a function of the language: its view hides it */
	bool qualified; /* the name says where it belongs: file and definition are not shown behind it */
	char signature[NAME_MAX_BYTES]; /* its arguments, as "(int, String)", shown if wanted; "" if the language has
	                                   none */
	u64 native_address;   /* of a function in C: its code, whose symbol is its name if name is ""; 0: none */
	u64 code, code_start; /* of what a compiler made ahead of time: the place being executed (of a call its last
	                         byte) and the first byte of the function that holds it; 0: unknown */
};

/* How frames that stand for others are expanded, and how others are merged. */
enum expand_flag {
	EXPAND_MERGE = 1,  /* only the function that was entered, not those that were inlined into it */
	EXPAND_TRACES = 2, /* a frame for the piece of machine code itself, as the leaf of what it stands for */
	EXPAND_LOOP = 4,   /* one frame for the inside of an event loop, from who started it to the task that it runs */
	EXPAND_IMPORTS = 8,   /* one frame for what lies between an import and the module that it runs */
	EXPAND_CARRIERS = 16, /* what a thread had on its stack before it took up a virtual thread */
	EXPAND_OWN = 64,      /* one frame for what a runtime does of its own: collects garbage, chooses who runs */
	EXPAND_LINES =
	        32, /* lines are shown: where only the function is certain, but not the line, it is FRAME_APPROX */
};
#define RUNTIME_EXPAND_MAX 256

/* A thread that sleeps in futex(2). */
struct runtime_thread {
	pid_t tid;   /* in the target's own pid namespace */
	u64 pointer; /* its thread pointer: pthread_self() of glibc and musl */
	u64 sp;      /* its user stack pointer */
	u64 futex;   /* the address that it waits at */
};

/* What it waits for, as its runtime knows it. Text may be hostile. */
#define RUNTIME_WAIT_TEXT 128
struct runtime_wait {
	enum lock_kind kind;
	u64 at;                              /* the lock: what waits for the same has the same */
	char type[RUNTIME_WAIT_TEXT];        /* its class; "" if it has none */
	pid_t holder;                        /* the thread that holds it, numbered as .tid; 0: none is known */
	u64 holder_pointer;                  /* the same by its thread pointer; 0: none is known */
	char holder_name[RUNTIME_WAIT_TEXT]; /* what holds it but is no thread, or is on one: "virtual thread 33"; "" */
};

struct runtime_ops {
	const char *name; /* "luajit": in output, options, folder */
	const char *view; /* command prefix: "lua" for lua-flame (process/view.h); runtimes of one language share it */
	const char *language;   /* "Lua" */
	const char *frame_type; /* OpenTelemetry's word (its conventions' profile.frame.type); NULL: name is */
	/* What people call its code, in legends: interpreted, and by which compiler. NULL: by the language. */
	struct {
		const char *interpreted, *baseline, *jit;
		bool ahead; /* what is KIND_SCRIPT_JIT was compiled ahead of time: there is no JIT */
	} words;
	enum runtime_id id;
	const char *supported;              /* one line for `yrt runtimes` */
	const struct layout_schema *layout; /* layout.h; NULL: it needs none */

	/*
	 * Parts of lines of /proc/PID/maps, up to NULL, that files with this runtime usually have. They are used only
	 * to guess which processes may have it (probes/sampler_create.c). NULL: no name shows it.
	 */
	const char *const *files;

	/*
	 * Everything that the step function reads besides the native stack stays valid for a second after the sample,
	 * or is checked. So a copied stack can be walked after the thread went on (profile/deferred.h).
	 */
	bool deferrable;

	/*
	 * Finds the language's frames where native frames are lost. Returns the arena offset of the configuration for
	 * <name>_resume(), which finds the VM's innermost native frame of this thread; 0: not possible (yet). Called
	 * after regions(). May be NULL; then runtimes/list.h has no RESUMES line for this runtime.
	 *
	 *	int <name>_resume(struct walk *w);
	 *
	 * is called after a walk was lost, with that offset in w->region.vm. w->reg[REG_SP] is the last certain stack
	 * pointer, all other registers are worthless, and cursors are as the last step left them. By what the runtime's
	 * own state proves, the function sets the registers (and w->valid) to a native frame above, from which the
	 * runtime's step function can go on as from a caller's. It then returns STOP_NONE; any other result: it does
	 * not know. It pushes nothing: the driver pushes FRAME_GAP. The stack counts as STOP_RESUMED, which is not
	 * complete.
	 *
	 * *exact: what is called next in from that native frame is what is called out to the lost ones, and the stack
	 * pointer or, if that is valid, the frame pointer is the one there. Then a walk in code that is not known yet
	 * goes on there at once, without guesses, and a deferred walk that comes there has found all that is missing.
	 */
	u32 (*resume)(void *instance, bool *exact);

	/*
	 * Image: *ret is NULL if the file does not hold this runtime. An error says that it does but is not supported
	 * (with what is missing); native frames are shown then.
	 */
	struct error *(*image_probe)(struct image *img, void **ret);
	/* For functions whose unwind rows come from the language's own tables (cfi.h). NULL: CFI has them. */
	const struct cfi_provider *cfi_provider;
	void (*image_destroy)(void *image);

	/*
	 * Process: called when a mapping with a recognised image is seen (bias: its load bias). *ret is the instance.
	 * An error is shown once and leaves native frames.
	 */
	struct error *(*attach)(const struct runtime_process *p, void *image, u64 bias, void **ret);
	void (*detach)(void *instance, const struct runtime_process *p);
	/*
	 * All code regions as they are now: called after attach and whenever the mappings changed. Calls add for each.
	 * May look at p->mappings for anonymous code. An error is shown and leaves native frames where nothing was
	 * added.
	 */
	struct error *(*regions)(void *instance, const struct runtime_process *p,
	        struct error *(*add)(void *ctx, const struct runtime_region *r), void *ctx);
	/*
	 * True while what regions() adds may still change although no mapping does (a VM that is only starting): it is
	 * called some times a second then. May be NULL.
	 */
	bool (*starting)(void *instance);

	/*
	 * Frame: names frames[i] of a stack (leaf first, n frames). Its neighbours may matter: a Lua function is named
	 * by its caller's bytecode. Reads the target. False: the target is gone or has moved on, or cookies say that
	 * the object is another one now.
	 */
	bool (*name_frame)(void *instance, const struct runtime_process *p, const struct frame *frames, u32 i, u32 n,
	        struct frame_name *ret);

	/*
	 * Frames that stand for others: writes to ret, leaf first, what frames[i] and the following frames that belong
	 * to it stand for (room for max, at least RUNTIME_EXPAND_MAX). *eaten: how many frames of the stack are
	 * replaced; 0: frames[i] stays as it is. Returns the number of frames in ret. Called once per stack, while the
	 * target lives or has just gone; flags: enum expand_flag. May be NULL.
	 */
	bool expands_native; /* it is asked for native frames too */
	u32 (*expand)(void *instance, const struct runtime_process *p, const struct frame *frames, u32 i, u32 n,
	        u32 flags, struct frame *ret, u32 max, u32 *eaten);

	/*
	 * The same for a recording, which has only names (profile_fold.h). A fold group is a set of frames that
	 * expand() draws as one. fold_group() returns the number, from 1, of the group that a function belongs to; 0:
	 * none. file: of native code the module's. *running: this function alone makes the frames a group. flags: enum
	 * expand_flag. fold_group_name(): the name of the one frame. Both may be NULL.
	 */
	u32 (*fold_group)(const char *name, const char *file, u32 flags, bool *running);
	const char *(*fold_group_name)(u32 number);

	/*
	 * What the language calls the thread tid (as in /proc/PID/task) at this moment, for -t: false if it is not a
	 * thread of this runtime, or has no name; the kernel's name is shown then. Called once a thread, when its first
	 * stack arrives. ret is cut at size, and terminated. May be NULL.
	 */
	bool (*thread_name)(void *instance, const struct runtime_process *p, pid_t tid, char *ret, size_t size);

	/*
	 * Adds to ret (c_names.h) the language's names for a file's functions in C. Called once for each file that has
	 * code without symbols, whether it holds the runtime or not. Adds nothing for a file that has nothing to do
	 * with the language. May be NULL.
	 */
	struct error *(*c_names)(struct image *img, struct c_names *ret);
	/*
	 * Calls add() for each function that the language's own tables list in a file, by the name that stacks show,
	 * with its addresses in the file. It is used to look up functions by name, whether the file has symbols or not.
	 * Nothing for a file without such tables. May be NULL.
	 */
	struct error *(*functions)(
	        struct image *img, struct error *(*add)(void *ctx, u64 start, u64 end, const char *name), void *ctx);
	/*
	 * The registers in which these functions take the words of their arguments, in order, by DWARF's numbers; what
	 * they return begins in the first, and debug information has it among the parameters. NULL: all is as in C.
	 */
	const u8 *argument_regs;
	u32 nargument_regs;

	/*
	 * Frameworks whose functions are in the tables of its programs, up to name NULL (runtime_calls.h), and whether
	 * a file is such a program. NULL: there are none.
	 */
	const struct runtime_server *servers;
	bool (*made_program)(struct image *img);

	/* Where stacks are described, if the runtime moves them. False: not known. NULL: it does not move them. */
	bool (*moving_stacks)(void *instance, const struct runtime_process *p, struct runtime_stacks *ret);

	/* The function of its VM by which a coroutine gives way until somebody resumes it; NULL: none is exported. */
	const char *yield;

	/* Its functions that a compiler made in C (symbols/translated.h). NULL: nothing is. */
	const struct translated_ops *translated;

	/*
	 * True if a view of this language should hide this native frame, because language frames stand for it: the VM's
	 * loop, its call helpers. The frame's module is the runtime's own image. symbol is "" for code without a name;
	 * instance is NULL if the function was inlined. May be NULL: only FRAME_VM frames are hidden.
	 */
	bool (*is_runtime_internal)(void *instance, const char *symbol);
	/*
	 * True if threads with code of this language begin their work in this native function, of whatever file. A view
	 * hides it and its few callers (clone3(), start_thread()). May be NULL.
	 */
	bool (*is_thread_entry)(const char *symbol);

	/* Its rules on stacks: waits by design, and locks (runtime_rules.h). NULL: only native ones are known. */
	const struct stack_rule *rules;
	/*
	 * What a thread waits for, by the runtime's own data, for `yrt dump`. The caller discards the answer if the
	 * thread did not sleep all the time. False: it waits for nothing that the runtime knows. May be NULL.
	 */
	bool (*waits_for)(void *instance, const struct runtime_process *p, const struct runtime_thread *t,
	        struct runtime_wait *ret);

	/*
	 * Why the runtime itself ended the process, if it did so in this thread of a core ("panic: …"). ret is
	 * terminated, and hostile. False: it did not, or does not tell. May be NULL.
	 */
	bool (*last_words)(void *instance, const struct runtime_dying *t, char *ret, size_t size);

	/*
	 * Adds to out what the runtime was recognised as, its current state, each offset with its origin, and each
	 * check with its result (report.h). Reads the target, which keeps running. May be NULL.
	 */
	struct error *(*inspect)(void *instance, const struct runtime_process *p, struct report *out);

	/* How it allocates, for <view>-alloc (runtime_alloc.h). NULL: there is no such view. */
	const struct runtime_alloc_ops *alloc;

	/* By which functions its objects are made, for <view>-alloc (runtime_allocator.h). NULL: there is no such view,
	 * or alloc has it. */
	const struct runtime_allocator_ops *allocator;

	/* What it shows at one moment, a command <view>-<name> each (runtime_snapshot.h); up to NULL. NULL: nothing. */
	const struct runtime_snapshot_ops *const *snapshots;

	/* Its heap, for <view>-heap and <view>-refs (runtime_heap.h). NULL: it is not read. */
	const struct runtime_heap_ops *heap;

	/*
	 * Bytes that its last collection left in use, by what it publishes: a heap that has its pages already grows
	 * without the process growing. Asks nothing of the process's memory. 0: not known, or another runtime's. May be
	 * NULL.
	 */
	u64 (*used_after_collection)(pid_t pid);

	/*
	 * Which functions of a program add to the collection in a field of a class, as far as its code says so by
	 * itself. Names are those of the heap's view: "com.acme.Store", "orders". What is not found is not told. NULL:
	 * it has no such code.
	 */
	struct error *(*added)(pid_t pid, const char *holder, const char *field, runtime_place *each, void *ctx);

	/* Tasks that wait without a thread (runtime_tasks.h). NULL: there are none, or they cannot be listed. */
	const struct runtime_tasks_ops *tasks;

	/* How calls of its functions are seen (runtime_calls.h). NULL: they are not, or have uprobes. */
	const struct runtime_calls_ops *calls;

	/* Its structures, for `yrt y` (runtime_types.h). NULL: only debug information has them. */
	const struct runtime_types_ops *types;
};

#define RUNTIME(id, name) extern const struct runtime_ops name##_runtime;
#include "../runtimes/list.h"
#undef RUNTIME
extern const struct runtime_ops *const runtimes[]; /* all of them, NULL at the end */
const struct runtime_ops *runtime_by_id(enum runtime_id id);

#endif
