/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * All runtimes, a line each: RUNTIME(enum runtime_id, folder), and RESUMES(…) of those that can find where to go on
 * (runtime.h). No include guard: each user gives RUNTIME a meaning, and RESUMES if he cares.
 */
#ifndef RESUMES
#define RESUMES(id, name)
#define RESUMES_IS_EMPTY
#endif
RUNTIME(RUNTIME_LUAJIT, luajit)
RUNTIME(RUNTIME_LUA, lua)
RUNTIME(RUNTIME_PYTHON, python)
RUNTIME(RUNTIME_HOTSPOT, hotspot)
RUNTIME(RUNTIME_GO, go)
RUNTIME(RUNTIME_PERL, perl)
RESUMES(RUNTIME_PYTHON, python)
RESUMES(RUNTIME_LUAJIT, luajit)
RESUMES(RUNTIME_HOTSPOT, hotspot)
#ifdef RESUMES_IS_EMPTY
#undef RESUMES
#undef RESUMES_IS_EMPTY
#endif
