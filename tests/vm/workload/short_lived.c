// SPDX-License-Identifier: Apache-2.0
/*
 * Template of a short-lived program. The test writes copies in which the digits of the function's
 * name and the build-id are other ones.
 */
#include "burn.h"

void own_function_00000(void);

__attribute__((noinline)) void own_function_00000(void)
{
	BURN(50);
}

int main(void)
{
	own_function_00000();
	return 0;
}
