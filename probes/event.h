/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract of an event: what happens to a thread whose stack is taken, what is counted, and in which unit.
 *
 * An event is a folder of probes/ and a line in list.h. In the folder:
 *
 *	NAME.bpf.h	its BPF programs. They decide when, how much and why, and leave the stack to event.bpf.h:
 *			user, language and kernel frames from any context (perf event, tracepoint, uprobe),
 *			aggregation, losses
 *	NAME.c		struct event_ops NAME_event: what the sampler calls during a run
 *	NAME_command.c	options of its own, if it has any; NAME_words.c what it has to say of a run (event_command.h)
 *
 * Everything else (targets, names, formats, the commands' names and help) follows from that, but what stores call its
 * values (frontends/format/values.c).
 */
#ifndef YRT_EVENT_H
#define YRT_EVENT_H

#include <stdbool.h>
#include <sys/types.h>
#include <types.h>

#include "unwind/error.h"
#include "unwind/profile/idle.h"
#include "unwind/profile/profile.h"
#include "unwind/shared/frame.h"
#include "unwind/shared/record.h"

struct collector;
struct event_command;
struct event_words;
struct object;
struct sample; /* the BPF object's skeleton */
struct sampler_options;
struct sampler_stats;
struct targets;
struct view;

/* What an event is about: `yrt --help` groups commands by it. */
enum event_topic {
	TOPIC_CPU,
	TOPIC_WAITING,
	TOPIC_CALLS,
	TOPIC_MEMORY,
};

/* What an event gets to know of a run; lives as long as that. */
struct event_host {
	const struct sampler_options *options;
	struct object *object;
	struct targets *targets;
	struct collector *collector;
	/*
	 * For stacks that an event takes in user space: queues a struct stack_record behind those from BPF; and
	 * processes all that are queued.
	 */
	void (*put)(void *ctx, const void *data, size_t size);
	void (*take_all)(void *ctx);
	void *ctx;
};

struct event_ops {
	const char *name;    /* its folder: "clock" */
	const char *command; /* "fault-flame"; a view of a language has another word before "-flame". NULL: none of its
	                        own */
	const char *summary; /* of the command, for help */
	const char *view;    /* as summary, with %s for a language: each language has such a command, "lua-" before
	                        command. NULL: none */
	bool (*has_view)(const struct view *v); /* only these do. NULL: all */
	enum event_topic topic;
	const char *unit; /* of the value: "samples", "bytes", "faults", "nanoseconds" */
	const char *more; /* unit of the second value; NULL: it has none */
	u32 slots;        /* walks of it that one CPU may be in at once: a uprobe's program may be preempted */
	bool rated;       /* sampler_options.frequency is its rate, which is halved past the budget */
	bool timed;       /* it can record when each sample was taken (--timeline) */
	bool waits;       /* it sees threads that wait: its views hide waits by design */
	/* Before the object is loaded: object_want() for each program, and sizes of its own maps. */
	void (*prepare)(struct object *o);
	struct error *(*create)(const struct event_host *host, void **ret);
	void (*destroy)(void *event); /* NULL is fine */
	/* A process became a target. required: an error if the event cannot happen there. NULL: nothing to do. */
	struct error *(*attach)(void *event, pid_t pid, bool required);
	/* Lets events be taken: now, or once a target executes a program. */
	struct error *(*start)(void *event, bool at_exec);
	/* Some ten times a second and more. NULL: nothing to do. */
	struct error *(*poll)(void *event, u64 now_ns);
	/* When poll wants to be called next, at the latest. 0, or NULL: whenever. */
	u64 (*due)(void *event);
	/*
	 * Counts of this epoch are moved out: the event must add what it has counted itself until now. NULL: nothing.
	 */
	struct error *(*drain)(void *event, u32 epoch);
	/* No event is taken after this. */
	struct error *(*stop)(void *event);
	/* When all stacks and counts are there. NULL: nothing to do. */
	struct error *(*finish)(void *event);
	/* Past the budget: half of the events, each for two. NULL: it is no event that can. */
	void (*halve)(void *event);
	/* A RECORD_EVENT. NULL: it sends none. */
	struct error *(*record)(void *event, const void *data, size_t size);
	/* True: takes this RECORD_EVENT ahead of stacks that wait, and is to be polled at once. NULL: none is. */
	bool (*urgent)(void *event, const void *data, size_t size);
	/* What was expected, and what was lost outside of BPF, so far; and .summary, which only this event knows. */
	void (*stats)(void *event, struct sampler_stats *st);
	/* Takes each whole stack instead of counts by hash: collect_options.stack. NULL: stacks are counted. */
	struct error *(*stack)(void *event, const struct stack_record *record, const struct frame *frames, u32 n);
	/* A whole stack has come for the first time, also if filters hide it. NULL: the event does not look at it. */
	struct error *(*seen)(void *event, const struct stack_record *record, const struct frame *frames, u32 n);
	/*
	 * The text of a reason (struct stack_head.reason), such as "page fault: stack", in REASON_LEN bytes. NULL: the
	 * event has none.
	 */
	void (*reason)(u32 reason, char *text);
	/* What a FRAME_OBJECT of this key is called, in REASON_LEN bytes. NULL: it has none. */
	void (*object)(u64 key, char *text);
	enum profile_kind object_kind; /* and what it is; 0: kernel */
	/* What it is to people: its colour. NULL: kernel. */
	enum profile_kind (*kind)(u32 reason);
	u32 queued; /* collect_options.queued */
	/* May a wait for this be one by design (--no-idle)? NULL: it is no event of waits. */
	enum idle_chance (*idle)(u32 reason);
	/* Is this a wait in futex(2)? Its lock is shown in place of the reason. NULL: it is no event of waits. */
	bool (*futex)(u32 reason);
	bool locks; /* all its waits are in futex(2) */
	/*
	 * Does a kernel function of this name only lead from the event to the BPF program? It is then not shown at the
	 * leaf. NULL: none.
	 */
	bool (*leads_to_program)(const char *symbol);
	/* Its options and help, and what its last line says (event_command.h). NULL: only what all events have. */
	const struct event_command *command_line;
	const struct event_words *words;
};

/* What poll() met: lack of memory ends the run; anything else (NULL: nothing) is reported, and the run goes on. */
struct error *event_goes_on(const struct event_host *host, struct error *err);
/* A halve() of events of which BPF takes a part by its weight: nothing else is to be done. */
void event_halve_by_weight(void *event);

/* All, in the order of list.h; up to NULL. */
extern const struct event_ops *const events[];
/* NULL: there is no event of this name. */
const struct event_ops *event_find(const char *name);

#define EVENT(name) extern const struct event_ops name##_event;
#include "list.h"
#undef EVENT

#endif
