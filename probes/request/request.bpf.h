/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The programs that follow requests (request.h). */
#ifndef YRT_REQUEST_BPF_H
#define YRT_REQUEST_BPF_H

#include "hit/hit.bpf.h"
#include "hit/stack_budget.bpf.h"
#include "request/request.h"
#include "request/request_envoy.bpf.h"
#include "wait/wait_why.bpf.h"

u64 request_over_ns = 0;
u64 request_tick_ns = 0; /* what a tick of the clock stands for */

/* Words of ngx_http_request_t, as found; 0: not yet. */
u32 request_line_at = 0;   /* method */
u32 request_status_at = 0; /* headers_out.status */
u32 request_main_at = 0;

struct request_key {
	u64 key;
	u32 tgid, reserved;
};

struct request_live { /* under way */
	u64 began;
	u64 cpu, queue, blocked;
	u64 idle_before; /* of its thread, as it began */
	u64 left;        /* when its handler gave way; 0: it runs */
	u64 parked;      /* hash of the stack that it waits with; 0: none */
	u32 parked_stop;
	u32 thread;
	u32 shortest, shift;
	struct request_phase phase[REQUEST_PHASES];
	struct request_stack stack[REQUEST_STACKS];
};

struct { /* sized where requests are followed, as all here */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct request_key);
	__type(value, struct request_live);
} request_lives SEC(".maps");

struct { /* a new one, too large for BPF's stack */
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct request_live);
} request_new SEC(".maps");

#define REQUEST_GAP_STACKS 8u

struct request_thread {
	u64 key;    /* whose handler runs; 0: nobody knows */
	u64 since;  /* what came before is charged */
	u64 away;   /* since when it is off the CPU */
	u64 off;    /* how long it was, and is not charged yet */
	u64 delay;  /* on run queues until it left the CPU */
	u64 idle;   /* slept for no request that is known, so far */
	u64 hash;   /* of its wait; 0: not taken */
	u64 gap;    /* CPU time for which no request has shown yet */
	u64 queued; /* the same on a run queue */
	u64 parked; /* hash of the stack with which that request began to wait; 0: it did not */
	u32 reason, stop;
	u32 off_reason, shift;
	u32 ngap, parked_stop;
	struct request_stack of_gap[REQUEST_GAP_STACKS]; /* what it ran meanwhile, by ticks of the clock */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct request_thread);
} request_threads SEC(".maps");

struct { /* a new one */
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct request_thread);
} request_thread_new SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct request_counts);
} request_counters SEC(".maps");

struct request_words {
	u64 word[REQUEST_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct request_words);
} request_copies SEC(".maps");

static inline struct request_counts *request_counts_here(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&request_counters, &zero);
}

static __attribute__((noinline)) struct request_thread *request_thread_of(u32 pid)
{
	return bpf_map_lookup_elem(&request_threads, &pid);
}

static __attribute__((noinline)) struct request_live *request_live_of(u64 key)
{
	struct request_key at = {.key = key, .tgid = tgid_of(bpf_get_current_task_btf())};

	return key ? bpf_map_lookup_elem(&request_lives, &at) : NULL;
}

/* --- stacks of a request --- */

#define REQUEST_TRIES 4 /* places that a stack may have */

/* The place of this stack, else a free one, else that of the shortest. */
WALK_GLOBAL u32 request_place(u64 key, u64 hash, u32 reason)
{
	struct request_live *live = request_live_of(key);
	u32 first = (u32)hash + reason, i;

	if (!live)
		return 0;
	live->shortest = first & (REQUEST_STACKS - 1);
	for (u32 n = 0; n < REQUEST_TRIES; n++) {
		i = (first + n) & (REQUEST_STACKS - 1);
		if (!live->stack[i].ns || (live->stack[i].hash == hash && live->stack[i].reason == reason))
			return i;
		if (live->stack[i].ns < live->stack[live->shortest & (REQUEST_STACKS - 1)].ns)
			live->shortest = i;
	}
	return live->shortest;
}

