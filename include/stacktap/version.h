/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The one place that states the version of the product. */
#ifndef STACKTAP_VERSION_H
#define STACKTAP_VERSION_H

#define STACKTAP_VERSION "0.1.0"

#endif /* STACKTAP_VERSION_H */
