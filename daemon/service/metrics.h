/* SPDX-License-Identifier: Apache-2.0 */
/* A snapshot as OpenMetrics 1.0: each counter of counter/counters.def that is a number is a family. */
#ifndef STACKTAP_SERVICE_METRICS_H
#define STACKTAP_SERVICE_METRICS_H

#include "service/snapshot.h"

#define METRICS_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

void metrics_print(FILE *stream, const struct snapshot *snapshot);

#endif /* STACKTAP_SERVICE_METRICS_H */
