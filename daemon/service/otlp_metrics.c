// SPDX-License-Identifier: Apache-2.0
#include "service/otlp_metrics.h"

#include <string.h>

#include "base/clock.h"
#include "export/attributes.h"
#include "export/otlp.h"
#include "metrics.pb-c.h"

#include <stacktap/version.h>

#define METRICS(name) Opentelemetry__Proto__Metrics__V1__##name
#define metrics_init(name, message) opentelemetry__proto__metrics__v1__##name##__init(message)

typedef METRICS(Metric) Metric;
typedef METRICS(NumberDataPoint) Point;

/* Field numbers of what is assembled piece by piece. */
enum {
	DATA_RESOURCE_METRICS = 1,
	RESOURCE_METRICS_RESOURCE = 1,
	RESOURCE_METRICS_SCOPE_METRICS = 2,
	RESOURCE_METRICS_SCHEMA_URL = 3,
	SCOPE_METRICS_SCOPE = 1,
	SCOPE_METRICS_METRICS = 2,
};

/* A data point, and the attribute that tells it from others of its metric. */
struct labelled {
	Point point;
	OtlpKeyValue pair, *pairs[1];
	OtlpAnyValue value;
};

void otlp_series_init(struct otlp_series *series, uint64_t start)
{
	*series = (struct otlp_series){ .time = start };
	for (unsigned int id = 0; id < COUNTER_COUNT; id++)
		series->start[id] = start;
}

static uint64_t counter_total(const struct snapshot *snapshot, enum counter_id id)
{
	uint64_t total = 0;

	for (unsigned int i = 0; i < snapshot_instances(snapshot, counters[id].group); i++)
		total += snapshot_counter(snapshot, id, i);
	return total;
}

void otlp_series_take(struct otlp_series *series, const struct snapshot *snapshot, uint64_t now)
{
	for (unsigned int id = COUNTER_NONE + 1; id < COUNTER_COUNT; id++) {
		if (counters[id].kind == KIND_SUM && snapshot_has(snapshot, counters[id].group)) {
			const uint64_t total = counter_total(snapshot, id);
			const uint64_t generation = snapshot_generation(snapshot, id);

			if (total < series->total[id] || generation != series->generation[id])
				series->start[id] = series->time;
			series->total[id] = total;
			series->generation[id] = generation;
		}
		/* the clock may have been set back */
		series->start[id] = min_of(series->start[id], now);
	}
	series->time = now;
}

static int append_message(struct buffer *buffer, unsigned int field, const ProtobufCMessage *message)
{
	const size_t size = protobuf_c_message_get_packed_size(message);

	if (buffer_field(buffer, field, size) || !buffer_reserve(buffer, size))
		return -ENOBUFS;
	protobuf_c_message_pack(message, buffer->data + buffer->size);
	buffer->size += size;
	return 0;
}

static int append_bytes(struct buffer *buffer, unsigned int field, const void *data, size_t size)
{
	return buffer_field(buffer, field, size) ?: buffer_append(buffer, data, size);
}

static void fill_point(struct labelled *labelled, const struct snapshot *snapshot, const struct otlp_series *series,
		       enum counter_id id, unsigned int instance)
{
	const struct counter *counter = &counters[id];
	const char *label = snapshot_label(snapshot, counter->group, instance);
	const uint64_t value = snapshot_counter(snapshot, id, instance);
	Point *point = &labelled->point;

	metrics_init(number_data_point, point);
	point->time_unix_nano = series->time;
	if (counter->kind == KIND_SUM)
		point->start_time_unix_nano = series->start[id];
	if (strcmp(counter->unit, "ns")) {
		point->value_case = OPENTELEMETRY__PROTO__METRICS__V1__NUMBER_DATA_POINT__VALUE_AS_INT;
		point->as_int = (int64_t)min_of(value, (uint64_t)INT64_MAX);
	} else {
		point->value_case = OPENTELEMETRY__PROTO__METRICS__V1__NUMBER_DATA_POINT__VALUE_AS_DOUBLE;
		point->as_double = (double)value / (double)NSEC_PER_SEC;
	}
	if (!label)
		return;
	otlp_common_init(any_value, &labelled->value);
	otlp_common_init(key_value, &labelled->pair);
	labelled->value.value_case = OTLP_VALUE_STRING;
	labelled->value.string_value = (char *)(uintptr_t)label;
	labelled->pair.key = (char *)(uintptr_t)counter_objects[counter->group].label;
	labelled->pair.value = &labelled->value;
	labelled->pairs[0] = &labelled->pair;
	point->attributes = labelled->pairs;
	point->n_attributes = 1;
}

