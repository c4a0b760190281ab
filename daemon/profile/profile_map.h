/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which configuration holds for a source on a CPU: what the newest CONFIG record of that CPU's ring
 * said, or what was set for all CPUs.
 */
#ifndef STACKTAP_PROFILE_PROFILE_MAP_H
#define STACKTAP_PROFILE_PROFILE_MAP_H

#include "profile/window.h"

struct profile_slot {
	struct profile_config config;
	bool is_set;
	uint32_t epoch;		/* of the window that @position is in, 0: none */
	uint16_t position;	/* in window.profiles */
};

struct profile_map {
	struct profile_slot all[STACKTAP_MAX_SOURCES];
	struct profile_slot *cpus[STACKTAP_MAX_SOURCES];
	uint32_t cpu_count[STACKTAP_MAX_SOURCES];
};

void profile_map_free(struct profile_map *map);
int profile_map_set(struct profile_map *map, const struct profile_config *config);
int profile_map_set_cpu(struct profile_map *map, uint32_t cpu, const struct profile_config *config);
/* NULL: the source is out of range. A source nobody configured is called "unknown". */
struct profile_slot *profile_map_find(struct profile_map *map, uint16_t source_id, uint32_t cpu);

bool profile_config_equal(const struct profile_config *a, const struct profile_config *b);

#endif /* STACKTAP_PROFILE_PROFILE_MAP_H */
