/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/mman.h>
#include <unistd.h>

#include "unit.h"

#include "report.h"
#include "binary/resident.h"

static void test_rows(void **state)
{
	struct report r = {0};

	report_section(&r, "module", NULL);
	report_text(&r, "file", NULL, "%s", "/lib/x.so");
	report_section(&r, "vm", "0x1234");
	report_number(&r, "traces", -7, "live");
	for (int i = 0; i < 1000; i++)
		report_text(&r, "row", "remark", "%d", i);
	assert_null(report_end(&r));
	assert_int_equal(r.nsections, 2);
	assert_string_equal(r.sections[0].name, "module");
	assert_null(r.sections[0].subject);
	assert_int_equal(r.sections[0].nrows, 1);
	assert_string_equal(r.sections[0].rows[0].value, "/lib/x.so");
	assert_null(r.sections[0].rows[0].remark);
	assert_string_equal(r.sections[1].subject, "0x1234");
	assert_int_equal(r.sections[1].nrows, 1001);
	assert_null(r.sections[1].rows[0].value);
	assert_int_equal(r.sections[1].rows[0].number, -7);
	assert_string_equal(r.sections[1].rows[0].remark, "live");
	assert_string_equal(r.sections[1].rows[1000].value, "999");
	report_free(&r);
	assert_int_equal(r.nsections, 0);
}

/* Of this process: what was written to is reported, what was not is left out. */
static void test_resident(void **state)
{
	u64 page = (u64)sysconf(_SC_PAGESIZE), start, end;
	u8 *bytes = mmap(NULL, 10000 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	u64 base = (u64)bytes;
	struct resident r;

	assert_ptr_not_equal(bytes, MAP_FAILED);
	madvise(bytes, 10000 * page, MADV_NOHUGEPAGE);
	bytes[5000 * page] = bytes[5001 * page] = bytes[5002 * page] = bytes[9999 * page] = 1;
	resident_open(&r, getpid());
	assert_true(resident_next(&r, base, base + 10000 * page, 2 * page, &start, &end));
	assert_int_equal(start, base + 5000 * page);
	assert_int_equal(end, base + 5002 * page);
	assert_true(resident_next(&r, end, base + 10000 * page, 1 << 20, &start, &end));
	assert_int_equal(start, base + 5002 * page);
	assert_int_equal(end, base + 5003 * page);
	assert_true(resident_next(&r, end, base + 10000 * page, 1 << 20, &start, &end));
	assert_int_equal(start, base + 9999 * page);
	assert_int_equal(end, base + 10000 * page);
	assert_false(resident_next(&r, end, base + 10000 * page, 1 << 20, &start, &end));
	assert_false(resident_next(&r, base, base + 5000 * page, 1 << 20, &start, &end));
	resident_close(&r);
	munmap(bytes, 10000 * page);
}

/* Where the kernel does not say, all pages count. */
static void test_not_told(void **state)
{
	struct resident r;
	u64 start, end;

	resident_open(&r, -1);
	assert_true(resident_next(&r, 1 << 20, 3 << 20, 1 << 20, &start, &end));
	assert_int_equal(start, 1 << 20);
	assert_int_equal(end, 2 << 20);
	resident_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_rows),
	        cmocka_unit_test(test_resident),
	        cmocka_unit_test(test_not_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
