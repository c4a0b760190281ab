// SPDX-License-Identifier: Apache-2.0
#include "resolve/contexts.h"
#include "resolve/symbolizer.h"

#include <string.h>

#include "base/clock.h"
#include "base/deadline.h"
#include "base/log.h"
#include "base/pool.h"
#include "resolve/claimed.h"
#include "resolve/fetched.h"
#include "resolve/images.h"
#include "resolve/jit.h"
#include "resolve/kernel.h"
#include "resolve/lines.h"
#include "resolve/objects.h"
#include "resolve/runtime.h"
#include "resolve/worklist.h"

/* roots and files unused for this long are closed: they pin the mounts of gone containers */
#define IDLE_NS (120 * NSEC_PER_SEC)
/* for the names of a window without a later one, and of all those at the end */
#define WAIT_NS (60 * NSEC_PER_SEC)

enum {
	ROOM_BYTES = 256 << 10,	/* that are made for names at a time */
	LEAST_MS = 250 + PARSER_READ_MS,	/* for the names of a window, however late it comes */
	LATE_MAX = 64,		/* files that a window had no time for and that are read after it */
	LATE_MS = 2000,		/* in this time */
};

struct symbolizer {
	struct symbolizer_options options;
	struct mount_namespace_table *spaces;
	struct names *names;
	struct opener *opener;
	struct parser *parser;
	struct objects *objects;
	struct parts *parts;
	struct indices *indices;	/* NULL: none are kept */
	struct fetched *fetched;	/* NULL: no server is asked */
	struct images *images;
	struct contexts *contexts;
	struct jits *jits;
	struct kernel *kernel;
	struct deadline deadline;	/* of the names of a window */
	struct deadline finish;		/* of all that is asked; DEADLINE_NONE: something is sampled still */
	struct deadline turn;		/* the same of what others ask in a window, which a hurry ends */
	struct object *behind[LATE_MAX];	/* owned: there was no time for them */
	size_t behind_count;
	uint64_t lookups, named, refused, put_off, late, windows_late, sources[SOURCES];
	uint64_t lines_deadline;	/* of this window */
	struct lines_stats lines;
	uint64_t windows;
};

/* Names are worth less than samples: what keeps it from working is said, and all else goes on. */
static void start_fetching(struct symbolizer *symbolizer)
{
	const struct debuginfod_options *options = &symbolizer->options.debuginfod;
	int r;

	if (!options->url)
		return;
	r = options->directory ? fetched_new(options, &symbolizer->fetched) : -ENOENT;
	if (r < 0 && options->directory)
		log_warning("debuginfod: debug files cannot be kept in %s: %s; none are fetched",
			    options->directory, strerror(-r));
	else if (r < 0)
		log_warning("debuginfod: there is no directory to keep debug files in, none are fetched: set "
			    "debuginfod_directory in section [symbols]");
	objects_fetch(symbolizer->objects, symbolizer->fetched);
}

static void answer_until(struct symbolizer *symbolizer, const struct deadline *deadline)
{
	parser_until(symbolizer->parser, deadline);
	opener_until(symbolizer->opener, deadline);
}

static void start_indices(struct symbolizer *symbolizer)
{
	const struct indices_options *options = &symbolizer->options.indices;
	int r;

	if (!symbolizer->options.with_lines || !options->directory || !options->limit_bytes)
		return;
	r = indices_new(options, &symbolizer->indices);
	if (r < 0)
		log_warning("indices of DWARF cannot be kept in %s: %s", options->directory,
			    r == -EPERM ? "the directory must belong to the daemon's user, and nobody else may write to it" : strerror(-r));
}

