/* SPDX-License-Identifier: Apache-2.0 */
/* io_names.h: names of files and peers as BPF sends them, and what no program of ours would send. */
#include <sys/socket.h>

#include "unit.h"

#include "probes/io/io_names.h"
#include "probes/io/io_record.h"
#include "unwind/profile/names.h"

#define ROUNDS 200000
#define HEAD   offsetof(struct io_object, text)

static struct io_object object;

static void expect(u32 what, u32 flags, const void *text, u32 size, const char *wanted)
{
	struct io_names names = {0};
	char have[REASON_LEN] = "";

	object = (struct io_object){.what = (u16)what, .flags = (u16)flags, .key = 7, .size = size};
	memcpy(object.text, text, size);
	assert_null(io_names_add(&names, &object, HEAD + size));
	assert_int_equal(names.n, 1);
	io_names_text(&names, 7, have);
	assert_string_equal(have, wanted);
	io_names_text(&names, 8, have);
	assert_string_equal(have, "");
	io_names_free(&names);
}

static void test_files(void **state)
{
	expect(IO_OBJECT_FILE, 0, "x.log\0log\0var", 14, "/var/log/x.log");
	expect(IO_OBJECT_FILE, IO_DELETED, "x", 2, "/x (deleted)");
	expect(IO_OBJECT_FILE, IO_CUT, "x\0y", 4, ".../y/x");
	expect(IO_OBJECT_FILE, 0, "", 0, "/");
	expect(IO_OBJECT_PATH, 0, "etc/no such\0\0\0", 14, "etc/no such");
	expect(IO_OBJECT_PIPE, 0, "\x67\x12\0\0\0\0\0\0", 8, "pipe:[4711]");
	expect(IO_OBJECT_UNIX, 0, "\0abstract", 9, "unix:@abstract");
	expect(IO_OBJECT_UNIX, 0, "/run/x.sock\0\0", 13, "unix:/run/x.sock");
	expect(IO_OBJECT_UNIX, 0, "", 0, "unix socket without a name");
}

/* Of a long one the end. */
static void test_long(void **state)
{
	struct io_names names = {0};
	char have[REASON_LEN] = "";

	object = (struct io_object){.what = IO_OBJECT_PATH, .key = 7, .size = 1000};
	memset(object.text, 'a', 999);
	object.text[998] = 'z';
	assert_null(io_names_add(&names, &object, HEAD + 1000));
	io_names_text(&names, 7, have);
	assert_int_equal(strlen(have), REASON_LEN - 1);
	assert_true(!strncmp(have, "...a", 4) && have[REASON_LEN - 2] == 'z');
	io_names_free(&names);
}

static void test_peers(void **state)
{
	struct io_peer v4 = {.family = AF_INET, .port = 5432, .protocol = SOCK_STREAM, .addr = {10, 0, 0, 5}},
	               v6 = {.family = AF_INET6, .lport = 80, .protocol = SOCK_STREAM, .addr = {[15] = 1}},
	               udp = {.family = AF_INET, .port = 53, .protocol = SOCK_DGRAM, .addr = {127, 0, 0, 1}},
	               none = udp, link = {.family = AF_NETLINK};

	memset(none.addr, 0, sizeof(none.addr));
	expect(IO_OBJECT_PEER, 0, &v4, sizeof(v4), "10.0.0.5:5432");
	expect(IO_OBJECT_PEER, IO_ACCEPTED, &v6, sizeof(v6), ":80 from [::1]");
	expect(IO_OBJECT_PEER, 0, &udp, sizeof(udp), "udp 127.0.0.1:53");
	expect(IO_OBJECT_PEER, 0, &none, sizeof(none), "udp 0.0.0.0:53");
	none.port = 0;
	expect(IO_OBJECT_PEER, 0, &none, sizeof(none), "udp not connected");
	expect(IO_OBJECT_PEER, 0, &link, sizeof(link), "netlink");
}

/* What is too short, claims more than came, or comes twice is dropped. */
static void test_broken(void **state)
{
	struct io_names names = {0};

	object = (struct io_object){.what = IO_OBJECT_FILE, .key = 7, .size = 10};
	assert_null(io_names_add(&names, &object, HEAD - 1));
	assert_null(io_names_add(&names, &object, HEAD + 9));
	object.size = sizeof(object.text) + 1;
	assert_null(io_names_add(&names, &object, sizeof(object)));
	object.size = 10;
	object.key = 0;
	assert_null(io_names_add(&names, &object, sizeof(object)));
	assert_int_equal(names.n, 0);
	object.key = 7;
	assert_null(io_names_add(&names, &object, sizeof(object)));
	assert_null(io_names_add(&names, &object, sizeof(object)));
	assert_int_equal(names.n, 1);
	io_names_free(&names);
}

static void test_random(void **state)
{
	struct io_names names = {0};
	char have[REASON_LEN] = "";

	srandom(22);
	for (u32 i = 0; i < ROUNDS; i++) {
		u32 n = (u32)random() % 64;

		for (u32 k = 0; k < sizeof(u64) * 8; k++)
			((u8 *)&object)[k] = (u8)(random() % 3 ? random() % 4 : random());
		for (u32 k = 0; k < n; k++)
			object.text[k] = (char)(random() % 2 ? random() : 0);
		object.key = (u64)random() % 1000 + 1;
		object.what = (u16)(random() % 5);
		object.size = (u32)random() % 70;
		assert_null(io_names_add(&names, &object, HEAD + n));
		io_names_text(&names, object.key, have);
		assert_true(strlen(have) < REASON_LEN);
	}
	io_names_free(&names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_files),
	        cmocka_unit_test(test_long),
	        cmocka_unit_test(test_peers),
	        cmocka_unit_test(test_broken),
	        cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
