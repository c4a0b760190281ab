/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread B's stage: opens files, finds out about images, names Locations. One symbolizer per
 * process; all calls from one thread. Caches are charged to
 * POOL_SYMBOLS and POOL_PROCESSES and evicted there; names in use stay until their Locations go,
 * and what does not fit beside them stays without a name, marked so.
 */
#ifndef STACKTAP_RESOLVE_SYMBOLIZER_H
#define STACKTAP_RESOLVE_SYMBOLIZER_H

#include "helper/opener.h"
#include "helper/parser.h"
#include "process/image.h"
#include "profile/window.h"
#include "resolve/fetched.h"
#include "resolve/contexts.h"
#include "resolve/jit.h"
#include "resolve/lines.h"
#include "resolve/source.h"

struct symbolizer;

enum { NAMES_WINDOW_MS = 2000 };	/* for who goes on, so that names that come later are in later windows */

struct symbolizer_options {
	bool with_command_line;		/* privacy: put command lines into image details */
	bool with_kernel_addresses;	/* privacy: keep addresses of kernel Locations */
	bool with_lines;		/* source lines and inlined functions */
	/*
	 * That a window waits for names once it is closed. 0: a minute, for who has no later window that brings them; then
	 * none of the time is kept for others, who have turns between two files, which do not count:
	 */
	unsigned int names_ms;
	void (*turn)(void *ctx, size_t done, size_t count);	/* of the window's files that are asked for; NULL: none */
	void *turn_ctx;
	struct indices_options indices;	/* of DWARF, for lines */
	struct debuginfod_options debuginfod;	/* without a url: no server is asked */
	const char *sysroot;		/* "" normally; tests point it elsewhere */
};

int symbolizer_new(const struct symbolizer_options *options, struct symbolizer **ret_symbolizer);
void symbolizer_free(struct symbolizer *symbolizer);

/*
 * Look at what an image is made of, as soon as possible after it appeared: its mount namespace,
 * details, and the files of its mappings given here (references are taken by the caller). Files of
 * processes that have exited are found through the namespace's root or their parent's.
 */
void symbolizer_see_image(struct symbolizer *symbolizer, struct image *image,
			  struct image *parent);
void symbolizer_see_file(struct symbolizer *symbolizer, struct image *image,
			 struct mapped_file *file);

/* A file of an object that was seen; *ret_fd is borrowed until the next call. @tgid maps it. */
int symbolizer_open(struct symbolizer *symbolizer, struct object *object, uint32_t tgid,
		    int *ret_fd);

/* What reads /proc and opens files; any thread may ask. */
struct opener *symbolizer_opener(struct symbolizer *symbolizer);
/* What reads files; for the same thread. */
struct parser *symbolizer_parser(struct symbolizer *symbolizer);

/*
 * What all kernel Locations are in, for aggregator_set_kernel(); modules are told apart when
 * Locations are resolved. A new reference; may be asked for before any thread starts.
 */
struct mapped_file *symbolizer_kernel(struct symbolizer *symbolizer);
/* Kernel text was added (module, BPF): read its symbols again soon, at most once in 10 s. */
void symbolizer_see_kernel_change(struct symbolizer *symbolizer);

/*
 * Resolve every Location of the window that is not yet, and fill in the counts `named`. Those that there is no time for
 * are put off: they have no name in this window, thread A makes others for windows to come.
 */
void symbolizer_resolve(struct symbolizer *symbolizer, struct window *window);
/*
 * Once it is on its way: read what there was no time for, in two seconds at most and but for the end, then close and forget
 * what was not used for a while. A hurry, which lasts until the window is written, does not keep it from that. Not for
 * who waits for names: the next window reads it itself, with more time.
 */
void symbolizer_after_window(struct symbolizer *symbolizer);
/*
 * Any thread: what symbolizer_resolve() has no name for yet stays without, now and in windows to come, until there is
 * no more hurry. It waits for nothing but the answer to a question that it has asked, a
 * table of functions for two seconds.
 */
void symbolizer_hurry(struct symbolizer *symbolizer, bool is_hurried);

/*
 * Any thread: nothing is sampled any more. All that is asked from now on has a minute: windows together, where one has
 * that, and what comes between them.
 */
void symbolizer_finish(struct symbolizer *symbolizer);

struct symbolizer_stats {
	uint64_t objects, objects_gone, objects_not_elf, debug_files;
	uint64_t lookups, named, evicted;
	uint64_t sources[SOURCES];	/* of the lookups */
	uint64_t names_refused;		/* Locations that have one but no memory for it */
	uint64_t late;			/* Locations that got no name for want of time, */
	uint64_t windows_late;		/* and windows with such */
	uint64_t short_tables;		/* of symbols that the parser had no CPU for all of */
	uint64_t put_off;		/* Locations without a name; what came in the next window had another try */
	struct jit_stats jit;
	struct lines_stats lines;
	struct indices_stats indices;
	struct fetched_stats fetched;
	struct contexts_stats contexts;
	struct parser_stats parser;
	struct opener_stats opener;
};
void symbolizer_stats(struct symbolizer *symbolizer, struct symbolizer_stats *ret_stats);

#endif /* STACKTAP_RESOLVE_SYMBOLIZER_H */
