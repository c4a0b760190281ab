// SPDX-License-Identifier: Apache-2.0
/* context SECONDS: publishes what its SDK would say of it, and computes now and then. */
#include <stdlib.h>

#include "burn.h"
#include "publish.h"

int main(int argc, char **argv)
{
	static struct payload payload;
	struct published *context = publish_place();

	if (argc != 2 || context == MAP_FAILED)
		return 2;
	payload_add(&payload, "service.name", "cart");
	payload_add(&payload, "service.version", "1.2, beta");
	payload_add(&payload, "host.name", "a lie");
	publish_payload(context, &payload);
	for (const uint64_t end = boot_time() + strtoull(argv[1], NULL, 10) * 1000000000; boot_time() < end;) {
		BURN(20);
		usleep(40000);
	}
	return 0;
}
