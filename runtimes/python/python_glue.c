/* SPDX-License-Identifier: Apache-2.0 */
#include "python_glue.h"

#include <string.h>

static const char *const exact[] = {"PyGen_am_send", "PyImport_ImportModuleLevelObject", "PyIter_Next",
        "PyIter_NextItem", "PyIter_Send", "PyVectorcall_Call", "Py_BytesMain", "Py_Main", "Py_RunMain",
        "_PyVectorcall_Call", "_Py_UnixMain", "am_send", "async_generator_asend.__next__",
        "async_generator_athrow.__next__", "builtin_function_or_method.__call__", "call_attribute", "call_function",
        "cfunction_call", "classmethod_descriptor.__call__", "coroutine.am_send", "coroutine_wrapper.__next__",
        "fast_function", "function.__call__", "function_call", "function_code_fastcall", "gen_iternext",
        "generator.__next__", "generator.am_send", "import_find_and_load", "import_name", "main", "method.__call__",
        "method_call", "method_descriptor.__call__", "method_vectorcall", "object_vacall", "py_trampoline_evaluator",
        "run_mod", "t_bootstrap", "thread_run", "type.__call__", "type_call", "wrapper_call",
        "wrapper_descriptor.__call__", "wrapperdescr_call", "wrapperdescr_raw_call"};

static const char *const begins[] = {"_Py_slot_", "_TAIL_CALL_", "PyEval_Eval", "PyObject_Call", "PyObject_Vectorcall",
        "PyRun_", "_PyCFunction_FastCall", "_PyCFunction_Vectorcall", "_PyCallMethodDescriptor", "_PyEval_",
        "_PyFunction_", "_PyMethodDef_RawFastCall", "_PyObject_Call", "_PyObject_FastCall", "_PyObject_MakeTpCall",
        "_PyObject_Vectorcall", "_PyRun_", "_Py_BuiltinCallFast", "_Py_CallBuiltinClass_", "_Py_VectorCall",
        "cfunction_vectorcall_", "gen_send_ex", "method_vectorcall_", "pymain_", "pyrun_", "run_eval_code_obj", "slot_",
        "vectorcall_"};

/* A compiler's clones are "name.isra.0" and the like. */
static bool is_name(const char *symbol, const char *name)
{
	size_t n = strlen(name);

	return !strncmp(symbol, name, n) && (!symbol[n] || symbol[n] == '.');
}

bool python_is_glue(const char *symbol)
{
	if (!*symbol)
		return true;
	for (unsigned i = 0; i < sizeof(exact) / sizeof(*exact); i++)
		if (is_name(symbol, exact[i]))
			return true;
	for (unsigned i = 0; i < sizeof(begins) / sizeof(*begins); i++)
		if (!strncmp(symbol, begins[i], strlen(begins[i])))
			return true;
	return false;
}