int symbolizer_new(const struct symbolizer_options *options, struct symbolizer **ret_symbolizer)
{
	struct symbolizer *symbolizer = calloc(1, sizeof(*symbolizer));
	const char *sysroot = options->sysroot ? options->sysroot : "";
	int r;

	if (!symbolizer)
		return -ENOMEM;
	symbolizer->options = *options;
	deadline_set(&symbolizer->deadline, DEADLINE_NONE);
	deadline_set(&symbolizer->turn, DEADLINE_NONE);
	deadline_set(&symbolizer->finish, DEADLINE_NONE);
	r = mount_namespace_table_new(sysroot, &symbolizer->spaces);
	if (r == 0)
		r = opener_new(&symbolizer->opener);
	if (r == 0)
		r = parser_new(&symbolizer->parser);
	if (r == 0)
		r = names_new(symbolizer->parser, &symbolizer->names);
	if (r == 0)
		r = objects_new(symbolizer->spaces, symbolizer->names, symbolizer->opener,
				symbolizer->parser, &symbolizer->objects);
	if (r == 0)
		r = parts_new(symbolizer->objects, &symbolizer->parts);
	if (r == 0)
		r = jits_new(symbolizer->opener, symbolizer->parser, symbolizer->spaces,
			     symbolizer->objects, &symbolizer->jits);
	if (r == 0)
		r = images_new(symbolizer->opener, symbolizer->spaces, options->with_command_line,
			       &symbolizer->images);
	if (r == 0)
		r = contexts_new(symbolizer->opener, symbolizer->parser, &symbolizer->contexts);
	if (r == 0)
		r = kernel_new(sysroot, &symbolizer->kernel);
	if (r < 0) {
		symbolizer_free(symbolizer);
		return r;
	}
	answer_until(symbolizer, &symbolizer->finish);
	start_fetching(symbolizer);
	start_indices(symbolizer);
	*ret_symbolizer = symbolizer;
	return 0;
}

static void drop_behind(struct symbolizer *symbolizer)
{
	while (symbolizer->behind_count)
		object_unref(symbolizer->behind[--symbolizer->behind_count]);
}

void symbolizer_free(struct symbolizer *symbolizer)
{
	if (!symbolizer)
		return;
	drop_behind(symbolizer);
	kernel_free(symbolizer->kernel);
	contexts_free(symbolizer->contexts);
	images_free(symbolizer->images);
	jits_free(symbolizer->jits);
	parts_free(symbolizer->parts);
	objects_free(symbolizer->objects);
	fetched_free(symbolizer->fetched);
	indices_free(symbolizer->indices);
	names_free(symbolizer->names);
	parser_free(symbolizer->parser);
	opener_free(symbolizer->opener);
	mount_namespace_table_free(symbolizer->spaces);
	free(symbolizer);
}

void symbolizer_see_image(struct symbolizer *symbolizer, struct image *image,
			  struct image *parent)
{
	images_see(symbolizer->images, image, parent);
}

void symbolizer_see_file(struct symbolizer *symbolizer, struct image *image,
			 struct mapped_file *file)
{
	parser_pay(symbolizer->parser, image->payer);
	images_see_file(symbolizer->images, image, file);
	objects_see(symbolizer->objects, image, file);
	jits_see_file(symbolizer->jits, image, file);
}

int symbolizer_open(struct symbolizer *symbolizer, struct object *object, uint32_t tgid,
		    int *ret_fd)
{
	return objects_fd(symbolizer->objects, object, tgid, ret_fd);
}

struct parser *symbolizer_parser(struct symbolizer *symbolizer)
{
	return symbolizer->parser;
}

struct opener *symbolizer_opener(struct symbolizer *symbolizer)
{
	return symbolizer->opener;
}

struct mapped_file *symbolizer_kernel(struct symbolizer *symbolizer)
{
	return mapped_file_ref(kernel_file(symbolizer->kernel));
}

void symbolizer_see_kernel_change(struct symbolizer *symbolizer)
{
	kernel_changed(symbolizer->kernel);
}

static bool is_unseen(const struct location *location)
{
	return !location->is_resolved && location->type == FRAME_NATIVE && location->file &&
	       location->file->kind != OBJECT_ANONYMOUS && !mapped_file_object(location->file);
}

