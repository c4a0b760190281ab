/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stacktap says of the samples of a Profile, or of several: a number for each attribute that counter/counters.def
 * shares with Profiles and that adds up.
 */
#ifndef STACKTAP_VIEW_QUALITY_H
#define STACKTAP_VIEW_QUALITY_H

#include "base/json.h"

struct view_quality {
#define QUALITY_SUM(name) uint64_t name;
#define QUALITY_GAUGE(name)
#define SHARED(group, name, kind, unit, rule, own, value, meaning) QUALITY_##kind(name)
#include "counter/counters.def"
#undef QUALITY_SUM
#undef QUALITY_GAUGE
};

/* The number of an attribute's key, "stacktap.NAME"; NULL: there is none. */
uint64_t *quality_find(struct view_quality *quality, const char *key);
void quality_add(struct view_quality *sum, const struct view_quality *quality);
/* Each but the number of samples, which is known otherwise, as a member of the object at hand. */
void quality_json(const struct view_quality *quality, struct json *json);

#endif /* STACKTAP_VIEW_QUALITY_H */
