// SPDX-License-Identifier: Apache-2.0
/* What the daemon that runs here misses. */
#include <string.h>

#include "base/utf8.h"
#include "doctor/check.h"
#include "service/status.h"

/*
 * What stands behind @begin in its line of the daemon's status, and how long it is. NULL where there is no such line, which is
 * said: @fine of a daemon that runs, else @absent.
 */
static const char *told(struct doctor *doctor, const char *begin, const char *fine, const char *absent, int *ret_length)
{
	const struct doctor_input *input = doctor->input;
	const char *line = input->status ? strstr(input->status, begin) : NULL;

	if (input->status_error) {
		say_unknown(doctor, "the daemon's status", input->status_error);
		return NULL;
	}
	if (!line) {
		say(doctor, DOCTOR_OK, "%s", input->status ? fine : absent);
		return NULL;
	}
	line += strlen(begin);
	*ret_length = (int)strcspn(line, "\n");
	return line;
}

void check_unwind_tables(struct doctor *doctor)
{
	int length;
	const char *line = told(doctor, "\n" STATUS_NO_TABLE, "no table of the daemon is too large",
				"no daemon is running", &length);

	if (!line)
		return;
	say(doctor, DOCTOR_WARNING, "files whose table is too large, which are walked by frame pointers: %.*s",
	    length, line);
	if (memmem(line, (size_t)length, "the module has no room", strlen("the module has no room")))
		remedy(doctor, "load the module with a larger table_limit_mib");
	else
		remedy(doctor, "stacktap unwind-info FILE says what its table takes, or why it has none");
}

#define REMEDY_CREDENTIALS "set the credentials that the receiver requires: headers or headers_file of [export]"
#define REMEDY_ENDPOINT "correct the endpoint in [export], or turn profiles on there: docs/backends.md"
#define REMEDY_OTHER "correct the endpoint in [export]: another server, or a proxy, answers there"
#define REMEDY_LOG "see the receiver's log: it answered with this error"

/* What an error begins with, as the exporter says it. */
static const struct {
	const char *begin, *remedy;
} remedies[] = {
	{ "HTTP 401", REMEDY_CREDENTIALS },
	{ "HTTP 403", REMEDY_CREDENTIALS },
	{ "gRPC 16", REMEDY_CREDENTIALS },
	{ "gRPC 7", REMEDY_CREDENTIALS },
	{ "HTTP 404", REMEDY_ENDPOINT },
	{ "HTTP 405", REMEDY_ENDPOINT },
	{ "gRPC 12", REMEDY_ENDPOINT },
	{ "HTTP 2", REMEDY_OTHER },
	{ "gRPC 0", REMEDY_OTHER },
	{ "HTTP ", REMEDY_LOG },
	{ "gRPC ", REMEDY_LOG },
	{ "The local store", "make room in the directory of [store], and let stacktapd write it" },
	{ "Failed to connect", "start the receiver, or correct the endpoint in [export]" },
	{ "Could not resolve", "correct the endpoint in [export], or the host's resolver" },
	{ "", "see docs/troubleshooting.md; stacktap status shows how much waits" },
};

/* Of several errors: a remedy that helps against two is there once, and one for which there is no room is left to them. */
static void add_remedy(struct doctor *doctor, const char *error)
{
	char *whole = doctor->finding->remedy;
	const size_t length = strlen(whole), room = sizeof(doctor->finding->remedy) - length;
	size_t i = 0;

	while (strncmp(error, remedies[i].begin, strlen(remedies[i].begin)))
		i++;
	if (!strstr(whole, remedies[i].remedy) && strlen(remedies[i].remedy) + strlen("; ") < room)
		snprintf(whole + length, room, "%s%s", length ? "; " : "", remedies[i].remedy);
}

#define STORE_ERROR "The local store: "

/* Of the last error where that is the store's: behind it is that of a receiver, if there is one. */
static const char *behind_store(const char *line, int length)
{
	const char *end = !strncmp(line, STORE_ERROR, strlen(STORE_ERROR)) ? memmem(line, (size_t)length, "; ", 2) : NULL;

	return end ? end + 2 : NULL;
}

/* As much of an error as has room in so many bytes. */
static void add_error(struct doctor_finding *finding, size_t room, const char *before, const char *line, int line_length)
{
	const size_t length = strlen(finding->text);
	char error[2 * sizeof(finding->text)];

	snprintf(error, sizeof(error), "%s %.*s", before, line_length, line);
	utf8_shorten(finding->text + length, min_of(room, sizeof(finding->text) - length), error);
}

/* The next line of a receiver that fails, behind its beginning. NULL: there is none. */
static const char *next_receiver(const char *status)
{
	const char *line = strstr(status, "\n" STATUS_RECEIVER_ERROR);

	return line ? line + strlen("\n" STATUS_RECEIVER_ERROR) : NULL;
}

/* Each by its name, with as much of its error as leaves room for the others. @last: the last error of all, or the store's. */
static void say_receivers(struct doctor *doctor, const char *status, const char *last, int last_length)
{
	const bool has_store = !strncmp(last, STORE_ERROR, strlen(STORE_ERROR));
	const char *line, *error, *before = "", *end = behind_store(last, last_length);
	struct doctor_finding *finding = doctor->finding;
	size_t count = has_store, share;

	for (line = status; (line = next_receiver(line));)
		count++;
	say(doctor, DOCTOR_WARNING, "the daemon's last error of sending profiles to");
	share = (sizeof(finding->text) - strlen(finding->text)) / count;
	for (line = status; (line = next_receiver(line));) {
		add_error(finding, share, before, line, (int)strcspn(line, "\n"));
		before = ";";
		error = strstr(line, ": ");
		if (error)
			add_remedy(doctor, error + strlen(": "));
	}
	if (!has_store)
		return;
	add_error(finding, share, before, last, end ? (int)(end - last) - 2 : last_length);
	add_remedy(doctor, last);
}

void check_delivery(struct doctor *doctor)
{
	int length;
	const char *line = told(doctor, "\n" STATUS_EXPORT_ERROR, "the daemon sends profiles without errors",
				"no daemon is running", &length);

	if (!line)
		return;
	if (next_receiver(doctor->input->status)) {
		say_receivers(doctor, doctor->input->status, line, length);
		return;
	}
	say(doctor, DOCTOR_WARNING, "the daemon's last error of sending profiles: %.*s", length, line);
	add_remedy(doctor, line);
	if (behind_store(line, length))
		add_remedy(doctor, behind_store(line, length));
}
