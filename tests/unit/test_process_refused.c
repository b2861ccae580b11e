/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that are refused, and the words for it. */
#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

#include "unwind/binary/proc_path.h"
#include "unwind/binary/proc_stat.h"
#include "unwind/process/process.h"
#include "unwind/process/process_refused.h"

#define PAGE 4096u

static struct arena *arena;
static struct modules *modules;

static int setup(void **state)
{
	assert_null(arena_create(NULL, &arena));
	assert_null(modules_create(arena, NULL, &modules));
	return 0;
}

static int teardown(void **state)
{
	modules_destroy(modules);
	arena_destroy(arena);
	return 0;
}

static void check_refused(pid_t pid, enum error_kind kind, const char *words)
{
	struct process *p = NULL;
	struct error *err = process_create(modules, pid, 2, &p);

	assert_non_null(err);
	assert_null(p);
	assert_int_equal(err->kind, kind);
	assert_non_null(strstr(err->message, words));
	error_free(err);
}

/* One that has called execve() since it was heard of has another stack. */
static void test_other_program(void **state)
{
	struct process *p = NULL;
	struct error *err;
	struct maps maps;
	u64 stack = 0;

	assert_null(maps_read(getpid(), &maps));
	for (u32 i = 0; i < maps.nlines; i++)
		stack = strcmp(maps.lines[i].path, "[stack]") ? stack : maps.lines[i].end;
	maps_free(&maps);
	assert_true(stack);
	assert_null(process_create_program(modules, getpid(), 2, stack - PAGE, &p));
	process_destroy(p);
	p = NULL;
	err = process_create_program(modules, getpid(), 2, stack + PAGE, &p);
	assert_non_null(err);
	assert_null(p);
	assert_int_equal(err->kind, ERROR_NO_PROCESS);
	error_free(err);
}

static void test_bad_pids(void **state)
{
	check_refused(0, ERROR_USAGE, "not a pid");
	check_refused(-1, ERROR_USAGE, "not a pid");
	check_refused(INT32_MAX, ERROR_NO_PROCESS, "no process");
}

static void test_zombie_and_dead(void **state)
{
	siginfo_t info;
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	check_refused(pid, ERROR_NO_PROCESS, "zombie");
	waitpid(pid, NULL, 0);
	check_refused(pid, ERROR_NO_PROCESS, "no process");
}

static void *sleep_on(void *arg)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pause();
	return arg;
}

static void *end_when_told(void *arg)
{
	char byte;

	return read(*(int *)arg, &byte, 1) == 1 ? arg : NULL;
}

/* Of those that its first thread, which ends after it has made them, leaves. */
static u32 count_living(pid_t pid)
{
	struct dirent *entry;
	char path[320], stat;
	u32 flags, n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%d/task/%.16s/stat", pid, entry->d_name);
		n += *entry->d_name != '.' && proc_stat_read(path, &stat, &flags) && stat != 'Z' && stat != 'X';
	}
	closedir(dir);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, pid);
	return proc_stat_read(path, &stat, &flags) && stat != 'Z' ? 0 : n;
}

static void until_living(pid_t pid, u32 n)
{
	for (int i = 0; i < 100000 && count_living(pid) != n; i++)
		usleep(1000);
	assert_int_equal(count_living(pid), n);
}

/* Its first thread has ended, then that by which it was looked at: there is another one. */
static void test_threads_end(void **state)
{
	static const char marker[] = "the same in a forked child";
	char bytes[sizeof(marker)], path[64], was[64];
	struct process *p = NULL;
	pthread_t thread;
	siginfo_t info;
	int pipes[2];
	pid_t pid;

	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	if (!pid) {
		if (pthread_create(&thread, NULL, end_when_told, &pipes[0]) ||
		        pthread_create(&thread, NULL, sleep_on, NULL))
			_exit(1);
		pthread_exit(NULL);
	}
	until_living(pid, 2);
	assert_null(process_check(pid));
	assert_null(process_create(modules, pid, 2, &p));
	assert_true(p->maps.nlines > 3);
	assert_true(process_mapping(p, (u64)test_threads_end)->module);
	assert_true(memory_read(p->memory, bytes, sizeof(bytes), (u64)marker));
	assert_string_equal(bytes, marker);
	proc_path(was, sizeof(was), pid, "root");
	assert_int_equal(write(pipes[1], "x", 1), 1);
	until_living(pid, 1);
	assert_int_not_equal(living_thread(pid), pid);
	assert_false(process_is_gone(pid));
	proc_path(path, sizeof(path), pid, "root");
	assert_string_not_equal(path, was);
	assert_int_equal(access(path, X_OK), 0);
	*bytes = '\0';
	assert_true(memory_read(p->memory, bytes, sizeof(bytes), (u64)marker));
	assert_string_equal(bytes, marker);
	assert_true(maps_code_is(pid, p->text_hash));
	process_destroy(p);
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(living_thread(pid), 0);
	assert_true(process_is_gone(pid));
	check_refused(pid, ERROR_NO_PROCESS, "zombie");
	waitpid(pid, NULL, 0);
	assert_int_equal(living_thread(pid), 0);
}

