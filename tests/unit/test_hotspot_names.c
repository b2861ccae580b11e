/* SPDX-License-Identifier: Apache-2.0 */
/* Names of methods, classes and stubs, and what frames of compiled code stand for, in a JVM of fake memory. */
#include "hotspot_names_fake.h"

#define CALL_STUB_RETURN (FAKE_BASE + 0x7f1)

static void start(struct jvm *j, enum fake_shape shape)
{
	fake_jvm(&j->f, shape);
	fake_type(&j->f, "InterpreterCodelet", strlen("InterpreterCodelet"));
	fake_field(&j->f, "InterpreterCodelet", "_description", "const char*", 0);
	fake_field(&j->f, "InterpreterCodelet", "_size", "int", 8);
	j->version = fake_static(&j->f, "Abstract_VM_Version", "_vm_major_version", shape == FAKE_17 ? 17 : 25);
	j->stubs = fake_object(&j->f, 8);
	fake_static(&j->f, "StubRoutines", "_call_stub_return_address", CALL_STUB_RETURN);
	j->origins = fake_layout(&j->f, &j->v);
	j->l = j->origins->values;
	assert_null(hotspot_code_create(j->v, j->l, &j->code));
	fake_inlining(&j->f, j->l, j->code);
	assert_null(hotspot_names_create(j->v, j->l, j->code, &j->names));
	hotspot_names_stub_list(j->names, j->stubs);
}

static void stop(struct jvm *j)
{
	hotspot_names_destroy(j->names);
	hotspot_code_destroy(j->code);
	layout_destroy(j->origins);
	vmstructs_destroy(j->v);
}

static struct frame frame_of(u32 flags, u64 addr, u64 detail)
{
	return (struct frame){frame_where(FRAME_SCRIPT, RUNTIME_HOTSPOT, flags, addr), detail};
}

static u32 cookie_of(struct jvm *j, u32 method)
{
	return hotspot_method_cookie(fake_peek(&j->f, j->f.method[method] + j->l->method_const.at, 8));
}

static struct frame method_frame(struct jvm *j, u32 method, u32 tier, u32 bci)
{
	return frame_of(0, j->f.method[method], hotspot_method(tier, bci, cookie_of(j, method)));
}

static void test_method(void **state)
{
	static struct jvm j;
	struct frame_name ret, other;

	for (u32 shape = 0; shape < FAKE_SHAPES; shape++) {
		start(&j, shape);
		assert_true(name(&j, method_frame(&j, 0, 0, 3), &ret));
		assert_string_equal(ret.name, "com.foo.Bar.first");
		assert_string_equal(ret.signature, "()");
		assert_true(ret.qualified);
		assert_int_equal(ret.form, FORM_INTERPRETED);
		assert_int_equal(ret.line, 0);
		assert_true(name(&j, method_frame(&j, 0, 4, HOTSPOT_NO_BCI), &other));
		assert_int_equal(other.form, FORM_JIT);
		assert_true(other.identity == ret.identity);
		assert_true(name(&j, method_frame(&j, 1, 2, 0), &other));
		assert_int_equal(other.form, FORM_BASELINE);
		assert_true(other.identity != ret.identity);
		stop(&j);
	}
}

static void test_native(void **state)
{
	static struct jvm j;
	struct frame_name ret;

	start(&j, FAKE_17);
	fake_poke(&j.f, j.f.method[0] + j.l->method_access.at, 0x109, 4);
	assert_true(name(&j, method_frame(&j, 0, 0, HOTSPOT_NO_BCI), &ret));
	assert_int_equal(ret.form, FORM_NATIVE);
	stop(&j);
}

static void put_source(struct jvm *j, const char *file)
{
	u64 constant = fake_peek(&j->f, j->f.method[0] + j->l->method_const.at, 8);
	u64 pool = fake_peek(&j->f, constant + j->l->const_pool.at, 8);

	fake_poke(&j->f, pool + j->l->pool_source_file.at, 3, 2);
	fake_poke(&j->f, pool + j->l->pool_size.at + 24, fake_symbol(&j->f, j->l, file), 8);
}

