/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that report allocation, found by their code: in the JVMs of this machine (and those of YRT_LIBJVM)
 * against their symbols, and in small files that have almost such functions.
 */
#include <fcntl.h>
#include <glob.h>

#include "look.h"

#include "eh_frame.h"
#include "runtimes/hotspot/alloc/hotspot_alloc.h"
#include "runtimes/hotspot/alloc/hotspot_alloc_code.h"
#include "unwind/cfi/cfi.h"
#include "unwind/cleanup.h"

#define BSS      0x40000u
#define BSS_SIZE 0x4000u
#define SETTINGS BSS
#define REFILL   ELF_TEXT
#define OUTSIDE  (ELF_TEXT + 0x100)
#define CALLER   (ELF_TEXT + 0x200)
#define FIRST    (ELF_TEXT + 0x300) /* that both call first */
#define OTHER    (ELF_TEXT + 0x400)

static struct elf_file file;

static void put_at(u64 *at, const void *bytes, size_t n)
{
	memcpy(file.at + *at, bytes, n);
	*at += n;
}

static void put_relative(u64 *at, const void *opcode, size_t n, u64 target)
{
	s32 rel;

	put_at(at, opcode, n);
	rel = (s32)(target - (*at + 4));
	put_at(at, &rel, 4);
}

/* push rbp; mov rdi, rbx; mov rdx, rsi; [mov rcx, rdx; mov r8, rcx;] call; lea settings, rax; cmpb $0, event(rax); ret
 */
static void put_tracer(u64 at, bool five, u64 first, u32 event)
{
	static const u8 begin[] = {0x55, 0x48, 0x89, 0xfb, 0x48, 0x89, 0xd6};
	static const u8 more[] = {0x48, 0x89, 0xca, 0x4c, 0x89, 0xc1};
	static const u8 call = 0xe8, lea[] = {0x48, 0x8d, 0x05}, cmp[] = {0x80, 0xb8};
	u32 disp = event * 24 + 17;

	put_at(&at, begin, sizeof(begin));
	if (five)
		put_at(&at, more, sizeof(more));
	put_relative(&at, &call, 1, first);
	put_relative(&at, lea, sizeof(lea), SETTINGS);
	put_at(&at, cmp, sizeof(cmp));
	put_at(&at, &disp, 4);
	put_at(&at, "\0\x5d\xc3", 3);
}

static void put_caller(u64 at, u64 refill, u64 outside)
{
	static const u8 call = 0xe8, jump = 0xe9;

	put_relative(&at, &call, 1, refill);
	put_relative(&at, &jump, 1, outside);
}

static void start_file(void)
{
	elf_start(&file);
	memset(file.at + ELF_TEXT, 0xcc, ELF_TEXT_END - ELF_TEXT);
	file.ph[file.nph++] =
	        (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R | PF_W, .p_vaddr = BSS, .p_memsz = BSS_SIZE};
	put_tracer(REFILL, true, FIRST, 80);
	put_tracer(OUTSIDE, false, FIRST, 81);
	put_caller(CALLER, REFILL, OUTSIDE);
}

static struct image *finish_file(void)
{
	struct bytes eh = {.n = 0};
	u64 addr = elf_place(&file);
	size_t cie = eh_put_cie(&eh, &eh_cie_default);
	struct image *img;

	for (u64 at = ELF_TEXT; at < ELF_TEXT + 0x800; at += 0x100)
		eh_put_fde(&eh, &eh_cie_default, cie, addr, at, 0x100, "", 0);
	elf_section(&file, ".eh_frame", SHT_PROGBITS, SHF_ALLOC, eh.at, eh.n);
	elf_finish(&file, true);
	must(image_from_memory(elf_copy(&file), file.n, "made", &img));
	must(cfi_load(img, &(struct cfi_options){0}, &img->cfi));
	return img;
}

static bool finds(struct hotspot_alloc_code *ret)
{
	struct image *img = finish_file();
	bool found = hotspot_alloc_code(img, ret);

	image_put(img);
	return found;
}

static void test_pair(void **state)
{
	struct hotspot_alloc_code code;

	start_file();
	assert_true(finds(&code));
	assert_int_equal(code.refill, REFILL);
	assert_int_equal(code.outside, OUTSIDE);
}

static void test_callers(void **state)
{
	struct hotspot_alloc_code code;

	start_file();
	put_caller(CALLER, REFILL, FIRST);
	assert_false(finds(&code));
	start_file();
	put_caller(CALLER, REFILL, FIRST);
	put_caller(OTHER, OUTSIDE, FIRST);
	assert_false(finds(&code));
}

