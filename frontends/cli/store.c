/* SPDX-License-Identifier: Apache-2.0 */
#include "store.h"

#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "curl_library.h"
#include "frontends/format/format.h"
#include "frontends/format/gzip.h"
#include "frontends/format/values.h"
#include "unwind/cleanup.h"

#define LABEL_MAX 4096

static const struct kind {
	const char *name, *path, *port, *token;
} kinds[STORES] = {
        [STORE_PYROSCOPE] = {"pyroscope", "/ingest", "4040", "Authorization: Bearer "},
        [STORE_PARCA] = {"parca", "/api/profiles/writeraw", "7070", "Authorization: Bearer "},
        [STORE_OTLP] = {"otlp", "/v1development/profiles", "4318", "Authorization: Bearer "},
        [STORE_COROOT] = {"coroot", "/v1/profiles", "8080", "X-API-Key: "},
};

const char *store_name(enum store_kind kind)
{
	return kinds[kind].name;
}

const char *store_token_header(enum store_kind kind)
{
	return kinds[kind].token;
}

static struct error *bad_url(const char *why)
{
	return error_hint(error_new(ERROR_USAGE, "--push: %s", why),
	        "give pyroscope+http://HOST:4040, parca+http://HOST:7070, otlp+http://HOST:4318 or "
	        "coroot+http://HOST:8080, or https");
}

struct url {
	const char *host, *end; /* its end, and the port's */
	u64 port;               /* 0: none */
	char path[256];         /* as far as it is compared */
};

/* By hand: libcurl, which would do it, takes a while to load, and the first sample waits for this. */
static bool split(const char *url, struct url *ret)
{
	const char *name_end;
	char *port_end;

	*ret = (struct url){.host = !strncmp(url, "http://", 7)    ? url + 7
	                            : !strncmp(url, "https://", 8) ? url + 8
	                                                           : NULL};
	if (!ret->host)
		return false;
	for (const char *c = url; *c; c++)
		if ((u8)*c <= ' ' || *c == 0x7f)
			return false;
	ret->end = ret->host + strcspn(ret->host, "/?#");
	name_end = ret->host + strcspn(ret->host, *ret->host == '[' ? "]/?#" : ":/?#"); /* of IPv6 with colons */
	if (*ret->host == '[' && *name_end++ != ']')
		return false;
	snprintf(ret->path, sizeof(ret->path), "%.*s", (int)strcspn(ret->end, "?#"), ret->end);
	if (*name_end != ':')
		return name_end > ret->host && name_end == ret->end;
	ret->port = strtoul(name_end + 1, &port_end, 10);
	return name_end > ret->host && isdigit((u8)name_end[1]) && port_end == ret->end && ret->port &&
	       ret->port <= 65535;
}

/* By its prefix, which is taken off. STORES: it has none. */
static enum store_kind take_prefix(const char **url)
{
	for (u32 i = 0; i < STORES; i++) {
		size_t n = strlen(kinds[i].name);

		if (!strncmp(*url, kinds[i].name, n) && (*url)[n] == '+') {
			*url += n + 1;
			return i;
		}
	}
	return STORES;
}

/* By its path, else by its port. STORES: unknown. */
static enum store_kind guess_kind(const struct url *u)
{
	for (u32 i = 0; i < STORES; i++)
		if (!strcmp(u->path, kinds[i].path))
			return i;
	for (u32 i = 0; i < STORES; i++)
		if (u->port == strtoul(kinds[i].port, NULL, 10))
			return i;
	return STORES;
}

struct error *store_parse(const char *url, struct store *ret)
{
	enum store_kind kind = take_prefix(&url);
	struct url u;
	bool valid = split(url, &u), plain;

	*ret = (struct store){.kind = kind};
	if (kind == STORES && url[strcspn(url, "+:/")] == '+')
		return bad_url("no store has this prefix");
	if (u.host && memchr(u.host, '@', strcspn(u.host, "/?#")))
		return bad_url(
		        "a password in a URL is seen by all who list processes; give it by YRT_PUSH_TOKEN, and the "
		        "user by YRT_PUSH_USER");
	if (!valid)
		return bad_url("this is no URL of http or https");
	if (kind == STORES)
		kind = guess_kind(&u);
	if (kind == STORES)
		return bad_url("neither prefix, path nor port show which store it is");
	ret->kind = kind;
	plain = !*u.path || !strcmp(u.path, "/");
	if (asprintf(&ret->url, "%.*s%s%.*s", (int)(u.end - url), url, plain ? kinds[kind].path : "",
	            (int)strcspn(u.end + (plain ? strlen(u.path) : 0), "#"), u.end + (plain ? strlen(u.path) : 0)) < 0)
		ret->url = NULL;
	return ret->url ? NULL : &error_no_memory;
}

