// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "view/recording.h"

#define FROM_NS (2 * NSEC_PER_SEC)
#define STEP_NS (NSEC_PER_SEC / 4)
#define MB 1000000

static struct {
	bool is_watched;
	uint64_t start;		/* CLOCK_MONOTONIC ns; 0: not begun */
	uint64_t bytes, expected;	/* 0: not known */
	uint64_t told;		/* the same, of the last line; 0: none is there */
} progress;

void progress_expect(uint64_t bytes)
{
	progress.bytes = 0;
	progress.expected = bytes;
}

/* A file may grow while it is read. */
static void tell(void)
{
	if (progress.expected)
		fprintf(stderr, "\rreading: %.0f %% ",
			min_of(floor(100 * (double)progress.bytes / (double)progress.expected), 100.0));
	else
		fprintf(stderr, "\rreading: %" PRIu64 " MB ", progress.bytes / MB);
}

void progress_read(size_t bytes)
{
	const uint64_t now = progress.is_watched ? clock_monotonic() : 0;

	if (!progress.is_watched)
		return;
	progress.bytes += bytes;
	if (!progress.start)
		progress.start = now;
	if (now - progress.start < FROM_NS || now - progress.told < STEP_NS)
		return;
	tell();
	progress.told = now;
}

void progress_done(void)
{
	if (progress.told)
		fputs("\r\033[K", stderr);
	progress.told = 0;
}

static void show(size_t bytes, bool is_done)
{
	if (!is_done)
		return progress_read(bytes);
	progress_done();
	/* another pass begins anew */
	progress.bytes = progress.start = 0;
}

void progress_watch(void)
{
	progress.is_watched = isatty(STDERR_FILENO);
	if (progress.is_watched)
		recording_watch(show);
}
