/* SPDX-License-Identifier: Apache-2.0 */
/* Rows for code of a JVM that belongs to no method, in a JVM of fake memory. */
#include "unit.h"

#include "hotspot_tables_fake.h"
#include "now.h"
#include "runtimes/hotspot/code/hotspot_flow.h"
#include "runtimes/hotspot/code/hotspot_stubs.h"

#define HEAD  128
#define BYTES 64

struct jvm {
	struct hotspot_fake f;
	struct vmstructs *v;
	struct layout *origins;
	struct hotspot_code *code;
	struct hotspot_stubs *stubs;
	u64 start; /* of the stub's code */
};

static void start(struct jvm *j, enum fake_shape shape, const char *name, u32 frame_size, const u8 *bytes, size_t n)
{
	const struct hotspot_layout *l;

	fake_jvm(&j->f, shape);
	j->origins = fake_layout(&j->f, &j->v);
	l = j->origins->values;
	fake_set(&j->f, j->f.stub, l->blob_name, fake_text(&j->f, name));
	fake_set(&j->f, j->f.stub, l->blob_frame_size, frame_size);
	j->start = j->f.stub + HEAD;
	memset(j->f.bytes + (j->start - FAKE_BASE), 0xcc, BYTES);
	if (n)
		memcpy(j->f.bytes + (j->start - FAKE_BASE), bytes, n);
	assert_null(hotspot_code_create(j->v, l, &j->code));
	assert_null(hotspot_stubs_create(j->v, &j->stubs));
	assert_null(hotspot_stubs_update(j->stubs, j->code, &j->f.memory));
}

static void stop(struct jvm *j)
{
	hotspot_stubs_destroy(j->stubs);
	hotspot_code_destroy(j->code);
	layout_destroy(j->origins);
	vmstructs_destroy(j->v);
}

static const struct cfi_rule *rule_at(const struct jvm *j, u64 offset)
{
	const struct hotspot_stub_range *ranges;
	const struct cfi_rule *ret = NULL;
	u32 n = hotspot_stubs_ranges(j->stubs, &ranges);
	u64 pc = j->start + offset;

	for (u32 i = 0; i < n; i++)
		for (u32 k = 0; pc >= ranges[i].start && pc < ranges[i].end && k < ranges[i].nentries; k++)
			if (ranges[i].entries[k].addr <= pc)
				ret = &ranges[i].entries[k].rule;
	assert_non_null(ret);
	return ret;
}

static void expect(const struct jvm *j, u64 offset, s32 cfa, s32 ra)
{
	const struct cfi_rule *rule = rule_at(j, offset);

	assert_int_equal(rule->kind, CFI_REG);
	assert_int_equal(rule->cfa_reg, DWREG_RSP);
	assert_int_equal(rule->cfa_off, cfa);
	assert_int_equal(rule->ra_reg, CFI_NO_REG);
	assert_int_equal(rule->slot[ARCH_SLOT_RA], cfi_slot(ra, 0));
}

/*
 * As the blobs for deoptimisation end (sharedRuntime_x86_64.cpp: generate_deopt_blob()): the compiled frame is taken
 * off, interpreted ones and then the blob's own are built in its place.
 */
static const char rebuilding[] = "\x48\x03\xe1"         /* 0: add rsp, rcx */
                                 "\x48\x8b\x6f\x30"     /* 3: mov rbp, [rdi + 48] */
                                 "\x48\x83\xc4\x08"     /* 7: add rsp, 8 */
                                 "\x48\x2b\xe3"         /* 11: sub rsp, rbx */
                                 "\x48\xff\x31"         /* 14: push [rcx] */
                                 "\x55"                 /* 17: push rbp */
                                 "\x48\x8b\xec"         /* 18: mov rbp, rsp */
                                 "\x48\x2b\xe3"         /* 21: sub rsp, rbx */
                                 "\xff\xca"             /* 24: dec edx */
                                 "\x75\xef"             /* 26: jne 11 */
                                 "\x48\xff\x31"         /* 28: push [rcx] */
                                 "\x55"                 /* 31: push rbp */
                                 "\x48\x8b\xec"         /* 32: mov rbp, rsp */
                                 "\x48\x83\xec\x40"     /* 35: sub rsp, 64 */
                                 "\x48\x83\xe4\xf0"     /* 39: and rsp, -16 */
                                 "\xe8\x00\x01\x00\x00" /* 43: call */
                                 "\xc9"                 /* 48: leave */
                                 "\xc3";                /* 49: ret */