/* --- labels --- */

/* The value of a label into ret; false: there is none. */
static bool label_of(const struct profile *p, const char *key, char ret[LABEL_MAX])
{
	const char *line = p->meta.labels;
	size_t n = strlen(key);

	for (; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		if (!strncmp(line, key, n) && line[n] == '=') {
			snprintf(ret, LABEL_MAX, "%.*s", (int)strcspn(line + n + 1, "\n"), line + n + 1);
			return true;
		}
	return false;
}

/* Calls put with each label but the service's. */
static void each_label(const struct profile *p, void (*put)(void *ctx, const char *key, const char *value), void *ctx)
{
	cleanup(free) char *copy = p->meta.labels ? strdup(p->meta.labels) : NULL;
	char *rest = copy, *line;

	while (copy && (line = strsep(&rest, "\n"))) {
		char *value = strchr(line, '=');

		if (!value)
			continue;
		*value++ = '\0';
		if (strcmp(line, "service.name"))
			put(ctx, line, value);
	}
}

/* Of Prometheus' labels: letters, digits and '_'. */
static void plain_key(const char *key, char ret[LABEL_MAX])
{
	snprintf(ret, LABEL_MAX, "%s%s", isdigit((unsigned char)*key) ? "_" : "", key);
	for (char *c = ret; *c; c++)
		if (!isalnum((unsigned char)*c))
			*c = '_';
}

/* --- bodies --- */

static struct error *write_body(const struct format *f, struct profile *p, char **body, size_t *size)
{
	FILE *out = open_memstream(body, size);
	struct error *err = out ? format_write(f, p, out) : &error_no_memory;

	if (out && fclose(out) && !err)
		err = &error_no_memory;
	return err;
}

static struct error *pack(struct store_request *r)
{
	char *packed = NULL;
	size_t size;
	FILE *out = open_memstream(&packed, &size);
	cleanup(gzip) struct gzip *gz = NULL;
	struct error *err = out ? gzip_create(out, &gz) : &error_no_memory;

	if (!err) {
		gzip_write(gz, r->body, r->size);
		gzip_finish(gz);
	}
	if (out && fclose(out) && !err)
		err = &error_no_memory;
	free(r->body);
	r->body = packed;
	r->size = size;
	return err;
}

struct labels {
	FILE *out;
	json_t *list;
	u32 n;
};

static void put_pyroscope(void *ctx, const char *key, const char *value)
{
	struct labels *l = ctx;
	char plain[LABEL_MAX];

	plain_key(key, plain);
	fprintf(l->out, "%s%s=", l->n++ ? "," : "{", plain);
	for (; *value; value++)
		fputc(strchr("{},=", *value) ? '_' : *value, l->out);
}

static void add_query(FILE *out, const char *before, const char *value)
{
	char *escaped = curl.easy_escape(NULL, value, 0);

	fprintf(out, "%s%s", before, escaped ? escaped : "");
	curl.free(escaped);
}

static void put_coroot(void *ctx, const char *key, const char *value)
{
	struct labels *l = ctx;

	add_query(l->out, "&", key);
	add_query(l->out, "=", value);
}

static struct error *ask_pyroscope(FILE *out, const struct profile *p, const char *service)
{
	u64 from = p->meta.start_unix_ns / 1000000000,
	    until = (p->meta.start_unix_ns + p->meta.duration_ns) / 1000000000;
	char *name = NULL;
	size_t size;
	struct labels l = {.out = open_memstream(&name, &size)};

	if (!l.out)
		return &error_no_memory;
	fputs(service, l.out);
	each_label(p, put_pyroscope, &l);
	if (l.n)
		fputc('}', l.out);
	fclose(l.out);
	add_query(out, "name=", name);
	fprintf(out, "&from=%lu&until=%lu&format=pprof&spyName=yrt", from, until > from ? until : from + 1);
	free(name);
	return NULL;
}

static struct error *ask(const struct store *s, const struct profile *p, const char *service, char **ret)
{
	size_t size;
	struct labels l = {.out = open_memstream(ret, &size)};
	struct error *err = NULL;

	if (!l.out)
		return &error_no_memory;
	fprintf(l.out, "%s", s->url);
	if (s->kind == STORE_PYROSCOPE || s->kind == STORE_COROOT)
		fputc(strchr(s->url, '?') ? '&' : '?', l.out);
	if (s->kind == STORE_PYROSCOPE)
		err = ask_pyroscope(l.out, p, service);
	if (s->kind == STORE_COROOT) {
		add_query(l.out, "service.name=", service);
		each_label(p, put_coroot, &l);
	}
	fclose(l.out);
	return err;
}

static bool has_label(const json_t *list, const char *name)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (!strcmp(json_string_value(json_object_get(json_array_get(list, i), "name")), name))
			return true;
	return false;
}

