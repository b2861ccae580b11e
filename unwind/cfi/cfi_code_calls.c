/* SPDX-License-Identifier: Apache-2.0 */
/* What is recognised by its bytes, because the code there has no usual frame: system calls, bottoms of stacks. */
#include <string.h>

#include "cfi_code_flow.h"
#include "cfi_code_state.h"
#include "cfi_internal.h"

#define CLONE       56
#define CLONE3      435
#define CLONE_REACH 48 /* musl's clone() sets the number first, then moves its arguments */
#define SIGCONTEXT  40 /* behind uc_flags, uc_link and uc_stack of struct ucontext */
#define CALL_SIZE   5
#define NOP         0x90

/* mov $15, %rax (or %eax); syscall: rt_sigreturn(), to which a signal handler returns. Its size; 0: it is another. */
#define CODE_SIGRETURN_MIN 7
#define CODE_SIGRETURN_MAX 9
static u32 code_sigreturn_size(const u8 *code, size_t size)
{
	static const u8 wide[] = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05},
	                narrow[] = {0xb8, 15, 0, 0, 0, 0x0f, 0x05};

	if (size >= sizeof(wide) && !memcmp(code, wide, sizeof(wide)))
		return sizeof(wide);
	return size >= sizeof(narrow) && !memcmp(code, narrow, sizeof(narrow)) ? sizeof(narrow) : 0;
}

/* Is clone() or clone3() what the instructions before a system call choose? */
static bool chooses_clone(const u8 *code, size_t before)
{
	static const u8 zeroed[] = {0x31, 0xc0, 0xb0, CLONE};
	u32 number;

	if (before >= 5 && code[-5] == 0xb8) {
		memcpy(&number, code - 4, sizeof(number));
		return number == CLONE || number == CLONE3;
	}
	for (size_t i = sizeof(zeroed); i <= before && i <= CLONE_REACH; i++)
		if (!memcmp(code - i, zeroed, sizeof(zeroed)))
			return true;
	return false;
}

u32 code_newborn_size(const u8 *code, size_t before, size_t size)
{
	u32 n = 2;

	if (size < 7 || code[0] != 0x0f || code[1] != 0x05)
		return 0;
	n += code[n] == 0x48;
	if (code[n] != 0x85 || code[n + 1] != 0xc0 || (code[n + 2] & 0xf0) != 0x70)
		return 0;
	return chooses_clone(code, before) ? n + 4 : 0;
}

/* i: where the system call ends that it may be. A nop before a signal handler's return is its own, too. */
static void mark_signal_return(struct code_flow *f, u32 i)
{
	for (u32 size = CODE_SIGRETURN_MIN; size <= CODE_SIGRETURN_MAX && size <= i; size++) {
		if (!code_flow_follows(f, f->start + i - size) ||
		        code_sigreturn_size(f->bytes + i - size, size) != size)
			continue;
		memset(f->marks + i - size, SIGNAL, size);
		if (size < i && f->bytes[i - size - 1] == NOP)
			f->marks[i - size - 1] = SIGNAL;
	}
}

void code_flow_system_calls(struct code_flow *f)
{
	const u8 *end = f->bytes + (f->end - f->start), *p = f->bytes;

	for (; (p = memchr(p, 0x0f, (size_t)(end - p))); p++) {
		u32 i = (u32)(p - f->bytes), size;

		if (p + 1 == end || p[1] != 0x05)
			continue;
		mark_signal_return(f, i + 2);
		size = code_flow_follows(f, f->start + i) ? code_newborn_size(p, i, (size_t)(end - p)) : 0;
		for (u32 k = 2; k < size; k++)
			f->marks[i + k] |= NEWBORN;
	}
}

struct cfi_rule code_signal_rule(void)
{
	struct cfi_rule rule = cfi_bare_rule(CFI_SIGNAL);

	rule.cfa_reg = REG_SP;
	rule.cfa_off = SIGCONTEXT;
	rule.flags = CFI_SIGNAL_FRAME;
	return rule;
}

bool code_flow_before_signal(const struct code_flow *f, u64 addr, struct cfi_rule *rule)
{
	u64 i = addr - f->start, call = i + 1 - CALL_SIZE;

	if (addr + 1 >= f->end || !(f->marks[i + 1] & SIGNAL) || f->marks[i] & (SIGNAL | DESCRIBED) ||
	        f->bytes[i + 1] == NOP)
		return false;
	if (i + 1 >= CALL_SIZE && f->at[call] && f->at[call] != CODE_TAIL && f->bytes[call] == 0xe8)
		return false;
	if (!f->at[i] || f->at[i] == CODE_TAIL) {
		*rule = code_signal_rule();
	} else if (rule->kind == CFI_REG) {
		rule->kind = CFI_BEFORE_SIGNAL;
		rule->cfa_add = SIGCONTEXT;
	}
	return true;
}

/*
 * The jump through a register, with the push of the return address, or the return, that ends at code; 0: another
 * instruction does.
 */
static u32 leave_size(const u8 *code, size_t before)
{
	u32 n = 2;

	if (before < 2 || code[-2] != 0xff || (code[-1] & 0xf8) != 0xe0)
		return before >= 1 && code[-1] == 0xc3 ? 1 : 0;
	n += before > n && code[-3] == 0x41;
	return n + (before > n && (code[-(s64)n - 1] & 0xf8) == 0x50);
}

/*
 * xor %rdi, %rdi (or %edi, %edi); call _exit; hlt, behind a jump through a register or a return: the first function of
 * a stack that was made for it "returns" there, to nobody. Its size; 0: it is another. (Boost.Context 1.52 to 1.90,
 * make_x86_64_sysv_elf_gas.S; PHP's fibers and bRPC have copies.)
 */
static u32 code_bottom_size(const u8 *code, size_t before, size_t size)
{
	u32 n = size && code[0] == 0x48;

	if (size < n + 8u || code[n] != 0x31 || code[n + 1] != 0xff || code[n + 2] != 0xe8 || code[n + 7] != 0xf4)
		return 0;
	return leave_size(code, before) ? n + 8 : 0;
}

void code_flow_bottoms(struct code_flow *f)
{
	const u8 *end = f->bytes + (f->end - f->start), *p = f->bytes;

	for (; (p = memchr(p, 0x31, (size_t)(end - p))); p++) {
		size_t at = (size_t)(p - f->bytes) - (p > f->bytes && p[-1] == 0x48);
		u32 size = code_bottom_size(f->bytes + at, at, (size_t)(end - f->bytes) - at), leave;

		if (!size || !code_flow_follows(f, f->start + at))
			continue;
		/* The return address is looked up in the instruction before it. */
		leave = leave_size(f->bytes + at, at);
		for (size_t i = at - leave; i < at + size; i++)
			if (code_flow_follows(f, f->start + i))
				f->at[i] = CODE_ROOT;
	}
}
