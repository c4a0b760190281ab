/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP's mapping of its messages to JSON: ids in hex, enums as numbers, 64-bit integers as strings, names in
 * lowerCamelCase.
 */
#ifndef STACKTAP_EXPORT_OTLP_JSON_H
#define STACKTAP_EXPORT_OTLP_JSON_H

#include "base/buffer.h"

struct ProtobufCMessageDescriptor;

/*
 * Append a message of the type that @of describes, OTLP_DATA_DESCRIPTOR for ProfilesData or the request that is the same
 * bytes. -EBADMSG: it is none. -ENOBUFS, -ENOMEM
 */
int otlp_json_append(struct buffer *buffer, const struct ProtobufCMessageDescriptor *of, const uint8_t *data,
		     size_t size);

#endif /* STACKTAP_EXPORT_OTLP_JSON_H */