static bool has_time(const struct symbolizer *symbolizer, uint32_t ms)
{
	return deadline_left_ms(&symbolizer->deadline, ms) == ms;
}

/* Is a question for a table of functions begun? */
static bool has_time_to_read(const struct symbolizer *symbolizer)
{
	return has_time(symbolizer, parser_read_ms(symbolizer->parser));
}

/*
 * Programs and files that were not announced: these are opened through an image that runs them. They are paid for as those
 * which are: whose they are has not been looked at, so they take no turns.
 */
static void see_rest(struct symbolizer *symbolizer, const struct window *window)
{
	bool any = false;

	for (size_t i = 0; i < window->location_count && !any; i++)
		any = is_unseen(window->locations[i]);
	for (size_t i = 0; i < window->sample_count; i++) {
		const struct window_sample *sample = &window->samples[i];

		if (!has_time(symbolizer, PARSER_READ_MS))
			return;
		/* its parent may have gone as well: what is known is what /proc still says */
		if (sample->image && !sample->image->mount_namespace && sample->image->asked_in != symbolizer->windows &&
		    atomic_load_explicit(&sample->image->is_untold, memory_order_relaxed)) {
			sample->image->asked_in = symbolizer->windows;
			images_see(symbolizer->images, sample->image, NULL);
		}
		for (uint32_t j = 0; any && sample->image && j < sample->stack->count; j++) {
			struct mapped_file *file = sample->stack->locations[j]->file;

			/* one that cannot be seen right now costs one try, however many samples it has */
			if (!is_unseen(sample->stack->locations[j]) || file->seen_in == symbolizer->windows)
				continue;
			file->seen_in = symbolizer->windows;
			symbolizer_see_file(symbolizer, sample->image, file);
		}
	}
}

/*
 * A process whose samples hold Locations of the object: it may have it open when its path is gone.
 */
static uint32_t find_process(const struct window *window, const struct object *object)
{
	for (size_t i = 0; i < window->sample_count; i++) {
		const struct window_sample *sample = &window->samples[i];

		for (uint32_t j = 0; sample->image && j < sample->stack->count; j++) {
			const struct location *location = sample->stack->locations[j];

			if (location->file && mapped_file_object(location->file) == object)
				return sample->image->tgid;
		}
	}
	return 0;
}

/* Which object a Location is in and where; true when names may be looked up there. */
static bool locate(struct location *location)
{
	struct object *object = location->file ? mapped_file_object(location->file) : NULL;

	location->address = location->offset;
	if (!object)
		return false;
	location->object = object_ref(object);
	return atomic_load_explicit(&object->state, memory_order_relaxed) == OBJECT_READY &&
	       object_address(object, location->offset, &location->address);
}

static int set_name(struct symbolizer *symbolizer, struct location *location, const char *name,
		    size_t *budget)
{
	struct function *function;
	int r = names_get(symbolizer->names, name, budget, &function);

	return r < 0 ? r : location_set_function(location, function);
}

/*
 * This one stays as it is: it may be with thread C already in a later window. Thread A makes another, which is
 * looked up again.
 */
static void put_off(struct symbolizer *symbolizer, struct location *location)
{
	const bool is_late = !has_time_to_read(symbolizer);

	symbolizer->late += is_late && !location->is_late;
	location->is_late |= is_late;
	atomic_store_explicit(&location->is_put_off, true, memory_order_relaxed);
}

/* It has no name for want of time or memory. Code without a file, and the kernel's, is looked up again whatever it came to. */
static bool is_missed(const struct location *location)
{
	return !location->line_count && !location->is_claimed && location->type != FRAME_KERNEL &&
	       atomic_load_explicit(&location->is_put_off, memory_order_relaxed);
}

