/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "hotspot_names.h"

/* By the beginning of the mangled name: arguments differ from version to version. */
static const char *const hidden[] = {
        "_ZN9JavaCalls",		      /* call, call_helper, call_virtual, call_static, call_special */
        "_ZN2os20os_exception_wrapper",
        "jni_Call", "_ZL17jni_invoke_static", "_ZL20jni_invoke_nonstatic", "_ZL23jni_invoke_nonstaticP",
        "_ZL19thread_native_entry",	      /* what a thread runs through before its work begins */
        "_ZL10java_startP6Thread",	      /* 8 to 11 */
        "_ZN6Thread8call_run",
        "_ZN10JavaThread3run",
        "_ZN10JavaThread17thread_main_inner",
        "_ZL12thread_entryP10JavaThread",
};

bool hotspot_hides(const char *symbol)
{
	for (size_t i = 0; i < sizeof(hidden) / sizeof(*hidden); i++)
		if (!strncmp(symbol, hidden[i], strlen(hidden[i])))
			return true;
	return false;
}
