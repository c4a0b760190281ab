// SPDX-License-Identifier: Apache-2.0
#include "service/pause.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <zlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "broker/broker.h"

enum {
	SECONDS_PER_MINUTE = 60,
	HUNDRED = 100,
	ID_MAX = 4096,
};

/* Not base/hash.h's, whose key is another one in each run. */
static uint64_t number_of(const char *text, size_t size)
{
	return crc32_z(0, (const Bytef *)text, size);
}

/* By what tells it from others of its fleet: images are copied with a name, and are to have an id of their own. */
void pause_init(struct pause *pause)
{
	_cleanup_free_ char *id = NULL;
	struct utsname name;
	size_t size;

	*pause = (struct pause){ 0 };
	if (file_read(AT_FDCWD, "/etc/machine-id", ID_MAX, &id, &size) == 0 && size)
		pause->host = number_of(id, size);
	else if (uname(&name) == 0)
		pause->host = number_of(name.nodename, strlen(name.nodename));
}

bool pause_samples_minute(uint64_t minute, uint64_t percent, uint64_t host)
{
	const uint64_t at = (minute + host % HUNDRED) % HUNDRED;

	return (at + 1) * percent / HUNDRED != at * percent / HUNDRED;
}

/* Is it there? -errno: that cannot be told. */
static int look_at(const char *kill_switch)
{
	struct stat st;
	const int r = broker_lstat(kill_switch, &st);

	if (r == 0)
		return 1;
	return r == -ENOENT || r == -ENOTDIR ? 0 : r;
}

enum pause_reason pause_wanted(struct pause *pause, const char *kill_switch, uint64_t duty_percent,
			       uint64_t unix_seconds)
{
	const int is_there = kill_switch ? look_at(kill_switch) : 0;

	pause->stats.error = is_there < 0 ? -is_there : 0;
	if (is_there)
		return is_there < 0 ? PAUSE_UNKNOWN : PAUSE_KILL_SWITCH;
	if (!pause_samples_minute(unix_seconds / SECONDS_PER_MINUTE, duty_percent, pause->host))
		return PAUSE_DUTY_CYCLE;
	return PAUSE_NONE;
}

void pause_set(struct pause *pause, enum pause_reason reason, uint64_t now)
{
	pause->stats = pause_stats(pause, now);
	pause->stats.pauses += reason && !pause->reason;
	pause->reason = reason;
	pause->since = reason ? now : 0;
}

struct pause_stats pause_stats(const struct pause *pause, uint64_t now)
{
	struct pause_stats stats = pause->stats;

	stats.paused_ns += pause->since ? now - pause->since : 0;
	return stats;
}

const char *pause_text(enum pause_reason reason)
{
	static const char *const texts[] = {
		[PAUSE_KILL_SWITCH] = "kill switch", [PAUSE_UNKNOWN] = "kill switch cannot be checked",
		[PAUSE_DUTY_CYCLE] = "duty cycle",
	};

	return texts[reason];
}