/* Adds time under a stack. If there are too many, the shortest makes room. */
WALK_GLOBAL int request_add(u64 key, u64 hash, u64 ns, u32 reason, u32 stop)
{
	u32 i = request_place(key, hash, reason);
	struct request_live *live = request_live_of(key);
	struct request_stack *at;

	if (!live)
		return 0;
	at = &live->stack[i & (REQUEST_STACKS - 1)];
	if (at->ns && at->hash == hash && at->reason == reason) {
		at->ns += ns;
		return 0;
	}
	if (at->ns >= ns)
		return 0;
	at->hash = hash;
	at->ns = ns;
	at->reason = reason;
	at->stop = stop;
	return 0;
}

/* --- phases of nginx --- */

#define NGINX_MAIN_CONF     24 /* bytes */
#define NGINX_WRITE_HANDLER 56
#define NGINX_PHASE_HANDLER 5u /* words behind main */
#define NGINX_PHASES        40 /* in the configuration of ngx_http_core_module */
#define NGINX_PHASES_MOST   4096
#define NGINX_PHASE         24

/* The phase that a request is in. */
static __attribute__((noinline)) int request_phase_of(u64 key, struct request_phase *ret)
{
	u64 at[2], words[2];

	if (!request_main_at ||
	        bpf_probe_read_user(at, sizeof(at), (const void *)(key + 8 * (request_main_at + NGINX_PHASE_HANDLER))))
		return 0;
	if (!user_word(key + NGINX_WRITE_HANDLER)) {
		ret->checker = REQUEST_READING;
		return 0;
	}
	words[0] = user_word(user_word(user_word(key + NGINX_MAIN_CONF)) + NGINX_PHASES);
	if (at[0] >= NGINX_PHASES_MOST ||
	        bpf_probe_read_user(words, sizeof(words), (const void *)(words[0] + NGINX_PHASE * at[0])))
		return 0;
	ret->checker = words[0];
	ret->handler = words[1];
	ret->content = at[1];
	return 0;
}

/* The request has spent this time in the phase that it is in. */
WALK_GLOBAL int request_phase_add(u64 key, u64 ns)
{
	struct request_live *live = request_live_of(key);
	struct request_phase now = {0};

	if (!live || !ns)
		return 0;
	request_phase_of(key, &now);
	for (u32 i = 0; i < REQUEST_PHASES; i++) {
		struct request_phase *phase = &live->phase[i];

		if (phase->ns && (phase->checker != now.checker || phase->handler != now.handler) &&
		        i < REQUEST_PHASES - 1)
			continue;
		if (!phase->ns)
			*phase = now;
		else if (phase->checker != now.checker || phase->handler != now.handler)
			phase->checker = REQUEST_OTHERS;
		phase->ns += ns;
		return 0;
	}
	return 0;
}

/* --- whose time it is --- */

/* What a thread was off the CPU. */
static inline void request_charge_off(
        struct task_struct *task, struct request_thread *t, struct request_live *live, u64 *blocked)
{
	u64 delay = wait_delay(task), off = t->off, queue = delay - t->delay;

	t->off = 0;
	if (queue > off || wait_is_runnable(t->off_reason))
		queue = off;
	if (live) {
		live->queue += queue;
		live->blocked += off - queue;
		*blocked = off - queue;
	} else {
		t->queued += queue;
		t->idle += off - queue;
	}
}

/* Charges what a thread did until now. */
WALK_GLOBAL int request_charge(u64 now)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct request_thread *t = request_thread_of((u32)task->pid);
	struct request_live *live = t ? request_live_of(t->key) : NULL;
	u64 ran, blocked = 0, off;

	if (!t)
		return 0;
	off = t->off;
	if (t->off)
		request_charge_off(task, t, live, &blocked);
	ran = now > t->since ? now - t->since : 0;
	t->since = now;
	if (live)
		live->cpu += ran;
	else
		t->gap += ran;
	if (live)
		request_phase_add(t->key, ran + off);
	if (live && blocked)
		request_add(t->key, t->hash, blocked, t->off_reason, t->stop);
	t->hash = 0;
	return 0;
}