/* What @symbol, of the file or of what belongs to it, was found in. */
static enum name_source source_of(const struct object *object, const struct object_symbols *symbols, bool is_own,
				  const struct symbol *symbol, uint64_t address)
{
	if (!is_own)
		return !symbols->object ? SOURCE_MINI : symbols->is_fetched ? SOURCE_DEBUGINFOD : SOURCE_DEBUG_FILE;
	if (object->kind == OBJECT_VDSO)
		return SOURCE_VDSO;
	if (symbol->name & SYMBOL_PLT)
		return SOURCE_PLT;
	if (symtab_is_stripped(symbols->symtab) && symtab_is_go(symbols->symtab, address))
		return SOURCE_PCLNTAB;
	return symbols->symtab->is_dynamic ? SOURCE_DYNSYM : SOURCE_SYMTAB;
}

static void name_location(struct symbolizer *symbolizer, struct location *location,
			  const struct object_symbols *own, const struct object_symbols *debug,
			  size_t *budget)
{
	const uint64_t address = location->address - location->is_return;
	const struct symbol *symbol = symtab_find(own->symtab, address), *other = NULL;
	const struct object_symbols *symbols = own;
	char name[SYMTAB_NAME_MAX];
	int r;

	if (symtab_is_go(own->symtab, address))
		location->runtime = RUNTIME_GO;
	if (symbol && !symbol_is_named(symbol)) {
		location->has_function = true;
		location->function_start = symtab_start(own->symtab, symbol);
		symbol = NULL;
	}
	/* that has all functions but PLT entries, or all that are not exported: the nearest one counts */
	if (debug->symtab)
		other = symtab_find(debug->symtab, address);
	if (other && symbol_is_named(other) &&
	    (!symbol || symtab_start(debug->symtab, other) >= symtab_start(own->symtab, symbol))) {
		symbol = other;
		symbols = debug;
	}
	/* one that has it may be among those which are missing */
	if (!symbol && (own->symtab->is_late || (debug->symtab && debug->symtab->is_late)))
		put_off(symbolizer, location);
	if (!symbol || (symbols->fd < 0 && symtab_needs_file(symbols->symtab, symbol)))
		return;
	r = parser_name(symbolizer->parser, location->object, symbols->fd, symbols->symtab, symbol, name);
	if (r < 0) {
		if (objects_may_pass(r))
			put_off(symbolizer, location);
		return;
	}
	r = set_name(symbolizer, location, name, budget);
	if (r == -ENOBUFS && objects_make_room(symbolizer->objects, ROOM_BYTES))
		r = set_name(symbolizer, location, name, budget);
	if (r == 0)
		location->source = source_of(location->object, symbols, symbols == own, symbol, address);
	location->is_refused = r < 0 && r != -EAGAIN;
	/* by the next window there may be room, and time */
	if (r < 0)
		put_off(symbolizer, location);
}

/* -errno: it has none. One whose names are at hand may be closed: nobody asked for a while, or others needed theirs. */
static int fd_of(struct symbolizer *symbolizer, const struct window *window, const struct object_symbols *symbols, bool is_own)
{
	int fd = symbols->fd, r = 0;

	if (fd < 0)
		r = objects_fd(symbolizer->objects, symbols->object, 0, &fd);
	/* no process maps a debug file */
	if (is_own && (r == -ESTALE || r == -ENOENT))
		r = objects_fd(symbolizer->objects, symbols->object, find_process(window, symbols->object), &fd);
	return r < 0 ? r : fd;
}

/* A stripped file's are in its debug file. */
static void find_lines(struct symbolizer *symbolizer, const struct window *window, const struct object_symbols *own,
		       const struct object_symbols *debug, const struct work_item *item, size_t *budget)
{
	const struct object_symbols *from = debug->object ? debug : own;
	const uint64_t now = clock_monotonic();
	struct lines_source source = {
		.parts = symbolizer->parts, .indices = symbolizer->indices, .program = own->object, .object = from->object,
		.known = objects_dwarf(own->object, from->object), .deadline = symbolizer->lines_deadline,
	};

	/* what has none is not opened for them, nor what there is no time to read */
	if (source.known->seek_lines_at > now)
		return;
	source.fd = source.deadline > now ? fd_of(symbolizer, window, from, from == own) : -ETIME;
	lines_resolve(symbolizer->parser, symbolizer->names, &source, item->locations, item->count,
		      budget, &symbolizer->lines);
}

