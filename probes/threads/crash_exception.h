/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C++ exception that a thread died of in std::terminate(). The C++ library has the exceptions that a thread handles
 * in a thread-local variable, which __cxa_get_globals() returns the address of; the one that nobody catches is its
 * first (Itanium C++ ABI: Exception Handling, 2.2; libstdc++'s unwind-cxx.h of GCC 4.3 to 15, libc++abi's
 * cxa_exception.h alike from the type on).
 */
#ifndef YRT_CRASH_EXCEPTION_H
#define YRT_CRASH_EXCEPTION_H

#include <stdbool.h>
#include <stddef.h>

struct dump_thread;

/*
 * "std::out_of_range: line 4": the type, and what() where the class keeps it as std::logic_error and std::runtime_error
 * do, or the text itself if that was thrown. False: it did not die in std::terminate(). ret is terminated; hostile.
 */
bool crash_exception(const struct dump_thread *t, char *ret, size_t size);

#endif
