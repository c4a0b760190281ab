/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the pipeline, shared by its three threads: each has a file. */
#ifndef STACKTAP_PIPELINE_THREADS_H
#define STACKTAP_PIPELINE_THREADS_H

#include <pthread.h>

#include "base/buffer.h"
#include "base/work.h"
#include "export/cut.h"
#include "pipeline/drain.h"
#include "pipeline/message.h"
#include "pipeline/options.h"
#include "pipeline/stats.h"

enum { UNTOLD_MAX = 64 };

/* A jitdump that there was no room to tell thread B of. Both owned. */
struct untold {
	struct image *image;
	struct mapped_file *file;
};

struct pipeline {
	struct pipeline_options options;
	struct control *control;
	struct capture *capture;
	struct symbolizer *symbolizer;
	struct loader *loader;		/* NULL: without tables */
	struct absent *absent;		/* has its own thread; NULL: pages are not brought in */
	struct unwinder *unwinder;	/* thread B's; NULL: no stack is unwound here */
	struct cache *table_cache;	/* thread B's; NULL: none */
	struct control *table_control;	/* thread B's; opened when needed */
	uint32_t cut_tgid;		/* thread B's: the last process with too many mappings */
	uint64_t turn_at;		/* thread B's: others have no turn in a window before that */
	bool owes_scan;			/* thread B's: of all processes, once the window is on its way */
	uint64_t naming_told_at;	/* thread B's: when the next progress of names is due; 0: none was */
	struct drain *drain;
	struct queue *requests;		/* A to B */
	struct queue *windows;		/* B to C */
	struct queue *results;		/* B to A */
	struct queue *parts;		/* A to D; NULL: no journal */
	pthread_t drain_thread, symbol_thread, export_thread, journal_thread;
	bool has_drain_thread, has_symbol_thread, has_export_thread, has_journal_thread;
	bool is_started, is_stopped;
	int error;			/* of thread A, once it has been joined */
	_Atomic bool stop;
	struct work work[PIPELINE_THREADS];
	_Atomic uint64_t named;		/* windows, by thread B */

	/* thread A */
	bool wants_all;
	uint64_t scanning_until;	/* 0: no scan of all is under way */
	uint64_t next_scan_all;
	uint64_t scans;
	uint32_t unscanned;		/* that there was no room to ask for; 0: none */
	uint64_t unannounced;		/* programs and files */
	struct untold untold[UNTOLD_MAX];
	unsigned int untold_count;
	bool wants_kernel;		/* its code has changed, and thread B does not know */
	bool has_lists;			/* that wait for their time */
	bool has_deferred;			/* samples wait for that */
	uint64_t closing;		/* the newest that has begun */
	uint64_t next_part;
	struct cutter *cutter;		/* NULL: there was no part yet */
	_Atomic bool has_part;		/* what follows is thread D's until it is written */
	struct buffer part;
	size_t part_bytes;		/* of the last one */
	struct cut cut;			/* what it is */
	bool part_is_lost;		/* the last one */

	pthread_mutex_t lock;		/* what follows */
	pthread_cond_t window_gone;
	unsigned int windows_under_way;	/* between the closing in A and the end in C */
	uint64_t lists_sent, lists_done;	/* from A, by B */
	uint64_t closed;		/* the newest closing whose window A has sent */
	uint64_t closed_windows;	/* that it had sent by then */
	struct pipeline_stats stats;
};

/* Of all closings that anybody wanted the number, whichever pipeline they are of. */
extern _Atomic uint64_t pipeline_closings;

static inline void pipeline_enter(struct pipeline *pipeline, enum pipeline_thread thread)
{
	work_enter(&pipeline->work[thread], pipeline_thread_names[thread]);
}

void *drain_thread(void *pipeline);	/* A: rings and side band to windows */
void *symbol_thread(void *pipeline);	/* B: files and names */
void names_turn(void *pipeline, size_t done, size_t count);	/* B: what is asked for between two files of a window */
void *export_thread(void *pipeline);	/* C: encoding and the sink */
void *journal_thread(void *pipeline);	/* D: parts of open windows */

/* Thread A: is it time for a part, and the one before written? */
bool journal_wants_part(void *pipeline, uint64_t time);
/* Thread A: make it of what is open, and have it written. */
void journal_make_part(void *pipeline, struct window *window);
void journal_forget(struct pipeline *pipeline);	/* once threads A and D have ended */

/* Thread A, after it has delivered all before @time, and what was sampled before @closing was wanted. */
void drain_thread_round(struct pipeline *pipeline, uint64_t closing, uint64_t time);
/* Thread A, after the last round: what is deferred is waited for, and the last window sent. */
void drain_thread_end(struct pipeline *pipeline);
/* Thread A: have processes scanned that are wanted to be. */
void drain_thread_scans(struct pipeline *pipeline, uint64_t now);
void drain_thread_forget(struct pipeline *pipeline);	/* once thread A has ended */
/* What thread A's stage does with its results. */
struct drain_output drain_thread_output(struct pipeline *pipeline);

/* The loader, if the module can use tables and they are wanted; before any thread starts. */
int tables_start(struct pipeline *pipeline);
/* Wait until the lists of all processes that run are in the module; thread A has not started. */
int tables_load_first(struct pipeline *pipeline);
void tables_stop(struct pipeline *pipeline);
bool tables_send(void *pipeline, struct mapping_list *list);	/* thread A, takes the list */
void tables_check_lists(struct pipeline *pipeline);	/* thread B, now and then */
void tables_load(struct pipeline *pipeline, const struct mapping_list *list);	/* thread B */
bool tables_send_deferred(void *pipeline);		/* thread A: there is a deferred sample */
void tables_unwind_deferred(struct pipeline *pipeline);	/* thread B */
/* Thread A: a walk found no page there. */
void tables_want_page(void *pipeline, uint32_t tgid, uint64_t address);
void pipeline_window_left(struct pipeline *pipeline);

#endif /* STACKTAP_PIPELINE_THREADS_H */
