/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where CPython 3.15 and later keep a thread's state: in the thread-local variable _Py_tss_gilstate (Python/pystate.c;
 * up to 3.14 under a TSS key). A stripped file has no symbol for its place. The exported
 * PyGILState_GetThisThreadState() only reads it, and its code shows the ELF TLS model of the build ("ELF Handling For
 * Thread-Local Storage", Drepper), which is the same in every C library.
 */
#ifndef YRT_PYTHON_TLS_H
#define YRT_PYTHON_TLS_H

#include "binary/image.h"

enum python_tls_model {
	PYTHON_TLS_NONE,       /* not understood, or no such variable */
	PYTHON_TLS_LOCAL,      /* at offset from the thread pointer */
	PYTHON_TLS_GOT,        /* the word at got gives that offset */
	PYTHON_TLS_MODULE,     /* in the block of the module whose number is at got, behind what the next word gives and
	                          offset */
	PYTHON_TLS_DESCRIPTOR, /* the word behind got gives that offset, less offset, or where module and offset are */
};

struct python_tls {
	enum python_tls_model model;
	s32 offset;
	u64 got; /* file address */
};

struct python_tls python_tls_find(struct image *img);

/*
 * Where the key is: up to 3.14 PyGILState_GetThisThreadState() names the member _PyRuntime.autoTSSkey first, by its
 * address or as a distance from _PyRuntime. File addresses; 0: not found.
 */
u64 python_tls_key(struct image *img, u64 runtime);

#endif