/* Behind the bytecodes, as in a method of 40 bytes; far: behind what is read at once. */
static void put_table(struct jvm *j, const u8 *table, u32 n, bool far)
{
	u64 constant = fake_peek(&j->f, j->f.method[0] + j->l->method_const.at, 8), moved = constant;
	u32 code = 40;

	if (far) {
		code = 700;
		moved = fake_object(&j->f, 1024);
		memcpy(j->f.bytes + (moved - FAKE_BASE), j->f.bytes + (constant - FAKE_BASE), 256);
		fake_set(&j->f, j->f.method[0], j->l->method_const, moved);
	}
	fake_set(&j->f, moved, j->l->const_code_size, code);
	fake_set(&j->f, moved, j->l->const_flags, 1);
	fake_set(&j->f, moved, j->l->const_words, (j->l->const_size.at + code + n + 7) / 8);
	memcpy(j->f.bytes + (moved - FAKE_BASE) + j->l->const_size.at + code, table, n);
}

static void test_lines(void **state)
{
	static struct jvm j;
	u8 table[32];
	u32 n;

	for (u32 i = 0; i < 2 * FAKE_SHAPES; i++) {
		struct frame_name ret;
		bool no_zero;

		start(&j, i / 2);
		no_zero = i / 2 == FAKE_25;
		table[0] = 0xff;
		n = 1 + put_int(table + 1, no_zero, 0);
		n += put_int(table + n, no_zero, 42);
		table[n++] = 5 << 3 | 2;
		table[n++] = 0;
		put_table(&j, table, n, i & 1);
		put_source(&j, "Bar.java");
		assert_true(name(&j, method_frame(&j, 0, 0, 4), &ret));
		assert_int_equal(ret.definition, 42);
		assert_int_equal(ret.line, 42);
		assert_string_equal(ret.file, "Bar.java");
		assert_true(name(&j, method_frame(&j, 0, 0, 5), &ret));
		assert_int_equal(ret.line, 44);
		assert_true(name(&j, method_frame(&j, 0, 0, HOTSPOT_NO_BCI), &ret));
		assert_int_equal(ret.line, 0);
		stop(&j);
	}
}

static void test_scala_method(void **state)
{
	static struct jvm j;
	struct frame_name ret;

	for (u32 scala = 0; scala < 2; scala++) {
		u64 constant, pool;
		u32 index;

		start(&j, FAKE_25);
		constant = fake_peek(&j.f, j.f.method[0] + j.l->method_const.at, 8);
		pool = fake_peek(&j.f, constant + j.l->const_pool.at, 8);
		index = (u32)fake_peek(&j.f, constant + j.l->const_name.at, 2);
		fake_poke(&j.f, pool + j.l->pool_size.at + 8 * index, fake_symbol(&j.f, j.l, "$plus"), 8);
		put_source(&j, scala ? "Bar.scala" : "Bar.java");
		assert_true(name(&j, method_frame(&j, 0, 0, 4), &ret));
		assert_string_equal(ret.name, scala ? "com.foo.Bar.+" : "com.foo.Bar.$plus");
		stop(&j);
	}
}

/* A method that was redefined, or freed and replaced, is not named by what stands there now. */
static void test_cookie(void **state)
{
	static struct jvm j;
	struct frame_name ret;
	struct frame f;

	start(&j, FAKE_25);
	f = method_frame(&j, 0, 0, 3);
	f.detail ^= 1ull << 40;
	assert_false(name(&j, f, &ret));
	f = frame_of(0, j.f.nmethod[0], hotspot_nmethod(100, 20));
	assert_true(name(&j, f, &ret));
	assert_string_equal(ret.name, "com.foo.Bar.first");
	assert_int_equal(ret.form, FORM_BASELINE);
	f = frame_of(0, j.f.nmethod[0], hotspot_nmethod(101, 20));
	assert_false(name(&j, f, &ret));
	stop(&j);
}