static void test_almost(void **state)
{
	struct hotspot_alloc_code code;

	start_file();
	put_tracer(OUTSIDE, false, FIRST, 82); /* not its neighbour */
	assert_false(finds(&code));
	start_file();
	put_tracer(OUTSIDE, false, OTHER, 81); /* another first call */
	assert_false(finds(&code));
	start_file();
	put_tracer(OUTSIDE, true, FIRST, 81); /* five parameters, too */
	assert_false(finds(&code));
	start_file();
	put_tracer(REFILL, false, FIRST, 80);
	assert_false(finds(&code));
	start_file();
	put_tracer(REFILL, true, FIRST, BSS_SIZE / 24); /* no data there */
	put_tracer(OUTSIDE, false, FIRST, BSS_SIZE / 24 + 1);
	assert_false(finds(&code));
}

static void test_two_pairs(void **state)
{
	struct hotspot_alloc_code code;

	start_file();
	put_tracer(OTHER, true, FIRST, 90);
	put_tracer(OTHER + 0x100, false, FIRST, 91);
	put_caller(OTHER + 0x200, OTHER, OTHER + 0x100);
	assert_false(finds(&code));
}

static void put_note(struct bytes *b, const char *name, u64 pc, u64 base, u64 semaphore)
{
	size_t n = strlen(name) + 1;

	put32(b, 8);
	put32(b, (u32)(24 + 8 + n + 1));
	put32(b, 3);
	put(b, "stapsdt", 8);
	put64(b, pc);
	put64(b, base);
	put64(b, semaphore);
	put(b, "hotspot", 8);
	put(b, name, n);
	put8(b, 0);
	while (b->n % 4)
		put8(b, 0);
}

/* The probe's nop at OTHER, the file moved by 0x20 since its notes were written. */
static void test_gc_probes(void **state)
{
	struct bytes notes = {.n = 0};
	struct image *img;
	u64 base, at[4];

	start_file();
	file.at[OTHER] = 0x90;
	base = elf_section(&file, ".stapsdt.base", SHT_PROGBITS, SHF_ALLOC, "", 1);
	put_note(&notes, "gc__begin", OTHER - 0x20, base - 0x20, 0);
	put_note(&notes, "gc__end", OTHER - 0x20, base - 0x20, 0);
	put_note(&notes, "gc__begin", OTHER - 0x20 + 1, base - 0x20, 0); /* no nop */
	put_note(&notes, "gc__begin", OTHER - 0x20, base - 0x20, BSS);   /* would have to be switched on */
	put_note(&notes, "gc__begin", UINT64_MAX, base, 0);
	elf_section(&file, ".note.stapsdt", SHT_NOTE, 0, notes.at, notes.n);
	img = finish_file();
	assert_int_equal(hotspot_gc_probes(img, at, 4), 1);
	assert_int_equal(at[0], OTHER);
	image_put(img);
}

static u64 offset_of(const struct image *img, u64 addr)
{
	for (u32 i = 0; i < img->nsegments; i++)
		if (addr - img->segments[i].vaddr < img->segments[i].filesz)
			return addr - img->segments[i].vaddr + img->segments[i].offset;
	return 0;
}

/* An endbr64 in front is no place for a probe. */
static bool is_site(const struct image *img, const struct runtime_alloc *sites, enum alloc_site_kind kind, u64 addr)
{
	for (u32 i = 0; i < sites->nsites; i++)
		if (sites->site[i].kind == kind && sites->site[i].offset - offset_of(img, addr) <= 4)
			return true;
	return false;
}

static bool check_jvm(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct hotspot_alloc_code code;
	struct runtime_alloc sites = {0};
	struct image *img;
	u64 probes[6];
	bool told;

	assert_true(fd >= 0);
	must(image_open(fd, path, &img));
	must(cfi_load(img, &(struct cfi_options){0}, &img->cfi));
	told = hotspot_alloc_symbols(img, img, &sites);
	print_message("%s: %s, %u probes of collections\n", path, told ? "with symbols" : "without symbols",
	        hotspot_gc_probes(img, probes, 6));
	if (!hotspot_alloc_code(img, &code))
		fail_msg("%s: not found", path);
	assert_true(!told || is_site(img, &sites, ALLOC_REFILL, code.refill));
	assert_true(!told || is_site(img, &sites, ALLOC_OUTSIDE, code.outside));
	print_message("  0x%lx 0x%lx\n", code.refill, code.outside);
	image_put(img);
	return told;
}

static void test_jvms(void **state)
{
	const char *more = getenv("YRT_LIBJVM");
	u32 told = 0;
	glob_t all;

	assert_int_equal(glob("/usr/lib/jvm/*/lib/server/libjvm.so", 0, NULL, &all), 0);
	if (more)
		assert_int_equal(glob(more, GLOB_APPEND, NULL, &all), 0);
	for (size_t i = 0; i < all.gl_pathc; i++)
		told += check_jvm(all.gl_pathv[i]);
	globfree(&all);
	assert_true(told > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_pair),
	        cmocka_unit_test(test_callers),
	        cmocka_unit_test(test_almost),
	        cmocka_unit_test(test_two_pairs),
	        cmocka_unit_test(test_gc_probes),
	        cmocka_unit_test(test_jvms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
