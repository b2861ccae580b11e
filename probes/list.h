/* SPDX-License-Identifier: Apache-2.0 */
/* All events, a line each: EVENT(folder). No include guard: each user gives EVENT a meaning. The first one is the
 * default. */
EVENT(clock)
EVENT(tlab)
EVENT(alloc)  /* of object/ */
EVENT(leak)   /* of object/, too */
EVENT(growth) /* of object/, too: leak --growth */
EVENT(pools)  /* of object/, too */
EVENT(fault)
EVENT(wait)
EVENT(wall)
EVENT(lock) /* of wait/, too */
EVENT(io)
EVENT(net) /* of io/, too */
EVENT(hit)
EVENT(latency) /* of hit/, too */
EVENT(request)
EVENT(y) /* has no command: frontends/ylang/ */
