/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "unit.h"

#include "runtimes/python/cython_name.h"
#include "runtimes/python/mypyc_name.h"
#include "unwind/symbols/symbols.h"

#define CUT_AT 1024

static void expect(const char *mangled, const char *plain)
{
	char *name = symbol_demangle(mangled);

	assert_non_null(name);
	assert_string_equal(name, plain);
	free(name);
}

static void test_plain(void **state)
{
	expect("main", "main");
	expect("", "");
	expect("_start", "_start");
	expect("_Z", "_Z");
	expect("_ZN", "_ZN");
	expect("_Rust_but_not_mangled", "_Rust_but_not_mangled");
	expect("lj_BC_ADDVV", "lj_BC_ADDVV");
	expect("caf\xc3\xa9", "caf\xc3\xa9");
}

static void test_cxx(void **state)
{
	expect("_ZNSt6vectorIiSaIiEE9push_backEOi", "std::vector<int, std::allocator<int> >::push_back(int&&)");
	expect("_ZN3FooC2Ei.cold", "Foo::Foo(int) [clone .cold]");
	expect("_ZZ4mainENKUliE_clEi", "main::{lambda(int)#1}::operator()(int) const");
	expect("_GLOBAL__sub_I__ZN3foo3barE", "_GLOBAL__sub_I__ZN3foo3barE");
}

/* Of pandoc 2.17 and GHC 9.0.2's libraries. */
static void test_haskell(void **state)
{
	expect("base_GHCziBase_zdwfoldr_info", "GHC.Base.$wfoldr");
	expect("hsluazmcorezm2zi1zi0zmKaTjMvlU8kZZ8nQuJl0F3Hk_HsLuaziCoreziTrace_zdwpcallTrace_info",
	        "HsLua.Core.Trace.$wpcallTrace");
	expect("base_GHCziBase_zpzp_info", "GHC.Base.++");
	expect("base_DataziMap_zdfOrdZMZN_info", "Data.Map.$fOrd[]");
	expect("Main_zdwgo_r1Bq_info", "Main.$wgo");
	expect("base_GHCziBase_a_b_info", "GHC.Base.a");
	expect("Main_get_info", "Main_get_info"); /* may be C */
	expect("EVP_zip_info", "EVP_zip_info");
	expect("base_GHCziBase_zdw", "base_GHCziBase_zdw");
	expect("base_GHCziBase__info", "base_GHCziBase__info");
	expect("base_GHCziBase_z_info", "base_GHCziBase_z_info");
	expect("base_GHCziBase_zk_info", "base_GHCziBase_zk_info");
	expect("_info", "_info");
}

/* Made by rustc 1.95.0 with either way of mangling; `c++filt -i` agrees. */
static void test_rust(void **state)
{
	expect("_ZN1r3geo4each17hd777e33df2c83af3E", "r::geo::each");
	expect("_ZN1r13gr$uf6$$udf$e28_$u7b$$u7b$closure$u7d$$u7d$17h38549f303b7d996dE",
	        "r::gr$uf6$$udf$e::{{closure}}"); /* libiberty knows only ASCII escapes here */
	expect("_RNvMs4_NtNtCsduwmD7cSIQq_5gimli4read6abbrevNtB5_13Abbreviations6insert",
	        "<gimli::read::abbrev::Abbreviations>::insert");
	expect("_RNvXs9_NtNtCsjrHSEGnQ3l9_3std2io5implsINtNtCslNYArtu3iFV_5alloc3vec3VechENtB7_5Write18write_all_"
	       "vectoredB9_",
	        "<alloc::vec::Vec<u8> as std::io::Write>::write_all_vectored");
	expect("_RINvCs6GmmlP4bgsG_1ru9gre_6ka8iKj3_EB2_", "r::gr\xc3\xb6\xc3\x9f"
	                                                   "e::<3>");
}