static u32 expand(struct jvm *j, u32 flags, u32 pc, u32 options, struct frame *ret)
{
	struct frame f = frame_of(flags, j->f.nmethod[0], hotspot_nmethod(100, pc));
	u32 eaten, n = hotspot_expand(j->names, &j->f.memory, &f, 0, 1, options, ret, RUNTIME_EXPAND_MAX, &eaten);

	assert_int_equal(eaten, n != 0);
	return n;
}

static void check_frame(struct jvm *j, const struct frame *f, u32 method, u32 bci, u32 flags)
{
	u32 cookie;

	assert_int_equal(hotspot_kind(f), HOTSPOT_METHOD);
	assert_int_equal(frame_addr(f), j->f.method[method]);
	assert_int_equal(hotspot_bci(f), bci);
	assert_int_equal(hotspot_tier(f), 3);
	assert_true(hotspot_names_cookie(j->names, &j->f.memory, j->f.method[method], &cookie));
	assert_int_equal(hotspot_cookie(f), cookie);
	assert_true(f->detail & HOTSPOT_CLASSED);
	assert_int_equal(frame_flags(f), flags);
}

static void test_callers_are_exact(void **state)
{
	static struct jvm j;
	static struct frame ret[RUNTIME_EXPAND_MAX];

	for (u32 shape = 0; shape < FAKE_SHAPES; shape++) {
		start(&j, shape);
		for (u32 round = 0; round < 2; round++) { /* read, kept */
			assert_int_equal(expand(&j, FRAME_RETADDR, FAKE_INLINED_PC, 0, ret), 2);
			check_frame(&j, &ret[0], 1, 3, FRAME_INLINED);
			check_frame(&j, &ret[1], 0, 7, 0);
		}
		assert_int_equal(expand(&j, FRAME_RETADDR, FAKE_ROOT_PC, 0, ret), 1);
		check_frame(&j, &ret[0], 0, 12, 0);
		assert_int_equal(expand(&j, FRAME_RETADDR, FAKE_INLINED_PC, EXPAND_MERGE, ret), 1);
		check_frame(&j, &ret[0], 0, 7, 0);
		stop(&j);
	}
}

#define TLAB_TOP 0x18
#define TLAB_END 0x28

/*
 * At a place in code that takes memory from the TLAB at 24, or at 0 with a call of main's inlined method behind it,
 * that returns to FAKE_INLINED_PC. The slow path's call returns to FAKE_ROOT_PC.
 */
static bool place(struct jvm *j, bool call, u32 pc, struct frame *f)
{
	u32 at = call ? 0 : 24;
	struct hotspot_nmethod nm;
	u64 code;

	assert_true(hotspot_nmethod_read(j->code, &j->f.memory, j->f.nmethod[0], 100, &nm));
	code = nm.code;
	memset(j->f.bytes + (code - FAKE_BASE), 0x90, FAKE_ROOT_PC);
	fake_poke(&j->f, code + at, 0x28473b49, 4);                /* cmp rax, [r15 + TLAB_END] */
	fake_poke(&j->f, code + at + 4, 0x77 | (53 - at) << 8, 2); /* ja slow */
	fake_poke(&j->f, code + at + 6, 0x18478949, 4);            /* mov [r15 + TLAB_TOP], rax */
	fake_poke(&j->f, code + FAKE_ROOT_PC - 5, 0xe8, 5);
	if (call)
		fake_poke(&j->f, code + FAKE_INLINED_PC - 5, 0xe8, 5);
	*f = frame_of(0, j->f.nmethod[0], hotspot_nmethod(100, pc));
	return hotspot_alloc_leaf(j->l, j->code, &j->f.memory, TLAB_TOP, TLAB_END, f);
}

/* What initialises an object is placed where that was allocated; what lies behind another call is not. */
static void test_allocation(void **state)
{
	static struct jvm j;
	struct frame f;

	start(&j, FAKE_17);
	assert_true(place(&j, false, 40, &f));
	assert_int_equal(hotspot_pc_offset(&f), FAKE_ROOT_PC);
	assert_int_equal(frame_flags(&f), FRAME_RETADDR);
	assert_true(place(&j, true, 12, &f));
	assert_false(place(&j, true, 30, &f));
	assert_int_equal(hotspot_pc_offset(&f), 30);
	assert_int_equal(frame_flags(&f), FRAME_APPROX);
	stop(&j);
}

