/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of the JVM in the form that people use. Sources are the bytes of a Symbol: modified UTF-8 (JVMS 4.4.7),
 * untrusted. Results are UTF-8, cut at size with "…" at the end, and terminated.
 */
#ifndef YRT_HOTSPOT_TEXT_H
#define YRT_HOTSPOT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <types.h>

/* Is it modified UTF-8? cut: it may end within a character. What is torn or freed while it is read seldom is. */
bool hotspot_text_is_sound(const u8 *symbol, size_t n, bool cut);
/* A name as it is; of NUL and what is no character U+FFFD. */
void hotspot_text_name(const u8 *symbol, size_t n, char *ret, size_t size);
/*
 * The name of a class: "java.lang.String", "byte[]", "com.foo.Bar[][]". Of hidden classes without what numbers them:
 * "Foo$$Lambda" for Foo$$Lambda$14 (8), Foo$$Lambda$14/0x… (9 to 14), Foo$$Lambda$14+0x0000000800c03000 (15
 * on); "java.lang.invoke.LambdaForm$MH".
 */
void hotspot_text_class(const u8 *symbol, size_t n, char *ret, size_t size);
/* The arguments of a method's descriptor: "(int, java.lang.String)"; "" if it is none. */
void hotspot_text_signature(const u8 *symbol, size_t n, char *ret, size_t size);

/*
 * In place: what scalac writes for operators is one again ("$colon$colon" is "::"), where nothing else can be meant: it
 * stands where a name starts, or behind "_" or another operator, and behind it is another "$", a ".", or the end. The
 * encoding is that of scala.reflect.NameTransformer (2.10 to 3).
 */
void hotspot_text_scala(char *name);

#endif
