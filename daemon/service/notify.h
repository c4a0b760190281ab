/* SPDX-License-Identifier: Apache-2.0 */
/* What the service manager is told. All of it does nothing outside a Type=notify unit. */
#ifndef STACKTAP_SERVICE_NOTIFY_H
#define STACKTAP_SERVICE_NOTIFY_H

#include "base/macro.h"

void notify_ready(void);
void notify_reloading(void);
void notify_stopping(void);
void notify_status(const char *format, ...) _printf_(1, 2);
void notify_watchdog(void);
/* How often notify_watchdog() must be called, in ms; 0: no watchdog. */
unsigned int notify_watchdog_ms(void);

#endif /* STACKTAP_SERVICE_NOTIFY_H */
