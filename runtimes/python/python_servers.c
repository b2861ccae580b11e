/* SPDX-License-Identifier: Apache-2.0 */
#include "python_calls.h"

#define WSGI "1[REQUEST_METHOD],1[PATH_INFO]" /* PEP 3333: application(environ, start_response) */
#define ASGI "1[method],1[path]"              /* ASGI 3.0, HTTP: application(scope, receive, send) */

const struct runtime_server python_servers[] = {
        /* django/core/handlers/wsgi.py, asgi.py */
        {"Django", "python:django.core.handlers.wsgi.WSGIHandler.__call__", WSGI},
        {"Django", "python:django.core.handlers.asgi.ASGIHandler.__call__", ASGI},
        {"Flask", "python:flask.app.Flask.wsgi_app", WSGI},                      /* flask/app.py */
        {"Starlette", "python:starlette.applications.Starlette.__call__", ASGI}, /* starlette/applications.py */
        {"Falcon", "python:falcon.app.App.__call__", WSGI},                      /* falcon/app.py, interpreted */
        {"Bottle", "python:bottle.Bottle.wsgi", WSGI},                           /* bottle.py */
        {"Pyramid", "python:pyramid.router.Router.__call__", WSGI},              /* pyramid/router.py */
        {"Tornado", "python:tornado.web.RequestHandler._execute", NULL},         /* tornado/web.py */
        {"aiohttp", "python:aiohttp.web_protocol.RequestHandler._handle_request", NULL}, /* aiohttp/web_protocol.py */
        {"Celery", "python:celery.app.trace.fast_trace_task", "0"}, /* celery/app/trace.py of 4 and 5 */
        {0},
};