/* Names of uvloop 0.22, aiohttp 3.13 and gevent 25.9 in wheels, and of lxml 6 and pandas 2 by Cython's sources. */
static void test_cython(void **state)
{
	expect("__pyx_pw_6uvloop_4loop_4Loop_115_Loop__subprocess_run", "uvloop.loop.Loop.__subprocess_run");
	expect("__pyx_pf_6uvloop_4loop_4Loop_44run_until_complete", "uvloop.loop.Loop.run_until_complete");
	expect("__pyx_pf_6uvloop_4loop_8UVHandle_2__init__.isra.0", "uvloop.loop.UVHandle.__init__ [clone .isra.0]");
	expect("__pyx_f_6uvloop_4loop_4Loop__run", "uvloop.loop.Loop._run");
	expect("__pyx_f_6uvloop_4loop_4Loop__Loop__run", "uvloop.loop.Loop.__run");
	expect("__pyx_pw_6uvloop_4loop_11SSLProtocol_15buffer_updated", "uvloop.loop.SSLProtocol.buffer_updated");
	expect("__pyx_pw_6uvloop_4loop_11SSLProtocol_15_start_shutdown___pyx_lambda_funcdef_lambda5",
	        "uvloop.loop.SSLProtocol._start_shutdown.lambda5");
	expect("__pyx_pw_6gevent_17_gevent_cgreenlet_10__pyx_lambda_funcdef_6gevent_17_gevent_cgreenlet_lambda4",
	        "gevent._gevent_cgreenlet.lambda4");
	expect("__pyx_gb_6uvloop_4loop_4Loop_60generator4.cold", "uvloop.loop.Loop.generator4 [clone .cold]");
	expect("__pyx_gb_6uvloop_4loop_4Loop_17create_connection_2generator30",
	        "uvloop.loop.Loop.create_connection.generator30");
	expect("__pyx_getprop_6gevent_17_gevent_cgreenlet_8Greenlet_spawn_tree_locals",
	        "gevent._gevent_cgreenlet.Greenlet.spawn_tree_locals");
	expect("__pyx_tp_dealloc_7aiohttp_12_http_parser___pyx_scope_struct_1_genexpr",
	        "aiohttp._http_parser.__pyx_scope_struct_1_genexpr.tp_dealloc");
	expect("__pyx_tp_new_vectorcall_6uvloop_4loop_UVProcess", "uvloop.loop.UVProcess.tp_new_vectorcall");
	expect("__pyx_specialmethod___pyx_pw_6gevent_14_gevent_cqueue_11SimpleQueue_49__next__",
	        "gevent._gevent_cqueue.SimpleQueue.__next__");
	expect("__pyx_fuse_1_0__pyx_pw_6pandas_5_libs_5algos_31pad", "pandas._libs.algos.pad [fused 1_0]");
	expect("__pyx_pw_6pandas_5_libs_5algos_47__pyx_fuse_0pad", "pandas._libs.algos.pad [fused 0]");
	expect("__pyx_pw_15View_dot_MemoryView_5array_1__cinit__", "View.MemoryView.array.__cinit__");
	expect("_ZL32__pyx_f_6pandas_5_libs_4join_runP7_objectS0_", "pandas._libs.join.run");
}

/* A number that is the length of what follows by chance. */
static void test_cython_ambiguous(void **state)
{
	expect("__pyx_pw_6uvloop_4loop_4Loop_5close_all", "uvloop.loop.Loop.close_all"); /* a wrapper has a number */
	expect("__pyx_pw_6uvloop_4loop_4Loop_5close_1all", "uvloop.loop.Loop.close.all");
	expect("__pyx_pf_6uvloop_4loop_4Loop_5close_all", "__pyx_pf_6uvloop_4loop_4Loop_5close_all");
	expect("__pyx_pf_6uvloop_4loop_4Loop_5close___get__", "uvloop.loop.Loop.close.__get__");
	expect("__pyx_pf_6uvloop_4loop_4Loop_run", "uvloop.loop.Loop.run");
	expect("__pyx_f_6uvloop_4loop_4Loop_5close_all", "uvloop.loop.Loop.close.all"); /* a cdef function has none */
}

static void test_cython_raw(void **state)
{
	static const char *const names[] = {"__pyx_", "__pyx_pw_", "__pyx_pw_6uvloop_", "__pyx_pw_6uvloop_1",
	        "__pyx_pw_7uvloop_1run", "__pyx_pw_uvloop_1run", "__pyx_pw_6uvloop_run", "__pyx_f_6uvloop_1run",
	        "__pyx_gb_6uvloop_1run", "__pyx_pw_0_1run", "__pyx_pw_99999999999999999999_1run", "__pyx_fuse_",
	        "__pyx_fuse_0", "__pyx_fuse_0_", "__pyx_pymod_exec_loop", "__pyx_insert_code_object.constprop.0",
	        "__pyx_tp_6uvloop_Loop", "__pyx_pw_6uvloop_1run!", "__pyx_pw_6uvl\xc3\xb6p_1run"};

	for (u32 i = 0; i < sizeof(names) / sizeof(*names); i++)
		expect(names[i], names[i]);
}

