// SPDX-License-Identifier: Apache-2.0
#include "base/fingerprint.h"

#include <sys/random.h>
#include <time.h>

uint64_t fingerprint_key[4];

__attribute__((constructor)) static void fingerprint_setup(void)
{
	struct timespec now;
	size_t i;

	if (getrandom(fingerprint_key, sizeof(fingerprint_key), GRND_NONBLOCK) !=
	    (ssize_t)sizeof(fingerprint_key)) {
		/* early boot: guessable, but tables work */
		clock_gettime(CLOCK_MONOTONIC, &now);
		for (i = 0; i < ARRAY_SIZE(fingerprint_key); i++)
			fingerprint_key[i] = ((uint64_t)now.tv_nsec << 20 ^ (uint64_t)getpid()) *
				      (0x9e3779b97f4a7c15 + 2 * i);
	}
	/* a zero factor would lose the other one */
	for (i = 0; i < ARRAY_SIZE(fingerprint_key); i++)
		fingerprint_key[i] |= (uint64_t)1 << 33 | 1;
}
