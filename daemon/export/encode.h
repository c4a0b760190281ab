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
};

/*
 * Calls @sink for each payload, which takes ownership of data. 0, the first non-zero of @sink, or
 * -ENOBUFS and -ENOMEM: what was not yet handed over is lost. -E2BIG: too many resource attributes. A sample that no
 * payload has memory for is left out; with @options->wants_all that is -ENOBUFS, once all others are handed over.
 */
int encode_window(const struct encode_options *options, const struct window *window,
		  int (*sink)(void *ctx, struct payload *payload), void *ctx);

#endif /* STACKTAP_EXPORT_ENCODE_H */
