/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows to OTLP: ExportProfilesServiceRequest, which is also ProfilesData (the same bytes).
 *
 * Entry by entry into one buffer per dictionary table, never a message tree; only referenced entries,
 * renumbered; a payload is closed when its running size reaches the limit, split by resource first.
 * Buffers are charged to POOL_ENCODE.
 */
#ifndef STACKTAP_EXPORT_ENCODE_H
#define STACKTAP_EXPORT_ENCODE_H

#include "export/encode_options.h"
#include "profile/window.h"

struct payload {
	uint8_t *data;
	size_t size;
	uint64_t samples;		/* timestamps */
	uint64_t profiles;
	uint64_t window;		/* its number */
	unsigned int form;		/* the sink's: of several forms of the window, the one that it has */
	bool is_last;			/* of the window; no payload is where rules leave out its end */
	bool continues;			/* the ones before it: its dictionary has what theirs do not have */
};

/*
 * Calls @sink for each payload, which takes ownership of data. 0, the first non-zero of @sink, or
 * -ENOBUFS and -ENOMEM: what was not yet handed over is lost. -E2BIG: too many resource attributes.
 */
int encode_window(const struct encode_options *options, const struct window *window,
		  int (*sink)(void *ctx, struct payload *payload), void *ctx);

/*
 * The same for parts of open windows, in turn. Payloads from one that does not continue up to the next such one are of
 * one window and one message, of max_bytes at most: ResourceProfiles and dictionaries appended to each other. After an
 * error, and when one was not kept, there is nothing to continue: free it and begin anew.
 */
struct encoder;
int encoder_new(const struct encode_options *options, struct encoder **ret_encoder);
void encoder_free(struct encoder *encoder);	/* NULL is fine */
int encoder_add(struct encoder *encoder, const struct window *part,
		int (*sink)(void *ctx, struct payload *payload), void *ctx);

#endif /* STACKTAP_EXPORT_ENCODE_H */
