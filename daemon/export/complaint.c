// SPDX-License-Identifier: Apache-2.0
#include "export/complaint.h"

#include <inttypes.h>
#include <string.h>

#include "base/log.h"

static struct complaint *find(struct complaints *complaints, const struct http_answer *answer)
{
	for (unsigned int i = 0; i < COMPLAINTS; i++) {
		struct complaint *complaint = &complaints->of[i];

		if (complaint->time && complaint->status == answer->status &&
		    complaint->error == answer->error &&
		    (!answer->status || !strcmp(complaint->text, answer->text)))
			return complaint;
	}
	return NULL;
}

void complain(struct complaints *complaints, const char *what, const struct http_answer *answer)
{
	const char *name = complaints->name, *space = name[0] ? " " : "";
	struct complaint *complaint = find(complaints, answer);
	const uint64_t now = clock_monotonic();

	complaints->failed++;
	if (complaint && now - complaint->time < COMPLAIN_NS) {
		complaint->more++;
		return;
	}
	if (complaint && complaint->more) {
		log_warning("the receiver%s%s %s: %s (%" PRIu64 " times more)", space, name, what, answer->text,
			    complaint->more);
	} else {
		log_warning("the receiver%s%s %s: %s", space, name, what, answer->text);
	}
	if (!complaint)
		complaint = &complaints->of[complaints->next++ % COMPLAINTS];
	*complaint = (struct complaint){ .status = answer->status, .error = answer->error, .time = now };
	snprintf(complaint->text, sizeof(complaint->text), "%s", answer->text);
}

void complaints_end(struct complaints *complaints)
{
	if (complaints->failed)
		log_info("the receiver%s%s accepts requests again; %" PRIu64 " failed", complaints->name[0] ? " " : "",
			 complaints->name, complaints->failed);
	complaints->failed = 0;
	memset(complaints->of, 0, sizeof(complaints->of));
}
