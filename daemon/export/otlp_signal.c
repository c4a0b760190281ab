// SPDX-License-Identifier: Apache-2.0
#include "export/otlp_signal.h"

const struct otlp_signal otlp_profiles = {
	.name = "profiles",
	.http_path = "v1development/profiles",
	.grpc_path = "opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
	.header = "OTLP-Profiles-Development-Version: " OTLP_WIRE_VERSION,
};

const struct otlp_signal otlp_metrics = {
	.name = "metrics",
	.http_path = "v1/metrics",
	.grpc_path = "opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
};
