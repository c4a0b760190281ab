/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `record -o FILE' makes of a recording, by how FILE ends: a flame graph or another tool's format comes of a
 * file of OTLP beside it, which is there until that is whole.
 */
#ifndef STACKTAP_CLI_RECORD_FORMAT_H
#define STACKTAP_CLI_RECORD_FORMAT_H

#include "base/macro.h"

struct convert_format;

enum record_kind { RECORD_OTLP, RECORD_HTML, RECORD_SVG, RECORD_CONVERTED };

struct record_format {
	const char *output;
	enum record_kind kind;
	const struct convert_format *convert;	/* of RECORD_CONVERTED */
	char *recording;			/* what is recorded to; NULL: output */
};

/* CLI_OK, or says which endings there are. */
int record_format_of(const char *output, struct record_format *ret_format);
static inline const char *record_format_path(const struct record_format *format)
{
	return format->recording ? format->recording : format->output;
}
/* The recording is over: an exit code. Where it fails the recording stays, and that is said. */
int record_format_write(const struct record_format *format, bool is_quiet);
void record_format_done(struct record_format *format);

#endif /* STACKTAP_CLI_RECORD_FORMAT_H */
