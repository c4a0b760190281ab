// SPDX-License-Identifier: Apache-2.0
#include "export/spool.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

#define TELL_NS (60 * NSEC_PER_SEC)	/* between two that say the same */
#define GENERATION_SHIFT 48u		/* in numbers, above those of one store */

struct spool {
	struct spool_options options;
	struct store *store;		/* NULL: not to be had yet */
	uint64_t generation;		/* stores that were opened */
	struct store_stats before;	/* losses of those that were closed */
	uint64_t next_try;		/* CLOCK_MONOTONIC ns, when to open it again */
	uint64_t told;			/* CLOCK_MONOTONIC ns, when its state was logged, 0: never */
	uint64_t losses_told;		/* payloads that it lost, of which the log has heard */
	char error[128];

	/* that one is being sent: it is not lost with its place until its sender says so */
	bool is_lent;
	uint64_t lent, lent_samples;	/* its number */
	uint64_t *lost, *lost_samples;	/* in @before: as what it was lost, but for that; NULL: it is in its place */
};

uint64_t spool_losses(const struct store_stats *stats)
{
	return stats->full_messages + stats->old_messages + stats->damaged_messages;
}

struct store_stats spool_stats(const struct spool *spool)
{
	const struct store_stats *before = &spool->before;
	struct store_stats stats = { 0 };

	if (spool->store)
		stats = store_stats(spool->store);
	stats.full_messages += before->full_messages;
	stats.full_samples += before->full_samples;
	stats.old_messages += before->old_messages;
	stats.old_samples += before->old_samples;
	stats.damaged_messages += before->damaged_messages;
	stats.damaged_samples += before->damaged_samples;
	stats.damaged_bytes += before->damaged_bytes;
	if (spool->lost) {
		stats.messages++;
		stats.samples += spool->lent_samples;
	}
	return stats;
}

const char *spool_error(const struct spool *spool)
{
	return spool->error;
}

/* "the spool", or that of one of several destinations. */
static const char *space(const struct spool *spool)
{
	return spool->options.name[0] ? " of " : "";
}

/* Once a minute at most: a state that lasts is in the status. */
static bool may_tell(struct spool *spool)
{
	const uint64_t now = clock_monotonic();

	if (spool->told && now - spool->told < TELL_NS)
		return false;
	spool->told = now;
	return true;
}

static void tell_losses(struct spool *spool)
{
	const struct store_stats stats = spool_stats(spool);
	const uint64_t losses = spool_losses(&stats);

	if (losses == spool->losses_told || !may_tell(spool))
		return;
	log_warning("the spool%s%s dropped %" PRIu64 " payloads: %" PRIu64 " as it was full, %" PRIu64
		    " as they were too old, %" PRIu64 " as they were damaged", space(spool), spool->options.name,
		    losses, stats.full_messages, stats.old_messages, stats.damaged_messages);
	spool->losses_told = losses;
}

static void failed(struct spool *spool, int err)
{
	const bool is_new = !spool->error[0];

	snprintf(spool->error, sizeof(spool->error), "%s",
		 err == -EBUSY ? "another process has it open" : strerror(-err));
	if (is_new || may_tell(spool))
		log_warning("the spool %s: %s; payloads wait in memory meanwhile", spool->options.directory,
			    spool->error);
}

/* A disk may come later, or back. */
void spool_open(struct spool *spool)
{
	const struct store_options options = {
		.directory = spool->options.directory,
		.max_bytes = spool->options.max_bytes,
		.max_age_ms = spool->options.max_age_ms,
		.is_spool = true,
		.recovered_form = spool->options.recovered_form,
	};
	const uint64_t now = clock_monotonic();
	struct store_stats stats;
	int err;

	if (spool->store || !options.directory || now < spool->next_try)
		return;
	spool->next_try = now + spool->options.retry_ms * NSEC_PER_MSEC;
	err = store_open(&options, &spool->store);
	if (err) {
		failed(spool, err);
		return;
	}
	spool->generation++;
	stats = store_stats(spool->store);
	if (stats.messages)
		log_info("%" PRIu64 " payloads with %" PRIu64 " samples of an earlier run wait in the spool%s%s",
			 stats.messages, stats.samples, space(spool), spool->options.name);
	tell_losses(spool);
}

int spool_new(const struct spool_options *options, struct spool **ret_spool)
{
	struct spool *spool = calloc(1, sizeof(*spool));

	if (!spool)
		return -ENOMEM;
	spool->options = *options;
	spool_open(spool);
	*ret_spool = spool;
	return 0;
}

void spool_free(struct spool *spool)
{
	if (!spool)
		return;
	store_close(spool->store);
	free(spool);
}

