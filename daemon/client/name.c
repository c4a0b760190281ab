// SPDX-License-Identifier: Apache-2.0
#include "client/name.h"

#include <linux/stacktap.h>
#include <string.h>

static const char *const features[] = {
	"kernel-stacks", "user-frame-pointers", "tables", "stack-slices", "trace-context", "nmi",
	"task-filters",
};

static const char *const states[] = {
	[STACKTAP_STATE_STOPPED] = "stopped",
	[STACKTAP_STATE_RUNNING] = "running",
};

static const char *const cpu_states[] = {
	[STACKTAP_CPU_ONLINE] = "online",
	[STACKTAP_CPU_OFFLINE] = "offline",
	[STACKTAP_CPU_STOPPED] = "stopped",
	[STACKTAP_CPU_DESELECTED] = "excluded",
	[STACKTAP_CPU_NO_COUNTER] = "no-counter",
};

static const char *const modes[] = {
	[STACKTAP_MODE_PERIOD] = "period",
	[STACKTAP_MODE_FREQ] = "frequency",
};

static const char *const losses[STACKTAP_LOST_REASONS] = {
	[STACKTAP_LOST_RING_FULL] = "ring-full",
	[STACKTAP_LOST_STASH_FULL] = "stash-full",
	[STACKTAP_LOST_REENTRY] = "reentry",
	[STACKTAP_LOST_BAD_TAIL] = "bad-tail",
	[STACKTAP_LOST_OFFLINE] = "offline",
	[STACKTAP_LOST_STOPPED] = "stopped",
	[STACKTAP_LOST_TOO_BIG] = "too-big",
	[STACKTAP_LOST_BUDGET] = "budget",
};

static const char *const ends[STACKTAP_END_REASONS] = {
	[STACKTAP_END_NONE] = "none",
	[STACKTAP_END_COMPLETE] = "complete",
	[STACKTAP_END_DEPTH] = "depth",
	[STACKTAP_END_TIME] = "time",
	[STACKTAP_END_UNREADABLE] = "unreadable",
	[STACKTAP_END_NO_RULE] = "no-rule",
	[STACKTAP_END_BAD_FRAME] = "bad-frame",
	[STACKTAP_END_STALE] = "stale",
	[STACKTAP_END_NO_MAPPINGS] = "no-mappings",
	[STACKTAP_END_COMPAT] = "compat",
	[STACKTAP_END_BUDGET] = "budget",
	[STACKTAP_END_GUESSED] = "guessed",
	[STACKTAP_END_HOOK] = "hook",
};

static const char *const events[STACKTAP_EVENT_KINDS] = {
	[STACKTAP_EVENT_SESSION_CREATED] = "session-created",
	[STACKTAP_EVENT_SESSION_STARTED] = "session-started",
	[STACKTAP_EVENT_SESSION_STOPPED] = "session-stopped",
	[STACKTAP_EVENT_SESSION_CHANGED] = "session-changed",
	[STACKTAP_EVENT_SESSION_DESTROYED] = "session-destroyed",
	[STACKTAP_EVENT_CPU_ONLINE] = "cpu-online",
	[STACKTAP_EVENT_CPU_OFFLINE] = "cpu-offline",
	[STACKTAP_EVENT_FALLBACK] = "fallback",
	[STACKTAP_EVENT_THROTTLE] = "throttle",
	[STACKTAP_EVENT_LOSS] = "loss",
	[STACKTAP_EVENT_STALL] = "stall",
	[STACKTAP_EVENT_DEGRADED] = "degraded",
	[STACKTAP_EVENT_RECOVERED] = "recovered",
	[STACKTAP_EVENT_MULTIPLEX] = "multiplex",
	[STACKTAP_EVENT_MULTIPLEX_END] = "multiplex-end",
	[STACKTAP_EVENT_NO_COUNTER] = "no-counter",
	[STACKTAP_EVENT_FALLBACK_END] = "fallback-end",
};

/* A newer module of the same ABI major may send numbers that are not in our tables. */
static const char *look_up(const char *const *names, size_t count, unsigned int index)
{
	return index < count && names[index] ? names[index] : "unknown";
}

#define LOOK_UP(table, index) look_up(table, ARRAY_SIZE(table), index)

const char *name_of_feature(unsigned int bit)
{
	return bit < ARRAY_SIZE(features) ? features[bit] : NULL;
}

const char *name_of_state(unsigned int state)
{
	return LOOK_UP(states, state);
}

const char *name_of_cpu_state(unsigned int state)
{
	return LOOK_UP(cpu_states, state);
}

const char *name_of_mode(unsigned int mode)
{
	return LOOK_UP(modes, mode);
}

const char *name_of_lost(unsigned int reason)
{
	return LOOK_UP(losses, reason);
}

const char *name_of_end(unsigned int reason)
{
	return LOOK_UP(ends, reason);
}

const char *name_of_event(unsigned int kind)
{
	return LOOK_UP(events, kind);
}

const char *name_of_errno(unsigned int error)
{
	const char *name = strerrorname_np((int)error);

	return name ? name : "unknown";
}
