/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenTelemetry's environment variables: OTEL_EXPORTER_OTLP_*, with OTEL_EXPORTER_OTLP_PROFILES_*
 * before the generic ones, OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME. An empty variable is an
 * unset one.
 */
#ifndef STACKTAP_EXPORT_ENVIRONMENT_H
#define STACKTAP_EXPORT_ENVIRONMENT_H

#include "base/macro.h"
#include "export/encode_options.h"
#include "export/otlp_signal.h"
#include "export/protocol.h"

struct environment {
	bool is_disabled;		/* OTEL_SDK_DISABLED=true: export nothing */
	char *endpoint;			/* full URL of the profiles signal over HTTP, NULL: none given */
	char *grpc_endpoint;		/* the same over gRPC */
	char *metrics_endpoint, *metrics_grpc_endpoint;	/* the same of the metrics signal */
	/* by a variable of the signal's own */
	bool has_profiles_endpoint, has_metrics_endpoint;
	uint64_t metrics_interval_ms;	/* OTEL_METRIC_EXPORT_INTERVAL, 0: not given */
	bool has_protocol;		/* PROTOCOL was given */
	enum protocol protocol;
	char *headers;			/* as given; see environment_each_pair() */
	char *certificate, *client_certificate, *client_key;
	char *generic_headers;		/* OTEL_EXPORTER_OTLP_HEADERS alone */
	char *metrics_headers;		/* OTEL_EXPORTER_OTLP_METRICS_HEADERS alone */
	/* the metrics signal's, or the generic ones */
	char *metrics_certificate, *metrics_client_certificate, *metrics_client_key;
	bool has_compression;		/* COMPRESSION was given */
	unsigned int compression;	/* enum compression */
	unsigned int timeout_ms;	/* 0: not given */
	char *service_name;
	struct encode_attribute *resource; /* OTEL_RESOURCE_ATTRIBUTES, percent-decoded */
	size_t resource_count;
};

/* -EINVAL: a variable has a value that cannot be used; *ret_error is a sentence that says which. */
int environment_load(struct environment *ret_environment, char *ret_error, size_t error_size);
void environment_free(struct environment *environment);

/*
 * k1=v1,k2=v2 with percent-encoding, as HEADERS and RESOURCE_ATTRIBUTES have it: calls @each with
 * decoded strings. -EINVAL for text that is not of this form, else the first non-zero of @each.
 */
int environment_each_pair(const char *text, int (*each)(void *ctx, const char *key, const char *value),
			  void *ctx);

/* Is it of this form? */
bool environment_is_pairs(const char *text);

/* A signal's URL below a base URL: appends its path, or gRPC's; unix:/PATH stays as it is. NULL: no memory. */
char *environment_signal_url(const char *base, const struct otlp_signal *of, bool is_grpc);
/* Does it begin with http://, https:// or unix:/? */
bool environment_is_url(const char *text);

#endif /* STACKTAP_EXPORT_ENVIRONMENT_H */
