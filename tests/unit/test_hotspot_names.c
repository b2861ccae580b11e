/* SPDX-License-Identifier: Apache-2.0 */
/* Names of methods, classes and stubs in a JVM of fake memory. */
#include "hotspot_names_fake.h"

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
	        cmocka_unit_test(test_call_stub),
	        cmocka_unit_test(test_handles),
	        cmocka_unit_test(test_scala_method),
	        cmocka_unit_test(test_class_of_object),
	        cmocka_unit_test(test_stubs),
	        cmocka_unit_test(test_codelets),
	        cmocka_unit_test(test_hides),
	        cmocka_unit_test(test_alloc_hides),
	        cmocka_unit_test(test_reads_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
