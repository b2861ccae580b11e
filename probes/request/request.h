/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Requests that a server works on, from the function that begins one to the function that ends it. A request is known
 * by its key: an argument of those functions, or what they return. Many are under way at once, and a thread of an event
 * loop runs the handlers of one after the other. Its time is charged to the request whose handler runs:
 *
 *	cpu      its handlers ran
 *	queue    they could have run, but other threads had the CPU
 *	blocked  they waited in the kernel: for a file, a lock, a sleep
 *	idle     no handler of any request ran on its thread, and the thread slept: the request waited for an event
 *	others   the rest: the thread was busy with something else
 *
 * A handler is known by the functions that it calls with the request (request.c). What the thread did since it
 * left the loop is charged to the first request that shows. Where the loop begins a turn, none runs.
 *
 * nginx is asked in no other way than by its exported functions, so it may be stripped. Where the members of its
 * ngx_http_request_t are follows from what is in them. In this order (src/http/ngx_http_request.h of nginx 1.0 to 1.29)
 * it has
 *
 *	start_sec, start_msec, method, http_version, request_line, uri, args, exten, unparsed_uri, method_name,
 *	http_protocol[, schema], out, main, parent
 *
 * where method has one bit, http_version is one of five numbers, start_msec is less than 1000, main is the request
 * itself, and parent is 0. headers_out begins with two lists, of 20 and of 4 elements (since 1.13.2), in the request's
 * pool, and its status follows. The status that a request ends with is that, or what ngx_http_free_request() is called
 * with if nothing was sent (ngx_connection_t.sent). The access log has the same.
 *
 * Upstreams that were asked: the pool is a member behind upstream_states, an array whose elements begin with status,
 * response_time, connect_time, header_time, and end with the peer's name (since 1.9.1).
 *
 * Envoy (request_envoy.h): ActiveStream has pointers to the RequestHeaderMap and the ResponseHeaderMap among its first
 * members. Those are bases of objects that begin with a virtual table and a std::list of headers: its end, which is a
 * node's prev and next. A key counts only if its virtual table is ActiveStream's; a header only if its list is one.
 * A node (libc++) is prev, next, virtual table, key, value; key and value are 18 words: an absl::variant of a
 * string_view and an InlinedVector of 128 bytes, then which of them it is. A pseudo-header's key is a string_view.
 *
 * Phases: behind parent are postponed, post_subrequest, posted_requests, phase_handler, content_handler. The first
 * members are signature, connection, ctx, main_conf, srv_conf, loc_conf, read_event_handler, write_event_handler, of
 * which the last is set as the phases begin. main_conf[0] is that of ngx_http_core_module, in which
 * phase_engine.handlers follows an ngx_array_t; its elements are checker, handler, next.
 */
#ifndef YRT_REQUEST_H
#define YRT_REQUEST_H

#include <types.h>

#define REQUEST_STACKS 16 /* of a request that are kept: the longest. A power of two */
#define REQUEST_PATH   160
#define REQUEST_METHOD 16
#define REQUEST_WORDS  224u /* of ngx_http_request_t that are looked at */

#define REQUEST_ATTEMPTS 4 /* of upstreams that are kept: the first */
#define REQUEST_PEER     48
#define REQUEST_PHASES   12

enum request_role { /* of a place in code */
	REQUEST_BEGINS,
	REQUEST_RUNS,  /* on behalf of a request */
	REQUEST_RESTS, /* the loop begins a turn: of none */
	REQUEST_ENDS,
	REQUEST_PARKS, /* the request is about to wait: its stack says where */
};

/* Cookies of uprobes. */
#define REQUEST_ROLE       0xffull
#define REQUEST_ARG        8            /* from this bit: 0: what the function returns, from 1 its arguments; 8 bits */
#define REQUEST_BEHIND     (1ull << 16) /* the key is the word that this points to */
#define REQUEST_NGINX      (1ull << 17) /* the key is an ngx_http_request_t */
#define REQUEST_ENVOY      (1ull << 18) /* the key is an Envoy::Http::ConnectionManagerImpl::ActiveStream */
#define REQUEST_OFFSET     24           /* from this bit: of the base class that newStream() returns, or of headers */
#define REQUEST_OFFSET_MAX 255u
#define REQUEST_TABLE      32 /* from this bit: how far behind the place the key's virtual table is; Envoy's only */

/* Reasons of stacks: wait_reason() of wait_record.h, and: */
#define REQUEST_WAITS 0xff000001u /* for an event, away from its thread */

struct request_stack { /* what a request spent under one stack */
	u64 hash;      /* 0: no stack was taken */
	u64 ns;
	u32 reason, stop;
};

struct request_attempt { /* an upstream that nginx asked; times in ms as nginx has them, -1: not so far */
	s64 response, connect, header;
	u64 status;              /* 0: none */
	char peer[REQUEST_PEER]; /* hostile */
};

/*
 * What a request spent in a phase, from when it entered it to when it entered the next: an element of nginx's
 * phase_engine.handlers, of functions that are called in this order.
 */
struct request_phase {
	u64 checker; /* the phase's function, or one of enum request_no_phase */
	u64 handler; /* of a module */
	u64 content; /* the location's handler, which the phase of contents calls if there is one */
	u64 ns;
};
enum request_no_phase { REQUEST_NOT_KNOWN, REQUEST_READING, REQUEST_OTHERS }; /* others: there were too many */

struct request_counts { /* one for each CPU */
	u64 begun, ended;
	u64 unpaired; /* ends of requests that had begun before */
	u64 cut;      /* the shift that they began in was over before they were */
	u64 left;     /* begun again under the same key, so their ends were not seen */
	u64 full;     /* there was no room for them */
	u64 lost;     /* ended, but the ring was full */
	u64 hits;     /* of places */
	u64 loop_ns;  /* CPU time of their threads for no request that is known */
};

#define REQUEST_ENDED (1u << 16) /* in the type: a request, not a call (latency), which the same run may record */

/* A request has ended (RECORD_EVENT | REQUEST_ENDED). */
struct request_record {
	u32 type;
	u32 tgid, tid; /* in the pid namespace of yrt, as far as known */
	u32 status;    /* 0: not known */
	u64 key;
	u64 began, ns; /* CLOCK_MONOTONIC; how long it took */
	u64 cpu, queue, blocked, idle, others;
	u32 epoch;
	u32 nattempts; /* of the main request; may be more than attempt[] has */
	struct request_attempt attempt[REQUEST_ATTEMPTS];
	struct request_phase phase[REQUEST_PHASES]; /* in order; ns is 0 behind the last */
	char method[REQUEST_METHOD];
	char path[REQUEST_PATH]; /* as the client asked for it, cut; hostile */
	struct request_stack stack[REQUEST_STACKS];
};

#endif
