/* SPDX-License-Identifier: Apache-2.0 */
/* What a pipeline is started with: what is to be sampled, and where the payloads go. */
#ifndef STACKTAP_PIPELINE_OPTIONS_H
#define STACKTAP_PIPELINE_OPTIONS_H

#include "capture/capture.h"
#include "capture/kept.h"
#include "client/netlink.h"
#include "export/cut.h"
#include "export/encode.h"
#include "resolve/symbolizer.h"

/* Thread C's end. */
struct pipeline_sink {
	int (*payload)(void *ctx, struct payload *payload); /* takes payload->data */
	/* Nothing more comes of this window and those before, also where rules left out its end; or NULL. */
	void (*done)(void *ctx, uint64_t window);
	/* called when idle; returns ms until it wants to be called again, -1: not at all */
	int (*poll)(void *ctx);
	/* Thread A's question: do payloads wait, so that longer windows are better than more of them? NULL: no. */
	bool (*is_behind)(void *ctx);
	/* Thread D's end: a part of a window that is still open, for the case that we are killed. NULL: no journal. */
	int (*journal)(void *ctx, const struct cut *cut, const uint8_t *data, size_t size);
	/*
	 * Thread A's question before it makes a part: bytes that a file is to have at most, 0: there is no place for one.
	 * NULL: 4 MiB.
	 */
	uint64_t (*journal_room)(void *ctx);
	void *ctx;
};

struct pipeline_options {
	struct capture_options capture;
	struct symbolizer_options symbolizer;
	struct encode_options encode;
	/* Each window in these forms as well, payload->form 1 and so on. */
	const struct encode_form *other_forms;
	size_t other_form_count;
	struct control_source sources[STACKTAP_MAX_SOURCES];
	size_t source_count;
	const struct control_filter *filter;
	/*
	 * Keep only samples of these processes and of what they fork from now on; the side band's
	 * order makes that exact. The rest is dropped before it is aggregated. None: keep all.
	 */
	const uint32_t *follow_tgids;
	size_t follow_count;
	uint32_t user_frames, walk_limit_ns;
	bool two_phase;
	bool with_tables;		/* user stacks by unwind tables, if the module can */
	const char *table_cache;	/* directory for compiled tables, NULL: none */
	/*
	 * Of a stack at most, in samples taken before a process' tables are in the module, which are
	 * unwound here then; 0: they keep the stack by frame pointers.
	 */
	uint32_t slice_bytes;
	uint32_t slice_max_bytes;	/* of a stack that is known to be that deep; 0: no more */
	bool has_budget;		/* else the module's */
	uint32_t budget_ns;		/* mean of overflow handlers, 0: none */
	bool has_ceiling;		/* else the module's alone */
	uint32_t ceiling_permille;	/* of each CPU; 0: none of its own */
	bool is_held;			/* begin without sampling, see pipeline_hold() */
	bool fault_in;			/* bring in pages of stacks that a walk found absent */
	unsigned int window_ms;		/* 15000 */
	unsigned int window_max_ms;	/* 60000: extended so far while it holds < 2,000 samples */
	unsigned int early_ms;		/* the first window is due so much earlier, modulo its length */
	/* Called once a second while the first tables are loaded, when that takes long; may be NULL. */
	void (*loading)(uint64_t done, uint64_t total);
	/* Thread B: of the files of a window at the end, once a second where their names take long; may be NULL. */
	void (*naming)(size_t done, size_t total);
	/* Asked while the first tables are loaded: true ends that, and the start, with -EINTR. */
	bool (*is_cancelled)(void);
	/*
	 * The session of a daemon that was killed, or -1: what it captured until now comes before our own. Taken, also
	 * where the start fails.
	 */
	struct kept_fds *kept;
	/*
	 * Called in thread A once nothing of that is left: somebody may keep our own now, of which these are the
	 * descriptors, both lent. NULL: nobody does.
	 */
	void (*keep)(void *ctx, int session, int ledger);
	struct pipeline_sink sink;
};

#endif /* STACKTAP_PIPELINE_OPTIONS_H */
