/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind tables and mapping lists that nobody would compile, from a seed. */
#ifndef KMODTEST_FORGE_H
#define KMODTEST_FORGE_H

#include <stddef.h>
#include <stdint.h>

#include "client.h"

struct dice {
	uint64_t state;
};

void dice_seed(struct dice *dice, uint64_t seed);
/* Below @limit, which is not 0. */
uint64_t dice_roll(struct dice *dice, uint64_t limit);

/*
 * A sound table of about @bytes of code from @start on, with random rows and rules: of what rules can
 * say everything comes up. To be freed.
 */
void *forge_table(struct dice *dice, uint64_t start, uint64_t bytes, size_t *ret_size);
/* Spoil @data in one of many ways; the checksum is made good again, mostly. */
void forge_spoil(struct dice *dice, void *data, size_t size);
/* Bytes behind a header that looks good. To be freed. */
void *forge_noise(struct dice *dice, size_t *ret_size);

/* What the module has to say of it: 0 or -EINVAL. */
int forge_verdict(const void *data, size_t size);

/*
 * A list of at most @max mappings with tables out of @ids, sound or not. Some of it covers the code
 * and the stack of this program.
 */
uint32_t forge_list(struct dice *dice, struct stacktap_mapping *mappings, uint32_t max,
		    const uint64_t *ids, const uint64_t *starts, unsigned int nr_ids);
/* As above, or 1 when it depends on the machine. */
int forge_list_verdict(const struct stacktap_mapping *mappings, uint32_t count);

#endif /* KMODTEST_FORGE_H */