/* The first one of a name: Parca refuses a profile with two. */
static void put_parca(void *ctx, const char *key, const char *value)
{
	json_t *list = ((struct labels *)ctx)->list;
	char plain[LABEL_MAX];

	plain_key(key, plain);
	if (!has_label(list, plain))
		json_array_append_new(list, json_pack("{s:s, s:s}", "name", plain, "value", value));
}

static char *base64(const u8 *bytes, size_t size)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *ret = malloc((size + 2) / 3 * 4 + 1), *to = ret;

	for (size_t i = 0; ret && i < size; i += 3) {
		u32 three = bytes[i] << 16 | (i + 1 < size ? bytes[i + 1] << 8 : 0) | (i + 2 < size ? bytes[i + 2] : 0);

		*to++ = digits[three >> 18];
		*to++ = digits[three >> 12 & 63];
		*to++ = i + 1 < size ? digits[three >> 6 & 63] : '=';
		*to++ = i + 2 < size ? digits[three & 63] : '=';
	}
	if (ret)
		*to = '\0';
	return ret;
}

/* In place of the pprof that r holds. */
static struct error *wrap_parca(const struct profile *p, const char *service, struct store_request *r)
{
	cleanup(free) char *text = base64((u8 *)r->body, r->size);
	struct labels l = {.list = json_array()};
	struct values v;
	json_t *root;

	values_of(&p->meta, &v);
	put_parca(&l, "__name__", v.kind);
	each_label(p, put_parca, &l);
	put_parca(&l, "job", service);
	put_parca(&l, "service_name", service);
	root = json_pack("{s:[{s:{s:o}, s:[{s:s}]}], s:b}", "series", "labels", "labels", l.list, "samples",
	        "rawProfile", text ? text : "", "normalized", 0);
	free(r->body);
	r->body = text && root ? json_dumps(root, JSON_COMPACT) : NULL;
	r->size = r->body ? strlen(r->body) : 0;
	json_decref(root);
	return r->body ? NULL : &error_no_memory;
}

/* Pyroscope makes a series of each combination of a sample's labels, and has room for some thousands. */
static const struct format *format_of(enum store_kind kind)
{
	switch (kind) {
	case STORE_OTLP:
		return &format_otlp;
	case STORE_PYROSCOPE:
		return &format_pprof_series;
	case STORE_COROOT:
		return &format_pprof_coroot;
	default:
		return &format_pprof;
	}
}

static struct error *fill(const struct store *s, struct profile *p, const char *service, struct store_request *r)
{
	struct error *err = write_body(format_of(s->kind), p, &r->body, &r->size);

	if (err)
		return err;
	switch (s->kind) {
	case STORE_OTLP:
		r->headers[0] = "Content-Type: application/x-protobuf";
		r->headers[1] = "Content-Encoding: gzip";
		return pack(r);
	case STORE_PARCA:
		r->headers[0] = "Content-Type: application/json";
		return wrap_parca(p, service, r);
	default:
		r->headers[0] = "Content-Type: application/octet-stream";
		return NULL;
	}
}

struct error *store_request(const struct store *s, struct profile *p, struct store_request *ret)
{
	char service[LABEL_MAX];
	struct error *err;

	*ret = (struct store_request){0};
	if (!label_of(p, "service.name", service))
		snprintf(service, sizeof(service), "yrt");
	err = ask(s, p, service, &ret->url);
	if (!err)
		err = fill(s, p, service, ret);
	if (err)
		store_request_free(ret);
	return err;
}

void store_request_free(struct store_request *r)
{
	free(r->url);
	free(r->body);
	*r = (struct store_request){0};
}
