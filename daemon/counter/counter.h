/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of counters.def as data: what there is to be told of a daemon, and how it is called. */
#ifndef STACKTAP_COUNTER_COUNTER_H
#define STACKTAP_COUNTER_COUNTER_H

#include "base/macro.h"

enum counter_group {
#define GROUP(id, key, labels, meaning) GROUP_##id,
#include "counter/counters.def"
	GROUP_COUNT
};

enum counter_id {
	COUNTER_NONE,
#define COUNTER(group, name, kind, unit, value, meaning) COUNTER_##group##_##name,
#include "counter/counters.def"
	COUNTER_COUNT
};

enum fact_id {
	FACT_NONE,
#define FACT(group, name, value, meaning) FACT_##group##_##name,
#include "counter/counters.def"
	FACT_COUNT
};

enum counter_kind {
	KIND_SUM,	/* only grows */
	KIND_GAUGE,
	KIND_FLAG,
	KIND_ID,	/* no metric */
};

struct counter {
	enum counter_group group;
	enum counter_kind kind;
	const char *name;	/* in the group's object */
	const char *unit;	/* what is counted */
	const char *meaning;
};

struct counter_fact {
	enum counter_group group;
	const char *name;
};

struct counter_object {
	const char *key;	/* in JSON */
	const char *label;	/* of its instances; "": there is one */
};

extern const struct counter counters[COUNTER_COUNT];	/* but for COUNTER_NONE */
extern const struct counter_fact counter_facts[FACT_COUNT];
extern const struct counter_object counter_objects[GROUP_COUNT];

enum { COUNTER_METRIC_MAX = 96 };

/*
 * The name of its metric family: stacktap_, the object, and what is not the object's name again of the
 * counter's; times and sizes end in _seconds and _bytes. A sum's sample has _total behind it.
 */
void counter_metric(enum counter_id id, char ret_name[static COUNTER_METRIC_MAX]);
/*
 * The same for OTLP: stacktap.OBJECT.REST, where the unit is none of the name: "s", "By", what is counted, in
 * braces, or none. A Collector that translates it for Prometheus ends at counter_metric()'s.
 */
void counter_otlp_name(enum counter_id id, char ret_name[static COUNTER_METRIC_MAX]);
void counter_otlp_unit(enum counter_id id, char ret_unit[static COUNTER_METRIC_MAX]);
/* "seconds", "bytes" or NULL. */
const char *counter_metric_unit(enum counter_id id);

#endif /* STACKTAP_COUNTER_COUNTER_H */
