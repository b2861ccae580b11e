/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_frozen_code.h"

#include <string.h>

#define BARRIER_MAX       384  /* bytes of the stub */
#define ENTRY_MAX         4096 /* of enterSpecial's code */
#define PREEMPT_MAX       160  /* of the stub that a preempted thread returns to */
#define PREEMPT_MOVES_MAX 64
#define CALL              0xe8
#define CALL_SIZE         5

/* mov rsp, [r15 + …]; mov rsp, rbx; sub rsp, 16; pop rbp; ret */
static const u8 stub_begin[] = {0x49, 0x8b, 0xa7}, stub_end[] = {0x48, 0x8b, 0xe3, 0x48, 0x83, 0xec, 0x10, 0x5d, 0xc3};

/* Where the first such end is over; 0: nowhere. */
static u32 end_of_stub(const u8 *code, u32 size)
{
	for (u32 i = 0; i + sizeof(stub_end) <= size; i++)
		if (!memcmp(code + i, stub_end, sizeof(stub_end)))
			return i + sizeof(stub_end);
	return 0;
}

u64 hotspot_barrier_code(const u8 *code, u64 size, u64 addr)
{
	for (u64 at = 0; at < size;) {
		u32 end = end_of_stub(code + at, size - at);

		if (!end || size - at - end < sizeof(stub_begin))
			return 0;
		at += end;
		if (!memcmp(code + at, stub_begin, sizeof(stub_begin)))
			return addr + at;
	}
	return 0;
}

bool hotspot_barrier_entry(struct memory *m, u64 barrier, u16 *ret)
{
	u8 code[sizeof(stub_begin) + sizeof(u32)];
	u32 entry;

	if (!memory_read(m, code, sizeof(code), barrier) || memcmp(code, stub_begin, sizeof(stub_begin)) != 0)
		return false;
	memcpy(&entry, code + sizeof(stub_begin), sizeof(entry));
	*ret = entry;
	return entry && entry < UINT16_MAX;
}

bool hotspot_enter_special_call(struct memory *m, const struct hotspot_blob *nm, u64 barrier, u64 *thaw, u64 *return_pc)
{
	u64 size = nm->code_end - nm->code, target;
	u8 code[ENTRY_MAX];
	u32 calls = 0;
	s32 distance;

	if (size > sizeof(code) || !memory_read(m, code, size, nm->code))
		return false;
	for (u64 i = 0; i + CALL_SIZE <= size; i++) {
		if (code[i] != CALL)
			continue;
		memcpy(&distance, code + i + 1, sizeof(distance));
		target = nm->code + i + CALL_SIZE + (u64)(s64)distance;
		if (target >= barrier || barrier - target > BARRIER_MAX)
			continue;
		*thaw = target;
		*return_pc = nm->code + i + CALL_SIZE;
		calls++;
	}
	return calls == 1;
}

/* Both call twice, and keep in rbx what the call returned: what there is to thaw, then where it is on the stack. */
static const u8 keeps[] = {0x48, 0x8b, 0xd8}; /* mov rbx, rax */

/* How many bytes before its last the stub has thawed; HOTSPOT_LANDING: unknown. */
static u32 landing(const u8 *code, u32 size)
{
	u32 n = 0, at = 0;

	for (u32 i = 0; i + sizeof(keeps) <= size; i++)
		if (!memcmp(code + i, keeps, sizeof(keeps))) {
			at = i + sizeof(keeps);
			n++;
		}
	return n == 2 && size - 1 - at > HOTSPOT_LANDING ? size - 1 - at : HOTSPOT_LANDING;
}

void hotspot_thaw_code(struct memory *m, u64 thaw, struct hotspot_vm *vm)
{
	u8 code[2 * BARRIER_MAX];
	u32 size, end;

	if (vm->return_barrier - thaw > BARRIER_MAX || !memory_read(m, code, sizeof(code), thaw))
		return;
	size = vm->return_barrier - thaw;
	end = end_of_stub(code + size, BARRIER_MAX);
	if (end_of_stub(code, sizeof(code)) != size || !end)
		return;
	vm->thaw = thaw;
	vm->thaw_size = size;
	vm->thaws_size = size + end - 1;
	vm->thaw_landing = landing(code, size);
	vm->barrier_landing = landing(code + size, end);
}

/* mov qword [r15 + …], 0; pop rbp; ret */
static const u8 forgets[] = {0x49, 0xc7, 0x87}, leaves[] = {0x5d, 0xc3};

/* Where an instruction with this displacement, and a zero behind it if one is wanted, is first; size: nowhere. */
static u32 find_move(const u8 *code, u32 from, u32 size, const u8 begin[3], u32 displacement, u32 zeros)
{
	static const u8 zero[sizeof(u32)];

	for (u32 i = from; i + 3 + sizeof(displacement) + zeros <= size; i++)
		if (!memcmp(code + i, begin, 3) && !memcmp(code + i + 3, &displacement, sizeof(displacement)) &&
		        !memcmp(code + i + 3 + sizeof(displacement), zero, zeros))
			return i;
	return size;
}

void hotspot_preempt_code(struct memory *m, struct hotspot_vm *vm)
{
	u8 code[2 * BARRIER_MAX];
	u32 size = sizeof(code), at, moved, left;

	if (!memory_read(m, code, size, vm->return_barrier))
		return;
	at = find_move(code, 0, size, forgets, vm->frozen.last_java_sp, sizeof(u32));
	moved = find_move(code, at, size, stub_begin, vm->frozen.cont_entry, 0);
	if (moved - at > PREEMPT_MOVES_MAX || size - moved < PREEMPT_MAX)
		return;
	for (left = moved; left < at + PREEMPT_MAX; left++)
		if (!memcmp(code + left, leaves, sizeof(leaves)))
			break;
	if (left >= at + PREEMPT_MAX)
		return;
	vm->preempt = vm->return_barrier + at;
	vm->preempt_moved = moved + sizeof(stub_begin) + sizeof(u32) - at;
	vm->preempt_left = left - at;
	vm->preempt_size = vm->preempt_left + sizeof(leaves);
}
