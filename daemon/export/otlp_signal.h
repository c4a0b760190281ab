/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between the signals that go to an OTLP receiver: where its requests go, and what they say of it. */
#ifndef STACKTAP_EXPORT_OTLP_SIGNAL_H
#define STACKTAP_EXPORT_OTLP_SIGNAL_H

/* Of the profiles' messages, while the signal is in development: their header's number, the one that is encoded. */
#define OTLP_WIRE_VERSION "1"

struct otlp_signal {
	const char *name;	/* in messages, lower case */
	const char *http_path;	/* below a base URL, without the first slash */
	const char *grpc_path;
	const char *header;	/* of each request; NULL: none */
};

extern const struct otlp_signal otlp_profiles, otlp_metrics;

#endif /* STACKTAP_EXPORT_OTLP_SIGNAL_H */
