/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "hotspot_names.h"

/* By the beginning of the mangled name: arguments differ from version to version. */
static const char *const hidden[] = {
        "_ZN9JavaCalls", /* call, call_helper, call_virtual, call_static, call_special */
        "_ZN2os20os_exception_wrapper",
        "jni_Call",
        "_ZL17jni_invoke_static",
        "_ZL20jni_invoke_nonstatic",
        "_ZL23jni_invoke_nonstaticP",
        "_ZL19thread_native_entry", /* what a thread runs through before its work begins */
        "_ZL10java_startP6Thread",  /* 8 to 11 */
        "_ZN6Thread8call_run",
        "_ZN10JavaThread3run",
        "_ZN10JavaThread17thread_main_inner",
        "_ZL12thread_entryP10JavaThread",
};

bool hotspot_is_internal(const char *symbol)
{
	for (size_t i = 0; i < sizeof(hidden) / sizeof(*hidden); i++)
		if (!strncmp(symbol, hidden[i], strlen(hidden[i])))
			return true;
	return false;
}

static bool starts_with(const char *s, const char *start)
{
	return !strncmp(s, start, strlen(start));
}

/* What JavaMain calls from 21 on: invokeStaticMainWithArgs, invokeInstanceMainWithoutArgs, …
 * (java.base/share/native/libjli/java.c). */
static bool is_start_of_main(const char *symbol)
{
	return starts_with(symbol, "invokeStaticMain") || starts_with(symbol, "invokeInstanceMain");
}

bool hotspot_is_thread_entry(const char *symbol)
{
	return starts_with(symbol, "_ZL19thread_native_entry") || starts_with(symbol, "_ZL10java_startP6Thread") ||
	       !strcmp(symbol, "JavaMain") || is_start_of_main(symbol);
}

/*
 * By name: the flag of hidden methods lies elsewhere in each version, and no table says where. Classes that are made
 * as they are needed are LambdaForm$MH and the like, those compiled ahead (9 and later) Invokers$Holder and the like.
 */
bool hotspot_is_handle(const char *method)
{
	static const char package[] = "java.lang.invoke.", form[] = "LambdaForm$";
	const char *class = method + sizeof(package) - 1, *at = class + sizeof(form) - 1;

	if (!starts_with(method, package))
		return false;
	if (starts_with(class, form)) {
		while (*at >= 'A' && *at <= 'Z')
			at++;
		return *at == '.';
	}
	return strstr(class, "$Holder.") || starts_with(class, "VarHandleGuards.guard_") ||
	       starts_with(class, "MethodHandle.linkTo") || starts_with(class, "MethodHandle.invokeBasic");
}

/* A class by how its name ends, and its members by how theirs begin: 8 to 28 call them differently. */
static const struct {
	const char *class, *member;
} slow_path[] = {
        {"Runtime1", "new_"},
        {"OptoRuntime", "new_"},
        {"OptoRuntime", "multianewarray"},
        {"JVMCIRuntime", "new_"},
        {"InterpreterRuntime", "_new"},
        {"InterpreterRuntime", "newarray"},
        {"InterpreterRuntime", "anewarray"},
        {"InterpreterRuntime", "multianewarray"},
        {"Klass", "allocate"},
        {"Klass", "multi_allocate"},
        {"oopFactory", "new_"},
        {"Allocator", ""}, /* MemAllocator, ObjAllocator, ObjArrayAllocator, ClassAllocator */
        {"CollectedHeap", ""},
        {"AllocTracer", ""},
        {"ThreadLocalAllocBuffer", ""},
};

/* "12MemAllocator8allocateEv" to its first name, and what is behind it. */
static bool next_name(const char **mangled, const char **name, size_t *len)
{
	char *end;

	*len = strtoul(*mangled, &end, 10);
	if (end == *mangled || !*len || strlen(end) < *len)
		return false;
	*name = end;
	*mangled = end + *len;
	return true;
}

static bool ends_with(const char *name, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len >= n && !memcmp(name + len - n, end, n);
}

/*
 * "_new_array_nozero_Java", "new_type_array Runtime1 stub", "C2 Runtime new_instance_blob"; and what writes to an array
 * first when it is a copy (Object.clone, Arrays.copyOf): "StubRoutines::jint_disjoint_arraycopy",
 * "StubRoutines::arrayof_jbyte_fill".
 */
static bool is_slow_stub(const char *name)
{
	static const char *const stubs[] = {"new_instance", "new_array", "new_type_array", "new_object_array",
	        "new_multi_array", "multianewarray", "arraycopy", "byte_fill", "short_fill", "int_fill", "zero_blocks"};

	for (size_t i = 0; i < sizeof(stubs) / sizeof(*stubs); i++)
		if (strstr(name, stubs[i]))
			return true;
	return false;
}

bool hotspot_alloc_is_internal(const char *symbol)
{
	const char *class, *member, *rest = symbol + 3;
	size_t class_len, member_len;

	if (strncmp(symbol, "_Z", 2) != 0)
		return is_slow_stub(symbol);
	if (symbol[2] != 'N')
		return false;
	rest += *rest == 'K'; /* a const member */
	if (!next_name(&rest, &class, &class_len))
		return false;
	if (!next_name(&rest, &member, &member_len)) /* a constructor */
		member = "";
	for (size_t i = 0; i < sizeof(slow_path) / sizeof(*slow_path); i++)
		if (ends_with(class, class_len, slow_path[i].class) &&
		        !strncmp(member, slow_path[i].member, strlen(slow_path[i].member)))
			return true;
	return false;
}
