/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hit_exits.h: where functions of this program are left. test_hit_exits FILE... counts the functions of files that are
 * refused, by reason.
 */
#include <fcntl.h>

#include "unit.h"

#include "probes/hit/hit_exits.h"
#include "probes/hit/hit_tails.h"
#include "unwind/cfi/cfi.h"
#include "unwind/symbols/symbols.h"

#define REASONS 16

/* _by_frame: a jump through a register within a frame; _far: to a part that has no name, by a condition. */
__asm__(".text\n"
        ".type switching_by_frame, @function\nswitching_by_frame: .cfi_startproc\n"
        "	push %rbx\n"
        "	.cfi_adjust_cfa_offset 8\n"
        "	jmp *%rax\n"
        "1:	pop %rbx\n"
        "	.cfi_adjust_cfa_offset -8\n"
        "	ret\n"
        ".cfi_endproc\n.size switching_by_frame, . - switching_by_frame\n"
        ".type parted, @function\nparted: .cfi_startproc\n"
        "	push %rbx\n"
        "	.cfi_adjust_cfa_offset 8\n"
        "	test %edi, %edi\n"
        "	jne parted_far\n"
        "	pop %rbx\n"
        "	.cfi_adjust_cfa_offset -8\n"
        "	ret\n"
        ".cfi_endproc\n.size parted, . - parted\n"
        "parted_far: .cfi_startproc\n"
        "	.cfi_def_cfa_offset 16\n"
        "	pop %rbx\n"
        "	.cfi_adjust_cfa_offset -8\n"
        "	ret\n"
        ".cfi_endproc\n"
        ".type by_pointer, @function\nby_pointer: .cfi_startproc\n"
        "	jmp *16(%rdi,%rsi,8)\n"
        ".cfi_endproc\n.size by_pointer, . - by_pointer\n"
        ".type wide, @function\nwide: .cfi_startproc\n"
        "	vpcmpub $6, %ymm1, %ymm2, %k7\n"
        "	kmovq %k7, %rax\n"
        "	vpcompressb %zmm2, %zmm1{%k1}\n"
        "	ret\n"
        ".cfi_endproc\n.size wide, . - wide\n"
        ".type left_twice, @function\nleft_twice: .cfi_startproc\n"
        "	test %edi, %edi\n"
        "	jne parted\n"
        "	jmp by_pointer\n"
        ".cfi_endproc\n.size left_twice, . - left_twice\n"
        ".type to_and_fro, @function\nto_and_fro: .cfi_startproc\n"
        "	dec %edi\n"
        "	jne fro\n"
        "	ret\n"
        ".cfi_endproc\n.size to_and_fro, . - to_and_fro\n"
        ".type fro, @function\nfro: .cfi_startproc\n"
        "	jmp to_and_fro\n"
        ".cfi_endproc\n.size fro, . - fro\n"
        ".type to_nowhere, @function\nto_nowhere: .cfi_startproc\n"
        "	jmp wide + 1\n"
        ".cfi_endproc\n.size to_nowhere, . - to_nowhere\n"
        ".type endless, @function\nendless: .cfi_startproc\n"
        "	jmp endless\n"
        ".cfi_endproc\n.size endless, . - endless\n");

void switching_by_frame(void);
void parted(void);
void by_pointer(void);
void wide(void);
void endless(void);
void left_twice(void);
void to_and_fro(void);
void to_nowhere(void);

static struct image *open_file(const char *path)
{
	struct cfi_options options = {0};
	struct image *img;

	if (image_open(open(path, O_RDONLY | O_CLOEXEC), path, &img))
		return NULL;
	assert_null(cfi_load(img, &options, &img->cfi));
	assert_null(symbols_load(img, ""));
	return img;
}

static struct error *find(struct image *img, const char *name, struct hit_exits *ret)
{
	struct symbol sym;

	assert_true(symbols_lookup(img, name, &sym));
	return hit_exits_find(name, img, sym.start, ret);
}

static void test_ways(void **state)
{
	static struct hit_exits exits;
	struct image *img = open_file("/proc/self/exe");
	struct error *err;

	assert_null(find(img, "switching_by_frame", &exits));
	assert_int_equal(exits.n, 1);
	assert_false(exits.of[0].asks);
	assert_null(find(img, "parted", &exits));
	assert_int_equal(exits.n, 2);
	assert_true(exits.of[1].jump.at > exits.of[0].jump.at);
	assert_null(find(img, "by_pointer", &exits));
	assert_int_equal(exits.n, 1);
	assert_true(exits.of[0].asks && exits.of[0].jump.in_memory);
	assert_int_equal(exits.of[0].jump.disp, 16);
	assert_int_equal(exits.of[0].jump.scale, 8);
	assert_int_equal(exits.of[0].jump.condition, LATENCY_NONE);
	assert_null(find(img, "wide", &exits)); /* instructions that capstone 4 does not know */
	assert_int_equal(exits.n, 1);
	err = find(img, "endless", &exits);
	assert_non_null(err);
	error_free(err);
	image_put(img);
}