static inline void request_clear_gap(struct request_thread *t)
{
	t->gap = t->queued = t->parked = t->ngap = 0;
}

/* What nobody showed up for. */
static inline void request_drop_gap(struct request_thread *t)
{
	struct request_counts *counts = request_counts_here();

	if (counts)
		counts->loop_ns += t->gap;
	request_clear_gap(t);
}

/* A tick of the clock while no request is known. */
static inline void request_gap_ran(struct request_thread *t, u64 hash, u32 reason, u32 stop)
{
	u32 i = 0;

	while (i < REQUEST_GAP_STACKS && i < t->ngap && t->of_gap[i].hash != hash)
		i++;
	if (i >= REQUEST_GAP_STACKS)
		return;
	if (i >= t->ngap) {
		t->ngap = i + 1;
		t->of_gap[i] = (struct request_stack){.hash = hash, .reason = reason, .stop = stop};
	}
	t->of_gap[i].ns += request_tick_ns;
}

/* What the thread that runs here did since it left the loop was for this request. Returns how long that took. */
WALK_GLOBAL u64 request_take_gap(u64 key)
{
	struct request_thread *t = request_thread_of((u32)bpf_get_current_task_btf()->pid);
	struct request_live *live = request_live_of(key);
	u64 took;

	if (!t || !live)
		return 0;
	took = t->gap + t->queued;
	live->cpu += t->gap;
	live->queue += t->queued;
	for (u32 i = 0; i < REQUEST_GAP_STACKS && i < t->ngap; i++)
		request_add(key, t->of_gap[i].hash, t->of_gap[i].ns, t->of_gap[i].reason, t->of_gap[i].stop);
	if (t->parked) {
		live->parked = t->parked;
		live->parked_stop = t->parked_stop;
	}
	request_clear_gap(t);
	return took;
}

/* The request that ran gives way. */
static inline void request_gives_way(struct request_thread *t, u64 now)
{
	struct request_live *live = request_live_of(t->key);

	if (live)
		live->left = now;
	t->key = 0;
}

/* A request is back that may have given way. Before it showed, it had run for the gap, and may wait again since. */
static inline void request_came_back(u64 key, struct request_live *live, u64 now)
{
	u64 away = live->left && now > live->left ? now - live->left : 0, parked = live->parked;
	u32 stop = live->parked_stop;
	u64 gap = request_take_gap(key);

	live->left = 0;
	if (!away)
		return;
	request_phase_add(key, away);
	if (away > gap)
		request_add(key, parked, away - gap, REQUEST_WAITS, stop);
}

static inline void request_forget(struct request_thread *t, u64 now)
{
	t->key = t->off = 0;
	request_clear_gap(t);
	t->since = now;
	t->shift = hit_shift;
}

/* The thread that runs here, which may be seen for the first time. */
static __attribute__((noinline)) struct request_thread *request_thread_here(struct task_struct *task, u64 now)
{
	u32 pid = (u32)task->pid, zero = 0;
	struct request_thread *t = request_thread_of(pid), *fresh;

	if (t)
		return t;
	fresh = bpf_map_lookup_elem(&request_thread_new, &zero);
	if (fresh)
		bpf_map_update_elem(&request_threads, &pid, fresh, BPF_NOEXIST);
	t = request_thread_of(pid);
	if (!t)
		return NULL;
	t->since = now;
	t->delay = wait_delay(task);
	t->shift = hit_shift;
	return t;
}

/* The thread that runs here works for this request from now on; 0: for none. */
WALK_GLOBAL int request_turn(u64 key, u64 now)
{
	struct request_thread *t = request_thread_here(bpf_get_current_task_btf(), now);
	struct request_live *live;

	if (!t)
		return 0;
	if (t->shift != hit_shift) /* what it did between shifts is not known */
		request_forget(t, now);
	request_charge(now);
	if (key && t->key == key)
		return 0;
	if (t->key) {
		request_gives_way(t, now);
		request_clear_gap(t);
	}
	live = request_live_of(key);
	if (!live) {
		if (!key)
			request_drop_gap(t);
		return 0;
	}
	t->key = key;
	request_came_back(key, live, now);
	return 0;
}

