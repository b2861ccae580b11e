/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores of profiles: where they take them, and in which shape. The kind is given by a prefix
 * ("pyroscope+http://host:4040"), or by the path or the port of a plain URL.
 *
 * pyroscope: POST /ingest?name=SERVICE{LABELS}&from=&until=&format=pprof, pprof whose samples have few labels; tenant
 * in X-Scope-OrgID (grafana.com/docs/pyroscope, "server API").
 *
 * parca: POST /api/profiles/writeraw, JSON of WriteRawRequest (parca proto/parca/profilestore/v1alpha1), pprof in
 * base64.
 *
 * otlp: POST /v1development/profiles, protobuf (opentelemetry.io/docs/specs/otlp); packed by gzip.
 *
 * coroot: POST /v1/profiles?service.name=SERVICE&LABELS, pprof with Coroot's names of types, and the time of its end;
 * X-API-Key (coroot: collector/profiles.go, model/profile.go).
 */
#ifndef YRT_STORE_H
#define YRT_STORE_H

#include "unwind/profile/profile.h"

enum store_kind { STORE_PYROSCOPE, STORE_PARCA, STORE_OTLP, STORE_COROOT, STORES };

struct store {
	enum store_kind kind;
	char *url; /* without prefix, with the store's own path if none was given */
};

/* What is sent: all of it the caller's to free. */
struct store_request {
	char *url;
	char *body;
	size_t size;
	const char *headers[4]; /* static, up to NULL */
};

/* An error lists the prefixes. */
struct error *store_parse(const char *url, struct store *ret);
/* The request that hands a finished profile over; its labels are meta.labels. */
struct error *store_request(const struct store *s, struct profile *p, struct store_request *ret);
void store_request_free(struct store_request *r);
const char *store_name(enum store_kind kind);
/* The header that carries a token: "Authorization: Bearer " or "X-API-Key: ". */
const char *store_token_header(enum store_kind kind);

#endif
