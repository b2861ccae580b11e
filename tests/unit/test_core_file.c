/* SPDX-License-Identifier: Apache-2.0 */
/* Core files made by hand: threads, memory in the core and in files, files that changed, whatever is cut or corrupt. */
#include <elf.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <unistd.h>

#include "unit.h"

#include "unwind/binary/core_file.h"
#include "work_dir.h"

#define PAGE   4096u
#define CODE   0x400000ul
#define DATA   0x600000ul
#define NOTES  0x200u
#define MEMORY 0x2000u /* in the core: a page of CODE, then two of DATA */

static char core_path[128], file_path[128];
static u8 bytes[MEMORY + 3 * PAGE];
static size_t notes;

static void put_note(u32 type, const void *desc, size_t size)
{
	Elf64_Nhdr nh = {.n_namesz = 5, .n_descsz = (u32)size, .n_type = type};

	memcpy(bytes + NOTES + notes, &nh, sizeof(nh));
	memcpy(bytes + NOTES + notes + sizeof(nh), "CORE\0\0\0", 8);
	memcpy(bytes + NOTES + notes + sizeof(nh) + 8, desc, size);
	notes += sizeof(nh) + 8 + ((size + 3) & ~3ul);
}

static void put_thread(u32 tid, u64 pc)
{
	struct elf_prstatus status = {.pr_pid = (pid_t)tid, .pr_cursig = SIGSEGV};
	struct user_regs_struct regs = {.rip = pc, .rsp = DATA + 16, .rbx = 3, .fs_base = 77, .orig_rax = ~0ul};

	memcpy(&status.pr_reg, &regs, sizeof(regs));
	put_note(NT_PRSTATUS, &status, sizeof(status));
}

static void put_files(void)
{
	struct {
		u64 n, unit, start, end, offset;
		char path[128];
	} note = {.n = 1, .unit = PAGE, .start = CODE, .end = CODE + 2 * PAGE};

	snprintf(note.path, sizeof(note.path), "%s", file_path);
	put_note(NT_FILE, &note, offsetof(typeof(note), path) + strlen(note.path) + 1);
}

/* The same in two parts, as gcore has them. */
static void put_parts(void)
{
	struct {
		u64 n, unit, line[2][3];
		char path[2][128];
	} note = {.n = 2, .unit = 1, .line = {{CODE, CODE + PAGE, 0}, {CODE + PAGE, CODE + 2 * PAGE, PAGE}}};
	size_t length = strlen(file_path) + 1;

	memcpy(note.path[0], file_path, length);
	memcpy((char *)note.path + length, file_path, length);
	put_note(NT_FILE, &note, offsetof(typeof(note), path) + 2 * length);
}

static void write_bytes(const char *path, const void *data, size_t size)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, size, file), size);
	fclose(file);
}

/* Two pages of code, of which the core has the first, and two of data behind a gap. */
static void make_with(void (*put_mapped)(void))
{
	Elf64_Ehdr eh = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
	        .e_type = ET_CORE,
	        .e_machine = ARCH_CORE_MACHINE,
	        .e_phoff = sizeof(eh),
	        .e_phentsize = sizeof(Elf64_Phdr),
	        .e_phnum = 3};
	Elf64_Phdr ph[3] = {
	        {.p_type = PT_NOTE, .p_offset = NOTES},
	        {.p_type = PT_LOAD,
	                .p_flags = PF_R | PF_X,
	                .p_offset = MEMORY,
	                .p_vaddr = CODE,
	                .p_filesz = PAGE,
	                .p_memsz = 2 * PAGE},
	        {.p_type = PT_LOAD,
	                .p_flags = PF_R | PF_W,
	                .p_offset = MEMORY + PAGE,
	                .p_vaddr = DATA,
	                .p_filesz = 2 * PAGE,
	                .p_memsz = 3 * PAGE},
	};
	struct elf_prpsinfo info = {.pr_pid = 42, .pr_fname = "program"};
	siginfo_t signal = {.si_signo = SIGSEGV, .si_code = SEGV_MAPERR};
	u8 file[2 * PAGE];

	memset(file, 'f', sizeof(file));
	write_bytes(file_path, file, sizeof(file));
	memset(bytes, 0, sizeof(bytes));
	notes = 0;
	signal.si_addr = (void *)0x10;
	put_thread(42, CODE + 8);
	put_note(NT_PRPSINFO, &info, sizeof(info));
	put_note(NT_SIGINFO, &signal, sizeof(signal));
	put_mapped();
	put_thread(43, CODE + 9);
	ph[0].p_filesz = notes;
	memcpy(bytes, &eh, sizeof(eh));
	memcpy(bytes + sizeof(eh), ph, sizeof(ph));
	memset(bytes + MEMORY, 'f', PAGE);
	memset(bytes + MEMORY + PAGE, 'd', 2 * PAGE);
}

static void make(void)
{
	make_with(put_files);
}

