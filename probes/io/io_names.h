/* SPDX-License-Identifier: Apache-2.0 */
/* Names of files and peers: "/var/log/x.log (deleted)", "10.0.0.5:5432", ":8080 from 10.0.0.7", "@/tmp/.X11". */
#ifndef YRT_IO_NAMES_H
#define YRT_IO_NAMES_H

#include "unwind/error.h"
#include "unwind/table.h"

#define IO_PIPES 64 /* have names of their own: pipe:[4711], as in /proc/PID/fd */

struct io_names {           /* all zero at first */
	struct table texts; /* by key: a string, owned */
	u32 n;
	u32 pipes;
};

/* A struct io_object as it arrived; one that does not hold together is dropped. */
struct error *io_names_add(struct io_names *names, const void *data, size_t size);
/* text: REASON_LEN bytes; of one that is longer its end. "" stays where it is not known. */
void io_names_text(const struct io_names *names, u64 key, char *text);
void io_names_free(struct io_names *names);

#endif
