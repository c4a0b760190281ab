/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STACKTAP_CLIENT_NLERROR_H
#define STACKTAP_CLIENT_NLERROR_H

/*
 * A negative errno for what a function of libnl returned, or what stands in libnl's table, where
 * numbers are positive. errno still has to be what that function left.
 */
int nlerror_to_errno(int nle);

#endif /* STACKTAP_CLIENT_NLERROR_H */
