/* SPDX-License-Identifier: Apache-2.0 */
/* Points of the kernel: tracepoints with their arguments by BTF, system calls with theirs by name. */
#include <string.h>

#include "lower.h"
#include "probes/y/y_kernel_types.h"
#include "unwind/process/syscall.h"

#define SYSCALLS_MOST     512
#define SYSCALL_ARGUMENTS 6u

/* --- system calls --- */

/*
 * Arguments as the manual's section 2 has them. Before the name: * a pointer to characters, & to anything, + an
 * unsigned long, - a long; else it is an int.
 */
static const struct {
	const char *name, *arguments;
} calls[] = {
        {"read", "fd &buf +count"},
        {"write", "fd &buf +count"},
        {"pread64", "fd &buf +count -offset"},
        {"pwrite64", "fd &buf +count -offset"},
        {"readv", "fd &iov iovcnt"},
        {"writev", "fd &iov iovcnt"},
        {"open", "*pathname flags mode"},
        {"openat", "dirfd *pathname flags mode"},
        {"openat2", "dirfd *pathname &how +size"},
        {"creat", "*pathname mode"},
        {"close", "fd"},
        {"stat", "*pathname &statbuf"},
        {"lstat", "*pathname &statbuf"},
        {"fstat", "fd &statbuf"},
        {"newfstatat", "dirfd *pathname &statbuf flags"},
        {"statx", "dirfd *pathname flags mask &statxbuf"},
        {"access", "*pathname mode"},
        {"faccessat", "dirfd *pathname mode"},
        {"faccessat2", "dirfd *pathname mode flags"},
        {"readlink", "*pathname *buf +bufsiz"},
        {"unlink", "*pathname"},
        {"unlinkat", "dirfd *pathname flags"},
        {"rename", "*oldpath *newpath"},
        {"mkdir", "*pathname mode"},
        {"rmdir", "*pathname"},
        {"chdir", "*path"},
        {"getdents64", "fd &dirp +count"},
        {"lseek", "fd -offset whence"},
        {"fsync", "fd"},
        {"fdatasync", "fd"},
        {"ftruncate", "fd -length"},
        {"fcntl", "fd op +arg"},
        {"ioctl", "fd +op +arg"},
        {"flock", "fd op"},
        {"dup2", "oldfd newfd"},
        {"dup3", "oldfd newfd flags"},
        {"pipe2", "&pipefd flags"},
        {"mmap", "&addr +length prot flags fd -offset"},
        {"munmap", "&addr +length"},
        {"mprotect", "&addr +length prot"},
        {"madvise", "&addr +length advice"},
        {"mremap", "&old_address +old_size +new_size flags &new_address"},
        {"brk", "&addr"},
        {"socket", "domain type protocol"},
        {"connect", "sockfd &addr addrlen"},
        {"bind", "sockfd &addr addrlen"},
        {"listen", "sockfd backlog"},
        {"accept", "sockfd &addr &addrlen"},
        {"accept4", "sockfd &addr &addrlen flags"},
        {"sendto", "sockfd &buf +len flags &dest_addr addrlen"},
        {"recvfrom", "sockfd &buf +len flags &src_addr &addrlen"},
        {"sendmsg", "sockfd &msg flags"},
        {"recvmsg", "sockfd &msg flags"},
        {"sendfile", "out_fd in_fd &offset +count"},
        {"setsockopt", "sockfd level optname &optval optlen"},
        {"getsockopt", "sockfd level optname &optval &optlen"},
        {"shutdown", "sockfd how"},
        {"poll", "&fds nfds timeout"},
        {"ppoll", "&fds nfds &tmo_p &sigmask"},
        {"select", "nfds &readfds &writefds &exceptfds &timeout"},
        {"epoll_wait", "epfd &events maxevents timeout"},
        {"epoll_pwait", "epfd &events maxevents timeout &sigmask"},
        {"epoll_ctl", "epfd op fd &event"},
        {"futex", "&uaddr futex_op val &timeout &uaddr2 val3"},
        {"nanosleep", "&duration &rem"},
        {"clock_nanosleep", "clockid flags &t &remain"},
        {"execve", "*pathname &argv &envp"},
        {"wait4", "pid &wstatus options &rusage"},
        {"kill", "pid sig"},
        {"tgkill", "tgid tid sig"},
        {"exit_group", "status"},
        {"prctl", "op +arg2 +arg3 +arg4 +arg5"},
};

