// SPDX-License-Identifier: Apache-2.0
#include "helper/opener_ask.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"

#define QUARANTINE_FIRST_NS ((uint64_t)60 * NSEC_PER_SEC)	/* doubled each time it happens again */
#define QUARANTINE_MAX_NS (3600 * NSEC_PER_SEC)
enum {
	LEAST_MS = 50,	/* less is not begun with */
	GRACE_MS = 1000,	/* beyond what there is time for: who takes longer hangs, or might as well */
	EXCUSES = 2,	/* in a row, for who had no answer in a time that was cut short */
};

#define SLOW_NS (NSEC_PER_SEC / 4)	/* what takes longer is slow; a quarter of the patience is for such */

static bool is_same_place(const struct place *a, const struct place *b)
{
	return a->space == b->space && a->major == b->major && a->minor == b->minor &&
	       a->tgid == b->tgid && a->user == b->user && a->part == b->part;
}

static struct quarantine *find_quarantine(struct opener *opener, const struct place *place)
{
	for (size_t i = 0; i < QUARANTINES_MAX; i++)
		if (opener->quarantines[i].length &&
		    is_same_place(&opener->quarantines[i].place, place))
			return &opener->quarantines[i];
	return NULL;
}

/* A free place, or the one that ends first. */
static struct quarantine *new_quarantine(struct opener *opener)
{
	struct quarantine *found = &opener->quarantines[0];

	for (size_t i = 0; i < QUARANTINES_MAX && found->length; i++)
		if (!opener->quarantines[i].length || opener->quarantines[i].until < found->until)
			found = &opener->quarantines[i];
	return found;
}

static void quarantine(struct opener *opener, const struct place *place, const char *what,
		       const char *why)
{
	struct quarantine *quarantine = find_quarantine(opener, place);
	char text[200];

	if (quarantine) {
		quarantine->length = min_of(2 * quarantine->length, (uint64_t)QUARANTINE_MAX_NS);
	} else {
		quarantine = new_quarantine(opener);
		*quarantine = (struct quarantine){ .place = *place, .length = QUARANTINE_FIRST_NS };
	}
	quarantine->until = clock_monotonic() + quarantine->length;
	quarantine->pid = helper_left_behind(opener->helper);
	utf8_copy(text, sizeof(text), what);
	snprintf(opener->last_quarantined, sizeof(opener->last_quarantined), "%s", text);
	log_warning("%s: %s; it is left alone for %" PRIu64 " s, and frames there stay without names", text,
		    why, quarantine->length / (uint64_t)NSEC_PER_SEC);
}

static struct cut_short *find_cut_short(struct opener *opener, const struct place *place)
{
	for (size_t i = 0; i < CUT_SHORT_MAX; i++)
		if (opener->cut_short[i].times && is_same_place(&opener->cut_short[i].place, place))
			return &opener->cut_short[i];
	return NULL;
}

/* With more time it may have answered. Who says so each time holds up each window. */
static bool is_excused(struct opener *opener, const struct place *place)
{
	struct cut_short *found = find_cut_short(opener, place);

	if (!found) {
		found = &opener->cut_short[opener->next_cut_short++ % CUT_SHORT_MAX];
		*found = (struct cut_short){ .place = *place };
	}
	return ++found->times <= EXCUSES;
}

static void forget_cut_short(struct opener *opener, const struct place *place)
{
	struct cut_short *found = find_cut_short(opener, place);

	if (found)
		found->times = 0;
}

bool opener_is_doubtful(struct opener *opener, const struct place *place)
{
	return find_quarantine(opener, place);
}

int opener_ask(struct opener *opener, const struct place *place, const char *what,
	       struct helper_call *call)
{
	struct quarantine *known = find_quarantine(opener, place);
	const uint64_t began = clock_monotonic();
	uint32_t left;
	uint64_t now;
	bool is_slow, is_cut;
	int r;

	/* while one hangs there another would, too */
	if (known && (began < known->until || helper_is_abandoned(opener->helper, known->pid))) {
		opener->left_alone++;
		return -EHOSTDOWN;
	}
	if (!credit_left(&opener->patience, began))
		return -EAGAIN;
	left = deadline_left_ms(opener->deadline, call->timeout_ms);
	if (left < LEAST_MS)
		return -ETIME;
	is_cut = left + GRACE_MS < call->timeout_ms;
	if (is_cut)
		call->timeout_ms = left + GRACE_MS;
	call->start_ms = deadline_start_ms(opener->deadline);
	call->can_cancel = opener->cancel_fd >= 0;
	call->cancel_fd = opener->cancel_fd;
	r = helper_call(opener->helper, call);
	now = clock_monotonic();
	is_slow = r != -EAGAIN && call->ret_ns > SLOW_NS;
	/* whoever is to blame for an end, it was waited for */
	if (call->ret_blame || r == -ETIMEDOUT || r == -EPIPE)
		credit_spend(&opener->patience, began, now);
	else if (is_slow)
		credit_spend(&opener->patience, now - call->ret_ns, now);
	/* who is held there does not answer however long it is waited for */
	if (r == -ETIMEDOUT && is_cut && !helper_left_behind(opener->helper) && is_excused(opener, place))
		return r;
	if (r != -EAGAIN)
		forget_cut_short(opener, place);
	if (r == -ETIMEDOUT) {
		quarantine(opener, place, what, "its file system does not answer");
		return -EHOSTDOWN;
	}
	/* a host that is loaded is slow at times, a server that means to be is whenever it is asked */
	if (is_slow && credit_left(&opener->patience, now) < PATIENCE_NS / 4 * 3)
		quarantine(opener, place, what, "its file system is slow to answer");
	else if (known && r != -EPIPE && r != -EAGAIN)
		known->length = 0;	/* it answers again */
	return r;
}