uint64_t spool_opened(const struct spool *spool)
{
	return spool->generation;
}

bool spool_waits(const struct spool *spool)
{
	return spool->store && store_stats(spool->store).messages;
}

static uint64_t oldest_number(const struct spool *spool)
{
	return spool->generation << GENERATION_SHIFT | store_first(spool->store);
}

static uint64_t newest_number(const struct spool *spool)
{
	return oldest_number(spool) + store_stats(spool->store).messages - 1;
}

static bool has_lent(const struct spool *spool)
{
	return spool->is_lent && !spool->lost;
}

/* What is lent has been counted there, too early. */
static void lend_on(struct spool *spool, uint64_t *lost, uint64_t *lost_samples)
{
	--*lost;
	*lost_samples -= spool->lent_samples;
	spool->lost = lost;
	spool->lost_samples = lost_samples;
}

/* Its directory is gone, with what waited there. */
static void leave(struct spool *spool)
{
	const struct store_stats left = store_stats(spool->store);
	struct store_stats stats = spool_stats(spool);

	stats.damaged_messages += left.messages;
	stats.damaged_samples += left.samples;
	spool->before = stats;
	if (has_lent(spool))
		lend_on(spool, &spool->before.damaged_messages, &spool->before.damaged_samples);
	store_close(spool->store);
	spool->store = NULL;
	spool->next_try = 0;
}

/* The store loses its open file first, then the oldest that are too old, then the oldest that take room. */
static int append(struct spool *spool, const struct payload *payload)
{
	const struct store_stats before = store_stats(spool->store);
	const uint64_t place = spool->lent - oldest_number(spool);
	const int err = store_append(spool->store, payload->data, payload->size, payload->samples);
	const struct store_stats after = store_stats(spool->store);
	const uint64_t damaged = after.damaged_messages - before.damaged_messages;
	const uint64_t old = after.old_messages - before.old_messages;
	const uint64_t full = after.full_messages - before.full_messages;

	if (!has_lent(spool))
		return err;
	if (place >= before.messages - damaged)
		lend_on(spool, &spool->before.damaged_messages, &spool->before.damaged_samples);
	else if (place < old)
		lend_on(spool, &spool->before.old_messages, &spool->before.old_samples);
	else if (place < old + full)
		lend_on(spool, &spool->before.full_messages, &spool->before.full_samples);
	return err;
}

bool spool_append(struct spool *spool, const struct payload *payload, uint64_t *ret_number)
{
	int err;

	if (!spool->store)
		return false;
	err = append(spool, payload);
	if (err == -ESTALE) {
		leave(spool);
		spool_open(spool);
		if (!spool->store)
			return false;
		err = append(spool, payload);
	}
	tell_losses(spool);
	if (err) {
		failed(spool, err);
		return false;
	}
	spool->error[0] = '\0';
	*ret_number = newest_number(spool);
	return true;
}

void spool_sync(struct spool *spool)
{
	int err = spool->store ? store_sync(spool->store) : 0;

	if (err && may_tell(spool))
		log_warning("the spool %s cannot be synced: %s; a power cut may take what waits there",
			    spool->options.directory, strerror(-err));
}

int spool_oldest(struct spool *spool, size_t max_bytes, struct payload *ret_payload, uint64_t *ret_number)
{
	struct store_message message;
	int ret = store_oldest(spool->store, max_bytes, &message);

	tell_losses(spool);
	if (ret != 1)
		return ret;
	*ret_payload = (struct payload){
		.data = message.data, .size = message.size, .samples = message.samples,
	};
	*ret_number = oldest_number(spool);
	spool_lend(spool, *ret_number, message.samples);
	return 1;
}

void spool_lend(struct spool *spool, uint64_t number, uint64_t samples)
{
	spool->is_lent = spool_waits(spool) && number >= oldest_number(spool) && number <= newest_number(spool);
	spool->lent = number;
	spool->lent_samples = samples;
}

/* True: it is in its place still. */
static bool end_loan(struct spool *spool)
{
	const bool has = has_lent(spool);

	spool->is_lent = false;
	spool->lost = spool->lost_samples = NULL;
	return has;
}

void spool_return(struct spool *spool)
{
	if (spool->lost) {
		++*spool->lost;
		*spool->lost_samples += spool->lent_samples;
	}
	end_loan(spool);
	tell_losses(spool);
}

void spool_take(struct spool *spool, uint64_t number)
{
	if (end_loan(spool) && oldest_number(spool) == number)
		store_take(spool->store);
}

void spool_retract(struct spool *spool, uint64_t number, size_t size, uint64_t samples)
{
	if (end_loan(spool) && newest_number(spool) == number)
		store_retract(spool->store, size, samples);
}