static const char *arguments_of(u32 number)
{
	for (u32 i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (!strcmp(calls[i].name, syscall_name((int)number)))
			return calls[i].arguments;
	return "";
}

static void find_call(struct lower *l, struct y_handler *h, const char *name, struct y_pos pos)
{
	struct y_near near = {.name = name};

	for (int i = 0; i < SYSCALLS_MOST; i++) {
		const char *known = syscall_name(i);

		if (known && !strcmp(known, name)) {
			h->syscall = (u32)i;
			return;
		}
		if (known)
			y_near_offer(&near, known);
	}
	y_error(l->s, pos, NULL, "no system call %s%s; tracepoint:sys_enter is reached by all, $id says which", name,
	        y_near_text(l->s, &near));
}

/* The type that stands before a name in calls. */
static const struct type *type_before(struct lower *l, char mark)
{
	switch (mark) {
	case '*':
		return y_pointer_to(l->s, &y_char);
	case '&':
		return y_pointer_to(l->s, &y_void);
	case '+':
		return &y_ulong;
	case '-':
		return &y_long;
	default:
		return &y_int;
	}
}

/* --- tracepoints --- */

static struct y_kernel_types *kernel_types(struct lower *l, struct y_pos pos)
{
	struct error *err = NULL;

	if (!l->target->kernel)
		err = y_kernel_types_open(&l->target->kernel);
	if (err)
		y_error(l->s, pos, NULL, "%s", err->message);
	return l->target->kernel;
}

static void find_tracepoint(struct lower *l, const char *name, struct y_pos pos)
{
	struct y_kernel_types *k = kernel_types(l, pos);
	struct y_near near = {.name = name};

	if (y_kernel_tracepoint(k, name) >= 0)
		return;
	y_kernel_tracepoints(k, y_near_offer, &near);
	y_error(l->s, pos, NULL, "this kernel has no tracepoint %s%s%s", name, y_near_text(l->s, &near),
	        !strncmp(name, "sys_enter_", 10) || !strncmp(name, "sys_exit_", 9)
	                ? "; syscall:NAME and syscall:NAME:return are system calls"
	                : "");
}

/* --- both --- */

/* "tracepoint:sched:sched_switch", "tracepoint:sched_switch", "syscall:openat", "syscall:openat:return" */
bool lower_kernel_point(struct lower *l, struct y_handler *h, const char *text, struct y_pos pos)
{
	const char *colon = strrchr(text, ':');

	if (!strncmp(text, "tracepoint:", 11)) {
		*h = (struct y_handler){.point = Y_TRACEPOINT, .spec = colon + 1};
		find_tracepoint(l, h->spec, pos);
		return true;
	}
	if (strncmp(text, "syscall:", 8) != 0)
		return false;
	*h = (struct y_handler){.point = Y_SYSCALL, .spec = text + 8};
	h->returns = !strcmp(colon, ":return");
	if (h->returns || !strcmp(colon, ":entry"))
		h->spec = y_format(l->s, "%.*s", (int)(colon - h->spec), h->spec);
	find_call(l, h, h->spec, pos);
	return true;
}

static struct value argument(struct lower *l, const struct y_node *n, u32 number, const struct type *type)
{
	u32 dst = new_slot(l, Y_U64);
	struct y_insn *i = emit(l, n, Y_OP_ARGUMENT, Y_U64);

	i->dst = dst;
	i->imm = number;
	if (type->size > 8 || !(is_integer(type) || type->kind == TYPE_POINTER))
		type = &y_long;
	return cast_to(l, n, in_slot(&y_ulong, dst), type);
}

/* _arg(number) */
struct value lower_kernel_argument(struct lower *l, const struct y_node *n, u64 number)
{
	const struct y_handler *h = l->probe;
	u32 most = SYSCALL_ARGUMENTS;

	if (h->point == Y_PROFILE)
		FAIL(l, n, "_arg: a tick of the clock has no arguments");
	if (h->returns)
		FAIL(l, n, "_arg: where %s returns, its arguments are gone; keep them in a map at its entry", h->spec);
	if (h->point == Y_TRACEPOINT)
		most = (u32)y_kernel_tracepoint(kernel_types(l, n->pos), h->spec);
	if (number >= most)
		FAIL(l, n, "_arg: %s has %u arguments, from 0", h->spec, most);
	return argument(l, n, (u32)number, &y_long);
}

static struct value tracepoint_name(struct lower *l, const struct y_node *n)
{
	struct y_kernel_types *k = kernel_types(l, n->pos);
	u32 all = (u32)y_kernel_tracepoint(k, l->probe->spec);
	struct y_near near = {.name = n->name};

	for (u32 i = 0; i < all; i++) {
		const char *name;
		const struct type *type = y_kernel_argument(k, l->probe->spec, i, &name);

		if (!strcmp(name, n->name))
			return argument(l, n, i, type);
		y_near_offer(&near, name);
	}
	FAIL(l, n, "tracepoint %s has no argument %s%s; _arg(0) is its first", l->probe->spec, n->name,
	        y_near_text(l->s, &near));
}

static struct value call_name(struct lower *l, const struct y_node *n)
{
	const char *at = arguments_of(l->probe->syscall);

	for (u32 i = 0; *at; i++) {
		const struct type *type = type_before(l, *at);
		size_t len;

		at += strspn(at, "*&+-");
		len = strcspn(at, " ");
		if (strlen(n->name) == len && !strncmp(at, n->name, len))
			return argument(l, n, i, type);
		at += len;
		at += *at == ' ';
	}
	FAIL(l, n, "system call %s has no argument %s (it has: %s); _arg(0) is its first", l->probe->spec, n->name,
	        *arguments_of(l->probe->syscall) ? arguments_of(l->probe->syscall) : "names that yrt does not know");
}

/* $name, $return */
struct value lower_kernel_name(struct lower *l, const struct y_node *n)
{
	const struct y_handler *h = l->probe;
	bool result = !strcmp(n->name, "return");

	if (h->point == Y_PROFILE)
		FAIL(l, n, "$%s: a tick of the clock has no arguments", n->name);
	if (result && h->point == Y_SYSCALL && h->returns)
		return argument(l, n, Y_RETURNED, &y_long);
	if (result)
		FAIL(l, n, "$return: only a return has it: _probe syscall:NAME:return");
	if (h->returns)
		FAIL(l, n, "$%s: where %s returns, its arguments are gone; keep them in a map at its entry", n->name,
		        h->spec);
	return h->point == Y_TRACEPOINT ? tracepoint_name(l, n) : call_name(l, n);
}
