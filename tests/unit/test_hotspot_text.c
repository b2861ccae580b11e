/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of HotSpot: classes, signatures, modified UTF-8. */
#include "hotspot_names_fake.h"

static void check_class(const char *symbol, const char *expected)
{
	char text[128];

	hotspot_text_class((const u8 *)symbol, strlen(symbol), text, sizeof(text));
	assert_string_equal(text, expected);
}

static void test_classes(void **state)
{
	check_class("java/lang/String", "java.lang.String");
	check_class("[B", "byte[]");
	check_class("[[J", "long[][]");
	check_class("[Lcom/foo/Bar;", "com.foo.Bar[]");
	check_class("Foo$$Lambda$14+0x0000000800c03000", "Foo$$Lambda");
	check_class("Foo$$Lambda+0x00007f1c3c000a00", "Foo$$Lambda");
	check_class("Foo$$Lambda$14/0x0000000800c03000", "Foo$$Lambda");
	check_class("Foo$$Lambda$14", "Foo$$Lambda");
	check_class("java/lang/invoke/LambdaForm$MH+0x0000000800c04c00", "java.lang.invoke.LambdaForm$MH");
	check_class("[LFoo$$Lambda$3+0x0000000800c03000;", "Foo$$Lambda[]");
	check_class("Foo$1", "Foo$1");
	check_class("pack/0xface", "pack");
	check_class("a+0x", "a+0x");
	/* what is no descriptor */
	check_class("[", "[");
	check_class("[Q", "[Q");
	check_class("[Lfoo", "[Lfoo");
	check_class("[Bx", "[Bx");
	check_class("", "");
}

static void check_signature(const char *symbol, const char *expected)
{
	char text[64];

	hotspot_text_signature((const u8 *)symbol, strlen(symbol), text, sizeof(text));
	assert_string_equal(text, expected);
}

static void test_signatures(void **state)
{
	check_signature("()V", "()");
	check_signature("(I)V", "(int)");
	check_signature("(ILjava/lang/String;[[D)Z", "(int, java.lang.String, double[][])");
	check_signature("(I", "(int\xe2\x80\xa6");
	check_signature("(Ljava/lang", "(\xe2\x80\xa6");
	check_signature("foo", "");
	check_signature("(La/very/long/name/of/a/class;La/very/long/name/of/a/class;I)V",
	        "(a.very.long.name.of.a.class, a.very.long.name.of.a.class, \xe2\x80\xa6");
}

static void check_scala(const char *symbol, const char *expected)
{
	char text[128];

	snprintf(text, sizeof(text), "%s", symbol);
	hotspot_text_scala(text);
	assert_string_equal(text, expected);
}

static void test_scala(void **state)
{
	check_scala("scala.collection.immutable.$colon$colon.foreach", "scala.collection.immutable.::.foreach");
	check_scala("demo.Vec.$plus", "demo.Vec.+");
	check_scala("a.B.x_$eq", "a.B.x_=");
	check_scala("a.T$.$anonfun$$less$times$greater$1", "a.T$.$anonfun$<*>$1");
	check_scala("a.T$.$anonfun$update$1", "a.T$.$anonfun$update$1");
	check_scala("a.$bslash$qmark$at$tilde$hash$bang$percent$up$amp$bar$div$minus", "a.\\?@~#!%^&|/-");
	check_scala("a.T$.$anonfun$at$1", "a.T$.$anonfun$at$1");
	check_scala("cats.syntax.package$eq$.use", "cats.syntax.package$eq$.use");
	check_scala("a.B.$times$extension", "a.B.*$extension");
	check_scala("$", "$");
	check_scala("a.$greaterthan", "a.$greaterthan");
	check_scala("", "");
}

static void check_name(const char *symbol, size_t n, const char *expected)
{
	char text[64];

	hotspot_text_name((const u8 *)symbol, n, text, sizeof(text));
	assert_string_equal(text, expected);
}

/* Modified UTF-8: U+0000 in two bytes, beyond U+FFFF two surrogates; and bytes that are nothing. */
static void test_characters(void **state)
{
	check_name("gr\xc3\xbc\xc3\x9f", 6, "gr\xc3\xbc\xc3\x9f");
	check_name("a\xc0\x80z", 4, "a\xef\xbf\xbdz");
	check_name("\xed\xa0\xbd\xed\xb8\x80", 6, "\xf0\x9f\x98\x80");
	check_name("\xed\xa0\xbdx", 4, "\xef\xbf\xbdx");
	check_name("\xed\xb8\x80", 3, "\xef\xbf\xbd");
	check_name("a\0b", 3,
	        "a\xef\xbf\xbd"
	        "b");
	check_name("\xff\xfe", 2, "\xef\xbf\xbd\xef\xbf\xbd");
	check_name("\xe2\x82", 2, "\xef\xbf\xbd\xef\xbf\xbd");
	check_name("a;b\n<i>", 7, "a;b\n<i>"); /* for the formats to escape */
}

static void test_cut(void **state)
{
	char text[16];

	hotspot_text_name((const u8 *)"0123456789abcdef", 16, text, sizeof(text));
	assert_string_equal(text, "0123456789ab\xe2\x80\xa6");
	hotspot_text_name((const u8 *)"0123456789a\xc3\xbc", 13, text, sizeof(text));
	assert_string_equal(text, "0123456789a\xe2\x80\xa6");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_classes),
	        cmocka_unit_test(test_signatures),
	        cmocka_unit_test(test_characters),
	        cmocka_unit_test(test_cut),
	        cmocka_unit_test(test_scala),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
