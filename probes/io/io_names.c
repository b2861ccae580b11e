/* SPDX-License-Identifier: Apache-2.0 */
#include "io_names.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "io_record.h"
#include "unwind/profile/names.h"

/* Components from the end of a path become the path. */
static void write_path(FILE *out, const char *text, size_t size, bool cut)
{
	size_t end = size;

	if (cut)
		fputs("...", out);
	while (end > 0) {
		size_t start = end - 1;

		while (start > 0 && text[start - 1])
			start--;
		fprintf(out, "/%.*s", (int)(end - start), text + start);
		end = start;
	}
	if (!size)
		fputs(cut ? "" : "/", out);
}

static void write_address(FILE *out, const struct io_peer *p)
{
	char text[INET6_ADDRSTRLEN] = "?";

	inet_ntop(p->family, p->addr, text, sizeof(text));
	fprintf(out, p->family == AF_INET6 ? "[%s]" : "%s", text);
}

static void write_peer(FILE *out, const struct io_peer *p, bool accepted)
{
	const char *kind = p->protocol == SOCK_DGRAM ? "udp " : p->protocol == SOCK_RAW ? "raw " : "";
	static const u8 none[16];

	if (p->family == AF_NETLINK)
		fputs("netlink", out);
	else if (p->family != AF_INET && p->family != AF_INET6)
		fprintf(out, "socket of family %u", p->family);
	else if (!memcmp(p->addr, none, sizeof(none)) && !p->port)
		fprintf(out, accepted ? "%s:%u" : "%snot connected", kind, p->lport);
	else if (accepted)
		fprintf(out, "%s:%u from ", kind, p->lport), write_address(out, p);
	else
		fputs(kind, out), write_address(out, p), fprintf(out, ":%u", p->port);
}

static void write_unix(FILE *out, const char *text, size_t size)
{
	if (!size)
		fputs("unix socket without a name", out);
	else if (!*text)
		fprintf(out, "unix:@%.*s", (int)size - 1, text + 1);
	else
		fprintf(out, "unix:%.*s", (int)size, text);
}

/* Of many short-lived ones nobody wants to know each. */
static void write_pipe(FILE *out, struct io_names *names, const char *text, size_t size)
{
	u64 ino = 0;

	memcpy(&ino, text, size < sizeof(ino) ? size : sizeof(ino));
	if (names->pipes++ < IO_PIPES)
		fprintf(out, "pipe:[%" PRIu64 "]", ino);
	else
		fputs("other pipes", out);
}

static void write_object(FILE *out, struct io_names *names, const struct io_object *o)
{
	struct io_peer peer = {0};

	switch (o->what) {
	case IO_OBJECT_FILE:
		write_path(out, o->text, o->size, o->flags & IO_CUT);
		fputs(o->flags & IO_DELETED ? " (deleted)" : "", out);
		break;
	case IO_OBJECT_PATH:
		fprintf(out, "%.*s%s", (int)o->size, o->text, o->flags & IO_CUT ? "..." : "");
		break;
	case IO_OBJECT_PIPE:
		write_pipe(out, names, o->text, o->size);
		break;
	case IO_OBJECT_UNIX:
		write_unix(out, o->text, o->size);
		break;
	default:
		memcpy(&peer, o->text, o->size < sizeof(peer) ? o->size : sizeof(peer));
		write_peer(out, &peer, o->flags & IO_ACCEPTED);
	}
}

struct error *io_names_add(struct io_names *names, const void *data, size_t size)
{
	static struct io_object o;
	size_t head = offsetof(struct io_object, text), written;
	char *text = NULL;
	struct error *err;
	FILE *out;

	if (size < head)
		return NULL;
	memcpy(&o, data, size < sizeof(o) ? size : sizeof(o));
	if (o.size > size - head || o.size > sizeof(o.text) || !o.key || table_get(&names->texts, o.key))
		return NULL;
	out = open_memstream(&text, &written);
	if (!out)
		return &error_no_memory;
	write_object(out, names, &o);
	if (fclose(out)) {
		free(text);
		return &error_no_memory;
	}
	err = table_put(&names->texts, o.key, (u64)(uintptr_t)text);
	if (err)
		free(text);
	names->n += !err;
	return err;
}

void io_names_text(const struct io_names *names, u64 key, char *text)
{
	const u64 *known = table_get(&names->texts, key | !key);
	const char *name = known ? (const char *)(uintptr_t)*known : "";
	size_t len = strlen(name);

	if (len < REASON_LEN)
		memcpy(text, name, len + 1);
	else
		snprintf(text, REASON_LEN, "...%s", name + len - (REASON_LEN - 4));
}

void io_names_free(struct io_names *names)
{
	for (size_t i = 0; i < names->texts.capacity; i++)
		if (names->texts.entries[i].key)
			free((void *)(uintptr_t)names->texts.entries[i].value);
	table_free(&names->texts);
}
