// SPDX-License-Identifier: Apache-2.0
#include "base/fair.h"

#include <string.h>

#include "base/clock.h"
#include "base/hash.h"

#define WINDOW_NS (15 * NSEC_PER_SEC)

void fair_init(struct fair *fair, uint64_t limit, unsigned int part, uint64_t now)
{
	*fair = (struct fair){ .window = now / WINDOW_NS };
	credit_init(&fair->credit, limit, part, now);
}

struct slots {
	uint64_t *first, *second;
};

static struct slots slots_of(struct fair *fair, uint32_t who, uint64_t now)
{
	const uint64_t words[] = { who, now / WINDOW_NS };
	const uint64_t hash = hash_words(words, ARRAY_SIZE(words));

	if (fair->window != words[1]) {
		fair->window = words[1];
		memset(fair->spent, 0, sizeof(fair->spent));
	}
	return (struct slots){ &fair->spent[0][hash % FAIR_SLOTS], &fair->spent[1][(hash >> 32) % FAIR_SLOTS] };
}

uint64_t fair_spent(struct fair *fair, uint32_t who, uint64_t now)
{
	const struct slots slots = slots_of(fair, who, now);

	return min_of(*slots.first, *slots.second);
}

bool fair_may(struct fair *fair, uint32_t who, uint64_t now)
{
	return fair_spent(fair, who, now) < credit_left(&fair->credit, now);
}

void fair_spend(struct fair *fair, uint32_t who, uint64_t began, uint64_t now, uint64_t starved)
{
	const uint64_t spent = now - began - min_of(starved, (now - began) / 2);
	const struct slots slots = slots_of(fair, who, now);

	credit_spend(&fair->credit, now - spent, now);
	*slots.first += spent;
	*slots.second += spent;
}
