/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a goroutine has besides its functions, shown outside of the outermost of them on request: its creator, its
 * labels, its number.
 */
#ifndef YRT_GO_ROOT_H
#define YRT_GO_ROOT_H

#include "go.h"
#include "go_table.h"
#include "runtime.h"

/*
 * Where the walker finds what was requested. An error says why it is not available, for example because the process
 * contradicts the layout of its release; ret->details is 0 then. *starting: there is no goroutine yet to check the
 * layout on.
 */
struct error *go_root_configure(
        const struct runtime_process *p, struct go_table *t, u64 bias, struct go_config *ret, bool *starting);
/* Names a frame that holds such information. False: it is another. */
bool go_root_name(
        struct go_table *t, u64 bias, const struct runtime_process *p, const struct frame *f, struct frame_name *ret);

#endif