/* --- begin and end --- */

/* Is there a request under this key, which will not be seen to end? */
static inline bool request_is_left(const struct request_key *at, struct request_counts *counts)
{
	const struct request_live *live = bpf_map_lookup_elem(&request_lives, at);

	if (!live)
		return false;
	if (live->shift == hit_shift) {
		counts->left++;
		return true;
	}
	counts->cut++;
	return false;
}

WALK_GLOBAL int request_begin(u64 key, u64 now)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct request_key at = {.key = key, .tgid = tgid_of(task)};
	struct request_counts *counts = request_counts_here();
	struct hit_counts *hits = hit_counts_here();
	struct request_thread *t;
	struct request_live *live;
	u32 zero = 0;

	request_turn(0, now);
	t = request_thread_of((u32)task->pid);
	live = bpf_map_lookup_elem(&request_new, &zero);
	if (!t || !live || !counts || !hits || !key || now > hit_until)
		return 0;
	counts->begun++;
	if (!request_is_left(&at, counts))
		hits->under_way++;
	if (bpf_map_update_elem(&request_lives, &at, live, BPF_ANY)) {
		counts->full++;
		return 0;
	}
	live = bpf_map_lookup_elem(&request_lives, &at);
	if (!live)
		return 0;
	live->began = now;
	live->shift = hit_shift;
	live->idle_before = t->idle;
	live->thread = (u32)task->pid;
	t->key = key;
	return 0;
}

static inline u64 request_word(const struct request_words *w, u32 i)
{
	WALK_BARRIER(i);
	return i < REQUEST_WORDS ? w->word[i] : 0;
}

/* One of the versions that nginx gives a request, behind its method. */
static inline bool request_is_line(const struct request_words *w, u32 i)
{
	u64 method, version;

	if (i < 2 || i >= REQUEST_WORDS - 2)
		return false;
	method = w->word[i];
	version = w->word[i + 1];
	return (version == 9 || version == 1000 || version == 1001 || version == 2000 || version == 3000) && method &&
	       method < 1u << 16 && !(method & (method - 1)) && w->word[i - 1] < 1000 && w->word[i - 2] >> 30 &&
	       !(w->word[i - 2] >> 34);
}

static inline bool request_is_status(const struct request_words *w, u32 i)
{
	if (i < 10 || i >= REQUEST_WORDS)
		return false;
	return w->word[i - 9] == 20 && w->word[i - 2] == 4 && w->word[i - 10] == w->word[i - 3] &&
	       w->word[i - 10] < 256 && w->word[i - 8] == w->word[i - 1] && w->word[i] < 1000;
}

/*
 * Where the members are, by what is in them. Each place is tried in a function of its own, which the verifier follows
 * once.
 */
WALK_GLOBAL int request_try_line(u32 i)
{
	u32 zero = 0;
	const struct request_words *w = bpf_map_lookup_elem(&request_copies, &zero);

	if (!w || !request_is_line(w, i))
		return 0;
	request_line_at = i;
	return 1;
}

WALK_GLOBAL int request_try_status(u32 i)
{
	u32 zero = 0;
	const struct request_words *w = bpf_map_lookup_elem(&request_copies, &zero);

	if (!w || i >= request_line_at || !request_is_status(w, i))
		return 0;
	request_status_at = i;
	return 1;
}

WALK_GLOBAL int request_try_main(u32 i, u64 key)
{
	u32 zero = 0;
	const struct request_words *w = bpf_map_lookup_elem(&request_copies, &zero);

	i += request_line_at;
	if (!w || i >= REQUEST_WORDS - 1 || w->word[i] != key || w->word[i + 1])
		return 0;
	request_main_at = i;
	return 1;
}

#define REQUEST_LINE_FIRST 12u /* words before it that are pointers */
#define REQUEST_MAIN_FROM  14u /* words from the line */
#define REQUEST_MAIN_TO    26u

