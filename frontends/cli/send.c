/* SPDX-License-Identifier: Apache-2.0 */
#include "send.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <types.h>
#include <unistd.h>

#include "curl_library.h"
#include "frontends/format/format.h"
#include "frontends/format/input.h"
#include "labels.h"
#include "output.h"
#include "say.h"
#include "unwind/cleanup.h"
#include "unwind/now.h"

/* What a store says in the body of its answer. All of it is untrusted, and may be cut. */

#define ANSWER_MAX 1024 /* bytes of a body that are kept; of a page the text comes late */

struct answer {
	char body[ANSWER_MAX + 1];
	size_t size;
	char type[64]; /* Content-Type */
};

/* google.rpc.Status; ExportProfilesServiceResponse and its ExportProfilesPartialSuccess */
enum { STATUS_MESSAGE = 2, RESPONSE_PARTIAL = 1, PARTIAL_REJECTED = 1, PARTIAL_MESSAGE = 2 };

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

struct field {
	u32 number;
	u64 value;
	const char *bytes; /* NULL: it is a number */
	size_t size;
};

static bool take_varint(const char **at, const char *end, u64 *ret)
{
	*ret = 0;
	for (u32 shift = 0; *at < end && shift < 64; shift += 7) {
		u8 byte = (u8) * (*at)++;

		*ret |= (u64)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* Of bytes that are cut what there is. */
static bool take_field(const char **at, const char *end, struct field *ret)
{
	u64 key, size;

	*ret = (struct field){0};
	if (!take_varint(at, end, &key))
		return false;
	ret->number = (u32)(key >> 3);
	switch (key & 7) {
	case WIRE_VARINT:
		return take_varint(at, end, &ret->value);
	case WIRE_BYTES:
		if (!take_varint(at, end, &size))
			return false;
		ret->bytes = *at;
		ret->size = size < (u64)(end - *at) ? size : (size_t)(end - *at);
		*at += ret->size;
		return true;
	case WIRE_64:
	case WIRE_32:
		size = (key & 7) == WIRE_64 ? 8 : 4;
		if ((u64)(end - *at) < size)
			return false;
		*at += size;
		return true;
	default:
		return false;
	}
}

static bool find_field(const char *bytes, size_t size, u32 number, struct field *ret)
{
	const char *at = bytes, *end = bytes + size;

	while (take_field(&at, end, ret))
		if (ret->number == number)
			return true;
	return false;
}

static bool is_of_type(const struct answer *a, const char *type)
{
	return strcasestr(a->type, type);
}

/* A login, a dashboard: no store says yes in this way. */
static bool answer_is_page(const struct answer *a)
{
	return is_of_type(a, "text/html");
}

/* Without what a browser does not show, each run of blanks as one. */
static void squeeze(const char *from, size_t n, bool is_page, char *ret, size_t size)
{
	static const char *const hidden[] = {"style", "script"};
	const char *end = from + n, *until = NULL;
	bool in_tag = false, blank = false;
	size_t used = 0;

	for (; from < end && used + 2 < size; from++) {
		if (is_page && *from == '<') {
			in_tag = true;
			for (u32 i = 0; i < 2; i++)
				if (!strncasecmp(from + 1, hidden[i], strlen(hidden[i])))
					until = hidden[i];
			if (until && from[1] == '/' && !strncasecmp(from + 2, until, strlen(until)))
				until = NULL;
		}
		if (in_tag || until || isspace((u8)*from)) {
			in_tag = in_tag && *from != '>';
			blank = used;
			continue;
		}
		if (blank)
			ret[used++] = ' ';
		ret[used++] = *from;
		blank = false;
	}
	ret[used] = '\0';
}

/* In one line, without the tags of a page, at most size - 1 bytes; "" if it says nothing. */
static void answer_text(const struct answer *a, char *ret, size_t size)
{
	struct field f = {.bytes = a->body, .size = a->size};

	*ret = '\0';
	if (!is_of_type(a, "protobuf") || find_field(a->body, a->size, STATUS_MESSAGE, &f))
		squeeze(f.bytes ? f.bytes : "", f.bytes ? f.size : 0, answer_is_page(a), ret, size);
}

/* An OTLP store that has taken a request may have rejected profiles of it: how many, and why as text. */
static u64 answer_rejected(const struct answer *a, char *why, size_t size)
{
	struct field partial, f;

	*why = '\0';
	if (!is_of_type(a, "protobuf") || !find_field(a->body, a->size, RESPONSE_PARTIAL, &partial) || !partial.bytes)
		return 0;
	if (find_field(partial.bytes, partial.size, PARTIAL_MESSAGE, &f) && f.bytes)
		squeeze(f.bytes, f.size, false, why, size);
	return find_field(partial.bytes, partial.size, PARTIAL_REJECTED, &f) && !f.bytes ? f.value : 0;
}

#define SHOWN        300 /* bytes of a store's answer */
#define WAIT_FIRST_S 0.5
#define WAIT_MOST_S  60

struct
try {
	const struct store *store;
	const struct send_options *options;
	const struct store_request *request;
	volatile sig_atomic_t *stop;
	struct answer answer;
	char why[SHOWN];   /* what it says to that */
	u64 rejected;      /* profiles, though it took the request */
	char moved[SHOWN]; /* where the store is by its word, without the query */
	char detail[CURL_ERROR_SIZE];
	CURLcode code;
	long status;
	double wait_s; /* that the store asks for; 0: nothing */
	u32 made;      /* tries so far */
};

static struct error *add_label(struct send_options *o, const char *text)
{
	char *joined;

	if (!strchr(text, '=') || *text == '=' || strpbrk(text, "\n\r"))
		return error_new(ERROR_USAGE, "--label takes KEY=VALUE, not \"%s\"", text);
	if (asprintf(&joined, "%s%s%s", o->labels ? o->labels : "", o->labels ? "\n" : "", text) < 0)
		return &error_no_memory;
	free(o->labels);
	o->labels = joined;
	return NULL;
}

static const struct setting settings[] = {
        {SEND_PUSH, SETTING_OF(struct send_options, url)},
        {SEND_TENANT, SETTING_OF(struct send_options, tenant)},
        {SEND_CA, SETTING_OF(struct send_options, ca)},
        {SEND_TIMEOUT, SETTING_OF(struct send_options, timeout_s), .name = "--push-timeout", .min = 0.1, .max = 3600,
                .seconds = true},
        {SEND_TRIES, SETTING_OF(struct send_options, tries), .name = "--push-tries", .min = 1, .max = 100},
        {0},
};

struct error *send_option(int option, const char *argument, struct send_options *o, bool *taken)
{
	*taken = option == SEND_LABEL;
	return *taken ? add_label(o, argument) : settings_apply(settings, option, argument, o, taken);
}

/* Without the line break that a file has at its end. */
static char *header_of(const char *name, const char *value)
{
	size_t n = strlen(value);
	char *text;

	while (n && (u8)value[n - 1] <= ' ')
		n--;
	return n && asprintf(&text, "%s%.*s", name, (int)n, value) >= 0 ? text : NULL;
}

static struct error *check_header(const char *option, const char *value)
{
	cleanup(free) char *text = value ? header_of("", value) : NULL;

	return text && text[strcspn(text, "\n\r")] ? error_new(ERROR_USAGE, "%s has more than one line", option) : NULL;
}

struct error *send_check(const struct send_options *o)
{
	struct store store = {0};
	struct error *err = o->url ? store_parse(o->url, &store) : NULL;

	if (!err && o->url)
		err = check_header("YRT_PUSH_TOKEN", getenv("YRT_PUSH_TOKEN"));
	if (!err && o->url)
		err = check_header("YRT_PUSH_USER", getenv("YRT_PUSH_USER"));
	if (!err && o->url)
		err = check_header("--tenant", o->tenant);

	if (!err && o->ca && access(o->ca, R_OK))
		err = error_hint(error_new(ERROR_INPUT, "cannot read %s: %s", o->ca, strerror(errno)),
		        "--ca takes a file of certificates (PEM)");
	free(store.url);
	return err;
}

/* --- one try --- */

static size_t on_answer(char *bytes, size_t one, size_t n, void *ctx)
{
	struct answer *a = ctx;
	size_t room = ANSWER_MAX - a->size, take = n < room ? n : room;

	memcpy(a->body + a->size, bytes, take);
	a->size += take;
	a->body[a->size] = '\0';
	return n;
}

static int on_progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	return *((struct try *)ctx)->stop != 0;
}

static struct curl_slist *add_header(struct curl_slist *list, const char *name, const char *value)
{
	cleanup(free) char *text = value ? header_of(name, value) : NULL;

	return text ? curl.slist_append(list, text) : list;
}

/* Grafana Cloud has a user and a token: both go as HTTP's Basic authentication. */
static const char *user(void)
{
	const char *name = getenv("YRT_PUSH_USER");

	return name && *name ? name : NULL;
}

static void set_user(CURL *easy)
{
	cleanup(free) char *name = header_of("", user());
	cleanup(free) char *token = getenv("YRT_PUSH_TOKEN") ? header_of("", getenv("YRT_PUSH_TOKEN")) : NULL;

	curl.easy_setopt(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
	curl.easy_setopt(easy, CURLOPT_USERNAME, name);
	curl.easy_setopt(easy, CURLOPT_PASSWORD, token ? token : "");
}

static struct curl_slist *headers_of(const struct try *t)
{
	struct curl_slist *list = curl.slist_append(NULL, "Expect:");

	for (u32 i = 0; t->request->headers[i]; i++)
		list = curl.slist_append(list, t->request->headers[i]);
	list = add_header(list, "X-Scope-OrgID: ", t->options->tenant);
	if (user())
		return list;
	return add_header(list, store_token_header(t->store->kind), getenv("YRT_PUSH_TOKEN"));
}

static bool is_success(const struct try *t)
{
	return t->code == CURLE_OK && t->status >= 200 && t->status < 300;
}

static void try_once(struct try *t)
{
	CURL *easy = curl.easy_init();
	struct curl_slist *headers = headers_of(t);
	const char *moved = NULL, *type = NULL;
	curl_off_t wait = 0;

	t->made++;
	t->answer.size = 0;
	t->answer.body[0] = t->detail[0] = '\0';
	t->status = 0;
	curl.easy_setopt(easy, CURLOPT_URL, t->request->url);
	curl.easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl.easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)t->request->size);
	curl.easy_setopt(easy, CURLOPT_POSTFIELDS, t->request->body);
	curl.easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
	curl.easy_setopt(easy, CURLOPT_USERAGENT, "yrt/" YRT_VERSION);
	curl.easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)(t->options->timeout_s * 1000));
	curl.easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl.easy_setopt(easy, CURLOPT_ERRORBUFFER, t->detail);
	curl.easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_answer);
	curl.easy_setopt(easy, CURLOPT_WRITEDATA, &t->answer);
	curl.easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
	curl.easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl.easy_setopt(easy, CURLOPT_XFERINFODATA, t);
	if (t->options->ca)
		curl.easy_setopt(easy, CURLOPT_CAINFO, t->options->ca);
	if (user())
		set_user(easy);
	t->code = easy ? curl.easy_perform(easy) : CURLE_OUT_OF_MEMORY;
	curl.easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &t->status);
	curl.easy_getinfo(easy, CURLINFO_RETRY_AFTER, &wait);
	curl.easy_getinfo(easy, CURLINFO_REDIRECT_URL, &moved);
	curl.easy_getinfo(easy, CURLINFO_CONTENT_TYPE, &type);
	snprintf(t->moved, sizeof(t->moved), "%.*s", moved ? (int)strcspn(moved, "?") : 0, moved ? moved : "");
	snprintf(t->answer.type, sizeof(t->answer.type), "%s", type ? type : "");
	t->wait_s = (double)wait;
	t->rejected = is_success(t) ? answer_rejected(&t->answer, t->why, SHOWN) : 0;
	if (!is_success(t) || answer_is_page(&t->answer))
		answer_text(&t->answer, t->why, SHOWN);
	curl.slist_free_all(headers);
	curl.easy_cleanup(easy);
}

