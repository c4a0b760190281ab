/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One in N of an image's samples, as a rule of [relabel] wants it. Whether a sample is kept depends on its time and thread
 * alone: consistent sampling. So each form of a window, and what is recovered of it, has the same ones, and those that are kept
 * of a larger N are among those of a smaller one. Programs that repeat themselves are not followed, as each
 * sample is drawn for itself. What is kept stands for N times its period.
 */
#ifndef STACKTAP_EXPORT_DOWNSAMPLE_H
#define STACKTAP_EXPORT_DOWNSAMPLE_H

#include "base/buffer.h"
#include "export/profile.h"

enum { DOWNSAMPLE_MAX = 10000 };	/* N */

/* What was kept: parts of samples of their own. */
struct downsample {
	struct buffer parts, samples, times, values;
	size_t count;			/* parts */
	uint64_t kept, left_out;	/* timestamps */
};

void downsample_init(struct downsample *downsample);
void downsample_free(struct downsample *downsample);
void downsample_clear(struct downsample *downsample);	/* gives memory back that is more than the usual */
bool downsample_keeps(uint32_t one_in, uint64_t time, uint32_t tid);
/* Choose of @parts, in place of what was chosen before; @one_in is not 0. -ENOBUFS */
int downsample_choose(struct downsample *downsample, uint32_t one_in, const struct profile_part *parts, size_t count);
const struct profile_part *downsample_parts(const struct downsample *downsample);

#endif /* STACKTAP_EXPORT_DOWNSAMPLE_H */
