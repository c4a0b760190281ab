// SPDX-License-Identifier: Apache-2.0
#include "view/selection.h"

#include <math.h>
#include <string.h>
#include <time.h>

#define NS_PER_S 1000000000ull

bool selection_is_empty(const struct selection *selection)
{
	return !selection->process && !selection->container && !selection->service &&
	       !selection->cgroup && !selection->event && !selection_is_narrow(selection);
}

bool selection_is_narrow(const struct selection *selection)
{
	return selection->thread || selection->from.base || selection->to.base;
}

static bool is_relative(const struct moment *moment)
{
	return moment->base == MOMENT_START || moment->base == MOMENT_END;
}

bool selection_needs_bounds(const struct selection *selection)
{
	return is_relative(&selection->from) || is_relative(&selection->to);
}

static uint64_t moment_at(const struct moment *moment, uint64_t otherwise, uint64_t start,
			  uint64_t end)
{
	uint64_t at;

	switch (moment->base) {
	case MOMENT_UNIX:
		return moment->ns;
	case MOMENT_START:
		return __builtin_add_overflow(start, moment->ns, &at) ? UINT64_MAX : at;
	case MOMENT_END:
		return end > moment->ns ? end - moment->ns : 0;
	default:
		return otherwise;
	}
}

struct time_span selection_span(const struct selection *selection, uint64_t start, uint64_t end)
{
	return (struct time_span){
		.from = moment_at(&selection->from, 0, start, end),
		.to = moment_at(&selection->to, UINT64_MAX, start, end),
	};
}

/* A number is an id; what else there is is a name. */
static bool is_named(const char *wanted, uint32_t id, const char *name)
{
	char *end;
	unsigned long long number;

	if (*wanted < '0' || *wanted > '9')
		return !strcmp(wanted, name);
	errno = 0;
	number = strtoull(wanted, &end, 10);
	if (errno || *end)
		return !strcmp(wanted, name);
	return number == id;
}

/* As `record --cgroup' takes it: with its mount point, too, and with those below. */
static bool is_below(const char *wanted, const char *cgroup)
{
	static const char mount[] = "/sys/fs/cgroup";
	size_t length;

	if (!strncmp(wanted, mount, sizeof(mount) - 1) &&
	    (wanted[sizeof(mount) - 1] == '/' || !wanted[sizeof(mount) - 1]))
		wanted += sizeof(mount) - 1;
	wanted += *wanted == '/';
	cgroup += *cgroup == '/';
	length = strlen(wanted);
	length -= length && wanted[length - 1] == '/';
	return !length || (!strncmp(cgroup, wanted, length) && (!cgroup[length] || cgroup[length] == '/'));
}

bool selection_has_process(const struct selection *selection, uint32_t pid, const char *name,
			   const char *container, const char *service, const char *cgroup)
{
	if (selection->process && !is_named(selection->process, pid, name))
		return false;
	if (selection->container &&
	    (!container[0] ||
	     strncmp(container, selection->container, strlen(selection->container))))
		return false;
	if (selection->cgroup && (!cgroup[0] || !is_below(selection->cgroup, cgroup)))
		return false;
	return !selection->service || !strcmp(selection->service, service);
}

bool selection_has_thread(const struct selection *selection, uint32_t tid, const char *name)
{
	return !selection->thread || is_named(selection->thread, tid, name);
}

bool selection_has_event(const struct selection *selection, const char *source, const char *event)
{
	return !selection->event || !strcmp(selection->event, source) ||
	       !strcmp(selection->event, event);
}

/* Without zeros at the end. */
static void say_part(uint64_t ns, char *text, size_t size)
{
	char part[16];
	int digits = snprintf(part, sizeof(part), ".%09u", (unsigned int)(ns % NS_PER_S));

	while (digits > 0 && (part[digits - 1] == '0' || part[digits - 1] == '.'))
		digits--;
	snprintf(text, size, "%.*s", digits, part);
}

static const char *say_moment(const struct moment *moment, char text[64])
{
	const time_t seconds = (time_t)(moment->ns / NS_PER_S);
	char part[16], date[32] = "";
	struct tm tm;

	say_part(moment->ns, part, sizeof(part));
	if (moment->base == MOMENT_UNIX && gmtime_r(&seconds, &tm) &&
	    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm))
		snprintf(text, 64, "%s%sZ", date, part);
	else
		snprintf(text, 64, "%llu%s s", (unsigned long long)seconds, part);
	return text;
}

void selection_say_time(const struct selection *selection, char *ret_text, size_t size)
{
	const struct moment *from = &selection->from, *to = &selection->to;
	char first[64], last[64];

	say_moment(from, first);
	say_moment(to, last);
	if (from->base == MOMENT_END)
		snprintf(ret_text, size, to->base ? " in its last %s, up to %s" : " in its last %s", first, last);
	else if (from->base)
		snprintf(ret_text, size, to->base ? " from %s to %s" : " from %s on", first, last);
	else
		snprintf(ret_text, size, "%s%s", to->base ? " up to " : "", to->base ? last : "");
}