WALK_GLOBAL int request_find(u64 key)
{
	if (!request_line_at || !request_try_line(request_line_at))
		for (u32 i = REQUEST_LINE_FIRST; i < REQUEST_WORDS - REQUEST_MAIN_TO; i++)
			if (request_try_line(i))
				break;
	if (!request_status_at || !request_try_status(request_status_at))
		for (u32 i = REQUEST_LINE_FIRST; i < REQUEST_WORDS; i++)
			if (request_try_status(i))
				break;
	for (u32 i = REQUEST_MAIN_FROM; i < REQUEST_MAIN_TO; i++)
		if (request_try_main(i, key))
			break;
	return 0;
}

/* A string of nginx: its length, where it is. */
WALK_GLOBAL int request_text(struct request_record *record)
{
	u32 zero = 0;
	const struct request_words *w = bpf_map_lookup_elem(&request_copies, &zero);
	u64 len, at;

	if (!w || !record || !request_line_at)
		return 0;
	len = request_word(w, request_line_at + 10); /* unparsed_uri */
	at = request_word(w, request_line_at + 11);
	if (len > REQUEST_PATH - 1)
		len = REQUEST_PATH - 1;
	WALK_BARRIER(len);
	if (len < REQUEST_PATH)
		bpf_probe_read_user(record->path, (u32)len, (const void *)at);
	len = request_word(w, request_line_at + 12); /* method_name */
	at = request_word(w, request_line_at + 13);
	if (len > REQUEST_METHOD - 1)
		len = REQUEST_METHOD - 1;
	WALK_BARRIER(len);
	if (len < REQUEST_METHOD)
		bpf_probe_read_user(record->method, (u32)len, (const void *)at);
	return 0;
}

#define REQUEST_POOL_FROM   8u /* words of a request that may be its pool */
#define REQUEST_POOL_TO     16u
#define REQUEST_STATE_LEAST 48u
#define REQUEST_STATE_MOST  256u

/* The place behind upstream_states: its pool's, which the lists of headers_out name. 0: not found. */
WALK_GLOBAL u32 request_pool_at(void)
{
	u32 zero = 0, at = request_status_at;
	const struct request_words *w = bpf_map_lookup_elem(&request_copies, &zero);

	WALK_BARRIER(at);
	if (!w || !at || at >= REQUEST_WORDS)
		return 0;
	for (u32 i = REQUEST_POOL_FROM; i < REQUEST_POOL_TO; i++)
		if (w->word[i] == request_word(w, at - 1))
			return i;
	return 0;
}

/* The attempt whose state is at `at`. */
WALK_GLOBAL int request_attempt(struct request_record *record, u32 i, u64 at, u64 size)
{
	struct request_attempt *attempt;
	u64 words[4], peer, text[2], len;

	if (!record || i >= REQUEST_ATTEMPTS || bpf_probe_read_user(words, sizeof(words), (const void *)at))
		return 0;
	attempt = &record->attempt[i];
	attempt->status = words[0];
	attempt->response = (s64)words[1];
	attempt->connect = (s64)words[2];
	attempt->header = (s64)words[3];
	if (bpf_probe_read_user(&peer, sizeof(peer), (const void *)(at + size - 8)) ||
	        bpf_probe_read_user(text, sizeof(text), (const void *)peer))
		return 0;
	len = text[0] < REQUEST_PEER ? text[0] : REQUEST_PEER - 1;
	WALK_BARRIER(len);
	if (len < REQUEST_PEER)
		bpf_probe_read_user(attempt->peer, (u32)len, (const void *)text[1]);
	return 0;
}

/* ngx_http_request_t.upstream_states: an ngx_array_t, which is elts, nelts, size, nalloc, pool. */
WALK_GLOBAL int request_attempts(struct request_record *record)
{
	u32 zero = 0, at = request_pool_at();
	const struct request_words *w = bpf_map_lookup_elem(&request_copies, &zero);
	u64 array[5];

	WALK_BARRIER(at);
	if (!w || !record || !at || at >= REQUEST_POOL_TO ||
	        bpf_probe_read_user(array, sizeof(array), (const void *)request_word(w, at - 1)) ||
	        array[4] != w->word[at] || array[1] > array[3] || array[2] < REQUEST_STATE_LEAST ||
	        array[2] > REQUEST_STATE_MOST)
		return 0;
	record->nattempts = array[1] < REQUEST_WORDS ? (u32)array[1] : REQUEST_WORDS;
	for (u32 i = 0; i < REQUEST_ATTEMPTS && i < array[1]; i++)
		request_attempt(record, i, array[0] + i * array[2], array[2]);
	return 0;
}