/* Its method is marked, even if all places around are in it. Its callers are not, and what is exact is not. */
static void test_unknown_allocation_is_approximate(void **state)
{
	static struct jvm j;
	static struct frame ret[RUNTIME_EXPAND_MAX];
	struct frame f;

	start(&j, FAKE_17);
	assert_false(place(&j, true, 30, &f));
	assert_int_equal(expand(&j, frame_flags(&f), FAKE_ROOT_PC + 3, 0, ret), 1);
	check_frame(&j, &ret[0], 0, 12, FRAME_APPROX);
	assert_int_equal(expand(&j, frame_flags(&f), FAKE_INLINED_PC - 3, 0, ret), 2);
	check_frame(&j, &ret[0], 1, 3, FRAME_INLINED | FRAME_APPROX);
	check_frame(&j, &ret[1], 0, 7, 0);
	f = frame_of(FRAME_RETADDR, j.f.nmethod[0], hotspot_nmethod(100, FAKE_INLINED_PC));
	assert_false(hotspot_alloc_leaf(j.l, j.code, &j.f.memory, TLAB_TOP, TLAB_END, &f));
	assert_int_equal(frame_flags(&f), FRAME_RETADDR);
	stop(&j);
}

/* The root is certain, what is inlined into it only where the places around agree; lines hardly ever. */
static void test_leaf_is_approximate(void **state)
{
	static struct jvm j;
	static struct frame ret[RUNTIME_EXPAND_MAX];

	start(&j, FAKE_17);
	assert_int_equal(expand(&j, 0, FAKE_INLINED_PC - 3, 0, ret), 2);
	check_frame(&j, &ret[0], 1, 3, FRAME_INLINED | FRAME_APPROX);
	check_frame(&j, &ret[1], 0, 7, 0);
	assert_int_equal(expand(&j, 0, FAKE_INLINED_PC - 3, EXPAND_LINES, ret), 2);
	check_frame(&j, &ret[1], 0, 7, FRAME_APPROX);
	assert_int_equal(expand(&j, 0, FAKE_INLINED_PC + 3, 0, ret), 1);
	check_frame(&j, &ret[0], 0, 12, 0);
	assert_int_equal(expand(&j, 0, FAKE_ROOT_PC + 3, 0, ret), 1);
	check_frame(&j, &ret[0], 0, 12, 0);
	stop(&j);
}

/* Both places around are in the same inlined method: it is certain, its line is not. */
static void test_leaf_between_equals(void **state)
{
	static struct jvm j;
	static struct frame ret[RUNTIME_EXPAND_MAX];
	struct hotspot_nmethod nm;
	u64 first, second;

	start(&j, FAKE_17);
	assert_true(hotspot_nmethod_read(j.code, &j.f.memory, j.f.nmethod[0], 100, &nm));
	first = nm.pcs + j.l->pc_desc_size.at + j.l->pc_desc_scope.at;
	second = first + j.l->pc_desc_size.at;
	fake_poke(&j.f, second, fake_peek(&j.f, first, 4), 4);
	assert_int_equal(expand(&j, 0, FAKE_INLINED_PC + 3, EXPAND_LINES, ret), 2);
	check_frame(&j, &ret[0], 1, 3, FRAME_INLINED);
	check_frame(&j, &ret[1], 0, 7, 0);
	stop(&j);
}

