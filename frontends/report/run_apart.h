/* SPDX-License-Identifier: Apache-2.0 */
/* A view's run, in a process of its own: one that fails, or that takes too long, leaves the others. */
#ifndef YRT_REPORT_RUN_APART_H
#define YRT_REPORT_RUN_APART_H

#include "measure.h"

struct taking {
	const struct event_ops *event;
	double seconds, rate; /* rate: samples a second, where the event has one */
	const char *path;     /* of the recording */
	bool wakers;          /* who ends waits, too */
};

/* Its error is that of the run. m->overhead becomes the mean of what runs took beyond their own time. */
struct error *run_apart(struct measure *m, const struct evidence *e, const struct taking *t);

#endif