/* What nginx knows of it. rc: what it ends with. */
WALK_GLOBAL int request_read(struct request_record *record, u64 key, u64 rc)
{
	u32 zero = 0;
	struct request_words *w = bpf_map_lookup_elem(&request_copies, &zero);
	u64 connection, sent = 1, status;

	if (!w || !record)
		return 0;
	if (bpf_probe_read_user(w, sizeof(*w), (const void *)key) &&
	        bpf_probe_read_user(w, 1280, (const void *)key)) /* its pool may end there */
		return 0;
	request_find(key);
	request_text(record);
	request_attempts(record);
	connection = w->word[1];
	bpf_probe_read_user(&sent, sizeof(sent), (const void *)(connection + 72));
	status = request_status_at ? request_word(w, request_status_at) : 0;
	if ((s64)rc > 0 && (!status || !sent))
		status = rc;
	record->status = status < 1000 ? (u32)status : 0;
	return 0;
}

/* Counts stacks of a request that is slow. */
WALK_GLOBAL int request_count(const struct request_record *record)
{
	struct probe_stats *st = my_stats();

	if (!record || !st)
		return 0;
	for (u32 i = 0; i < REQUEST_STACKS; i++) {
		const struct request_stack *at = &record->stack[i];

		if (!at->hash || !at->ns)
			continue;
		st->weights += at->ns;
		count_stop(st, at->stop, at->ns);
		if (!event_add(at->hash, at->ns, 0))
			st->lost[LOST_TABLE] += at->ns;
	}
	return 0;
}

static inline void request_times(struct request_record *record, const struct request_live *live, u64 now)
{
	struct request_thread *t = request_thread_of((u32)bpf_get_current_task_btf()->pid);
	u64 known;

	record->began = live->began;
	record->ns = now - live->began;
	record->cpu = live->cpu;
	record->queue = live->queue;
	record->blocked = live->blocked;
	record->idle = t && live->thread == (u32)bpf_get_current_task_btf()->pid ? t->idle - live->idle_before : 0;
	known = live->cpu + live->queue + live->blocked + record->idle;
	record->others = record->ns > known ? record->ns - known : 0;
}

/* A request is over: tells user space. */
WALK_GLOBAL int request_tell(u64 key, u64 now, u64 cookie, u64 rc)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct request_live *live = request_live_of(key);
	struct request_counts *counts = request_counts_here();
	struct request_record *record;

	if (!live || !counts)
		return 0;
	record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
	if (!record) {
		counts->lost++;
		return 0;
	}
	__builtin_memset(record, 0, offsetof(struct request_record, phase)); /* phases and stacks are copied */
	__builtin_memset(record->method, 0, sizeof(record->method));
	__builtin_memset(record->path, 0, sizeof(record->path));
	record->type = RECORD_EVENT | REQUEST_ENDED;
	record->tgid = tgid_of(task);
	record->tid = pid_of(task, task->pid);
	record->key = key;
	record->epoch = counts_in_use & 1;
	request_times(record, live, now);
	bpf_probe_read_kernel(record->phase, sizeof(record->phase), live->phase);
	bpf_probe_read_kernel(record->stack, sizeof(record->stack), live->stack);
	if (cookie & REQUEST_NGINX)
		request_read(record, key, rc);
	if (cookie & REQUEST_ENVOY)
		request_read_envoy(record, key, cookie);
	if (record->ns >= request_over_ns)
		request_count(record);
	bpf_ringbuf_submit(record, wake_flags());
	return 0;
}

