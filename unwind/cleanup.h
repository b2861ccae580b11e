/* SPDX-License-Identifier: Apache-2.0 */
/* Scope-bound cleanup: `cleanup(free) char *s`, and TAKE(s) to hand ownership out of the scope. */
#ifndef YRT_CLEANUP_H
#define YRT_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define cleanup(fn) __attribute__((cleanup(cleanup_##fn)))

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void cleanup_fclose(FILE **f)
{
	if (*f)
		fclose(*f);
}

#define TAKE(p)                                                                                                        \
	({                                                                                                             \
		__typeof__(p) taken_ = (p);                                                                            \
		(p) = NULL;                                                                                            \
		taken_;                                                                                                \
	})

#endif
