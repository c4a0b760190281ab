// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "view/recording.h"

#define FROM_NS (2 * NSEC_PER_SEC)
#define STEP_NS (NSEC_PER_SEC / 4)
#define MB 1000000

static struct {
	uint64_t start;		/* CLOCK_MONOTONIC ns; 0: not begun */
	uint64_t bytes;
	uint64_t told;		/* the same, of the last line; 0: none is there */
} progress;

static void show(size_t bytes, bool is_done)
{
	const uint64_t now = clock_monotonic();

	if (is_done) {
		if (progress.told)
			fputs("\r\033[K", stderr);
		progress.told = 0;
		return;
	}
	progress.bytes += bytes;
	if (!progress.start)
		progress.start = now;
	if (now - progress.start < FROM_NS || now - progress.told < STEP_NS)
		return;
	fprintf(stderr, "\rreading: %" PRIu64 " MB ", progress.bytes / MB);
	progress.told = now;
}

void progress_watch(void)
{
	if (isatty(STDERR_FILENO))
		recording_watch(show);
}