/* Another class has come to where one was, with its methods at the same addresses. */
static void test_unloaded(void **state)
{
	static struct jvm j;
	struct frame f, ret;
	struct frame_name named;
	u64 constant, pool, klass;
	u32 eaten;

	start(&j, FAKE_25);
	f = method_frame(&j, 0, 0, 3);
	assert_int_equal(hotspot_expand(j.names, &j.f.memory, &f, 0, 1, 0, &ret, 1, &eaten), 1);
	assert_int_equal(eaten, 1);
	assert_int_equal(hotspot_bci(&ret), 3);
	assert_int_equal(hotspot_tier(&ret), 0);
	constant = fake_peek(&j.f, j.f.method[0] + j.l->method_const.at, 8);
	pool = fake_peek(&j.f, constant + j.l->const_pool.at, 8);
	klass = fake_peek(&j.f, pool + j.l->pool_holder.at, 8);
	fake_set(&j.f, klass, j.l->klass_name, fake_symbol(&j.f, j.l, "com/foo/Other"));
	hotspot_names_destroy(j.names); /* what was read a moment ago is kept for some milliseconds */
	assert_null(hotspot_names_create(j.v, j.l, j.code, &j.names));
	assert_false(name(&j, ret, &named));
	assert_int_equal(hotspot_expand(j.names, &j.f.memory, &ret, 0, 1, 0, &f, 1, &eaten), 0);
	assert_int_equal(eaten, 0);
	f = method_frame(&j, 0, 0, 3);
	f.detail ^= 1ull << 50;
	assert_int_equal(hotspot_expand(j.names, &j.f.memory, &f, 0, 1, 0, &ret, 1, &eaten), 1);
	assert_false(name(&j, ret, &named));
	stop(&j);
}

static void test_expand_gone(void **state)
{
	static struct jvm j;
	static struct frame ret[RUNTIME_EXPAND_MAX];

	start(&j, FAKE_17);
	fake_set(&j.f, j.f.nmethod[0], j.l->nm_compile_id, 4711);
	assert_int_equal(expand(&j, FRAME_RETADDR, FAKE_INLINED_PC, 0, ret), 0);
	stop(&j);
}

static void test_class_of_object(void **state)
{
	static struct jvm j;
	struct frame_name ret;
	u64 klass, symbol;

	start(&j, FAKE_25);
	klass = fake_object(&j.f, 256);
	symbol = fake_symbol(&j.f, j.l, "[Ljava/lang/String;");
	fake_set(&j.f, klass, j.l->klass_name, symbol);
	assert_true(name(&j, frame_of(0, klass, hotspot_detail(HOTSPOT_CLASS, (u32)(symbol >> 3))), &ret));
	assert_string_equal(ret.name, "java.lang.String[]");
	assert_int_equal(ret.form, FORM_CLASS);
	assert_false(name(&j, frame_of(0, klass, hotspot_detail(HOTSPOT_CLASS, (u32)(symbol >> 3) + 1)), &ret));
	assert_true(name(&j, frame_of(0, klass, hotspot_detail(HOTSPOT_MIRROR, (u32)(symbol >> 3))), &ret));
	assert_string_equal(ret.name, "java.lang.Class for java.lang.String[]");
	stop(&j);
}

static void put_stub(struct jvm *j, u64 begin, u64 end, const char *text)
{
	u64 at = fake_object(&j->f, 64), words[] = {fake_peek(&j->f, j->stubs, 8), fake_text(&j->f, "StubRoutines"),
	                                         fake_text(&j->f, text), begin, end};

	for (u32 i = 0; i < 5; i++)
		fake_poke(&j->f, at + 8 * i, words[i], 8);
	fake_poke(&j->f, j->stubs, at, 8);
}

static void check_stub(struct jvm *j, u64 pc, const char *expected, bool entry)
{
	struct frame_name ret;

	assert_true(name(j, frame_of(0, pc, hotspot_detail(HOTSPOT_STUB, 0)), &ret));
	assert_string_equal(ret.name, expected);
	assert_int_equal(ret.form, FORM_STUB);
	assert_int_equal(ret.entry, entry);
}

static void test_stubs(void **state)
{
	static struct jvm j;
	struct frame_name ret;
	u64 code;

	start(&j, FAKE_25);
	code = j.f.stub + 128;
	check_stub(&j, code + 8, "resolve_static_call", false);
	put_stub(&j, code, code + 16, "call_stub");
	put_stub(&j, code + 16, code + 32, "updateBytesCRC32");
	check_stub(&j, code + 8, "StubRoutines::call_stub", true);
	check_stub(&j, code + 16, "StubRoutines::updateBytesCRC32", false);
	check_stub(&j, code + 40, "resolve_static_call", false);
	assert_false(name(&j, frame_of(0, j.f.nmethod[0] + FAKE_HEAD + 4, hotspot_detail(HOTSPOT_STUB, 0)), &ret));
	assert_false(name(&j, frame_of(0, 0x1000, hotspot_detail(HOTSPOT_STUB, 0)), &ret));
	stop(&j);
}

