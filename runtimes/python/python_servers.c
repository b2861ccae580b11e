/* SPDX-License-Identifier: Apache-2.0 */
#include "python_calls.h"

#define WSGI  "environ[REQUEST_METHOD],environ[PATH_INFO]" /* PEP 3333: application(environ, start_response) */
#define ASGI  "scope[method],scope[path]"                  /* ASGI 3.0, HTTP: application(scope, receive, send) */
#define SANIC "request<sanic.request.types.Request>.method,request<sanic.request.types.Request>.raw_url"

enum { FRAMEWORK, SERVER, APPLICATION };

const struct runtime_server python_servers[] = {
        /* django/core/handlers/wsgi.py, asgi.py */
        {"Django", "python:django.core.handlers.wsgi.WSGIHandler.__call__", WSGI, FRAMEWORK},
        {"Django", "python:django.core.handlers.asgi.ASGIHandler.__call__", ASGI, FRAMEWORK},
        {"Flask", "python:flask.app.Flask.wsgi_app", WSGI, FRAMEWORK}, /* flask/app.py */
        /* starlette/applications.py */
        {"Starlette", "python:starlette.applications.Starlette.__call__", ASGI, FRAMEWORK},
        {"Quart", "python:quart.app.Quart.__call__", ASGI, FRAMEWORK},          /* quart/app.py */
        {"Litestar", "python:litestar.app.Litestar.__call__", ASGI, FRAMEWORK}, /* litestar/app.py */
        {"Falcon", "python:falcon.app.App.__call__", "env[REQUEST_METHOD],env[PATH_INFO]",
                FRAMEWORK},                                                     /* falcon/app.py */
        {"Falcon", "python:falcon.asgi.app.App.__call__", ASGI, FRAMEWORK},     /* falcon/asgi/app.py */
        {"Bottle", "python:bottle.Bottle.wsgi", WSGI, FRAMEWORK},               /* bottle.py */
        {"Pyramid", "python:pyramid.router.Router.__call__", WSGI, FRAMEWORK},  /* pyramid/router.py */
        {"CherryPy", "python:cherrypy._cptree.Tree.__call__", WSGI, FRAMEWORK}, /* cherrypy/_cptree.py */
        /* tornado/web.py, httputil.py */
        {"Tornado", "python:tornado.web.RequestHandler._execute", "self.request.method,self.request.path", FRAMEWORK},
        /* aiohttp/web_protocol.py, web_request.py; yarl/_url.py since 1.17, and before */
        {"aiohttp", "python:aiohttp.web_protocol.RequestHandler._handle_request",
                "request._method,request._rel_url<yarl._url.URL>._path|"
                "request._method,request._rel_url<yarl._url.URL>._val[2]",
                FRAMEWORK},
        /* sanic/app.py, and as sanic/touchup compiles it; request/types.py: raw_url is bytes, with the query */
        {"Sanic", "python:sanic.app.handle_request", SANIC, FRAMEWORK},
        {"Sanic", "python:sanic.app.Sanic.handle_request", SANIC, FRAMEWORK},
        {"Celery", "python:celery.app.trace.fast_trace_task", "0", FRAMEWORK}, /* celery/app/trace.py of 4 and 5 */
        /* uvicorn/middleware/proxy_headers.py: around any application, by default */
        {"ASGI on uvicorn", "python:uvicorn.middleware.proxy_headers.ProxyHeadersMiddleware.__call__", ASGI, SERVER},
        {"ASGI on Hypercorn", "python:hypercorn.app_wrappers.ASGIWrapper.__call__", ASGI, SERVER},
        /* What the program has itself */
        {"WSGI", "python:*(environ,start_response)", WSGI, APPLICATION},
        {"ASGI", "python:*(scope,receive,send)", ASGI, APPLICATION},
        {0},
};
