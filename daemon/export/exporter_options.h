/* SPDX-License-Identifier: Apache-2.0 */
/* Where payloads go: to a receiver, and how, and into a store; and where what has to wait is kept. */
#ifndef STACKTAP_EXPORT_EXPORTER_OPTIONS_H
#define STACKTAP_EXPORT_EXPORTER_OPTIONS_H

#include "base/macro.h"

struct exporter_options {
	const char *endpoint;		/* full URL, or unix:/PATH; NULL: local store only */
	bool is_grpc;			/* over gRPC, else over HTTP */
	const char *headers;		/* OTEL_EXPORTER_OTLP_HEADERS syntax, or NULL */
	const char *certificate, *client_certificate, *client_key; /* files, or NULL */
	bool compress;			/* gzip */
	unsigned int timeout_ms;	/* of one request, 0: 10 s */
	unsigned int backoff_min_ms;	/* first pause before a retry, doubled each time; 0: 1 s */
	unsigned int backoff_max_ms;	/* 0: 30 s */
	const char *store_directory;	/* NULL: no local store */
	uint64_t store_max_bytes, store_max_age_ms;
	const char *spool_directory;	/* NULL: what waits does so in memory; for an endpoint alone */
	uint64_t spool_max_bytes, spool_max_age_ms;
	bool with_journal;		/* in the spool's directory, or the store's */
	unsigned int spool_retry_ms;	/* before one that could not be opened is tried again; 0: 60 s */
};

#endif /* STACKTAP_EXPORT_EXPORTER_OPTIONS_H */
