// SPDX-License-Identifier: Apache-2.0
// OpenResty: time of Lua by phase (rewrite, access, content, filters, log …): runs, CPU time, how long phases last
//
// Works without debug information, by names of functions of nginx's module for Lua. RUN is the time in which Lua of the
// phase held the worker, CPU what a clock of 999 Hz saw of it on a CPU: the rest waited for a CPU or in the kernel.
// LASTED is from a phase's begin to the end of its Lua, with all that it waited for; filters, log and such do not wait.
// A filter that runs within a phase counts as the filter. Costs the worker two hits of 1 to 3 us a run, one a phase.
// Requests that had begun before the run are "timers, others".

##ifndeffunc ngx_http_lua_run_thread
#error "this is no nginx with its module for Lua, or one whose functions have no names"
##endif

#define OTHER          0
#define SSL            1
#define SET            2
#define SERVER_REWRITE 3
#define REWRITE        4
#define ACCESS         5
#define CONTENT        6
#define HEADER_FILTER  7
#define BODY_FILTER    8
#define BALANCER       9
#define LOG            10
#define PHASES         11
#define DEEPEST        16

/* NGX_AGAIN, NGX_DONE: it waits, or another of its threads is to go on. */
#define GOES_ON(rc) ((int)(rc) == -2 || (int)(rc) == -4)

/* By request: its phase, and when that began. */
_map int phase_of[long];
_map unsigned long since[long];
_agg lasted[int];
long runs[PHASES], run_ns[PHASES], ticks[PHASES];
/* What runs now, each within the one before, of which request; what had run before it until when. */
long phases[DEEPEST], requests[DEEPEST], depth;
unsigned long last;

void stand(void)
{
	unsigned long now = _ns;

	if (depth > 0 && depth <= DEEPEST)
		run_ns[phases[depth - 1]] += now - last;
	last = now;
}

/* Lua of a phase begins to run; what was running stands. */
void enter(int phase, long r)
{
	stand();
	if (depth >= 0 && depth < DEEPEST) {
		phases[depth] = phase;
		requests[depth] = r;
	}
	depth++;
	runs[phase]++;
}

void leave(void)
{
	stand();
	if (depth > 0)
		depth--;
}

void begin(long r, int phase)
{
	phase_of[r] = phase;
	since[r] = _ns;
}

void forget(long r)
{
	_delete(phase_of[r]);
	_delete(since[r]);
}

/* The coroutine that the phase began with has ended. */
void over(long r)
{
	if (since[r])
		lasted[phase_of[r]] <<< (_ns - since[r]) / 1000;
	forget(r);
}

_probe ngx_http_lua_rewrite_handler_inline, ngx_http_lua_rewrite_handler_file { begin(_arg(0), REWRITE); }
_probe ngx_http_lua_access_handler_inline, ngx_http_lua_access_handler_file { begin(_arg(0), ACCESS); }
_probe ngx_http_lua_content_handler_inline, ngx_http_lua_content_handler_file { begin(_arg(0), CONTENT); }
_probe ngx_http_lua_ssl_cert_handler_inline, ngx_http_lua_ssl_cert_handler_file { begin(_arg(0), SSL); }
##ifdeffunc ngx_http_lua_server_rewrite_handler_inline
_probe ngx_http_lua_server_rewrite_handler_inline, ngx_http_lua_server_rewrite_handler_file {
	begin(_arg(0), SERVER_REWRITE);
}
##endif
_probe ngx_http_free_request { forget(_arg(0)); }

_probe ngx_http_lua_run_thread { enter(phase_of[_arg(1)], _arg(1)); }
_probe ngx_http_lua_run_thread:return {
	leave();
	if (depth >= 0 && depth < DEEPEST && !GOES_ON($return))
		over(requests[depth]);
}

/* A turn of the event loop: nothing runs, whatever hits were lost. */
_probe ngx_process_events_and_timers { depth = 0; }

_probe ngx_http_lua_set_by_chunk { enter(SET, 0); }
_probe ngx_http_lua_set_by_chunk:return { leave(); }
_probe ngx_http_lua_header_filter_by_chunk { enter(HEADER_FILTER, 0); }
_probe ngx_http_lua_header_filter_by_chunk:return { leave(); }
_probe ngx_http_lua_body_filter_by_chunk { enter(BODY_FILTER, 0); }
_probe ngx_http_lua_body_filter_by_chunk:return { leave(); }
_probe ngx_http_lua_log_handler_inline, ngx_http_lua_log_handler_file { enter(LOG, 0); }
_probe ngx_http_lua_log_handler_inline:return, ngx_http_lua_log_handler_file:return { leave(); }
_probe ngx_http_lua_balancer_handler_inline, ngx_http_lua_balancer_handler_file { enter(BALANCER, 0); }
_probe ngx_http_lua_balancer_handler_inline:return, ngx_http_lua_balancer_handler_file:return { leave(); }

_probe _profile(999) {
	if (depth > 0 && depth <= DEEPEST)
		ticks[phases[depth - 1]]++;
}

_str name(int phase)
{
	switch (phase) {
	case SSL: return "ssl_certificate";
	case SET: return "set";
	case SERVER_REWRITE: return "server_rewrite";
	case REWRITE: return "rewrite";
	case ACCESS: return "access";
	case CONTENT: return "content";
	case HEADER_FILTER: return "header_filter";
	case BODY_FILTER: return "body_filter";
	case BALANCER: return "balancer";
	case LOG: return "log";
	}
	return "timers, others";
}

_probe _end {
	printf("%10s %12s %12s  %10s %12s %12s  %s\n", "RUNS", "RUN us", "CPU us", "PHASES", "LASTED us", "AT MOST us",
	       "PHASE");
	for (int i = 0; i < PHASES; i++) {
		if (!runs[i])
			continue;
		printf("%10ld %12ld %12ld  ", runs[i], run_ns[i] / 1000, ticks[i] * 1000000 / 999);
		if (_count(lasted[i]))
			printf("%10ld %12ld %12ld  %s\n", _count(lasted[i]), _avg(lasted[i]), _max(lasted[i]), name(i));
		else
			printf("%10s %12s %12s  %s\n", "", "", "", name(i));
	}
}
