/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Samples of OTLP profiles, with their frames resolved: whatever shows a recording reads it by this.
 *
 * Input is foreign: every index is checked, and work and memory are bounded by a message's size. A file that
 * was cut off is read up to its last whole message.
 *
 * Weights are nanoseconds of CPU time where a profile tells them (period times samples, or its
 * values), else events.
 */
#ifndef STACKTAP_VIEW_READER_H
#define STACKTAP_VIEW_READER_H

#include "view/sample.h"

struct reader;

/*
 * @selection: NULL for all. A frame without a name is called by where its function begins, "libc.so.6+0x2a3f0";
 * "[no symbol]" where that is not known, "[no mapping]" without a mapping; or by its address, if @with_addresses.
 */
int reader_new(struct texts *texts, const struct selection *selection, bool with_addresses,
	       const struct reader_sink *sink, struct reader **ret_reader);
void reader_free(struct reader *reader);	/* NULL is fine */
/* When the recording began and ended, where selection_needs_bounds(). */
void reader_set_bounds(struct reader *reader, uint64_t start, uint64_t end);

/*
 * One message. -EBADMSG: no ProfilesData, or one that does not hang together; -E2BIG: too much
 * memory; or what the sink said.
 */
int reader_add(struct reader *reader, const uint8_t *data, size_t size);
const struct reader_totals *reader_totals(const struct reader *reader);
/* The time that is selected. */
struct time_span reader_span(const struct reader *reader);

#endif /* STACKTAP_VIEW_READER_H */