static void test_codelets(void **state)
{
	static struct jvm j;
	u64 at;

	start(&j, FAKE_17);
	at = j.f.interpreter + 64;
	fake_poke(&j.f, at, fake_text(&j.f, "return entry points"), 8);
	fake_poke(&j.f, at + 8, 128, 4);
	fake_poke(&j.f, at + 128, fake_text(&j.f, "invokevirtual"), 8);
	fake_poke(&j.f, at + 136, 128, 4);
	check_stub(&j, at + 20, "return entry points", false);
	check_stub(&j, at + 130, "invokevirtual", false);
	check_stub(&j, at + 300, "Interpreter", false);
	stop(&j);
}

static void test_hides(void **state)
{
	assert_true(hotspot_is_internal(
	        "_ZN9JavaCalls11call_helperEP9JavaValueRK12methodHandleP17JavaCallArgumentsP10JavaThread"));
	assert_true(hotspot_is_internal("_ZL19thread_native_entryP6Thread"));
	assert_true(hotspot_is_internal("jni_CallStaticVoidMethod"));
	assert_false(hotspot_is_internal("jni_GetArrayLength"));
	assert_false(hotspot_is_internal("_ZN15CompilerThread12thread_entryEP10JavaThreadS1_"));
	assert_false(hotspot_is_internal("_ZN18InterpreterRuntime4_newEP10JavaThreadP12ConstantPooli"));
	assert_false(hotspot_is_internal(""));
	assert_true(hotspot_is_thread_entry("_ZL19thread_native_entryP6Thread"));
	assert_true(hotspot_is_thread_entry("_ZL10java_startP6Thread"));
	assert_true(hotspot_is_thread_entry("JavaMain"));
	assert_true(hotspot_is_thread_entry("invokeStaticMainWithArgs"));
	assert_true(hotspot_is_thread_entry("invokeInstanceMainWithoutArgs"));
	assert_false(hotspot_is_thread_entry("start_thread"));
	assert_false(hotspot_is_thread_entry(""));
}

static void test_call_stub(void **state)
{
	static struct jvm j;
	struct frame_name ret;

	start(&j, FAKE_17);
	assert_true(name(&j, frame_of(FRAME_RETADDR, CALL_STUB_RETURN, hotspot_detail(HOTSPOT_STUB, 0)), &ret));
	assert_string_equal(ret.name, "StubRoutines::call_stub");
	assert_true(ret.entry);
	assert_false(name(&j, frame_of(0, CALL_STUB_RETURN, hotspot_detail(HOTSPOT_STUB, 0)), &ret) && ret.entry);
	stop(&j);
}

static void test_handles(void **state)
{
	static const char *const handles[] = {"LambdaForm$MH.invoke", "LambdaForm$DMH.invokeStatic",
	        "LambdaForm$LFI.interpret_L", "Invokers$Holder.linkToTargetMethod",
	        "DirectMethodHandle$Holder.newInvokeSpecial", "MethodHandle.linkToStatic", "MethodHandle.invokeBasic",
	        "VarHandleGuards.guard_LI_Z"};
	static const char *const others[] = {"LambdaForm.prepare", "LambdaForm$Name.exprString",
	        "LambdaForm$Kind.<clinit>", "MethodHandle.invokeWithArguments", "MethodHandles$Lookup.findVirtual",
	        "LambdaForm$", "Invokers.invokeExact_MT", ""};
	char name[128];

	for (u32 i = 0; i < sizeof(handles) / sizeof(*handles); i++) {
		snprintf(name, sizeof(name), "java.lang.invoke.%s", handles[i]);
		assert_true(hotspot_is_handle(name));
		snprintf(name, sizeof(name), "com.foo.%s", handles[i]);
		assert_false(hotspot_is_handle(name));
		snprintf(name, sizeof(name), "java.lang.invoke.%s", others[i]);
		assert_false(hotspot_is_handle(name));
	}
}