static struct core_file *open_made(size_t size)
{
	struct core_file *core;

	write_bytes(core_path, bytes, size);
	assert_null(core_open(core_path, NULL, &core));
	return core;
}

static void check_refused(size_t size, const char *why)
{
	struct core_file *core = NULL;
	struct error *err;

	write_bytes(core_path, bytes, size);
	err = core_open(core_path, NULL, &core);
	assert_non_null(err);
	assert_int_equal(err->kind, ERROR_INPUT);
	assert_non_null(strstr(err->message, why));
	error_free(err);
}

static void test_threads(void **state)
{
	struct core_file *core;

	make();
	core = open_made(sizeof(bytes));
	assert_int_equal(core->nthreads, 2);
	assert_int_equal(core->threads[1].tid, 43);
	assert_int_equal(core->threads[1].at.reg[REG_PC], CODE + 9);
	assert_int_equal(core->threads[1].at.reg[REG_SP], DATA + 16);
	assert_int_equal(core->threads[0].at.reg[DWREG_RBX], 3);
	assert_int_equal(core->threads[0].at.thread_pointer, 77);
	assert_int_equal(core->threads[0].at.syscall, -1);
	assert_int_equal(core->pid, 42);
	assert_string_equal(core->comm, "program");
	assert_int_equal(core->signal, SIGSEGV);
	assert_int_equal(core->killed, 42);
	assert_true(core->has_address);
	assert_int_equal(core->address, 0x10);
	core_close(core);
}

static void test_memory(void **state)
{
	struct core_file *core;
	struct memory *mem;
	char text[8];

	make();
	core = open_made(sizeof(bytes));
	mem = core_memory(core);
	assert_true(memory_read(mem, text, 8, CODE + PAGE - 4)); /* half of it in the core, half in the file */
	assert_memory_equal(text, "ffffffff", 8);
	assert_true(memory_read(mem, text, 8, DATA + PAGE - 4));
	assert_memory_equal(text, "dddddddd", 8);
	assert_false(memory_read(mem, text, 8, CODE + 2 * PAGE - 4)); /* nothing is mapped behind it */
	assert_false(memory_read(mem, text, 8, DATA + 2 * PAGE - 4)); /* was not kept, and is in no file */
	assert_false(memory_read(mem, text, 8, DATA - 4));
	assert_false(memory_read(mem, text, 8, UINT64_MAX - 3));
	assert_null(core_complaint(core));
	memory_destroy(mem);
	core_close(core);
}

static void test_another_file(void **state)
{
	struct core_file *core;
	struct memory *mem;
	struct error *err;
	struct maps maps;
	char text[8];

	make();
	bytes[MEMORY + 100] = 'x'; /* the first page of the file that was mapped */
	core = open_made(sizeof(bytes));
	mem = core_memory(core);
	assert_false(memory_read(mem, text, 8, CODE + PAGE));
	assert_true(memory_read(mem, text, 8, CODE));
	assert_null(core_maps(core, &maps));
	assert_int_equal(maps.nlines, 2);
	assert_string_equal(maps.lines[0].path, file_path);
	assert_int_equal(maps.lines[0].dev, 0);
	assert_true(map_open(0, &maps.lines[0]) < 0);
	err = core_complaint(core);
	assert_non_null(strstr(err->message, file_path));
	error_free(err);
	maps_free(&maps);
	memory_destroy(mem);
	core_close(core);
}

/* What cannot be compared must not be younger than the core. */
static void test_younger_file(void **state)
{
	Elf64_Phdr *ph = (Elf64_Phdr *)(bytes + sizeof(Elf64_Ehdr)) + 1;
	struct core_file *core;
	struct memory *mem;
	char text[8];

	make();
	ph->p_filesz = 0;
	core = open_made(sizeof(bytes));
	mem = core_memory(core);
	assert_true(memory_read(mem, text, 8, CODE));
	memory_destroy(mem);
	core_close(core);
	core = open_made(sizeof(bytes));
	core->mtime_ns -= 1000000000000;
	mem = core_memory(core);
	assert_false(memory_read(mem, text, 8, CODE));
	memory_destroy(mem);
	core_close(core);
}

static void test_root(void **state)
{
	char root[sizeof(dir) + 16], path[256];
	struct core_file *core;
	struct maps maps;

	make();
	write_bytes(core_path, bytes, sizeof(bytes));
	snprintf(root, sizeof(root), "%s/root", dir);
	snprintf(path, sizeof(path), "%s%s", root, file_path);
	assert_null(core_open(core_path, root, &core));
	assert_string_equal(core->files[0].here, path);
	assert_null(core_maps(core, &maps));
	assert_int_equal(core->files[0].match, CORE_MISSING);
	maps_free(&maps);
	core_close(core);
}