static bool was_taken(const struct try *t)
{
	return is_success(t) && !t->rejected && !answer_is_page(&t->answer);
}

/* It is this profile that the store does not take: others it may. */
static bool was_refused(const struct try *t)
{
	return t->code == CURLE_OK && (t->rejected || t->status == 400 || t->status == 413 || t->status == 422);
}

/* Whether it may be otherwise in a moment. */
static bool may_recover(const struct try *t)
{
	switch (t->code) {
	case CURLE_OK:
		return t->status == 408 || t->status == 429 || t->status >= 500;
	case CURLE_COULDNT_CONNECT:
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_OPERATION_TIMEDOUT:
	case CURLE_SEND_ERROR:
	case CURLE_RECV_ERROR:
	case CURLE_GOT_NOTHING:
		return true;
	default:
		return false;
	}
}

static const char *tried(const struct try *t)
{
	static char text[32];

	snprintf(text, sizeof(text), t->made == 1 ? "it was tried once" : "it was tried %u times", t->made);
	return text;
}

static struct error *explain_status(const struct try *t)
{
	struct error *err = error_new(ERROR_OUTPUT, "%s at %s did not take the profile: HTTP %ld%s%s",
	        store_name(t->store->kind), t->store->url, t->status, *t->why ? ": " : "", t->why);