/* One for all of a window: what the parser had no CPU for is asked again. */
static size_t *names_budget(const struct symbolizer *symbolizer, struct object *object)
{
	if (object->names_window != symbolizer->windows) {
		object->names_window = symbolizer->windows;
		object->names_budget = NAMES_OBJECT_MAX_BYTES;
	}
	return &object->names_budget;
}

static void name_item(struct symbolizer *symbolizer, const struct window *window, const struct work_item *item)
{
	struct object *object = item->locations[0]->object;
	size_t *budget = names_budget(symbolizer, object);
	struct object_symbols own, debug;
	bool is_late = false;
	int r;

	parser_pay(symbolizer->parser, object->payer);
	r = objects_symbols(symbolizer->objects, object, 0, &own, &debug);
	if (r == -ESTALE || r == -ENOENT)
		r = objects_symbols(symbolizer->objects, object, find_process(window, object), &own, &debug);
	for (size_t i = 0; r >= 0 && i < item->count; i++)
		name_location(symbolizer, item->locations[i], &own, &debug, budget);
	if (r >= 0 && symbolizer->options.with_lines)
		find_lines(symbolizer, window, &own, &debug, item, budget);
	for (size_t i = 0; i < item->count; i++)
		if (objects_may_pass(r) || (r == OBJECTS_MORE_LATER && !item->locations[i]->line_count))
			put_off(symbolizer, item->locations[i]);
	objects_release(symbolizer->objects);
	for (size_t i = 0; i < item->count; i++)
		is_late |= item->locations[i]->is_late;
	if (!is_late)
		object->late_since = 0;
	else if (!object->late_since)
		object->late_since = symbolizer->windows;
	if (is_late && symbolizer->behind_count < LATE_MAX)
		symbolizer->behind[symbolizer->behind_count++] = object_ref(object);
}

static void name_claimed(struct symbolizer *symbolizer, struct location *location, struct jit *jit)
{
	char name[CODE_NAME_MAX];
	bool is_dump;
	int r;

	parser_pay(symbolizer->parser, jit_payer(jit));
	r = jit_name(symbolizer->jits, jit, location->offset - location->is_return, name, &is_dump);

	location->address = location->offset;
	location->runtime = jit_runtime(jit);
	if (r == 0) {
		if (!location->runtime)
			location->runtime = runtime_of_function(name);
		r = set_name(symbolizer, location, name, jit_budget(jit));
		if (r == -ENOBUFS && objects_make_room(symbolizer->objects, ROOM_BYTES))
			r = set_name(symbolizer, location, name, jit_budget(jit));
		if (r == 0)
			location->source = is_dump ? SOURCE_JITDUMP : SOURCE_PERF_MAP;
		else if (r == -EAGAIN)
			put_off(symbolizer, location);
		symbolizer->put_off += r == -EAGAIN;
		location->is_refused = r < 0 && r != -EAGAIN;
	} else if (r == -ENOBUFS) {
		location->is_refused = true;
	} else if (objects_may_pass(r)) {
		put_off(symbolizer, location);
		symbolizer->put_off++;
	}
	/* what is there may be something else by the next window */
	atomic_store_explicit(&location->is_put_off, true, memory_order_relaxed);
}

static void resolve_claimed(struct symbolizer *symbolizer, const struct window *window)
{
	struct claimed *claimed;
	const size_t count = claimed_find(symbolizer->jits, window, &symbolizer->deadline, &claimed);

	for (size_t i = 0; i < count; i++)
		name_claimed(symbolizer, claimed[i].location, claimed[i].jit);
	free(claimed);
}