static void test_alloc_hides(void **state)
{
	assert_true(hotspot_alloc_is_internal("_ZN18InterpreterRuntime4_newEP10JavaThreadP12ConstantPooli"));
	assert_true(hotspot_alloc_is_internal("_ZN11OptoRuntime20new_array_nozero_CEP5KlassiP10JavaThread"));
	assert_true(hotspot_alloc_is_internal("_ZNK12MemAllocator8allocateEv"));
	assert_true(hotspot_alloc_is_internal("_ZN17ObjArrayAllocatorC1EP5Klassmib"));
	assert_true(hotspot_alloc_is_internal("_ZN14TypeArrayKlass15allocate_commonEibP10JavaThread"));
	assert_true(hotspot_alloc_is_internal(
	        "_ZN11AllocTracer27send_allocation_in_new_tlabEP5KlassPP12HeapWordImplmmP10JavaThread"));
	assert_true(hotspot_alloc_is_internal("_new_array_nozero_Java"));
	assert_true(hotspot_alloc_is_internal("fast_new_instance Runtime1 stub"));
	assert_true(hotspot_alloc_is_internal("StubRoutines::jlong_disjoint_arraycopy"));
	assert_true(hotspot_alloc_is_internal("StubRoutines::arrayof_jbyte_fill"));
	assert_false(hotspot_alloc_is_internal("StubRoutines::updateBytesCRC32"));
	assert_false(hotspot_alloc_is_internal("_ZL18jni_new_type_arrayP7JNIEnv_i"));
	assert_false(hotspot_alloc_is_internal("_ZN18InterpreterRuntime3ldcEP10JavaThreadb"));
	assert_false(hotspot_alloc_is_internal("_ZN13InstanceKlass10initializeEP10JavaThread"));
	assert_false(hotspot_alloc_is_internal("_ZN11StringTable6internEPKcP10JavaThread"));
	assert_false(hotspot_alloc_is_internal("_ZN99Runtime1"));
	assert_false(hotspot_alloc_is_internal("_ZN"));
	assert_false(hotspot_alloc_is_internal("_Z"));
	assert_false(hotspot_alloc_is_internal(""));
}

/* Every read may fail, and nothing but that is to happen. */
static void test_reads_fail(void **state)
{
	static struct jvm j;
	static struct frame ret[RUNTIME_EXPAND_MAX];
	struct frame_name named;

	for (u32 i = 1; i < 40; i++) {
		start(&j, i & 1);
		j.f.reads = 0;
		j.f.fail = i;
		expand(&j, 0, FAKE_INLINED_PC - 3, 0, ret);
		name(&j, method_frame(&j, 0, 0, 3), &named);
		name(&j, frame_of(0, j.f.stub + 130, hotspot_detail(HOTSPOT_STUB, 0)), &named);
		j.f.fail = 0;
		assert_true(name(&j, method_frame(&j, 0, 0, 3), &named));
		assert_string_equal(named.name, "com.foo.Bar.first");
		stop(&j);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_method),
	        cmocka_unit_test(test_native),
	        cmocka_unit_test(test_lines),
	        cmocka_unit_test(test_cookie),
	        cmocka_unit_test(test_callers_are_exact),
	        cmocka_unit_test(test_call_stub),
	        cmocka_unit_test(test_handles),
	        cmocka_unit_test(test_scala_method),
	        cmocka_unit_test(test_leaf_is_approximate),
	        cmocka_unit_test(test_allocation),
	        cmocka_unit_test(test_unknown_allocation_is_approximate),
	        cmocka_unit_test(test_leaf_between_equals),
	        cmocka_unit_test(test_unloaded),
	        cmocka_unit_test(test_expand_gone),
	        cmocka_unit_test(test_class_of_object),
	        cmocka_unit_test(test_stubs),
	        cmocka_unit_test(test_codelets),
	        cmocka_unit_test(test_hides),
	        cmocka_unit_test(test_alloc_hides),
	        cmocka_unit_test(test_reads_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