void selection_say_nothing(const struct selection *selection, const char *name, char *ret_text,
			   size_t size)
{
	const struct { const char *what, *wanted; } parts[] = {
		{ "process", selection->process }, { "thread", selection->thread },
		{ "container", selection->container }, { "service", selection->service },
		{ "cgroup", selection->cgroup }, { "event", selection->event },
	};
	char time[SELECTION_TIME_MAX];
	size_t wanted = 0, length;

	if (selection_is_empty(selection)) {
		snprintf(ret_text, size, "%s holds no samples", name);
		return;
	}
	selection_say_time(selection, time, sizeof(time));
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		wanted += !!parts[i].wanted;
	/* of several each may be there, but not together */
	length = (size_t)snprintf(ret_text, size, wanted == 1 ? "%s: there is no" : "%s: there are no samples", name);
	for (size_t i = 0, said = 0; i < ARRAY_SIZE(parts) && length < size; i++)
		if (parts[i].wanted)
			length += (size_t)snprintf(ret_text + length, size - length, "%s%s %s", said++ ? " and " :
						   wanted > 1 ? " of " : " ", parts[i].what, parts[i].wanted);
	if (length < size)
		snprintf(ret_text + length, size - length, " in it%s", time);
}

static bool to_ns(double seconds, uint64_t *ret_ns)
{
	/* 2^63 ns; also keeps sums with clocks far from overflow */
	if (!isfinite(seconds) || seconds < 0 || seconds > 9.2e9)
		return false;
	*ret_ns = (uint64_t)(seconds * 1e9 + 0.5);
	return true;
}

/* Digits alone, with one point: strtod() would take signs, blanks, hexadecimal and names. */
static bool plain_seconds(const char *text, const char **ret_end, uint64_t *ret_ns)
{
	size_t length = strspn(text, "0123456789.");
	char *end;
	double value;

	if (!length || length > 32)
		return false;
	value = strtod(text, &end);
	/* more points than one, or what looks like an exponent */
	if (end != text + length)
		return false;
	*ret_end = end;
	return to_ns(value, ret_ns);
}

static bool unix_parse(const char *text, uint64_t *ret_ns)
{
	uint64_t seconds = 0, part = 0, unit = NS_PER_S / 10;
	const char *s = text;

	for (; *s >= '0' && *s <= '9'; s++) {
		seconds = seconds * 10 + (uint64_t)(*s - '0');
		if (seconds > INT64_MAX / NS_PER_S)
			return false;
	}
	if (s == text)
		return false;
	if (*s == '.')
		for (s++; *s >= '0' && *s <= '9'; s++, unit /= 10)
			part += (uint64_t)(*s - '0') * unit;
	*ret_ns = seconds * NS_PER_S + part;
	return !*s;
}

/* "Z", "+01:00", "-0930" behind a time; without one it is local. */
static bool zone_parse(const char *text, bool *ret_is_local, long *ret_offset)
{
	int hours, minutes, length = 0;

	*ret_is_local = !*text;
	*ret_offset = 0;
	if (!*text || !strcmp(text, "Z"))
		return true;
	if ((*text != '+' && *text != '-') ||
	    (sscanf(text + 1, "%2d:%2d%n", &hours, &minutes, &length) != 2 &&
	     sscanf(text + 1, "%2d%2d%n", &hours, &minutes, &length) != 2))
		return false;
	if (text[1 + length] || hours < 0 || hours > 23 || minutes < 0 || minutes > 59)
		return false;
	*ret_offset = (hours * 3600L + minutes * 60L) * (*text == '-' ? -1 : 1);
	return true;
}

static bool date_parse(const char *text, uint64_t *ret_ns)
{
	struct tm tm = { .tm_isdst = -1 };
	uint64_t part = 0, unit = NS_PER_S / 10;
	const char *s = strptime(text, "%Y-%m-%d", &tm);
	bool is_local;
	long offset;
	time_t at;

	if (!s)
		return false;
	if (*s == 'T' || *s == ' ') {
		const char *time = s + 1;

		s = strptime(time, "%H:%M:%S", &tm);
		if (!s)
			s = strptime(time, "%H:%M", &tm);
		if (!s)
			return false;
	}
	if (*s == '.')
		for (s++; *s >= '0' && *s <= '9'; s++, unit /= 10)
			part += (uint64_t)(*s - '0') * unit;
	if (!zone_parse(s, &is_local, &offset))
		return false;
	at = is_local ? mktime(&tm) : timegm(&tm) - offset;
	if (at < 0 || (uint64_t)at > INT64_MAX / NS_PER_S)
		return false;
	*ret_ns = (uint64_t)at * NS_PER_S + part;
	return true;
}

bool moment_parse(const char *text, struct moment *ret_moment)
{
	static const struct { const char *name; uint64_t ns; } units[] = {
		{ "", NS_PER_S }, { "s", NS_PER_S }, { "ms", 1000000 }, { "us", 1000 },
		{ "m", 60 * NS_PER_S }, { "h", 3600 * NS_PER_S },
	};
	const char *end;
	uint64_t ns;

	if (*text == '@') {
		ret_moment->base = MOMENT_UNIX;
		return unix_parse(text + 1, &ret_moment->ns);
	}
	if (strchr(text, '-') || strchr(text, ':')) {
		ret_moment->base = MOMENT_UNIX;
		return date_parse(text, &ret_moment->ns);
	}
	if (!plain_seconds(text, &end, &ns))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (!strcmp(end, units[i].name)) {
			ret_moment->base = MOMENT_START;
			return to_ns((double)ns * (double)units[i].ns / 1e18, &ret_moment->ns);
		}
	return false;
}
