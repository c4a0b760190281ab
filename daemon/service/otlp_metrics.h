/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot as OTLP metrics: the families of service/metrics.h as cumulative sums and gauges. Their names are such that
 * a Collector that translates them for Prometheus ends where that endpoint's names are.
 */
#ifndef STACKTAP_SERVICE_OTLP_METRICS_H
#define STACKTAP_SERVICE_OTLP_METRICS_H

#include "base/buffer.h"
#include "export/encode_options.h"
#include "service/snapshot.h"

/*
 * Since when each sum counts. It begins anew when what counts it does, as with a new session; sums of one group may
 * be counted by several, of which others go on.
 */
struct otlp_series {
	uint64_t start[COUNTER_COUNT];	/* ns since 1970 */
	uint64_t total[COUNTER_COUNT];	/* of all its instances, when it was told last */
	uint64_t generation[COUNTER_COUNT]; /* of what counted it then */
	uint64_t time;			/* of that */
};

/* What began at @start. */
void otlp_series_init(struct otlp_series *series, uint64_t start);
/*
 * A sum that something else counts now, or that has become less, began anew at some time since the last snapshot, for
 * which that one's stands. One that is not told this time goes on.
 */
void otlp_series_take(struct otlp_series *series, const struct snapshot *snapshot, uint64_t now);

/*
 * Append a MetricsData, which is a request for MetricsService as well, of the snapshot that @series took last.
 * @resource: of this host. Returns its data points, -ENOBUFS or -ENOMEM.
 */
int otlp_metrics_append(struct buffer *buffer, const struct snapshot *snapshot, const struct otlp_series *series,
			const struct encode_attribute *resource, size_t resource_count);

#endif /* STACKTAP_SERVICE_OTLP_METRICS_H */
