/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What the cookie of a pool function's uprobe says to BPF, in the low byte; above it as in alloc_shape.h. */
#ifndef YRT_POOLS_COOKIE_H
#define YRT_POOLS_COOKIE_H

#define POOL_COOKIE(pool, size)   ((pool) | (size) << 3)
#define POOL_MAKES                0x40         /* it makes a pool, whose address is in rax, */
#define POOL_OUT                  0x80         /* or where on_pool_out() was told; of one that ends: it is reset */
#define POOL_COOKIE_POOL(cookie)  ((cookie)&7) /* number of the argument */
#define POOL_COOKIE_SIZE(cookie)  ((cookie) >> 3 & 7)
#define POOL_COOKIE_MAKES(cookie) ((cookie)&POOL_MAKES)
#define POOL_COOKIE_OUT(cookie)   ((cookie)&POOL_OUT)
#define POOL_COOKIE_RESET(cookie) ((cookie)&POOL_OUT)

#endif
