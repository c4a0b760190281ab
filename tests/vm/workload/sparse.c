// SPDX-License-Identifier: Apache-2.0
/* Code in two segments that lie far apart: of what is in between no unwind table has an index. usage: sparse SECONDS */
#include <stdlib.h>

#include "burn.h"

static NOINLINE __attribute__((section(".far"))) void far_away(int seconds)
{
	BURN(seconds * 1000);
}

int main(int argc, char **argv)
{
	far_away(argc > 1 ? atoi(argv[1]) : 1);
	return 0;
}
