/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A better estimate of shares from the same samples. A survey of some buffers that threads gave up, chosen at random by
 * their bytes, gives bytes by class and size, but no stacks. A sample gives both, but is one of a few hundred. So
 * samples in buffers are sorted by class and size (*kinds*), and the weights of each kind are scaled so that together
 * they make the survey's bytes.
 *
 * Kinds for which so few samples are expected that there may be none are merged, because a kind without a sample can be
 * given no weight. All objects outside of buffers are reported with their size, and so are the sizes of all buffers:
 * those are exact.
 *
 * Survey and samples each have their own error. The weights are a mean of both, where the error is least. If they
 * differ by more than these errors, the survey was of other buffers (those that a collection ended are in none) and is
 * not used. So the result is never worse than the samples alone.
 */
#ifndef YRT_TLAB_REWEIGHT_H
#define YRT_TLAB_REWEIGHT_H

#include <types.h>

#include "unwind/error.h"
#include "unwind/shared/frame.h"

struct reweighting; /* of one process */

struct error *reweight_create(struct reweighting **ret);
void reweight_destroy(struct reweighting *s);
/* The number of a kind; it has all sizes of one alloc_size_class(). */
struct error *reweight_kind(struct reweighting *s, const struct frame *class, u64 size, u32 *ret);
/* The kind of objects of such a size outside of buffers. */
struct error *reweight_outside(struct reweighting *s, u32 size_class, u32 *ret);
/* A sample stands for so many bytes. */
void reweight_sample(struct reweighting *s, u32 kind, double bytes);
/*
 * Adds the bytes of a kind in a surveyed buffer, the bytes of all kinds there, and the buffer's size; the buffer stands
 * for `by` such buffers.
 */
void reweight_counted(struct reweighting *s, u32 kind, double bytes, double all, double room, double by);
/* Asks how many bytes outside of buffers were handed out in truth. */
void reweight_handed(struct reweighting *s, double (*handed)(void *ctx, u32 size_class), void *ctx);
/*
 * Call when everything is counted; handed: bytes of all buffers that were handed out. Returns how far the survey is
 * followed, from 0 to 1. Before that reweight_factor() is 1.
 */
double reweight_weigh(struct reweighting *s, double handed);
/* What weights of samples of a kind are to be multiplied by. */
double reweight_factor(const struct reweighting *s, u32 kind);

#endif
