// SPDX-License-Identifier: Apache-2.0
#include "service/notify.h"

#include <inttypes.h>
#include <stdarg.h>
#include <systemd/sd-daemon.h>
#include <time.h>

enum { US_PER_MS = 1000, US_PER_S = 1000000, NS_PER_US = 1000 };

void notify_ready(void)
{
	sd_notify(0, "READY=1");
}

void notify_reloading(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
		   (uint64_t)now.tv_sec * US_PER_S + (uint64_t)now.tv_nsec / NS_PER_US);
}

void notify_stopping(void)
{
	sd_notify(0, "STOPPING=1");
}

void notify_status(const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	sd_notifyf(0, "STATUS=%s", text);
}

void notify_watchdog(void)
{
	sd_notify(0, "WATCHDOG=1");
}

unsigned int notify_watchdog_ms(void)
{
	uint64_t timeout_us;

	if (sd_watchdog_enabled(0, &timeout_us) <= 0)
		return 0;
	/* twice as often as asked for, as sd_watchdog_enabled(3) says */
	return (unsigned int)max_of(timeout_us / US_PER_MS / 2, (uint64_t)1);
}
