/* SPDX-License-Identifier: Apache-2.0 */
#include "python_idle.h"

/*
 * Lib/ of CPython 3.7 to 3.15, gunicorn 20 to 27, Celery 5. A worker is idle where it asks for work itself: below it is
 * what it works on. asyncio's loop is one frame where it is drawn so (python_async.h).
 */
const struct idle_rule python_idle[] = {
        {.frame = "select", .within = 1, .file = "/selectors.py", .caller = "_run_once"},
        {.frame = "select", .within = 1, .file = "/selectors.py", .caller = "asyncio"},
        {.frame = "select", .within = 1, .file = "/selectors.py", .caller = "serve_forever"},
        {.frame = "_run_once", .within = 1, .file = "/asyncio/base_events.py"},
        {.frame = "_worker", .within = 1, .file = "/concurrent/futures/thread.py"},
        {.frame = "wait_result_broken_or_wakeup", .within = 4, .file = "/concurrent/futures/process.py"},
        {.frame = "worker", .within = 1, .file = "/multiprocessing/pool.py"},
        {.frame = "get", .within = 4, .file = "/multiprocessing/queues.py", .caller = "worker"},
        {.frame = "get", .within = 4, .file = "/multiprocessing/queues.py", .caller = "_process_worker"},
        {.frame = "_handle_results", .within = 4, .file = "/multiprocessing/pool.py"},
        {.frame = "_handle_tasks", .within = 1, .file = "/multiprocessing/pool.py"},
        {.frame = "_wait_for_updates", .within = 3, .file = "/multiprocessing/pool.py"},
        {.frame = "_feed", .within = 2, .file = "/multiprocessing/queues.py"},
        {.frame = "_shutdown", .within = 3, .file = "/threading.py"},
        {.frame = "wait", .within = 1, .file = "/gunicorn/workers/sync.py"},
        {.frame = "run", .within = 2, .file = "/gunicorn/workers/gthread.py"},
        {.frame = "wait_for_and_dispatch_events", .within = 2, .file = "/gunicorn/workers/gthread.py"},
        {.frame = "sleep", .within = 1, .file = "/gunicorn/arbiter.py"},
        {.frame = "wait_for_signals", .within = 1, .file = "/gunicorn/arbiter.py"},
        {.frame = "get", .within = 2, .file = "/queue.py", .caller = "run"}, /* anyio's threads: FastAPI, Starlette */
        {.frame = "_work", .within = 1, .file = "/trio/_core/_thread_cache.py"},
        {.frame = "get_events", .within = 1, .file = "/trio/_core/_io_epoll.py"},
        {.frame = "_serve", .within = 1, .file = "/grpc/_server.py"},
        {.frame = "wait", .within = 1, .file = "/threading.py", .caller = "handler_thread"}, /* waitress */
        {.frame = "main_loop", .within = 2, .file = "/uvicorn/server.py"}, /* tasks (off-flame --logical) */
        {.frame = "receive", .within = 3, .file = "/uvicorn/lifespan/on.py"},
        {.frame = "start", .within = 1, .file = "/aiohttp/web_protocol.py"},
        {.frame = "poll", .within = 1, .file = "/kombu/utils/eventio.py", .caller = "create_loop"}, /* Celery */
        {.frame = "get_payload", .within = 4, .file = "/billiard/queues.py"},
        {0},
};