static int append_points(struct buffer *buffer, enum counter_id id, Point **points, size_t count)
{
	const struct counter *counter = &counters[id];
	char name[COUNTER_METRIC_MAX], unit[COUNTER_METRIC_MAX];
	METRICS(Gauge) gauge;
	METRICS(Sum) sum;
	Metric metric;

	metrics_init(metric, &metric);
	counter_otlp_name(id, name);
	counter_otlp_unit(id, unit);
	metric.name = name;
	metric.unit = unit;
	metric.description = (char *)(uintptr_t)counter->meaning;
	if (counter->kind == KIND_SUM) {
		metrics_init(sum, &sum);
		sum.data_points = points;
		sum.n_data_points = count;
		sum.is_monotonic = true;
		sum.aggregation_temporality =
			OPENTELEMETRY__PROTO__METRICS__V1__AGGREGATION_TEMPORALITY__AGGREGATION_TEMPORALITY_CUMULATIVE;
		metric.data_case = OPENTELEMETRY__PROTO__METRICS__V1__METRIC__DATA_SUM;
		metric.sum = &sum;
	} else {
		metrics_init(gauge, &gauge);
		gauge.data_points = points;
		gauge.n_data_points = count;
		metric.data_case = OPENTELEMETRY__PROTO__METRICS__V1__METRIC__DATA_GAUGE;
		metric.gauge = &gauge;
	}
	return append_message(buffer, SCOPE_METRICS_METRICS, &metric.base);
}

static int append_metric(struct buffer *buffer, const struct snapshot *snapshot, const struct otlp_series *series,
			 enum counter_id id)
{
	const unsigned int count = snapshot_instances(snapshot, counters[id].group);
	_cleanup_free_ struct labelled *labelled = calloc(count + 1, sizeof(*labelled));
	_cleanup_free_ Point **points = calloc(count + 1, sizeof(*points));
	int err;

	if (!labelled || !points)
		return -ENOMEM;
	for (unsigned int i = 0; i < count; i++) {
		fill_point(&labelled[i], snapshot, series, id, i);
		points[i] = &labelled[i].point;
	}
	err = count ? append_points(buffer, id, points, count) : 0;
	return err ?: (int)count;
}

/* A ScopeMetrics' content. Returns its data points. */
static int append_scope(struct buffer *buffer, const struct snapshot *snapshot, const struct otlp_series *series)
{
	OtlpScope scope;
	int err, points = 0;

	otlp_common_init(instrumentation_scope, &scope);
	scope.name = (char *)(uintptr_t)"stacktap";
	scope.version = (char *)(uintptr_t)STACKTAP_VERSION;
	err = append_message(buffer, SCOPE_METRICS_SCOPE, &scope.base);
	for (unsigned int id = COUNTER_NONE + 1; err >= 0 && id < COUNTER_COUNT; id++) {
		if (counters[id].kind == KIND_ID || !snapshot_has(snapshot, counters[id].group))
			continue;
		err = append_metric(buffer, snapshot, series, id);
		points += max_of(err, 0);
	}
	return err < 0 ? err : points;
}

static void attributes_freep(struct attributes **attributes)
{
	attributes_free(*attributes);
}

static int append_resource(struct buffer *buffer, const struct encode_attribute *resource, size_t count)
{
	_cleanup_(attributes_freep) struct attributes *attributes = attributes_new();
	OtlpResource message;

	if (!attributes)
		return -ENOMEM;
	/* the first of a key counts: service.name of the configuration is that of what is profiled */
	attributes_string(attributes, "service.name", "stacktapd");
	attributes_string(attributes, "service.version", STACKTAP_VERSION);
	for (size_t i = 0; i < count; i++) {
		attributes_string(attributes, resource[i].key, resource[i].value);
		if (!strcmp(resource[i].key, "host.id"))
			attributes_string(attributes, "service.instance.id", resource[i].value);
	}
	if (attributes->error)
		return -ENOMEM;
	opentelemetry__proto__resource__v1__resource__init(&message);
	message.attributes = attributes->pointers;
	message.n_attributes = attributes->count;
	return append_message(buffer, RESOURCE_METRICS_RESOURCE, &message.base);
}

int otlp_metrics_append(struct buffer *buffer, const struct snapshot *snapshot, const struct otlp_series *series,
			const struct encode_attribute *resource, size_t resource_count)
{
	struct buffer scope, whole;
	int err, points;

	buffer_init(&scope, POOL_ENCODE);
	buffer_init(&whole, POOL_ENCODE);
	points = append_scope(&scope, snapshot, series);
	err = min_of(points, 0) ?:
	      append_resource(&whole, resource, resource_count) ?:
	      append_bytes(&whole, RESOURCE_METRICS_SCOPE_METRICS, scope.data, scope.size) ?:
	      append_bytes(&whole, RESOURCE_METRICS_SCHEMA_URL, OTLP_SCHEMA_URL, strlen(OTLP_SCHEMA_URL)) ?:
	      append_bytes(buffer, DATA_RESOURCE_METRICS, whole.data, whole.size);
	buffer_free(&whole);
	buffer_free(&scope);
	return err ?: points;
}