WALK_GLOBAL int request_end(u64 key, u64 now, u64 cookie, u64 rc)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct request_key at = {.key = key, .tgid = tgid_of(task)};
	struct request_counts *counts = request_counts_here();
	struct hit_counts *hits = hit_counts_here();
	struct request_thread *t;
	struct request_live *live;

	request_turn(key, now);
	t = request_thread_of((u32)task->pid);
	if (!counts || !hits || !t)
		return 0;
	live = request_live_of(key);
	if (!live) {
		counts->unpaired++;
		return 0;
	}
	if (live->shift == hit_shift) {
		hits->under_way--;
		counts->ended++;
		request_tell(key, now, cookie, rc);
	} else {
		counts->cut++;
	}
	bpf_map_delete_elem(&request_lives, &at);
	t->key = 0;
	return 0;
}

/* The request that a hit is about. nginx's subrequests are part of the main one. */
static inline u64 request_key_of(const struct pt_regs *ctx, u64 cookie)
{
	u64 key = 0, main = 0;

	switch (cookie >> REQUEST_ARG & 0xff) {
	case 0:
		key = ctx->rax;
		break;
	case 1:
		key = ctx->rdi;
		break;
	case 2:
		key = ctx->rsi;
		break;
	case 3:
		key = ctx->rdx;
		break;
	case 4:
		key = ctx->rcx;
		break;
	case 5:
		key = ctx->r8;
		break;
	case 6:
		key = ctx->r9;
		break;
	}
	if (cookie & REQUEST_ENVOY && user_word(key) != ctx->rip + (u64)((s64)cookie >> REQUEST_TABLE))
		return 0;
	if (cookie & REQUEST_ENVOY && (cookie & REQUEST_ROLE) == REQUEST_BEGINS)
		return key - (cookie >> REQUEST_OFFSET & REQUEST_OFFSET_MAX);
	if (cookie & REQUEST_BEHIND && bpf_probe_read_user(&key, sizeof(key), (const void *)key))
		return 0;
	if (cookie & REQUEST_NGINX && request_main_at && !request_live_of(key) &&
	        !bpf_probe_read_user(&main, sizeof(main), (const void *)(key + 8 * request_main_at)) &&
	        request_live_of(main))
		return main;
	return key;
}

SEC("uprobe")
int on_request(struct pt_regs *ctx)
{
	struct request_counts *counts = request_counts_here();
	struct hit_counts *hits = hit_counts_here();
	u64 now = bpf_ktime_get_ns(), cookie = bpf_get_attach_cookie(ctx), key;

	if (ticks != TICKS_TAKEN || !counts || !hits || !find_target())
		return 0;
	counts->hits++;
	if ((cookie & REQUEST_ROLE) == REQUEST_BEGINS)
		hits->entries++;
	else
		hits->exits++;
	if ((cookie & REQUEST_ROLE) == REQUEST_RESTS)
		return request_turn(0, now);
	key = request_key_of(ctx, cookie);
	if (cookie & REQUEST_ENVOY && !key)
		return 0;
	switch (cookie & REQUEST_ROLE) {
	case REQUEST_BEGINS:
		return request_begin(key, now);
	case REQUEST_RUNS:
		return request_live_of(key) ? request_turn(key, now) : 0;
	case REQUEST_ENDS:
		return request_end(key, now, cookie, ctx->rsi);
	}
	return 0;
}

/* --- stacks --- */

/* Looks for it again: the verifier would follow the walk once for each place that it may lie at. */
static __attribute__((noinline)) int request_parked(u32 pid, const struct slot *slot)
{
	struct request_thread *t = request_thread_of(pid);
	struct request_live *live = t ? request_live_of(t->key) : NULL;

	if (live) {
		live->parked = slot->head.hash;
		live->parked_stop = event_stop(slot);
	} else if (t) {
		t->parked = slot->head.hash;
		t->parked_stop = event_stop(slot);
	}
	return 0;
}

