/* SPDX-License-Identifier: Apache-2.0 */
/* Points of the kernel: tracepoints with their arguments by BTF, system calls with theirs by name. */
#include <string.h>

#include "lower.h"
#include "probes/y/y.h"
#include "probes/y/y_kernel_types.h"
#include "unwind/process/syscall.h"

#define SYSCALLS_MOST     512
#define SYSCALL_ARGUMENTS 6u
#define MARKS             "*^&+-"

/* --- system calls --- */

/*
 * Arguments as the manual's section 2 names them, and as the kernel's tracepoints do where that differs: "a|b". Before
 * the name: * a pointer to characters, ^ to pointers to them, & to anything, or to the kernel's structure behind ":",
 * + an unsigned long, - a long; else it is an int.
 */
static const struct {
	const char *name, *arguments;
} calls[] = {
        {"read", "fd &buf +count"},
        {"write", "fd &buf +count"},
        {"pread64", "fd &buf +count -offset"},
        {"pwrite64", "fd &buf +count -offset"},
        {"readv", "fd &iov|vec:iovec iovcnt|vlen"},
        {"writev", "fd &iov|vec:iovec iovcnt|vlen"},
        {"open", "*pathname|filename flags mode"},
        {"openat", "dirfd|dfd *pathname|filename flags mode"},
        {"openat2", "dirfd|dfd *pathname|filename &how:open_how +size"},
        {"creat", "*pathname|filename mode"},
        {"close", "fd"},
        {"stat", "*pathname|filename &statbuf:stat"},
        {"lstat", "*pathname|filename &statbuf:stat"},
        {"fstat", "fd &statbuf:stat"},
        {"newfstatat", "dirfd|dfd *pathname|filename &statbuf:stat flags"},
        {"statx", "dirfd|dfd *pathname|filename flags mask &statxbuf|buffer:statx"},
        {"access", "*pathname|filename mode"},
        {"faccessat", "dirfd|dfd *pathname|filename mode"},
        {"faccessat2", "dirfd|dfd *pathname|filename mode flags"},
        {"readlink", "*pathname|filename *buf +bufsiz"},
        {"unlink", "*pathname"},
        {"unlinkat", "dirfd|dfd *pathname flags"},
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
        {"connect", "sockfd|fd &addr|uservaddr:sockaddr addrlen"},
        {"bind", "sockfd|fd &addr|umyaddr:sockaddr addrlen"},
        {"listen", "sockfd backlog"},
        {"accept", "sockfd|fd &addr|upeer_sockaddr:sockaddr &addrlen"},
        {"accept4", "sockfd|fd &addr|upeer_sockaddr:sockaddr &addrlen flags"},
        {"sendto", "sockfd|fd &buf|buff +len flags &dest_addr|addr:sockaddr addrlen"},
        {"recvfrom", "sockfd|fd &buf|ubuf +len flags &src_addr|addr:sockaddr &addrlen"},
        {"sendmsg", "sockfd|fd &msg:user_msghdr flags"},
        {"recvmsg", "sockfd|fd &msg:user_msghdr flags"},
        {"sendfile", "out_fd in_fd &offset +count"},
        {"setsockopt", "sockfd level optname &optval optlen"},
        {"getsockopt", "sockfd level optname &optval &optlen"},
        {"shutdown", "sockfd how"},
        {"poll", "&fds|ufds:pollfd nfds timeout"},
        {"ppoll", "&fds|ufds:pollfd nfds &tmo_p|tsp:__kernel_timespec &sigmask"},
        {"select", "nfds &readfds &writefds &exceptfds &timeout"},
        {"epoll_wait", "epfd &events:epoll_event maxevents timeout"},
        {"epoll_pwait", "epfd &events:epoll_event maxevents timeout &sigmask"},
        {"epoll_ctl", "epfd op fd &event:epoll_event"},
        {"execveat", "dirfd|dfd *pathname|filename ^argv ^envp flags"},
        {"renameat2", "olddirfd *oldpath|oldname newdirfd *newpath|newname flags"},
        {"clone3", "&cl_args|uargs:clone_args +size"},
        {"futex", "&uaddr futex_op val &timeout &uaddr2 val3"},
        {"nanosleep", "&duration|rqtp:__kernel_timespec &rem|rmtp:__kernel_timespec"},
        {"clock_nanosleep", "clockid|which_clock flags &t|rqtp:__kernel_timespec &remain|rmtp:__kernel_timespec"},
        {"execve", "*pathname|filename ^argv ^envp"},
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

/* The type of the argument that stands here in calls. */
static const struct type *type_at(struct lower *l, const char *at)
{
	const struct type *type = NULL;
	const char *structure = at + strcspn(at, ": ");

	switch (*at) {
	case '*':
		return y_pointer_to(l->s, &y_char);
	case '^':
		return y_pointer_to(l->s, y_pointer_to(l->s, &y_char));
	case '&':
		if (*structure == ':' && y_target_kernel(l->target))
			type = y_kernel_type(l->target->kernel, TYPES_STRUCT,
			        y_format(l->s, "%.*s", (int)strcspn(structure + 1, " "), structure + 1));
		return y_pointer_to(l->s, type ? type : &y_void);
	case '+':
		return &y_ulong;
	case '-':
		return &y_long;
	default:
		return &y_int;
	}
}

/* "fd, buf, count" */
static const char *names_of(struct lower *l, const char *at)
{
	const char *all = "";

	while (*at) {
		at += strspn(at, MARKS);
		all = y_format(l->s, "%s%s%.*s", all, *all ? ", " : "", (int)strcspn(at, "|: "), at);
		at += strcspn(at, " ");
		at += *at == ' ';
	}
	return *all ? all : "names that yrt does not know";
}

/* Is it one of "a|b"? */
static bool is_named(const char *at, const char *name)
{
	for (size_t len;; at += len + 1) {
		len = strcspn(at, "|: ");
		if (strlen(name) == len && !strncmp(at, name, len))
			return true;
		if (at[len] != '|')
			return false;
	}
}

/* --- tracepoints --- */

static struct y_kernel_types *kernel_types(struct lower *l, struct y_pos pos)
{
	if (!y_target_kernel(l->target))
		y_error(l->s, pos, NULL, "the kernel has no BTF: /sys/kernel/btf/vmlinux describes its tracepoints");
	return l->target->kernel;
}

static void find_tracepoint(struct lower *l, const char *name, struct y_pos pos)
{
	struct y_kernel_types *k = kernel_types(l, pos);
	struct y_near near = {.name = name};

	if (y_kernel_tracepoint(k, name) >= 0)
		return;
	if (strchr(name, '*'))
		y_error(l->s, pos, NULL,
		        "patterns are for functions of files; tracepoints are named one by one: _probe "
		        "tracepoint:sched:sched_switch, tracepoint:sched:sched_wakeup { … }");
	y_kernel_tracepoints(k, y_near_offer, &near);
	y_error(l->s, pos, NULL, "this kernel has no tracepoint %s%s", name, y_near_text(l->s, &near));
}

/* --- both --- */

static bool system_call(struct lower *l, struct y_handler *h, const char *name, bool returns, struct y_pos pos)
{
	*h = (struct y_handler){.point = Y_SYSCALL, .spec = name, .returns = returns};
	find_call(l, h, name, pos);
	return true;
}

/*
 * "tracepoint:sched:sched_switch", "tracepoint:sched_switch", "syscall:openat", "syscall:openat:return"; those that the
 * kernel has for each system call (sys_enter_openat) are made of two tracepoints of all of them, and so are here.
 */
bool lower_kernel_point(struct lower *l, struct y_handler *h, const char *text, struct y_pos pos)
{
	const char *colon = strrchr(text, ':'), *last = colon ? colon + 1 : text;

	if (!strncmp(text, "tracepoint:", 11)) {
		if (!strncmp(last, "sys_enter_", 10))
			return system_call(l, h, last + 10, false, pos);
		if (!strncmp(last, "sys_exit_", 9))
			return system_call(l, h, last + 9, true, pos);
		*h = (struct y_handler){.point = Y_TRACEPOINT, .spec = last};
		find_tracepoint(l, h->spec, pos);
		return true;
	}
	if (strncmp(text, "syscall:", 8) != 0)
		return false;
	text += 8;
	if (strcmp(last, "return") != 0 && strcmp(last, "entry") != 0)
		return system_call(l, h, text, false, pos);
	return system_call(l, h, y_format(l->s, "%.*s", (int)(last - 1 - text), text), *last == 'r', pos);
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

/* --- functions of languages --- */

/* Which of those that the handler wants. */
static u32 want(struct lower *l, const struct y_node *n, const char *text)
{
	struct y_handler *h = l->probe;

	for (u32 i = 0; i < h->nwanted; i++)
		if (!strcmp(h->wanted[i], text))
			return i;
	if (h->nwanted == Y_ARGUMENTS)
		FAIL(l, n, "a handler reads at most %u arguments of its function", Y_ARGUMENTS);
	h->wanted = y_grow(l->s, h->wanted, h->nwanted, sizeof(*h->wanted));
	h->wanted[h->nwanted] = text;
	return h->nwanted++;
}

/* An argument as a number; as_asked() makes a text of it, or a double. */
static struct value call_value(struct lower *l, const struct y_node *n, const char *wanted)
{
	struct y_insn *i;
	u32 number, dst;

	if (!strcmp(wanted, "return"))
		FAIL(l, n,
		        "$return: the result of a language's function is not there; where what it calls or does is "
		        "probed, within[_tid] tells that it is from this function");
	if (l->probe->returns)
		FAIL(l, n, "%s%s: where %s returns, its arguments are gone; keep them in a map by _tid at its entry",
		        *wanted >= '0' && *wanted <= '9' ? "_arg " : "$", wanted, l->probe->spec);
	number = want(l, n, wanted);
	dst = new_slot(l, Y_I64);
	i = emit(l, n, Y_OP_ARGUMENT, Y_I64);
	i->dst = dst;
	i->imm = number;
	return in_slot(&y_long, dst);
}

/* _arg(number) */
struct value lower_kernel_argument(struct lower *l, const struct y_node *n, u64 number)
{
	const struct y_handler *h = l->probe;
	u32 most = SYSCALL_ARGUMENTS;

	if (h->point == Y_CALL && number >= Y_ARGUMENTS)
		FAIL(l, n, "_arg takes 0 to %u here: of a language's function the first arguments are read",
		        Y_ARGUMENTS - 1);
	if (h->point == Y_CALL)
		return call_value(l, n, y_format(l->s, "%lu", number));
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
	const char *all = arguments_of(l->probe->syscall), *at = all;

	for (u32 i = 0; *at; i++) {
		if (is_named(at + strspn(at, MARKS), n->name))
			return argument(l, n, i, type_at(l, at));
		at += strcspn(at, " ");
		at += *at == ' ';
	}
	FAIL(l, n, "system call %s has no argument %s (it has: %s); _arg(0) is its first", l->probe->spec, n->name,
	        names_of(l, all));
}

/* $name, $return */
struct value lower_kernel_name(struct lower *l, const struct y_node *n)
{
	const struct y_handler *h = l->probe;
	bool result = !strcmp(n->name, "return");

	if (h->point == Y_CALL)
		return call_value(l, n, n->name);
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