	if (t->rejected)
		return error_hint(err, "it has rejected %lu profiles of the request: see its log", t->rejected);
	if (is_success(t))
		return error_hint(err, "a web page answers there, no store: check host, port and path");
	if (*t->moved) /* not followed: the token is for the host that was given */
		return error_hint(err, "it sends yrt to %s: if that is the store, give its URL", t->moved);
	switch (t->status) {
	case 401:
	case 403:
		return error_hint(err, "it rejects the credentials: set YRT_PUSH_TOKEN, YRT_PUSH_USER too if the "
		                       "store wants a user and a password, or --tenant");
	case 404:
		if (t->store->kind == STORE_COROOT)
			return error_hint(err, "set YRT_PUSH_TOKEN to the project's API key; if that is right, check "
			                       "host, port and path");
		/* fall through */
	case 405:
		return error_hint(err, "it does not accept profiles at this address: check host, port, path, and the "
		                       "prefix of the URL");
	case 413:
		return error_hint(err,
		        "it is too large (%zu bytes) for the store: sample for a shorter time (-d), or raise the "
		        "store's limit",
		        t->request->size);
	default:
		return may_recover(t) ? error_hint(err, "%s (--push-tries)", tried(t))
		                      : error_hint(err, "see the store's log");
	}
}

static struct error *explain(const struct try *t)
{
	struct error *err;