static u32 count_ways(const struct hit_ways *ways, enum hit_way_kind kind, bool borrowed)
{
	u32 n = 0;

	for (u32 i = 0; i < ways->n; i++)
		n += ways->of[i].kind == kind && ways->of[i].borrowed == borrowed;
	return n;
}

static struct error *find_ways(struct image *img, const char *name, struct hit_ways *ret)
{
	struct symbol sym;

	assert_true(symbols_lookup(img, name, &sym));
	return hit_tails_find(name, img, sym.start, ret);
}

static void test_tails(void **state)
{
	static struct hit_ways ways;
	struct image *img = open_file("/proc/self/exe");
	struct symbol sym;
	struct error *err;

	assert_null(find_ways(img, "left_twice", &ways)); /* to parted, and to by_pointer */
	assert_int_equal(count_ways(&ways, WAY_TAIL, false), 2);
	assert_int_equal(count_ways(&ways, WAY_RETURN, true), 2);
	assert_int_equal(count_ways(&ways, WAY_ASK, true), 1);
	assert_int_equal(count_ways(&ways, WAY_RETURN, false), 0);
	assert_true(symbols_lookup(img, "wide", &sym)); /* that is seen at run time */
	assert_true(hit_tails_add(&ways, img, sym.start));
	assert_int_equal(count_ways(&ways, WAY_RETURN, true), 3);
	assert_true(hit_tails_add(&ways, img, sym.start));
	assert_int_equal(ways.n, 6);
	assert_false(hit_tails_add(&ways, img, sym.start + 1)); /* in the middle of an instruction: no function */
	assert_true(*ways.lost);
	hit_tails_free(&ways);

	assert_null(find_ways(img, "to_and_fro", &ways)); /* each jump back is the same call */
	assert_int_equal(count_ways(&ways, WAY_AGAIN, true), 1);
	assert_int_equal(count_ways(&ways, WAY_RETURN, false), 1);
	assert_int_equal(ways.n, 3);
	hit_tails_free(&ways);

	err = find_ways(img, "to_nowhere", &ways);
	assert_non_null(err);
	error_free(err);
	image_put(img);
}

static struct {
	char text[128];
	u32 n;
} reasons[REASONS];

static u32 functions, refused, asking, beginning_again;

static void count_reason(const char *text)
{
	const char *last = strstr(text, "known: ");
	size_t len = last ? strcspn(last + 7, "0") : 0;

	for (u32 i = 0; i < REASONS && last; i++)
		if (!*reasons[i].text || !strncmp(reasons[i].text, last + 7, len)) {
			snprintf(reasons[i].text, sizeof(reasons[i].text), "%.*s", (int)len, last + 7);
			reasons[i].n++;
			return;
		}
}

static bool try(void *ctx, const struct symbol_function *f)
{
	static struct hit_exits exits;
	struct error *err = f->indirect ? NULL : hit_exits_find(f->name, ctx, f->addr, &exits);
	u32 asks = 0, again = 0;

	functions++;
	if (err) {
		refused++;
		count_reason(err->message);
		if (getenv("SHOW"))
			printf("%s\n", err->message);
	}
	for (u32 i = 0; !err && i < exits.n; i++) {
		asks += exits.of[i].asks;
		again += exits.of[i].again;
	}
	asking += asks > 0;
	beginning_again += again > 0;
	error_free(err);
	return false;
}

static int count(const char *path)
{
	struct image *img = open_file(path);

	if (!img)
		return 1;
	memset(reasons, 0, sizeof(reasons));
	functions = refused = asking = beginning_again = 0;
	symbols_each(img, try, img);
	printf("%s: %u functions, %u refused, %u ask, %u begin again\n", path, functions, refused, asking,
	        beginning_again);
	for (u32 i = 0; i < REASONS && *reasons[i].text; i++)
		printf("    %6u %s\n", reasons[i].n, reasons[i].text);
	image_put(img);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_ways), cmocka_unit_test(test_tails)};
	int failed = 0;

	for (int i = 1; i < argc; i++)
		failed |= count(argv[i]);
	return argc > 1 ? failed : cmocka_run_group_tests(tests, NULL, NULL);
}
