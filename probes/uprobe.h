/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uprobes: places at which a program's threads run a BPF program.
 *
 * There are two kinds. Uprobes of perf events exist in all kernels. A hit costs more, and a thread that hits one while
 * it is being removed sleeps until the kernel has waited for a grace period, 10 ms (handler_chain() in
 * kernel/events/uprobes.c of Linux 6.18, where a perf event's filter says "remove"). Uprobes of "multi" links (Linux
 * 6.6) do neither. Before 6.10, and before stable releases with its fix, a multi link reports only the main thread of
 * its process, so it is not used there.
 *
 * Most instructions are executed a step at a time in a copy elsewhere. The kernel takes SYSCALL, too, but a thread that
 * comes back from it goes on in the copy, and dies of a SIGSEGV (seen with Linux 6.1 and 6.18). It is refused here.
 */
#ifndef YRT_UPROBE_H
#define YRT_UPROBE_H

#include <stdbool.h>
#include <sys/types.h>
#include <types.h>

#include "unwind/error.h"

struct bpf_program;
struct uprobe;

/* May a uprobe be at the instruction that these bytes begin with? */
bool uprobe_is_safe(const u8 *code, size_t size);
/* Call before a program for uprobes is loaded: chooses the better kind that this kernel has. */
void uprobe_prepare(struct bpf_program *program);
/*
 * Places the program at an offset of a file, as process pid maps it (0: this one); path is for the kernel. counter: the
 * offset of a counter that is above 0 while the probe exists (the semaphore of a USDT probe); 0: none. If the first
 * thread of the process has ended, the kernel knows it no more: threads of all processes then run the program there.
 */
struct error *uprobe_place(const struct bpf_program *program, pid_t pid, const char *path, u64 offset, u64 counter,
        u64 cookie, struct uprobe **ret);
/*
 * The same at several places of a file at once, each with its cookie: where the kernel has multi links, they cost one
 * grace period together.
 */
struct error *uprobe_place_all(const struct bpf_program *program, pid_t pid, const char *path, const u64 *offsets,
        const u64 *cookies, u32 n, struct uprobe **ret);
/* Would uprobe_prepare() choose multi links (BPF_TRACE_UPROBE_MULTI)? */
bool uprobe_has_multi(void);
#define UPROBE_MULTI 48 /* that enumerator, which Debian 12's header does not have */
/* uprobe_place() of a program that was loaded without libbpf's object; multi: for such links. */
struct error *uprobe_place_loaded(
        int program, bool multi, pid_t pid, const char *path, u64 offset, u64 counter, u64 cookie, struct uprobe **ret);
/* Is it a multi link? */
bool uprobe_is_multi(const struct uprobe *u);
/* May take a tenth of a second. NULL is fine. */
void uprobe_take_away(struct uprobe *u);

#endif
