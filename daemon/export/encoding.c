// SPDX-License-Identifier: Apache-2.0
#include "export/encoding.h"

#include "base/log.h"
#include "export/grpc.h"

/*
 * What servers say to a compression that they do not know, or take for the message itself. Of one that took it
 * before only 415 is: all else is for the payload.
 */
static bool refuses_zstd(const struct encoding *encoding, const struct http_answer *answer)
{
	if (answer->status == 415)
		return true;
	return !encoding->takes_zstd &&
	       (answer->status == 400 || answer->grpc_code == GRPC_UNIMPLEMENTED ||
		answer->grpc_code == GRPC_INVALID_ARGUMENT || answer->grpc_code == GRPC_INTERNAL);
}

bool encoding_suits(const struct encoding *encoding, enum compression compression)
{
	return compression != COMPRESSION_ZSTD || encoding->compression == COMPRESSION_ZSTD;
}

bool encoding_learn(struct encoding *encoding, enum compression compression, const struct http_answer *answer)
{
	if (compression != COMPRESSION_ZSTD)
		return true;
	encoding->takes_zstd |= answer->result == HTTP_ACCEPTED;
	if (!refuses_zstd(encoding, answer))
		return true;
	if (encoding->compression == COMPRESSION_ZSTD)
		log_warning("the receiver%s%s does not accept zstd (%s): payloads are sent with gzip from now on; set "
			    "compression = gzip", *encoding->name ? " " : "", encoding->name, answer->text);
	encoding->compression = COMPRESSION_GZIP;
	return false;
}
