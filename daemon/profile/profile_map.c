// SPDX-License-Identifier: Apache-2.0
#include "profile/profile_map.h"

#include <string.h>

#define MAP_MAX_CPUS 8192u	/* what the largest kernels are built for */

void profile_map_free(struct profile_map *map)
{
	for (size_t i = 0; i < ARRAY_SIZE(map->cpus); i++) {
		pool_uncharge(POOL_AGGREGATE, map->cpu_count[i] * sizeof(*map->cpus[i]));
		free(map->cpus[i]);
	}
}

bool profile_config_equal(const struct profile_config *a, const struct profile_config *b)
{
	return a->source_id == b->source_id && a->mode == b->mode && a->rate_hz == b->rate_hz &&
	       a->fallback_errno == b->fallback_errno && a->degraded == b->degraded &&
	       a->period == b->period && a->is_multiplexed == b->is_multiplexed &&
	       a->is_clock == b->is_clock && a->is_cpu_time == b->is_cpu_time &&
	       !strncmp(a->source, b->source, sizeof(a->source)) &&
	       !strncmp(a->event, b->event, sizeof(a->event));
}

static void slot_set(struct profile_slot *slot, const struct profile_config *config)
{
	slot->config = *config;
	slot->config.source[sizeof(slot->config.source) - 1] = '\0';
	slot->config.event[sizeof(slot->config.event) - 1] = '\0';
	slot->is_set = true;
	slot->epoch = 0;
}

int profile_map_set(struct profile_map *map, const struct profile_config *config)
{
	if (config->source_id >= ARRAY_SIZE(map->all))
		return -EINVAL;
	slot_set(&map->all[config->source_id], config);
	for (uint32_t i = 0; i < map->cpu_count[config->source_id]; i++)
		map->cpus[config->source_id][i].is_set = false;
	return 0;
}

int profile_map_set_cpu(struct profile_map *map, uint32_t cpu, const struct profile_config *config)
{
	uint16_t id = config->source_id;
	struct profile_slot *slots;
	uint32_t count;

	if (id >= ARRAY_SIZE(map->all) || cpu >= MAP_MAX_CPUS)
		return -EINVAL;
	if (cpu >= map->cpu_count[id]) {
		count = cpu + 1;
		slots = reallocarray(map->cpus[id], count, sizeof(*slots));
		if (!slots)
			return -ENOMEM;
		/* a few dozen bytes per CPU that cannot be done without */
		pool_charge_always(POOL_AGGREGATE, (count - map->cpu_count[id]) * sizeof(*slots));
		memset(slots + map->cpu_count[id], 0,
		       (count - map->cpu_count[id]) * sizeof(*slots));
		map->cpus[id] = slots;
		map->cpu_count[id] = count;
	}
	slot_set(&map->cpus[id][cpu], config);
	return 0;
}

struct profile_slot *profile_map_find(struct profile_map *map, uint16_t source_id, uint32_t cpu)
{
	struct profile_slot *slot;

	if (source_id >= ARRAY_SIZE(map->all))
		return NULL;
	if (cpu < map->cpu_count[source_id] && map->cpus[source_id][cpu].is_set)
		return &map->cpus[source_id][cpu];
	slot = &map->all[source_id];
	/* a sample before any CONFIG record: by the periods that the records carry */
	if (!slot->is_set)
		slot_set(slot, &(struct profile_config){
			.source = "unknown",
			.event = "unknown",
			.source_id = source_id,
			.mode = STACKTAP_MODE_FREQ,
		});
	return slot;
}
