/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code that freezes and thaws a virtual thread's frames (21 on), where no symbol names it
 * (stubGenerator_x86_64.cpp: generate_cont_thaw(); sharedRuntime_x86_64.cpp: gen_continuation_enter()). Two stubs are
 * side by side, and differ only at their beginning:
 *
 *	cont_thaw		pop rcx; …; mov rsp, rbx; sub rsp, 16; pop rbp; ret
 *	cont_returnBarrier	mov rsp, [r15 + JavaThread::_cont_entry]; …; the same end
 *
 * A third one follows soon (24 on; generate_cont_preempt_stub()), after another that begins as the barrier does:
 *
 *	cont_preempt		mov [r15 + last_Java_sp], 0; …; mov rsp, [r15 + JavaThread::_cont_entry]; …;
 *				pop rbp; ret; some more for a preemption that was cancelled, at most a jump behind it
 *
 * The nmethod of Continuation.enterSpecial, which is made with the first virtual thread, is the one that calls
 * cont_thaw. Its callees return to ContinuationEntry::_return_pc.
 */
#ifndef YRT_HOTSPOT_FROZEN_CODE_H
#define YRT_HOTSPOT_FROZEN_CODE_H

#include "runtimes/hotspot/walk/hotspot.h"
#include "hotspot_code.h"

/* The address of the barrier in code that lies at addr; 0: it is not there. */
u64 hotspot_barrier_code(const u8 *code, u64 size, u64 addr);

/* JavaThread::_cont_entry, by the barrier's first instruction. */
bool hotspot_barrier_entry(struct memory *m, u64 barrier, u16 *ret);

/* Its only call of a stub just before the barrier: that stub, and where it returns to. False: it has none, or several.
 */
bool hotspot_enter_special_call(
        struct memory *m, const struct hotspot_blob *nm, u64 barrier, u64 *thaw, u64 *return_pc);

/* How long both stubs are, and their ends (hotspot_vm.thaw and what follows it there). Stays as it is if they are not
 * as above. */
void hotspot_thaw_code(struct memory *m, u64 thaw, struct hotspot_vm *vm);
/*
 * Where a preempted thread returns to, by its code behind the barrier's stub (hotspot_vm.preempt and what follows it
 * there; of vm->frozen cont_entry and last_java_sp are known). Stays 0 in a JDK without it, up to 23.
 */
void hotspot_preempt_code(struct memory *m, struct hotspot_vm *vm);

#endif
