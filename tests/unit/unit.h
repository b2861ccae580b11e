/* SPDX-License-Identifier: Apache-2.0 */
/* What nearly every unit test includes: cmocka with the headers that it wants before it, and C's own. */
#ifndef YRT_UNIT_H
#define YRT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#endif
