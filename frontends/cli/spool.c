/* SPDX-License-Identifier: Apache-2.0 */
#include "spool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "ring.h"
#include "say.h"
#include "unwind/now.h"

#define BUSY 4 /* a store that took too long is left alone for this many times as long */

static bool is_recording(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot && !strcmp(dot, RING_RECORDING);
}

static struct error *send_one(void *ctx, const char *path)
{
	struct spool *s = ctx;
	u64 key = ring_key(path);
	struct send_result result;
	struct error *err;
	struct stat st;

	if (!is_recording(path) || table_get(&s->refused, key) || stat(path, &st) ||
	        !st.st_size) /* another one writes it, or could not */
		return NULL;
	err = send_file(&s->send, path, &stop_sampling, &result);
	if (!err)
		unlink(path);
	if (result.pause_s > 0)
		s->pause_ns = now_ns() + (u64)(result.pause_s * 1e9);
	if (!err || (!result.refused && err->kind != ERROR_INPUT))
		return err;
	s->code = report_error(err);
	say_note("%s is kept, but not sent again by this run", path);
	return table_put(&s->refused, key, 0);
}

static void send_all(struct spool *s, u64 until_ns)
{
	u64 begin = now_ns(), end;
	struct error *err;

	s->code = 0;
	s->send.until_ns = until_ns > begin ? until_ns : begin;
	err = ring_each(s->dir, send_one, s);
	end = now_ns();
	s->retry_ns = end + (u64)(s->retry_s * 1e9);
	if (!err)
		return;
	s->code = report_error(err);
	say_note("unsent recordings are kept in %s and sent with the next one", s->dir);
	if (end > s->send.until_ns && s->pause_ns < end + BUSY * (end - begin))
		s->pause_ns = end + BUSY * (end - begin);
}

void spool_put_away(struct spool *s, u64 until_ns)
{
	u32 deleted = 0;
	struct error *err;

	if (s->send.url && now_ns() >= s->pause_ns)
		send_all(s, until_ns);
	err = ring_trim(s->dir, s->limit, &deleted);
	if (err)
		s->code = report_error(err);
	else if (deleted && s->send.url)
		say_note("%u unsent recordings were deleted: they exceeded --ring", deleted);
}

void spool_retry(struct spool *s, u64 until_ns)
{
	if (s->code && now_ns() >= s->retry_ns)
		spool_put_away(s, until_ns);
}

int spool_code(const struct spool *s)
{
	return !s->code && s->refused.used ? ERROR_OUTPUT : s->code;
}

void spool_free(struct spool *s)
{
	table_free(&s->refused);
}