static void count_named(struct window *window)
{
	const struct stack *last = NULL;
	enum naming naming = NAMING_NONE;
	bool is_late = false;

	for (size_t i = 0; i < window->sample_count; i++) {
		const struct window_sample *sample = &window->samples[i];

		if (sample->stack != last) {
			last = sample->stack;
			naming = stack_naming(last);
			is_late = stack_is_late(last);
		}
		window->counts[sample->profile].names_late += is_late ? sample->count : 0;
		window_counts_add_named(&window->counts[sample->profile], naming, sample->count);
	}
}

/* A quarter of the pool is left for the Locations that thread A makes in the next window. */
static void leave_headroom(struct symbolizer *symbolizer)
{
	const struct pool *pool = pool_get(POOL_SYMBOLS);
	size_t used = atomic_load_explicit(&pool->used, memory_order_relaxed);
	size_t wanted = pool->limit - pool->limit / 4;

	if (used > wanted)
		objects_make_room(symbolizer->objects, used - wanted);
}

/* When its names have to be there. A window that comes late still has some time: else none of a slow host had any. */
static uint64_t deadline_of(const struct symbolizer *symbolizer, const struct window *window, uint64_t now)
{
	const unsigned int names_ms = symbolizer->options.names_ms;

	if (names_ms)
		return max_of(window->end + names_ms * NSEC_PER_MSEC, now + LEAST_MS * NSEC_PER_MSEC);
	return min_of(now + WAIT_NS, atomic_load(&symbolizer->finish.at));
}

static void begin(struct symbolizer *symbolizer, const struct window *window)
{
	const uint64_t now = clock_monotonic();

	symbolizer->windows++;
	deadline_set(&symbolizer->deadline, deadline_of(symbolizer, window, now));
	symbolizer->lines_deadline = min_of(now + (symbolizer->options.names_ms ? LINES_WINDOW_NS : LINES_RECORDING_NS),
					    atomic_load(&symbolizer->deadline.at));
	answer_until(symbolizer, &symbolizer->deadline);
	parser_pay(symbolizer->parser, 0);
	names_begin(symbolizer->names);
	images_publish(symbolizer->images);
}

/*
 * What others ask meanwhile has time of its own, as outside of windows, and the window has as much longer. Nobody has any
 * while somebody is in a hurry.
 */
static void give_turn(struct symbolizer *symbolizer, size_t done, size_t count)
{
	const struct symbolizer_options *options = &symbolizer->options;
	const uint64_t began = clock_monotonic();
	uint64_t took, end;

	if (!options->turn || options->names_ms || !deadline_left_ns(&symbolizer->deadline))
		return;
	answer_until(symbolizer, &symbolizer->turn);
	parser_wait(symbolizer->parser, false);
	options->turn(options->turn_ctx, done, count);
	parser_wait(symbolizer->parser, true);
	took = clock_monotonic() - began;
	end = min_of(atomic_load(&symbolizer->deadline.at) + took, atomic_load(&symbolizer->finish.at));
	deadline_set(&symbolizer->deadline, end);
	symbolizer->lines_deadline = min_of(symbolizer->lines_deadline + took, end);
	answer_until(symbolizer, &symbolizer->deadline);
}

/* What there was no memory for has none in this window. */
static size_t find_missed(const struct work_item *item, struct location **ret_missed)
{
	size_t count = 0;

	for (size_t i = 0; i < item->count; i++)
		if (is_missed(item->locations[i]) && !item->locations[i]->is_refused)
			ret_missed[count++] = item->locations[i];
	return count;
}

/*
 * How many are in *ret_starved: what has no name in files that the parser had no CPU for. NULL: nobody asks again. Before
 * each file but the first one of the window others have a turn.
 */
