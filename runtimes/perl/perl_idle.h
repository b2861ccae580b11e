/* SPDX-License-Identifier: Apache-2.0 */
/* Waits by design of Perl's event loops, and of servers and pools written in it. */
#ifndef YRT_PERL_IDLE_H
#define YRT_PERL_IDLE_H

#include "runtime.h"

extern const struct idle_rule perl_idle[];

#endif
