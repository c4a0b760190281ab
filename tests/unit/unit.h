/* SPDX-License-Identifier: Apache-2.0 */
/* cmocka with what it wants included before it. */
#ifndef STACKTAP_TESTS_UNIT_H
#define STACKTAP_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/macro.h"

#endif /* STACKTAP_TESTS_UNIT_H */
