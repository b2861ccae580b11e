/* SPDX-License-Identifier: Apache-2.0 */
/* What `yrt inspect` shows of a Go program. */
#ifndef YRT_GO_INSPECT_H
#define YRT_GO_INSPECT_H

#include "error.h"
#include "go.h"
#include "go_code.h"
#include "report.h"

/* config NULL: changes of stacks are not walked; missing: as go_code_switches() returns it. */
struct error *go_inspect(struct go_table *t, u64 bias, const struct go_switches *s, const char *missing,
        const struct go_config *config, struct report *out);

#endif