static void test_rebuilt(void **state)
{
	static const u8 places[] = {26, 43, 47, 48};
	static struct jvm j;

	start(&j, FAKE_25, "DeoptimizationBlob", 0, (const u8 *)rebuilding, sizeof(rebuilding) - 1);
	for (u32 i = 0; i < sizeof(places); i++) {
		const struct cfi_rule *rule = rule_at(&j, places[i]);

		assert_int_equal(rule->kind, CFI_REG);
		assert_int_equal(rule->cfa_reg, DWREG_RBP);
		assert_int_equal(rule->cfa_off, 16);
		assert_int_equal(rule->slot[ARCH_SLOT_RA], cfi_slot(-8, 0));
		assert_int_equal(rule->slot[arch_saved_slot(DWREG_R15)], CFI_SAME); /* the thread */
	}
	stop(&j);
}

/* c1_Runtime1_x86.cpp: forward_exception goes on in the frame of the stub that jumped there. */
static void test_framed(void **state)
{
	static const u8 code[] = {0x49, 0x8b, 0x47, 0x08, /* 0: mov rax, [r15 + 8] */
	        0x48, 0x8b, 0x55, 0x08,                   /* 4: mov rdx, [rbp + 8] */
	        0xe8, 0x00, 0x01, 0x00, 0x00,             /* 8: call */
	        0x48, 0x83, 0xc4, 0x70,                   /* 13: add rsp, 112 */
	        0x5d,                                     /* 17: pop rbp */
	        0xc3};                                    /* 18: ret */
	static struct jvm j;

	start(&j, FAKE_17, "forward_exception Runtime1 stub", 16, code, sizeof(code));
	expect(&j, 0, 128, -8);
	expect(&j, 13, 128, -8);
	expect(&j, 17, 16, -8);
	expect(&j, 18, 8, -8);
	assert_int_equal(rule_at(&j, 13)->slot[1], cfi_slot(-16, 0));
	stop(&j);
}

/* runtime_x86_64.cpp: generate_exception_blob(). The return address is fetched from the JavaThread at the end. */
static void test_fetched(void **state)
{
	static const u8 code[] = {0x52,             /* 0: push rdx */
	        0x48, 0x83, 0xec, 0x08,             /* 1: sub rsp, 8 */
	        0x49, 0x89, 0x97, 0xd8, 0x03, 0, 0, /* 5: mov [r15 + 984], rdx */
	        0xe8, 0x00, 0x01, 0x00, 0x00,       /* 12: call */
	        0x48, 0x83, 0xc4, 0x08,             /* 17: add rsp, 8 */
	        0x5a,                               /* 21: pop rdx */
	        0x49, 0x8b, 0x97, 0xd8, 0x03, 0, 0, /* 22: mov rdx, [r15 + 984] */
	        0x41, 0xff, 0xe0};                  /* 29: jmp r8 */
	static struct jvm j;

	start(&j, FAKE_17, "ExceptionBlob", 2, code, sizeof(code));
	expect(&j, 17, 16, -8);
	for (u32 at = 22; at <= 29; at += 7) {
		assert_int_equal(rule_at(&j, at)->cfa_off, 0);
		assert_int_equal(rule_at(&j, at)->ra_reg, DWREG_RDX);
	}
	stop(&j);
}

/* methodHandles_x86.cpp: a linker pops its last argument. The caller's stack pointer is in r13 all the time. */
static void test_linker(void **state)
{
	static const u8 code[] = {0x58, 0x5b, 0x50, 0xff, 0x63, 0x50}; /* pop rax, pop rbx, push rax, jmp [rbx + 80] */
	static struct jvm j;

	start(&j, FAKE_17, "MethodHandles adapters", 0, code, sizeof(code));
	for (u32 i = 0; i < 4; i++) {
		const struct cfi_rule *rule = rule_at(&j, i);

		assert_int_equal(rule->cfa_reg, DWREG_R13);
		assert_int_equal(rule->cfa_off, 0);
		assert_int_equal(rule->ra_reg, i == 1 || i == 2 ? DWREG_RAX : CFI_NO_REG);
	}
	assert_int_equal(rule_at(&j, 3)->slot[ARCH_SLOT_RA], cfi_slot(0, 1));
	stop(&j);
}

/* What is not written yet when it is looked at is entered as what is. */
static void test_flat(void **state)
{
	static const char *const names[] = {"InlineCacheBuffer", "vtable chunks", "native signature handlers"};
	static struct jvm j;

	for (u32 i = 0; i < 3; i++) {
		start(&j, FAKE_17, names[i], 0, NULL, 0);
		expect(&j, 0, 8, -8);
		expect(&j, BYTES - 1, 8, -8);
		stop(&j);
	}
}

/*
 * A table is no code that leads into the function behind it, not even if its last bytes look so: the function has its
 * frame (stubGenerator_x86_64.cpp: generate_key_shuffle_mask(), generate_aescrypt_encryptBlock()).
 */
