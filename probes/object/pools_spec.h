/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a pool allocator is called: words "what=function(arguments)" with blanks between them.
 *
 *	alloc=my_alloc(pool,size)	takes a block; other arguments have any name: alloc=f(flags,pool,size)
 *	create=my_pool_new		returns a pool; create=f(&pool): puts its address there
 *	destroy=my_pool_free(pool)	ends it
 *	reset=my_pool_clear(pool)	empties it
 *	free=my_give_back(pool,ptr)	frees a block of it that came from malloc()
 *
 * There are several of each, if need be. nginx's and APR's are built in.
 */
#ifndef YRT_POOLS_SPEC_H
#define YRT_POOLS_SPEC_H

#include <stdbool.h>
#include <types.h>

#include "unwind/error.h"

#define POOL_CALLS_MAX 16
#define POOL_NAME_MAX  128

enum pool_kind { POOL_ALLOC, POOL_CREATE, POOL_DESTROY, POOL_RESET, POOL_FREE };

struct pool_call {
	enum pool_kind kind;
	char name[POOL_NAME_MAX]; /* of the function */
	u8 pool, size;            /* numbers of arguments, from 0; size: of POOL_FREE that of ptr */
	bool out;                 /* of POOL_CREATE: argument `pool` is where the address goes */
};

struct pool_spec {
	struct pool_call call[POOL_CALLS_MAX];
	u32 n;
};

extern const char *const pools_built_in[]; /* up to NULL */

/* An error says what is wrong where, and what it should be. */
struct error *pool_spec_parse(const char *text, struct pool_spec *ret);

#endif