	if (t->code == CURLE_OK)
		return explain_status(t);
	err = error_new(ERROR_OUTPUT, "cannot reach %s at %s: %s", store_name(t->store->kind), t->store->url,
	        *t->detail ? t->detail : curl.easy_strerror(t->code));
	switch (t->code) {
	case CURLE_PEER_FAILED_VERIFICATION:
		return error_hint(err, "its certificate cannot be verified: give the CA's certificate with --ca FILE, "
		                       "and the host name that it is for");
	case CURLE_SSL_CACERT_BADFILE:
		return error_hint(err, "there are no certificates (PEM) in that file: give others with --ca FILE");
	case CURLE_SSL_CONNECT_ERROR:
		return error_hint(err, "does the store speak TLS there? If not, give http in place of https");
	case CURLE_ABORTED_BY_CALLBACK:
		return error_hint(err, "it was interrupted");
	case CURLE_OPERATION_TIMEDOUT:
		return error_hint(err, "%s, %g s each (--push-tries, --push-timeout)", tried(t), t->options->timeout_s);
	case CURLE_RECV_ERROR:
	case CURLE_GOT_NOTHING:
		return error_hint(err, "%s: is that the store, and does it speak %s there?", tried(t),
		        strncmp(t->store->url, "https", 5) ? "http, not https" : "https");
	default:
		return may_recover(t) ? error_hint(err, "%s: is the store there?", tried(t))
		                      : error_hint(err, "check the URL");
	}
}