static void test_cython_layer(void **state)
{
	assert_int_equal(cython_layer("__pyx_pw_6uvloop_1run"), TRANSLATED_WRAPPER);
	assert_int_equal(cython_layer("__pyx_fuse_1__pyx_pw_6uvloop_1run"), TRANSLATED_WRAPPER);
	assert_int_equal(cython_layer("_ZL21__pyx_pf_6uvloop_1runP7_object"), TRANSLATED_BODY);
	assert_int_equal(cython_layer("__pyx_f_6uvloop_run"), TRANSLATED_C);
	assert_int_equal(cython_layer("__pyx_tp_new_6uvloop_Loop"), TRANSLATED_NONE);
	assert_int_equal(cython_layer("_ZL"), TRANSLATED_NONE);
	assert_int_equal(cython_layer(""), TRANSLATED_NONE);
	assert_true(cython_is_glue("__Pyx_CyFunction_Vectorcall_FASTCALL_KEYWORDS"));
	assert_true(cython_is_glue("__Pyx__PyObject_CallMethod0"));
	assert_false(cython_is_glue("__Pyx_CyFunction_dealloc"));
	assert_false(cython_is_glue("__pyx_pw_6uvloop_1run"));
	assert_false(cython_is_glue(""));
}

static void test_cython_wrapper(void **state)
{
	char text[64];

	assert_true(cython_wrapper_of("__pyx_pf_9httptools_6parser_10url_parser_parse_url.isra.0", text, sizeof(text)));
	assert_string_equal(text, "__pyx_pw_9httptools_6parser_10url_parser_1parse_url");
	assert_false(cython_wrapper_of("__pyx_pf_9httptools_6parser_10url_parser_parse_url.isra.0", text, 51));
	assert_false(cython_wrapper_of("__pyx_pf_9httptools_6parser_2parse_url", text, sizeof(text)));
	assert_false(cython_wrapper_of("__pyx_pw_9httptools_6parser_10url_parser_parse_url", text, sizeof(text)));
	assert_false(cython_wrapper_of("__pyx_pf_parse", text, sizeof(text)));
	assert_false(cython_wrapper_of("__pyx_pf_", text, sizeof(text)));
}

static void test_cython_generator(void **state)
{
	char text[64];

	assert_true(cython_generator_wrapper("__pyx_gb_6uvloop_4loop_4Loop_60generator4.cold", text, sizeof(text)));
	assert_string_equal(text, "__pyx_pw_6uvloop_4loop_4Loop_59");
	assert_false(cython_generator_wrapper("__pyx_gb_6uvloop_4loop_4Loop_60generator4.cold", text, 31));
	assert_true(cython_generator_wrapper(
	        "__pyx_gb_6uvloop_4loop_4Loop_17create_connection_2generator30", text, sizeof(text)));
	assert_string_equal(text, "__pyx_pw_6uvloop_4loop_4Loop_17create_connection_1");
	assert_true(cython_generator_wrapper(
	        "_ZL29__pyx_gb_6uvloop_10generator1P22__pyx_CoroutineObject", text, sizeof(text)));
	assert_string_equal(text, "__pyx_pw_6uvloop_9");
	assert_false(cython_generator_wrapper(
	        "_ZL9999999999999999999999__pyx_gb_6uvloop_10generator1P3x", text, sizeof(text)));
	assert_false(cython_generator_wrapper("__pyx_gb_6uvloop_1generator1", text, sizeof(text)));
	assert_false(cython_generator_wrapper("__pyx_gb_6uvloop_generator1", text, sizeof(text)));
	assert_false(cython_generator_wrapper("__pyx_gb_1c___pyx_lambda_funcdef_A", text, sizeof(text)));
	assert_false(cython_generator_wrapper("__pyx_pw_6uvloop_2generator1", text, sizeof(text)));
	assert_false(cython_generator_wrapper("", text, sizeof(text)));
}

