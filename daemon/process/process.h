/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread A's table of processes: which image runs in a tgid, and what it has mapped.
 *
 * Fed by side-band events in order of time and by scans of /proc that thread B makes. A mapping
 * ends when overlapped, at exec, at exit; FORK copies the list. No I/O here. Charged to
 * POOL_PROCESSES; images of exited processes go first when the pool is full (windows keep theirs by reference).
 */
#ifndef STACKTAP_PROCESS_PROCESS_H
#define STACKTAP_PROCESS_PROCESS_H

#include <linux/stacktap.h>

#include "capture/capture.h"
#include "process/image.h"

struct mapping_list;
struct process_table;

/*
 * Told of what thread B should look at; called in thread A, must only queue. False: there was no room for the file, so
 * it is told of again when it is mapped again.
 */
struct process_observer {
	void (*image)(void *ctx, struct image *image, struct image *parent);
	bool (*file)(void *ctx, struct image *image, struct mapped_file *file);
	void *ctx;
};

int process_table_new(const struct process_observer *observer, struct process_table **ret_table);
void process_table_free(struct process_table *table);

void process_table_mmap(struct process_table *table, const struct sideband_mmap *event);
void process_table_comm(struct process_table *table, const struct sideband_task *event);
void process_table_fork(struct process_table *table, const struct sideband_task *event);
void process_table_exit(struct process_table *table, const struct sideband_task *event);

/* Side-band records were lost: images are doubtful until a scan begun after @time is merged. */
void process_table_doubt(struct process_table *table, uint64_t time);

/* What /proc said of one process, see process/scan.h. Events newer than @time win over it. */
struct process_snapshot;
void process_table_merge(struct process_table *table, const struct process_snapshot *snapshot);
/* A scan came to a process that cannot be read now: what is known of it stays. */
void process_table_unread(struct process_table *table, uint32_t tgid, uint64_t time);
/* A scan of one process found it gone; a scan of all, begun at @began, has been merged wholly. */
void process_table_gone(struct process_table *table, uint32_t tgid, uint64_t time);
void process_table_scanned_all(struct process_table *table, uint64_t began);

/*
 * The image a sample belongs to, by tgid, start time and exec id; made when unknown. *ret_marks
 * gets SAMPLE_DOUBTFUL when its mappings cannot be trusted for the sample's time. NULL only when out
 * of memory or for tasks without user half. Borrowed reference.
 */
struct image *process_table_image(struct process_table *table, const struct stacktap_sample *sample,
				  uint16_t *ret_marks);

/*
 * The same of a sample from a time whose events nobody has seen, and whose process does not run that image any
 * more: none but an image that samples have proven, or else one without mappings.
 */
struct image *process_table_image_unseen(struct process_table *table, const struct stacktap_sample *sample,
					 uint16_t *ret_marks);

/* True once after something was seen that only a scan of /proc can explain; *ret_tgid 0: all. */
bool process_table_wants_scan(struct process_table *table, uint32_t *ret_tgid);

/*
 * Once called, only processes named so, and what they fork, are looked at: nothing else is shown to
 * the observer.
 */
int process_table_follow(struct process_table *table, uint32_t tgid);
/* Is a sample of this process wanted? True when none was named. */
bool process_table_follows(const struct process_table *table, uint32_t tgid);

/*
 * Make mapping lists for the module from now on. @send takes each; false: there was no room for it.
 * @tgids: only these processes have samples, unless others turn out to have some; NULL: all.
 */
int process_table_use_lists(struct process_table *table,
			    bool (*send)(void *ctx, struct mapping_list *list), void *ctx,
			    const uint32_t *tgids, size_t count);
/*
 * Hand out the mapping lists that are due, or all that are wanted: every event up to @time has been
 * seen. True: some wait still.
 */
bool process_table_send_lists(struct process_table *table, uint64_t time, bool at_once);
/*
 * A sample whose user stack was walked: is the list that it was walked with out of date in a way
 * that says that it may be wrong? SAMPLE_DOUBTFUL or 0. New code in the stack itself is the
 * aggregator's to see.
 */
uint16_t process_table_check_list(struct process_table *table, const struct image *image,
				  const struct stacktap_sample *sample);
/* Every list is to be made again: the module has dropped tables that they name. */
void process_table_relist(struct process_table *table, uint64_t time);

/* A sample's leaf address lies in no mapping of its image: something escaped the side band. */
void process_table_suspect(struct process_table *table, struct image *image, uint64_t time);
/* Forget what ended well before @time: everything older has been processed. */
void process_table_expire(struct process_table *table, uint64_t time);
size_t process_table_count(const struct process_table *table);

#endif /* STACKTAP_PROCESS_PROCESS_H */
