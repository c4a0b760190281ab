// SPDX-License-Identifier: Apache-2.0
/* What the daemon that runs here misses. */
#include <string.h>

#include "doctor/check.h"
#include "service/status.h"

void check_unwind_tables(struct doctor *doctor)
{
	const struct doctor_input *input = doctor->input;
	const char *line = input->status ? strstr(input->status, "\n" STATUS_NO_TABLE) : NULL;
	int length;

	if (input->status_error) {
		say_unknown(doctor, "the daemon's status", input->status_error);
		return;
	}
	if (!line) {
		say(doctor, DOCTOR_OK, input->status ? "none of the daemon's is too large" :
						       "no daemon runs that would want some");
		return;
	}
	line += strlen("\n" STATUS_NO_TABLE);
	length = (int)strcspn(line, "\n");
	say(doctor, DOCTOR_WARNING, "files whose table is too large, which are walked by frame pointers: %.*s",
	    length, line);
	if (memmem(line, (size_t)length, "the module has no room", strlen("the module has no room")))
		remedy(doctor, "load the module with a larger table_limit_mib");
	else
		remedy(doctor, "stacktap unwind-info FILE says what its table takes, or why it has none");
}