static void test_cut(void **state)
{
	struct core_file *core;
	struct memory *mem;
	struct error *err;
	char text[8];

	make();
	core = open_made(MEMORY + PAGE + 100);
	assert_int_equal(core->missing, 2 * PAGE - 100);
	mem = core_memory(core);
	assert_true(memory_read(mem, text, 8, DATA + 92));
	assert_false(memory_read(mem, text, 8, DATA + 93));
	err = core_complaint(core);
	assert_non_null(strstr(err->message, "is cut"));
	error_free(err);
	memory_destroy(mem);
	core_close(core);
	check_refused(NOTES + 20, "has no threads");
	check_refused(100, "cut before its table");
	check_refused(20, "cut in its header");
	check_refused(0, "empty");
}

static void test_refused(void **state)
{
	Elf64_Ehdr *eh = (Elf64_Ehdr *)bytes;

	make();
	eh->e_type = ET_DYN;
	check_refused(sizeof(bytes), "no core file");
	eh->e_type = ET_CORE;
	eh->e_machine = EM_ARM;
	check_refused(sizeof(bytes), "another architecture");
	memcpy(bytes, "\x04\x22\x4d\x18", 4);
	check_refused(sizeof(bytes), "compressed");
	memcpy(bytes, "#!/b", 4);
	check_refused(sizeof(bytes), "not ELF");
}

/* gcore has no segment for what is only in files: its note alone says what is mapped there. */
static void test_left_out(void **state)
{
	Elf64_Phdr *ph = (Elf64_Phdr *)(bytes + sizeof(Elf64_Ehdr));
	Elf64_Ehdr eh = {.e_ident = {0x7f, 'E', 'L', 'F'}, .e_phoff = sizeof(eh), .e_phnum = 2};
	Elf64_Phdr parts[2] = {{.p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = PAGE - 100},
	        {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_offset = PAGE, .p_filesz = PAGE}};
	struct core_file *core;
	struct memory *mem;
	struct maps maps;
	u8 file[2 * PAGE] = {0};

	make_with(put_parts);
	ph[1].p_type = PT_NULL;
	memcpy(file, &eh, sizeof(eh));
	memcpy(file + sizeof(eh), parts, sizeof(parts));
	write_bytes(file_path, file, sizeof(file));
	core = open_made(sizeof(bytes));
	mem = core_memory(core);
	assert_true(memory_read(mem, &eh, sizeof(eh), CODE));
	assert_int_equal(eh.e_phnum, 2);
	assert_null(core_maps(core, &maps));
	assert_int_equal(maps.nlines, 3);
	assert_int_equal(maps.lines[0].start, CODE);
	assert_int_equal(maps.lines[0].prot, PROT_READ);
	assert_int_equal(maps.lines[1].end, CODE + 2 * PAGE);
	assert_int_equal(maps.lines[1].prot, PROT_READ | PROT_EXEC);
	maps_free(&maps);
	memory_destroy(mem);
	core_close(core);
}

static void test_any_order(void **state)
{
	Elf64_Phdr *ph = (Elf64_Phdr *)(bytes + sizeof(Elf64_Ehdr)), code;
	struct core_file *core;

	make();
	code = ph[1];
	ph[1] = ph[2];
	ph[2] = code;
	core = open_made(sizeof(bytes));
	assert_int_equal(core->nsegments, 2);
	assert_int_equal(core->segments[0].start, CODE);
	assert_int_equal(core->segments[0].file, 1);
	assert_int_equal(core->segments[1].file, 0);
	core_close(core);
}

/* Segments over each other are left out; notes that lie about their size end the list. */
static void test_corrupt(void **state)
{
	Elf64_Phdr *ph = (Elf64_Phdr *)(bytes + sizeof(Elf64_Ehdr));
	struct core_file *core;

	make();
	ph[2].p_vaddr = CODE + 1;
	core = open_made(sizeof(bytes));
	assert_int_equal(core->nsegments, 1);
	core_close(core);
	make();
	ph[1].p_memsz = UINT64_MAX;
	core = open_made(sizeof(bytes));
	assert_int_equal(core->nsegments, 2); /* as if it had been left out */
	assert_int_equal(core->segments[0].kept, 0);
	core_close(core);
	make();
	((Elf64_Nhdr *)(bytes + NOTES))->n_descsz = UINT32_MAX;
	check_refused(sizeof(bytes), "has no threads");
}

static int set_up(void **state)
{
	int failed = make_dir(state);

	snprintf(core_path, sizeof(core_path), "%s/core", dir);
	snprintf(file_path, sizeof(file_path), "%s/file", dir);
	return failed;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_threads),
	        cmocka_unit_test(test_memory),
	        cmocka_unit_test(test_another_file),
	        cmocka_unit_test(test_younger_file),
	        cmocka_unit_test(test_root),
	        cmocka_unit_test(test_cut),
	        cmocka_unit_test(test_refused),
	        cmocka_unit_test(test_left_out),
	        cmocka_unit_test(test_any_order),
	        cmocka_unit_test(test_corrupt),
	};

	return cmocka_run_group_tests(tests, set_up, remove_dir);
}
