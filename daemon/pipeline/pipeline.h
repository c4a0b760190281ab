/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The three threads: A drains and aggregates, B names, C encodes and exports; bounded queues
 * between them; D writes the journal, if there is one. The daemon and `stacktap record` run the same pipeline with other ends.
 */
#ifndef STACKTAP_PIPELINE_PIPELINE_H
#define STACKTAP_PIPELINE_PIPELINE_H

#include "pipeline/options.h"
#include "pipeline/stats.h"

struct pipeline;

/*
 * Open the session, scan /proc, start threads and sampling. On failure *ret_error is a sentence
 * that names cause and remedy.
 */
int pipeline_start(const struct pipeline_options *options, struct pipeline **ret_pipeline,
		   char *ret_error, size_t error_size);
uint64_t pipeline_session_id(const struct pipeline *pipeline);
/* As struct capture_options has it, from now on. */
void pipeline_set_purpose(struct pipeline *pipeline, uint64_t purpose);
/*
 * From any thread: close the window that is open, whatever its age. Returns a number of that closing, which no other
 * pipeline gives. Has the sink had all windows up to it? Also true where that pipeline has ended.
 */
uint64_t pipeline_close_window(struct pipeline *pipeline);
bool pipeline_has_closed(struct pipeline *pipeline, uint64_t closing);
/* Sample no more, or again; everything else goes on. From the thread that started it. */
int pipeline_hold(struct pipeline *pipeline, bool is_held);
/* Stop sampling, drain everything through to the sink, join the threads. */
int pipeline_stop(struct pipeline *pipeline);
void pipeline_free(struct pipeline *pipeline);

void pipeline_stats(struct pipeline *pipeline, struct pipeline_stats *ret_stats);

#endif /* STACKTAP_PIPELINE_PIPELINE_H */