/* Of mypy 2.4 and Black 26.10. */
static void test_mypyc(void **state)
{
	expect("CPyDef_black___format_str", "black.format_str");
	expect("CPyPy_black___format_str", "black.format_str");
	expect("CPyDef_black____format_str_once", "black._format_str_once");
	expect("CPyDef_parse___Parser____addtoken.cold", "parse.Parser._addtoken [clone .cold]");
	expect("CPyDef_refinfo_____top_level__", "refinfo.__top_level__");
	expect("CPyDef_mypy___literals____Hasher___visit_slice_expr", "mypy.literals._Hasher.visit_slice_expr");
	expect("CPyDef_checker___C___get___3_mypyc_env__", "checker.C.get___mypyc_env__");
	expect("CPyDef_semanal___E___visit__promote_expr__ExpressionVisitor_glue", "semanal.E.visit__promote_expr");
	expect("CPyDef_nodes___visit_default_Visitor_gen_____mypyc_generator_helper__",
	        "nodes.visit_default_Visitor_gen.__mypyc_generator_helper__");
	expect("CPyDef_main", "main");
	expect("CPyDef_", "CPyDef_");
	expect("CPyDef____", "CPyDef____");
	expect("CPyDef_a___", "CPyDef_a___");
	expect("CPyDef_a______b", "CPyDef_a______b");
	expect("CPyDef_a!", "CPyDef_a!");
	expect("CPyDef__glue", "_glue");
	expect("CPyTagged_Add", "CPyTagged_Add");
	expect("CPy_AddTraceback", "CPy_AddTraceback");
}

static void test_mypyc_layer(void **state)
{
	assert_int_equal(mypyc_layer("CPyPy_black___format_str"), TRANSLATED_WRAPPER);
	assert_int_equal(mypyc_layer("CPyDef_types___AnyType___accept__Type_glue"), TRANSLATED_BODY);
	assert_int_equal(mypyc_layer("CPyDef_black___format_str"), TRANSLATED_C);
	assert_int_equal(mypyc_layer("CPyTagged_Add"), TRANSLATED_NONE);
}

static void test_mypyc_generator(void **state)
{
	assert_true(mypyc_makes("CPyDef_nodes___Visitor___visit_default", "nodes", "visit_default_Visitor"));
	assert_true(mypyc_makes("CPyDef_nodes____V___visit", "nodes", "visit__V"));
	assert_true(mypyc_makes("CPyDef_a___b___walk", "a___b", "walk"));
	assert_false(mypyc_makes("CPyDef_nodes___Visitor___visit", "nodes", "visit_default_Visitor"));
	assert_false(mypyc_makes("CPyDef_nodes___default_Visitor___visit_x", "nodes", "visit_default_Visitor"));
	assert_false(mypyc_makes("CPyPy_nodes___Visitor___visit_default", "nodes", "visit_default_Visitor"));
	assert_false(mypyc_makes("CPyDef_nodes", "nodes", "nodes"));
	assert_false(mypyc_makes("CPyDef_nodes___", "nodes", "x"));
}

static void expect_bounded(const char *mangled)
{
	char *name = symbol_demangle(mangled);

	assert_non_null(name);
	assert_true(*name);
	assert_true(strlen(name) <= CUT_AT + strlen("…"));
	free(name);
}

/* Each parameter is a template of twice the one before: 2^60 words. */
static void test_doubling(void **state)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char mangled[2048] = "_Z1f1TIiiES_IS0_S0_E";
	char *name;
	u32 i, at = strlen(mangled);

	for (i = 1; i < 35; i++)
		at += sprintf(mangled + at, "S_IS%c_S%c_E", digits[i], digits[i]);
	name = symbol_demangle(mangled);
	assert_non_null(name);
	assert_int_equal(strlen(name), CUT_AT + strlen("…"));
	assert_memory_equal(name, "f(T<int, int>, T<T<int, int>, ", 30);
	assert_string_equal(name + CUT_AT, "…");
	free(name);
}

