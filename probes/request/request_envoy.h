/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where Envoy begins, serves and ends requests. Its release has no symbols, but virtual tables, which run-time type
 * information names (rtti.h). Sources: source/common/http/conn_manager_impl.h of Envoy 1.36 to 1.40:
 *
 *	ConnectionManagerImpl::newStream()  returns the RequestDecoder of a new ActiveStream: a request begins, which
 *	                                    downstream_rq_total counts
 *	~ActiveStream()                     the request is over: at the end of the event loop's turn
 *	decodeHeaders() and others          of ActiveStream: the thread works for this request
 *
 * The order of virtual functions is that of their declarations. Offsets of base classes are in the type information.
 */
#ifndef YRT_REQUEST_ENVOY_H
#define YRT_REQUEST_ENVOY_H

#include <types.h>

#include "unwind/binary/image.h"
#include "unwind/error.h"

#define REQUEST_ENVOY_MAX 12

struct request_envoy {
	u32 n; /* 0: this file is no Envoy */
	struct {
		u64 addr, cookie;
		u64 table;          /* the virtual table of what it is called with, or of what it returns */
	} place[REQUEST_ENVOY_MAX]; /* functions; of the last the returns: where requests begin */
};

/* An error says why this Envoy is not understood. */
struct error *request_envoy_find(struct image *img, struct request_envoy *ret);

#endif
