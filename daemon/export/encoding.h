/* SPDX-License-Identifier: Apache-2.0 */
/* The compression that a receiver takes, as far as is known: one that refuses zstd gets gzip from then on. */
#ifndef STACKTAP_EXPORT_ENCODING_H
#define STACKTAP_EXPORT_ENCODING_H

#include "export/http.h"

struct encoding {
	const char *name;			/* the destination's; "": there is but one */
	_Atomic enum compression compression;	/* others read it, one thread changes it */
	bool takes_zstd;			/* the receiver took a payload so */
};

/* Whether what is compressed so can be sent. */
bool encoding_suits(const struct encoding *encoding, enum compression compression);
/* What the answer to a request says of the compression that it had. False: not this one, from now on. */
bool encoding_learn(struct encoding *encoding, enum compression compression, const struct http_answer *answer);

#endif /* STACKTAP_EXPORT_ENCODING_H */
