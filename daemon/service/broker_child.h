/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker's end: what a process does that was started under this name, see broker/broker.h. Its constructor never
 * returns then, so main() is not run.
 */
#ifndef STACKTAP_SERVICE_BROKER_CHILD_H
#define STACKTAP_SERVICE_BROKER_CHILD_H

extern const char broker_name[];	/* "stacktap-broker": its argv[0] */

#endif /* STACKTAP_SERVICE_BROKER_CHILD_H */
