// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <sys/random.h>
#include <time.h>

uint64_t hash_key[4];

__attribute__((constructor)) static void hash_setup(void)
{
	struct timespec now;
	size_t i;

	if (getrandom(hash_key, sizeof(hash_key), GRND_NONBLOCK) != (ssize_t)sizeof(hash_key)) {
		/* early boot: guessable, but tables work */
		clock_gettime(CLOCK_MONOTONIC, &now);
		for (i = 0; i < ARRAY_SIZE(hash_key); i++)
			hash_key[i] = ((uint64_t)now.tv_nsec << 20 ^ (uint64_t)getpid()) *
				      (0x9e3779b97f4a7c15 + 2 * i);
	}
	/* a zero factor would lose the other one */
	for (i = 0; i < ARRAY_SIZE(hash_key); i++)
		hash_key[i] |= (uint64_t)1 << 33 | 1;
}
