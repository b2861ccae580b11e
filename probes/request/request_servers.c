/* SPDX-License-Identifier: Apache-2.0 */
#include "request_servers.h"

#include <stdio.h>
#include <string.h>

#include "unwind/error.h"
#include "unwind/process/process.h"
#include "unwind/symbols/symbols.h"

#define COOKIE(role, arg) (REQUEST_NGINX | (role) | (u64)(arg) << REQUEST_ARG)

/*
 * Sources: src/http/ngx_http_request.c, src/event/ngx_event.c and ngx_event_connect.c of nginx.
 * Each handler of an event ends with ngx_http_run_posted_requests(), whose argument's first member is the request.
 * Requests of HTTP/2 and HTTP/3 begin in ngx_http_create_request(), too.
 */
const struct request_place request_nginx[] = {
        {"ngx_process_events_and_timers", COOKIE(REQUEST_RESTS, 0), false},
        {"ngx_http_core_run_phases", COOKIE(REQUEST_RUNS, 1), false},
        {"ngx_http_run_posted_requests", COOKIE(REQUEST_RUNS, 1) | REQUEST_BEHIND, false},
        {"ngx_event_connect_peer", COOKIE(REQUEST_PARKS, 0), false},
        {"ngx_http_free_request", COOKIE(REQUEST_ENDS, 1), false},
        {"ngx_http_create_request", COOKIE(REQUEST_BEGINS, 0), true},
        {0},
};

/* Functions that lead through a phase (src/http/ngx_http_core_module.c). */
static const struct {
	const char *checker, *phase;
} phases[] = {
        {"ngx_http_core_rewrite_phase", "rewrite"},
        {"ngx_http_core_find_config_phase", "find location"},
        {"ngx_http_core_post_rewrite_phase", "post rewrite"},
        {"ngx_http_core_generic_phase", "preaccess and others"},
        {"ngx_http_core_access_phase", "access"},
        {"ngx_http_core_post_access_phase", "post access"},
        {"ngx_http_core_try_files_phase", "try files"},
        {"ngx_http_core_content_phase", "content"},
};

/* The function that begins at this address; "" if it has no name. */
static void name_function(const struct process *p, u64 addr, char *ret, size_t size)
{
	const struct mapping *m = addr ? process_mapping(p, addr) : NULL;
	struct symbol sym;
	char root[64];

	*ret = '\0';
	if (!m || !m->image)
		return;
	snprintf(root, sizeof(root), "/proc/%d/root", p->pid);
	error_free(symbols_load(m->image, root));
	if (symbols_find(m->image, addr - m->bias, &sym) && sym.start == addr - m->bias)
		snprintf(ret, size, "%s", sym.name);
}

char *request_phase_text(const struct process *p, const struct request_phase *phase)
{
	static const char *const without[] = {"not known", "reading the request", "other phases"};
	const char *word = "not known";
	char checker[128], handler[128] = "", *text = NULL;
	bool content;

	if (phase->checker <= REQUEST_OTHERS)
		return strdup(without[phase->checker]);
	name_function(p, phase->checker, checker, sizeof(checker));
	for (size_t i = 0; i < sizeof(phases) / sizeof(*phases); i++)
		if (!strcmp(phases[i].checker, checker))
			word = phases[i].phase;
	content = phase->content && !strcmp(word, "content");
	name_function(p, content ? phase->content : phase->handler, handler, sizeof(handler));
	if (asprintf(&text, "%s%s%s%s", word, *handler ? " (" : "", handler, *handler ? ")" : "") < 0)
		return NULL;
	return text;
}
