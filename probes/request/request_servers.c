/* SPDX-License-Identifier: Apache-2.0 */
#include "request_servers.h"

#include <stddef.h>

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
