/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where payloads of a destination wait on disk: a store that may come later, as its disk does, and be removed
 * meanwhile. What it loses is counted, and logged once a minute at most. Not thread-safe.
 */
#ifndef STACKTAP_EXPORT_SPOOL_H
#define STACKTAP_EXPORT_SPOOL_H

#include "export/encode.h"
#include "export/store.h"

struct spool;

struct spool_options {
	const char *directory;		/* NULL: there is none, and all calls say so */
	uint64_t max_bytes, max_age_ms;
	uint64_t retry_ms;		/* before one that could not be opened is tried again */
	const char *name;		/* of the destination; "": there is but one */
	const struct encode_form *recovered_form; /* as a store's */
};

/* Opens it, if it can be. The strings and the form stay the caller's. */
int spool_new(const struct spool_options *options, struct spool **ret_spool);
void spool_free(struct spool *spool);	/* NULL is fine */
/* Once more, if it is not open and it is time. */
void spool_open(struct spool *spool);
/* How often it was. */
uint64_t spool_opened(const struct spool *spool);
/* True: the payload is on disk, or on its way there, under this number. */
bool spool_append(struct spool *spool, const struct payload *payload, uint64_t *ret_number);
/* A power cut does not take what was appended from now on. */
void spool_sync(struct spool *spool);
bool spool_waits(const struct spool *spool);
/* The oldest that waits: 1; 0: none does; -EAGAIN: not now. The caller frees ret_payload->data. It is lent then. */
int spool_oldest(struct spool *spool, size_t max_bytes, struct payload *ret_payload, uint64_t *ret_number);
/* One that was appended is being sent: where it loses its place meanwhile it counts as waiting, until one of the next. */
void spool_lend(struct spool *spool, uint64_t number, uint64_t samples);
/* It has to wait on, or is lost. */
void spool_return(struct spool *spool);
/* It is done with, if it is still there. */
void spool_take(struct spool *spool, uint64_t number);
/* The same of the newest; one that others came behind stays. */
void spool_retract(struct spool *spool, uint64_t number, size_t size, uint64_t samples);
/* With what was lost before it was opened again. */
struct store_stats spool_stats(const struct spool *spool);
uint64_t spool_losses(const struct store_stats *stats);
const char *spool_error(const struct spool *spool);	/* "": it takes payloads */

#endif /* STACKTAP_EXPORT_SPOOL_H */
