// SPDX-License-Identifier: Apache-2.0
/* A library to load and unload; built as plugin.so. */
#include "burn.h"

void plugin_work(int ms);
void plugin_spin(int turns);

NOINLINE void plugin_work(int ms)
{
	BURN(ms);
}

/* no calls and no data: it runs wherever its page is mapped, the largest of which have 64 KiB */
NOINLINE __attribute__((aligned(65536))) void plugin_spin(int turns)
{
	for (volatile int i = 0; i < turns; i++)
		;
}
