/* SPDX-License-Identifier: Apache-2.0 */
/* Words for the numbers of the ABI, as people and JSON read them. All are static strings. */
#ifndef STACKTAP_CLIENT_NAME_H
#define STACKTAP_CLIENT_NAME_H

#include "base/macro.h"

const char *name_of_feature(unsigned int bit);	/* NULL: none known */
const char *name_of_state(unsigned int state);
const char *name_of_cpu_state(unsigned int state);
const char *name_of_mode(unsigned int mode);
const char *name_of_lost(unsigned int reason);
const char *name_of_end(unsigned int reason);
const char *name_of_event(unsigned int kind);
/* "ENOENT" of a positive errno */
const char *name_of_errno(unsigned int error);

#endif /* STACKTAP_CLIENT_NAME_H */