WALKING("uprobe", on_request_park)
int on_request_park_walk(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct probe_stats *st = my_stats();
	u64 begin = bpf_ktime_get_ns();
	u32 tgid = tgid_of(task), pid = (u32)task->pid, number;
	struct request_thread *t = request_thread_of(pid);
	int instance = ticks == TICKS_TAKEN && t ? find_target() : 0;
	struct slot *slot =
	        st && instance && stack_budget_allows(begin) ? event_begin(st, instance, tgid, 0, &number) : NULL;

	if (!slot)
		return 0;
	slot->head.reason = REQUEST_WAITS;
	event_reason(slot);
	hit_end(slot, st, task, tgid);
	request_parked(pid, slot);
	return stack_budget_spend(begin);
}

WALKING_TABLE(on_request_switch);

/* The thread that runs here leaves the CPU. Is its stack to be taken? */
static inline bool request_leaves(struct task_struct *task, bool preempt)
{
	struct request_thread *t = request_thread_of((u32)task->pid);
	u64 now;

	if (!t)
		return false;
	now = bpf_ktime_get_ns();
	request_charge(now);
	t->away = now;
	t->delay = wait_delay(task);
	t->off_reason = wait_why(preempt ? 0 : wait_state_bits(task));
	return t->key && !wait_is_runnable(t->off_reason) && stack_budget_allows(now);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_request_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct request_thread *t;

	if (ticks != TICKS_TAKEN)
		return 0;
	t = next->pid ? request_thread_of((u32)next->pid) : NULL;
	if (t && t->away) {
		t->since = bpf_ktime_get_ns();
		t->off += t->since - t->away;
		t->away = 0;
	}
	if (prev->pid && request_leaves(prev, preempt))
		bpf_tail_call(ctx, &on_request_switch_now, 0);
	return 0;
}

static __attribute__((noinline)) int request_waits(u32 pid, const struct slot *slot)
{
	struct request_thread *t = request_thread_of(pid);

	if (!t)
		return 0;
	t->hash = slot->head.hash;
	t->stop = event_stop(slot);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_request_switch_walk, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct probe_stats *st = my_stats();
	u64 begin = bpf_ktime_get_ns();
	u32 tgid = tgid_of(prev), pid = (u32)prev->pid, number;
	struct request_thread *t = request_thread_of(pid);
	int instance = find_target();
	struct slot *slot = t && st && instance ? event_begin(st, instance, tgid, 0, &number) : NULL;

	if (!slot)
		return 0;
	slot->head.reason = t->off_reason;
	event_reason(slot);
	event_kernel(ctx, slot, 0);
	event_user(slot, NULL, prev, bpf_map_lookup_elem(&processes, &tgid), true);
	event_end(slot, st, event_emit(slot, st));
	request_waits(pid, slot);
	return stack_budget_spend(begin);
}

/* Does the thread that runs here work for requests? */
WALK_GLOBAL int request_is_served(void)
{
	return request_thread_of((u32)bpf_get_current_task_btf()->pid) != NULL;
}

/* A tick of the clock hit the handler of a request. */
WALK_GLOBAL int request_ran(u64 hash, u32 reason, u32 stop)
{
	struct request_thread *t = request_thread_of((u32)bpf_get_current_task_btf()->pid);

	if (!t)
		return 0;
	if (t->key)
		return request_add(t->key, hash, request_tick_ns, reason, stop);
	request_gap_ran(t, hash, reason, stop);
	return 0;
}

static inline u32 request_stop_of(const struct slot *slot)
{
	return event_stop(slot);
}

WALKING("perf_event", on_request_tick)
int on_request_tick_walk(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct probe_stats *st = my_stats();
	u32 tgid = tgid_of(task), number;
	struct slot *slot;
	int instance;

	if (ticks != TICKS_TAKEN || !st || !request_is_served())
		return 0;
	request_charge(bpf_ktime_get_ns()); /* to the phase that it is in */
	instance = find_target();
	if (!instance)
		return 0;
	slot = event_begin(st, instance, tgid, 0, &number);
	if (!slot)
		return 0;
	slot->head.reason = wait_reason(WAIT_RUNNING, WAIT_NO_FILE, -1);
	event_reason(slot);
	event_hit(slot, st, ctx, task, tgid);
	return request_ran(slot->head.hash, slot->head.reason, request_stop_of(slot));
}

#endif
