/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The payload of an OpenTelemetry process context, a protobuf message ProcessContext: what of its Resource a
 * process may say of itself, see process/details.h.
 */
#ifndef STACKTAP_SYMBOL_CONTEXT_H
#define STACKTAP_SYMBOL_CONTEXT_H

#include "base/macro.h"

enum {
	CONTEXT_NAME_BYTES = 256,
	CONTEXT_TEXT_BYTES = 1025,
};

struct context_facts {
	char service_name[CONTEXT_NAME_BYTES];	/* empty: it has none */
	char attributes[CONTEXT_TEXT_BYTES];	/* as in OTEL_RESOURCE_ATTRIBUTES, DETAILS_MAX_ATTRIBUTES at most */
};

/* -EBADMSG: it is no such message. */
int context_parse(const uint8_t *data, size_t size, struct context_facts *ret_facts);

#endif /* STACKTAP_SYMBOL_CONTEXT_H */