static void *check_thread(void *arg)
{
	check_refused(gettid(), ERROR_USAGE, "is a thread of process");
	return arg;
}

static void test_thread(void **state)
{
	pthread_t thread;
	void *ret = NULL;

	assert_int_equal(pthread_create(&thread, NULL, check_thread, state), 0);
	assert_int_equal(pthread_join(thread, &ret), 0);
	assert_ptr_equal(ret, state);
}

static void test_kernel_thread(void **state)
{
	FILE *file = fopen("/proc/2/comm", "re");
	char comm[32] = "";

	if (file && fgets(comm, sizeof(comm), file))
		comm[strcspn(comm, "\n")] = 0;
	if (file)
		fclose(file);
	if (strcmp(comm, "kthreadd") != 0) {
		print_message("no kernel thread is seen from this pid namespace\n");
		skip();
	}
	if (geteuid()) /* what it is can not even be seen */
		check_refused(2, ERROR_PERMISSION, "cannot look into process 2");
	else
		check_refused(2, ERROR_UNSUPPORTED, "kernel thread");
}

/* A 32-bit program by hand: pause() for ever. */
static int make_program32(void)
{
	static const u8 code[] = {0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7};
	struct {
		Elf32_Ehdr e;
		Elf32_Phdr p;
		u8 code[sizeof(code)];
	} file = {.e = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS32, ELFDATA2LSB, EV_CURRENT},
	                  .e_type = ET_EXEC,
	                  .e_machine = EM_386,
	                  .e_version = EV_CURRENT,
	                  .e_phoff = sizeof(Elf32_Ehdr),
	                  .e_entry = 0x8048000 + sizeof(Elf32_Ehdr) + sizeof(Elf32_Phdr),
	                  .e_ehsize = sizeof(Elf32_Ehdr),
	                  .e_phentsize = sizeof(Elf32_Phdr),
	                  .e_phnum = 1},
	        .p = {.p_type = PT_LOAD, .p_vaddr = 0x8048000, .p_flags = PF_R | PF_X, .p_align = PAGE}};
	int fd = memfd_create("program32", 0);

	memcpy(file.code, code, sizeof(code));
	file.p.p_filesz = file.p.p_memsz = sizeof(file);
	assert_int_equal(write(fd, &file, sizeof(file)), sizeof(file));
	return fd;
}

/* The write end of a pipe closes by exec; if exec fails, a byte comes. */
static void test_program32(void **state)
{
	int ready[2], fd = make_program32();
	char byte, *args[] = {NULL}, *environment[] = {NULL};
	ssize_t failed;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fexecve(fd, args, environment);
		_exit(write(ready[1], "x", 1) != 1);
	}
	close(ready[1]);
	failed = read(ready[0], &byte, 1);
	if (!failed)
		check_refused(pid, ERROR_UNSUPPORTED, "32-bit");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(ready[0]);
	close(fd);
	if (failed) {
		print_message("this kernel runs no 32-bit programs\n");
		skip();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_other_program),
	        cmocka_unit_test(test_bad_pids),
	        cmocka_unit_test(test_zombie_and_dead),
	        cmocka_unit_test(test_threads_end),
	        cmocka_unit_test(test_thread),
	        cmocka_unit_test(test_kernel_thread),
	        cmocka_unit_test(test_program32),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