static size_t name_each(struct symbolizer *symbolizer, const struct window *window, struct location **found, size_t count,
			bool is_first, struct location **ret_starved)
{
	struct parser *parser = symbolizer->parser;
	struct worklist list;
	struct work_item item;
	size_t starved = 0;

	worklist_begin(&list, parser, window, symbolizer->windows, found, count);
	for (size_t done = 0; worklist_next(&list, &item); done++) {
		uint64_t before;

		if (done || !is_first)
			give_turn(symbolizer, done, list.count);
		before = parser_starved(parser);
		name_item(symbolizer, window, &item);
		if (ret_starved && parser_starved(parser) != before)
			starved += find_missed(&item, ret_starved + starved);
	}
	worklist_end(&list);
	return starved;
}

/*
 * @found are of objects. Who waits asks again for what the parser had no CPU for, once all others were asked for: one
 * file that is large would take their time.
 */
static void name_found(struct symbolizer *symbolizer, const struct window *window, struct location **found,
		       size_t count)
{
	_cleanup_free_ struct location **memory = symbolizer->options.names_ms ? NULL : malloc(count * sizeof(*memory));
	struct location **starved = memory;

	for (unsigned int tries = 1; count; tries++) {
		struct location **asked = found;

		count = name_each(symbolizer, window, asked, count, tries == 1, tries < PARSER_TRIES ? starved : NULL);
		if (!count || !has_time_to_read(symbolizer))
			return;
		for (size_t i = 0; i < count; i++)
			atomic_store_explicit(&starved[i]->is_put_off, false, memory_order_relaxed);
		found = starved;
		starved = asked;
	}
}

/* Frames in files. */
static void resolve_files(struct symbolizer *symbolizer, const struct window *window)
{
	/* without memory for the list Locations are named one by one, which is slow but right */
	_cleanup_free_ struct location **found = malloc(window->location_count * sizeof(*found));
	size_t count = 0;

	for (size_t i = 0; i < window->location_count; i++) {
		struct location *location = window->locations[i];

		if (location->is_resolved || location->type == FRAME_KERNEL)
			continue;
		if (is_unseen(location))
			put_off(symbolizer, location);
		else if (!locate(location))
			continue;
		else if (found)
			found[count++] = location;
		else
			name_item(symbolizer, window, &(struct work_item){ &location, 1 });
	}
	if (count)
		name_found(symbolizer, window, found, count);
}

/* Last, as reading its symbols is one piece of work: what that takes is taken from nobody's names. */
static void resolve_kernel(struct symbolizer *symbolizer, const struct window *window)
{
	kernel_let_read(symbolizer->kernel, deadline_left_ns(&symbolizer->deadline) > 0);
	kernel_refresh(symbolizer->kernel, clock_monotonic());
	for (size_t i = 0; i < window->location_count; i++) {
		struct location *location = window->locations[i];

		if (location->is_resolved || location->type != FRAME_KERNEL)
			continue;
		kernel_resolve(symbolizer->kernel, symbolizer->names, location, symbolizer->options.with_kernel_addresses);
		symbolizer->late += location->is_late;
	}
}

static enum name_source outcome_of(const struct location *location)
{
	if (location->source)
		return location->source;
	return location->line_count ? SOURCE_DWARF : location->has_function ? SOURCE_RANGE : SOURCE_NONE;
}

static void publish(struct symbolizer *symbolizer, struct window *window)
{
	for (size_t i = 0; i < window->location_count; i++) {
		struct location *location = window->locations[i];

		if (location->is_resolved)
			continue;
		symbolizer->lookups++;
		symbolizer->sources[outcome_of(location)]++;
		symbolizer->named += location->line_count > 0;
		symbolizer->refused += location->is_refused;
		symbolizer->put_off += is_missed(location);
		atomic_store_explicit(&location->is_resolved, true, memory_order_release);
	}
	count_named(window);
}

