/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread-specific data (pthread_getspecific()): where a thread's values are, relative to its thread pointer. It takes
 * two loads: the word at `via` of the thread pointer leads to a block, in which the value of a key is at `slot`.
 */
#ifndef YRT_TSD_H
#define YRT_TSD_H

#include "binary/image.h"

#define TSD_KEYS_MAX 1024 /* PTHREAD_KEYS_MAX of glibc; musl has 128 */

struct tsd_way {
	u16 via;
	u16 slot;
};

/*
 * How a key's values are found in a C library's threads. glibc describes it to libthread_db, by the symbols
 * _thread_db_pthread_specific, _thread_db_pthread_key_data_level2_data and _thread_db_pthread_key_data_data
 * (nptl_db/db_info.c, structs.def; since 2.3); of musl the code of pthread_getspecific() shows it. False: img is no C
 * library, or one of another kind.
 */
bool tsd_find(struct image *img, u32 key, struct tsd_way *ret);

/*
 * Where all values of a thread are in one block, as musl has them: the offset, from the thread pointer, of the word
 * that leads to it, as the code of the library's pthread_getspecific() shows. 0: none, or img is no such library.
 */
u16 tsd_values(struct image *img);

#endif
