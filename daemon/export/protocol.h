/* SPDX-License-Identifier: Apache-2.0 */
/* How OTLP is spoken to a receiver. */
#ifndef STACKTAP_EXPORT_PROTOCOL_H
#define STACKTAP_EXPORT_PROTOCOL_H

enum protocol {
	PROTOCOL_HTTP_PROTOBUF,
	PROTOCOL_GRPC,
	PROTOCOL_HTTP_JSON,
	PROTOCOL_COUNT
};

/* As OTEL_EXPORTER_OTLP_PROTOCOL has them, in that order. */
#define PROTOCOL_NAMES "http/protobuf", "grpc", "http/json"

#endif /* STACKTAP_EXPORT_PROTOCOL_H */