static void wait_for(double seconds, volatile sig_atomic_t *stop)
{
	struct timespec tenth = {.tv_nsec = 100000000};

	for (double s = 0; s < seconds && !*stop; s += 0.1)
		nanosleep(&tenth, NULL);
}

static bool has_time(const struct try *t, double wait_s)
{
	u64 end = now_ns() + (u64)((wait_s + t->options->timeout_s) * 1e9);

	return !t->options->until_ns || end <= t->options->until_ns;
}

static struct error *deliver(struct try *t)
{
	for (double delay_s = WAIT_FIRST_S;; delay_s *= 2) {
		double wait_s;

		try_once(t);
		if (was_taken(t))
			return NULL;
		wait_s = t->wait_s > delay_s ? t->wait_s : delay_s;
		wait_s = wait_s < WAIT_MOST_S ? wait_s : WAIT_MOST_S;
		if (t->made >= t->options->tries || !may_recover(t) || *t->stop || !has_time(t, wait_s))
			return explain(t);
		wait_for(wait_s, t->stop);
	}
}

static struct error *send_one(
        const struct send_options *o, struct profile *p, volatile sig_atomic_t *stop, struct send_result *result)
{
	struct store store = {0};
	struct store_request request = {0};
	struct try t = {.store = &store, .options = o, .request = &request, .stop = stop};
	struct error *err = store_parse(o->url, &store);

	if (!err)
		err = curl_load();
	if (!err)
		err = labels_merge(p, o->labels);
	if (!err)
		err = store_request(&store, p, &request);
	if (!err)
		err = deliver(&t);
	*result = (struct send_result){.refused = was_refused(&t), .pause_s = err ? t.wait_s : 0};
	if (!err && *t.why)
		say_note("%s says: %s", store_name(store.kind), t.why);
	if (!err)
		say_note("%s took %zu bytes at %s", store_name(store.kind), request.size, store.url);
	store_request_free(&request);
	free(store.url);
	return err;
}

struct error *send_profile(const struct send_options *o, struct profile *p, volatile sig_atomic_t *stop)
{
	struct send_result result;

	return send_one(o, p, stop, &result);
}

/* --- files --- */

/* What came by a pipe is nowhere else. */
static struct error *keep_unsent(struct profile *p, struct error *why)
{
	struct output out = {0};
	char stem[32] = "unsent-";
	cleanup(free) char *name = NULL;
	struct error *err, *closing;

	output_stamp(stem + strlen(stem));
	err = output_reserve(stem, ".yrt", 1, &name);
	if (!err)
		err = output_open(strdup(name), &out);
	if (!err)
		err = format_write(&format_recording, p, out.file);
	closing = output_close(&out, !err);
	output_unreserve(name);
	if (!err && !closing)
		say_note("it is kept in %s", name);
	else
		say_note("it is lost: %s", (err ? err : closing)->message);
	error_free(err);
	error_free(closing);
	return why;
}

struct error *send_file(
        const struct send_options *o, const char *path, volatile sig_atomic_t *stop, struct send_result *result)
{
	struct filter_options filter = {.threads = true};
	struct profile *p = NULL;
	struct recording cut;
	struct error *err = input_load(path, &filter, &p, &cut), *why;

	*result = (struct send_result){0};
	if (err)
		return err;
	if (cut.cut)
		say_note("%s is truncated: its complete part is sent", path);
	if (p->nnodes <= 1 && !p->meta.start_unix_ns) { /* not even a recording in which nothing ran */
		profile_destroy(p);
		return error_hint(error_new(ERROR_INPUT, "%s is empty: nothing is sent", path),
		        "did what should have written it fail?");
	}
	why = send_one(o, p, stop, result);
	if (why && why->kind == ERROR_OUTPUT && !strcmp(path, "-"))
		why = keep_unsent(p, why);
	profile_destroy(p);
	return why;
}