void symbolizer_resolve(struct symbolizer *symbolizer, struct window *window)
{
	const uint64_t late = symbolizer->late;

	begin(symbolizer, window);
	see_rest(symbolizer, window);
	parser_wait(symbolizer->parser, !symbolizer->options.names_ms);
	resolve_files(symbolizer, window);
	/* each window anew, so what has to be looked up once comes before it */
	resolve_claimed(symbolizer, window);
	contexts_look(symbolizer->contexts, window, &symbolizer->deadline);
	resolve_kernel(symbolizer, window);
	publish(symbolizer, window);
	symbolizer->windows_late += symbolizer->late > late;
	/* what follows is nothing that a window waits for */
	answer_until(symbolizer, &symbolizer->finish);
	parser_wait(symbolizer->parser, false);
	parser_pay(symbolizer->parser, 0);
	leave_headroom(symbolizer);
}

/* The next window has its names at once then; else a slow host would read no more than fits before windows leave. */
static void read_behind(struct symbolizer *symbolizer)
{
	struct object_symbols own, debug;
	struct deadline deadline = { 0 };

	deadline_set(&deadline, clock_monotonic() + LATE_MS * NSEC_PER_MSEC);
	answer_until(symbolizer, &deadline);
	for (size_t i = 0; i < symbolizer->behind_count; i++) {
		parser_pay(symbolizer->parser, symbolizer->behind[i]->payer);
		/* what cannot be read is found out again by who needs it */
		(void)!objects_symbols(symbolizer->objects, symbolizer->behind[i], 0, &own, &debug);
		objects_release(symbolizer->objects);
	}
	parser_pay(symbolizer->parser, 0);
	answer_until(symbolizer, &symbolizer->finish);
}

void symbolizer_after_window(struct symbolizer *symbolizer)
{
	/* a window that waits reads it itself, with more time */
	if (symbolizer->behind_count && symbolizer->options.names_ms)
		read_behind(symbolizer);
	drop_behind(symbolizer);
	mount_namespace_table_trim(symbolizer->spaces, IDLE_NS);
	objects_trim(symbolizer->objects, IDLE_NS);
	jits_trim(symbolizer->jits, IDLE_NS);
}

void symbolizer_hurry(struct symbolizer *symbolizer, bool is_hurried)
{
	atomic_store_explicit(&symbolizer->deadline.is_over, is_hurried, memory_order_relaxed);
	atomic_store_explicit(&symbolizer->turn.is_over, is_hurried, memory_order_relaxed);
}

void symbolizer_finish(struct symbolizer *symbolizer)
{
	const uint64_t end = clock_monotonic() + WAIT_NS;

	/* somebody may have a turn just now */
	deadline_set(&symbolizer->finish, end);
	deadline_set(&symbolizer->turn, end);
}

void symbolizer_stats(struct symbolizer *symbolizer, struct symbolizer_stats *ret_stats)
{
	const struct objects_stats *objects = objects_stats(symbolizer->objects);

	*ret_stats = (struct symbolizer_stats){
		.objects = objects->objects,
		.objects_gone = objects->gone,
		.objects_not_elf = objects->not_elf,
		.debug_files = objects->debug_files,
		.lookups = symbolizer->lookups,
		.named = symbolizer->named,
		.names_refused = symbolizer->refused,
		.late = symbolizer->late,
		.windows_late = symbolizer->windows_late,
		.put_off = symbolizer->put_off,
		.evicted = objects->evicted,
		.short_tables = objects->short_tables,
		.jit = *jits_stats(symbolizer->jits),
		.lines = symbolizer->lines,
		.contexts = *contexts_stats(symbolizer->contexts),
	};
	memcpy(ret_stats->sources, symbolizer->sources, sizeof(ret_stats->sources));
	fetched_stats(symbolizer->fetched, &ret_stats->fetched);
	indices_stats(symbolizer->indices, &ret_stats->indices);
	parser_stats(symbolizer->parser, &ret_stats->parser);
	opener_stats(symbolizer->opener, &ret_stats->opener);
}