static void test_behind_a_table(void **state)
{
	static const u8 masked[] = {0x03, 0x02, 0x01, 0x00, 0x07, 0x06, 0x05, 0x04, 0x0b, 0x0a, 0x09, 0x08, 0x0f, 0x0e,
	        0x0d, 0x0c,             /* 14: or eax, 0x8b48550c, if it were code */
	        0x55, 0x48, 0x8b, 0xec, /* 16: push rbp; mov rbp, rsp */
	        0x8b, 0x42, 0xfc,       /* 20: mov eax, [rdx - 4] */
	        0xc5, 0xfa, 0x6f, 0x07, /* 23: vmovdqu xmm0, [rdi] */
	        0xc9, 0xc3};            /* 27: leave; ret */
	static struct jvm j;

	start(&j, FAKE_17, "StubRoutines (2)", 0, masked, sizeof(masked));
	expect(&j, 16, 8, -8);
	expect(&j, 17, 16, -8);
	expect(&j, 20, 16, -8);
	expect(&j, 23, 16, -8);
	expect(&j, 27, 16, -8);
	expect(&j, 28, 8, -8);
	stop(&j);
}

/* What calls for native code is freed: another one of the same size may lie there. */
static void test_replaced(void **state)
{
	static const u8 first[] = {0x48, 0x83, 0xec, 0x18, 0x90, 0x48, 0x83, 0xc4, 0x18, 0xc3};
	static const u8 second[] = {0x48, 0x83, 0xec, 0x28, 0x90, 0x48, 0x83, 0xc4, 0x28, 0xc3};
	static const struct {
		const char *name;
		s32 cfa;
	} cases[] = {{"upcall_stub", 48}, {"optimized_upcall_stub", 48}, {"nep_invoker_blob", 48},
	        {"resolve_static_call", 32}};
	static struct jvm j;

	for (u32 i = 0; i < 4; i++) {
		start(&j, FAKE_17, cases[i].name, 0, first, sizeof(first));
		expect(&j, 4, 32, -8);
		memcpy(j.f.bytes + (j.start - FAKE_BASE), second, sizeof(second));
		assert_null(hotspot_stubs_update(j.stubs, j.code, &j.f.memory));
		expect(&j, 4, cases[i].cfa, -8);
		stop(&j);
	}
}

/*
 * A frame in a stub without rows makes it look again, after a longer wait each time. A frame in known code, or where no
 * rows could be made before, does not.
 */
static void test_wanted(void **state)
{
	static const u8 code[] = {0x48, 0x83, 0xec, 0x18, 0x90, 0x48, 0x83, 0xc4, 0x18, 0xc3};
	static struct jvm j;
	u64 unknown, long_ago = now_ns(), never = long_ago + (1ull << 60);

	start(&j, FAKE_17, "resolve_static_call", 0, code, sizeof(code));
	unknown = j.start + (1 << 20);
	hotspot_stubs_saw(j.stubs, j.start + 4);
	hotspot_stubs_saw(j.stubs, j.f.interpreter + 64);
	assert_false(hotspot_stubs_wanted(j.stubs, never));
	hotspot_stubs_saw(j.stubs, unknown);
	assert_true(hotspot_stubs_wanted(j.stubs, now_ns()));
	assert_null(hotspot_stubs_update(j.stubs, j.code, &j.f.memory));
	assert_false(hotspot_stubs_wanted(j.stubs, never));
	hotspot_stubs_saw(j.stubs, unknown);
	assert_false(hotspot_stubs_wanted(j.stubs, never));
	hotspot_stubs_saw(j.stubs, unknown + 1);
	assert_false(hotspot_stubs_wanted(j.stubs, long_ago));
	assert_true(hotspot_stubs_wanted(j.stubs, never));
	for (u64 i = 0; i < 1000; i++) {
		assert_null(hotspot_stubs_update(j.stubs, j.code, &j.f.memory));
		hotspot_stubs_saw(j.stubs, unknown + 2 + i);
	}
	assert_false(hotspot_stubs_wanted(j.stubs, never));
	stop(&j);
}

/* A frame begins right behind a push; an instruction 64 KiB further on has the same number. */
static void test_begins_right_behind_a_push(void **state)
{
	const struct flow_ins move = {.op = FLOW_MOVE, .dst = DWREG_RBP, .src = DWREG_RSP, .addr = 0x20010};
	struct flow_value sp = {.kind = FLOW_BASE, .offset = -16};

	for (u32 back = 0; back < 10; back++) {
		struct flow_state s = flow_entry();

		sp.base = (u16)(move.addr - back);
		s.reg[DWREG_RSP] = sp;
		flow_apply(&move, &s);
		assert_int_equal(s.reg[DWREG_RBP].kind, back > 0 && back < 9 ? FLOW_CFA : FLOW_BASE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_begins_right_behind_a_push),
	        cmocka_unit_test(test_rebuilt),
	        cmocka_unit_test(test_framed),
	        cmocka_unit_test(test_linker),
	        cmocka_unit_test(test_fetched),
	        cmocka_unit_test(test_flat),
	        cmocka_unit_test(test_behind_a_table),
	        cmocka_unit_test(test_replaced),
	        cmocka_unit_test(test_wanted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