static void test_hostile(void **state)
{
	char *deep = malloc(1 << 20);

	strcpy(deep, "_Z1f");
	memset(deep + 4, 'P', 4000);
	strcpy(deep + 4004, "i");
	expect_bounded(deep);
	memset(deep + 4, 'N', 4000);
	expect_bounded(deep);
	memset(deep, 'R', 1 << 20);
	memcpy(deep, "_R", 2);
	deep[(1 << 20) - 1] = 0;
	expect_bounded(deep);
	memcpy(deep, "_ZN9999999999999999999", 22);
	expect_bounded(deep);
	free(deep);
	expect_bounded("_RINvB_1aB_B_B_B_E");
	expect_bounded("_ZN1a17h0123456789abcdefEEEEEE");
	expect_bounded("_Z1fIXadL_Z1fIXadL_Z1fEEEEEvv");
}

/* The cut does not split a character, wherever it falls. */
static void test_cut_character(void **state)
{
	char mangled[512], *name, *p;
	u32 i, at, shift;

	for (shift = 0; shift < 4; shift++) {
		at = sprintf(mangled, "_Z%u%.*s200", shift + 1, shift + 1, "ffff");
		for (i = 0; i < 100; i++)
			at += sprintf(mangled + at, "\xc3\xb6");
		for (i = 0; i < 20; i++)
			at += sprintf(mangled + at, "S_");
		name = symbol_demangle(mangled);
		assert_true(strlen(name) >= CUT_AT && name[shift + 1] == '(');
		for (p = name; *p && strcmp(p, "…"); p += (u8)*p == 0xc3 ? 2 : 1)
			assert_true((u8)*p < 0x80 || ((u8)p[0] == 0xc3 && (u8)p[1] == 0xb6));
		assert_string_equal(p, "…");
		free(name);
	}
}

static FILE *run(const char *format, const char *arg)
{
	char command[512];
	FILE *f;

	snprintf(command, sizeof(command), format, arg, arg);
	f = popen(command, "r");
	assert_non_null(f);
	return f;
}

static bool agrees(const char *ours, const char *theirs)
{
	size_t len = strlen(ours);

	if (strlen(theirs) <= CUT_AT)
		return !strcmp(ours, theirs);
	return len > 3 && !strcmp(ours + len - 3, "…") && !strncmp(ours, theirs, len - 3);
}

/* c++filt over every dynamic symbol of libstdc++. */
static void test_libstdcxx(void **state)
{
	FILE *f = run("lib=$(%s -print-file-name=libstdc++.so.6); nm -D --without-symbol-versions $lib | "
	              "sed 's/.* //' >$TMPDIR/names; c++filt -i <$TMPDIR/names | paste -d '\\n' $TMPDIR/names -",
	        "gcc");
	char *mangled = NULL, *plain = NULL, *ours;
	size_t room = 0, plain_room = 0;
	u32 n = 0, wrong = 0;

	while (getline(&mangled, &room, f) > 0 && getline(&plain, &plain_room, f) > 0) {
		mangled[strcspn(mangled, "\n")] = plain[strcspn(plain, "\n")] = 0;
		ours = symbol_demangle(mangled);
		n++;
		if (!agrees(ours, plain) && !wrong++)
			print_message("%s:\n%s\n%s\n", mangled, ours, plain);
		free(ours);
	}
	assert_int_equal(pclose(f), 0);
	free(mangled);
	free(plain);
	print_message("%u symbols\n", n);
	assert_true(n > 4000);
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_plain),
	        cmocka_unit_test(test_cxx),
	        cmocka_unit_test(test_haskell),
	        cmocka_unit_test(test_rust),
	        cmocka_unit_test(test_cython),
	        cmocka_unit_test(test_cython_ambiguous),
	        cmocka_unit_test(test_cython_raw),
	        cmocka_unit_test(test_cython_layer),
	        cmocka_unit_test(test_cython_wrapper),
	        cmocka_unit_test(test_cython_generator),
	        cmocka_unit_test(test_mypyc),
	        cmocka_unit_test(test_mypyc_layer),
	        cmocka_unit_test(test_mypyc_generator),
	        cmocka_unit_test(test_doubling),
	        cmocka_unit_test(test_hostile),
	        cmocka_unit_test(test_cut_character),
	        cmocka_unit_test(test_libstdcxx),
	};
	char dir[] = "/tmp/yrt-demangle-XXXXXX", command[64];
	int failed;

	if (!mkdtemp(dir))
		return 1;
	setenv("TMPDIR", dir, 1);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return failed || system(command);
}
