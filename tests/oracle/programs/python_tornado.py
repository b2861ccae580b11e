# SPDX-License-Identifier: Apache-2.0
"""Tornado: a server and its client in one event loop."""
import asyncio

import tornado.httpclient
import tornado.web


class Page(tornado.web.RequestHandler):
    async def get(self):
        await asyncio.sleep(0)
        self.write({"n": sum(i * i for i in range(500))})


async def main():
    server = tornado.web.Application([("/", Page)]).listen(0, "127.0.0.1")
    port = next(iter(server._sockets.values())).getsockname()[1]
    client = tornado.httpclient.AsyncHTTPClient()
    while True:
        await asyncio.gather(*(client.fetch(f"http://127.0.0.1:{port}/") for _ in range(5)))


asyncio.run(main())
