/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The BPF object has the maps of all events. To make one takes up to some milliseconds, as does to free it, so only
 * those are made that the programs to be loaded may use: by the relocations of the functions that they call.
 */
#ifndef YRT_USED_MAPS_H
#define YRT_USED_MAPS_H

#include <types.h>

struct sample;

/* Call when the programs are chosen. False: no memory; all are made. */
bool used_maps_only(struct sample *skel);

#endif
