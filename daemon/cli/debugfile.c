// SPDX-License-Identifier: Apache-2.0
#include "cli/debugfile.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "cli/module_files.h"
#include "cli/parser_error.h"

enum {
	LOOSE_FILES_MAX = 4096,		/* of a directory that are looked into */
	READ_STEP = 64 << 10,
};

#define MODULE_CHARACTERS "0123456789_-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* A file that was named, or that lies in a directory that was, whatever it is called. */
struct loose {
	char *path;
	bool is_binary;
	char build_id[41], htlhash[33];
};

struct debugfile_finder {
	struct parser *parser;
	struct debugfile_places places;
	struct debuginfod *debuginfod;	/* NULL: is not asked */
	struct buffer loose;		/* struct loose */
	bool has_looked;		/* into the directories */
	struct module_files modules;
	struct sysroot sysroot;
	int sysroot_error;		/* why it cannot be opened, or 0 */
};

/* How much a file has of what is wanted. */
enum rank { RANK_NONE, RANK_EXPORTS, RANK_SYMBOLS, RANK_GO, RANK_DWARF };

struct search {
	struct debugfile_finder *finder;
	const char *build_id, *htlhash, *path;
	bool wants_code;		/* the program or library itself, and nothing else */
	struct debugfile *best;
	enum rank rank;
	char debuginfod_note[DEBUGINFOD_NOTE_MAX];	/* why it has none; empty: it was not asked */
};

static size_t loose_count(const struct debugfile_finder *finder)
{
	return finder->loose.size / sizeof(struct loose);
}

static const struct loose *loose_at(const struct debugfile_finder *finder, size_t i)
{
	return &((const struct loose *)(const void *)finder->loose.data)[i];
}

int debugfile_finder_new(struct parser *parser, const struct debugfile_places *places,
			 struct debuginfod *debuginfod, struct debugfile_finder **ret_finder)
{
	struct debugfile_finder *finder = calloc(1, sizeof(*finder));

	if (!finder)
		return -ENOMEM;
	finder->parser = parser;
	finder->places = *places;
	finder->debuginfod = debuginfod;
	buffer_init(&finder->loose, POOL_REPORT);
	module_files_init(&finder->modules);
	finder->sysroot_error = places->process ? sysroot_open_process(places->process, &finder->sysroot) :
						  sysroot_open(places->sysroot, &finder->sysroot);
	*ret_finder = finder;
	return 0;
}

void debugfile_finder_free(struct debugfile_finder *finder)
{
	if (!finder)
		return;
	for (size_t i = 0; i < loose_count(finder); i++)
		free(loose_at(finder, i)->path);
	buffer_free(&finder->loose);
	module_files_free(&finder->modules);
	if (!finder->sysroot_error)
		sysroot_close(&finder->sysroot);
	free(finder);
}

const struct sysroot *debugfile_finder_sysroot(const struct debugfile_finder *finder)
{
	return finder->sysroot_error ? NULL : &finder->sysroot;
}

const struct debugfile_places *debugfile_finder_places(const struct debugfile_finder *finder)
{
	return &finder->places;
}

/* A regular file; in the sysroot, or @sysroot NULL: of this host. */
static int open_object(const struct sysroot *sysroot, const char *path, struct object **ret_object)
{
	struct stat st;
	_cleanup_close_ int fd = sysroot_open_file(sysroot, path, &st);
	struct object *object;

	if (fd < 0)
		return fd;
	object = object_new(OBJECT_FILE, path);
	if (!object)
		return -ENOMEM;
	object_set_file(object, &st);
	*ret_object = object;
	return steal_fd(&fd);
}

static void note(struct debugfile *file, const char *format, ...) _printf_(2, 3);

static void note(struct debugfile *file, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(file->note, sizeof(file->note), format, args);
	va_end(args);
}

static void let_go(struct debugfile *file)
{
	object_unref(file->object);
	file->object = NULL;
	if (file->fd >= 0)
		close(steal_fd(&file->fd));
}

bool debugfile_is_kernel(const char *path)
{
	return !strcmp(path, "[kernel]");
}

bool debugfile_is_module(const char *path)
{
	const size_t length = strspn(path + (path[0] == '['), MODULE_CHARACTERS);

	return path[0] == '[' && length && !strcmp(path + 1 + length, "]") && !debugfile_is_kernel(path) &&
	       strcmp(path, "[vdso]");
}

static enum rank rank_of(const struct search *search, const struct lines_facts *facts)
{
	if (search->wants_code)
		return facts->has_code ? RANK_DWARF : RANK_NONE;
	if (facts->has_dwarf)
		return RANK_DWARF;
	if (facts->has_go_lines)
		return RANK_GO;
	return facts->has_symbols ? RANK_SYMBOLS : RANK_EXPORTS;
}

static bool is_of_kind(const struct search *search, const struct lines_facts *facts)
{
	return facts->is_module == debugfile_is_module(search->path);
}

static bool is_of_build(const struct search *search, const struct lines_facts *facts)
{
	if (search->build_id[0])
		return !strcmp(search->build_id, facts->build_id);
	return search->htlhash[0] && !strcmp(search->htlhash, facts->htlhash);
}

/* CRC of a whole file, as .gnu_debuglink has it. */
static bool has_crc(int fd, uint32_t wanted)
{
	_cleanup_free_ uint8_t *bytes = malloc(READ_STEP);
	uLong crc = crc32(0, NULL, 0);
	off_t offset = 0;
	ssize_t got;

	while (bytes && (got = pread(fd, bytes, READ_STEP, offset)) > 0) {
		crc = crc32(crc, bytes, (uInt)got);
		offset += got;
	}
	return bytes && crc == wanted;
}

/*
 * Takes @path if it is of this build and has more than what there was. @crc: of a file that a debug link
 * leads to, which proves one without a build-id; NULL: the build-id alone does. *ret_facts, may be NULL,
 * if it matches. 1: it does; 0: it is another file; -errno: that cannot be told.
 */
static int consider(struct search *search, const struct sysroot *sysroot, const char *path,
		    const uint32_t *crc, struct lines_facts *ret_facts)
{
	struct debugfile candidate = DEBUGFILE_NONE;
	bool is_good;
	int r;

	candidate.fd = open_object(sysroot, path, &candidate.object);
	if (candidate.fd < 0) {
		if (!search->rank && (candidate.fd == -EHOSTDOWN || candidate.fd == -EREMOTE))
			note(search->best, "%s: %s", path, parser_error(candidate.fd));
		return candidate.fd;
	}
	r = parser_debug(search->finder->parser, candidate.object, candidate.fd, PARSER_LINES_MS, &candidate.facts);
	if (r < 0 || !candidate.facts.is_elf) {
		if (!search->rank)
			note(search->best, "%s: %s", path, r < 0 ? parser_error(r) : "it is not an ELF file");
		let_go(&candidate);
		return min_of(r, 0);
	}
	is_good = is_of_build(search, &candidate.facts);
	if (!is_of_kind(search, &candidate.facts) ||
	    (!is_good && !(crc && !candidate.facts.build_id[0] && has_crc(candidate.fd, *crc)))) {
		if (!search->rank)
			note(search->best, "%s is %s", path, !is_good ? "of another build" : candidate.facts.is_module ?
			     "a kernel module's file" : "not a kernel module, or for an unsupported machine");
		let_go(&candidate);
		return 0;
	}
	if (ret_facts)
		*ret_facts = candidate.facts;
	if (rank_of(search, &candidate.facts) <= search->rank) {
		let_go(&candidate);
		return 1;
	}
	search->rank = rank_of(search, &candidate.facts);
	let_go(search->best);
	*search->best = candidate;
	search->best->root = sysroot;
	search->best->is_module = candidate.facts.is_module;
	search->best->is_kernel = search->best->is_module || debugfile_is_kernel(search->path);
	return 1;
}

static void add_loose(struct debugfile_finder *finder, const char *path, bool is_binary)
{
	struct loose loose = { .is_binary = is_binary };
	struct lines_facts facts;
	struct object *object;
	int fd = open_object(NULL, path, &object), r;

	if (fd < 0)
		return;
	r = parser_debug(finder->parser, object, fd, PARSER_LINES_MS, &facts);
	object_unref(object);
	close(fd);
	if (r < 0 || !facts.is_elf)
		return;
	strcpy(loose.build_id, facts.build_id);
	strcpy(loose.htlhash, facts.htlhash);
	loose.path = strdup(path);
	if (!loose.path || buffer_append(&finder->loose, &loose, sizeof(loose)))
		free(loose.path);
}

static void add_directory(struct debugfile_finder *finder, const char *directory)
{
	DIR *dir = opendir(directory);
	char path[PATH_MAX];
	unsigned int count = 0;
	struct dirent *entry;

	while (dir && count < LOOSE_FILES_MAX && (entry = readdir(dir))) {
		if (entry->d_type == DT_DIR ||
		    snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name) >=
		    (int)sizeof(path))
			continue;
		count++;
		add_loose(finder, path, false);
	}
	if (dir)
		closedir(dir);
}

/* Once, and only when something is not where its build-id says. */
static void look_around(struct debugfile_finder *finder)
{
	if (finder->has_looked)
		return;
	finder->has_looked = true;
	for (size_t i = 0; i < finder->places.binary_count; i++)
		add_loose(finder, finder->places.binaries[i], true);
	for (size_t i = 0; i < finder->places.directory_count; i++)
		add_directory(finder, finder->places.directories[i]);
}

/* Where packages, and debuginfod's cache, put what has a build-id. */
static void consider_by_id(struct search *search)
{
	const struct debugfile_places *places = &search->finder->places;
	const char *id = search->build_id;
	char path[PATH_MAX];

	for (size_t i = 0; strlen(id) > 2 && i < places->directory_count; i++) {
		for (size_t k = 0; k < 2 && search->rank < RANK_DWARF; k++) {
			snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s%s", places->directories[i], id,
				 id + 2, k ? "" : ".debug");
			consider(search, NULL, path, NULL, NULL);
		}
		for (size_t k = 0; k < 2 && search->rank < RANK_DWARF; k++) {
			snprintf(path, sizeof(path), "%s/%s/%s", places->directories[i], id,
				 k ? "executable" : "debuginfo");
			consider(search, NULL, path, NULL, NULL);
		}
	}
}

/* What the binary at @path says that its debug file is called. */
static void consider_link(struct search *search, const struct sysroot *sysroot, const char *path,
			  const struct lines_facts *facts)
{
	const struct debugfile_places *places = &search->finder->places;
	int length = (int)(strrchr(path, '/') ? strrchr(path, '/') - path : 0);
	char beside[PATH_MAX];

	/* a name, and no way out of the directory */
	if (!facts->link.name[0] || strchr(facts->link.name, '/'))
		return;
	snprintf(beside, sizeof(beside), "%.*s%s%s", length, path, length ? "/" : "", facts->link.name);
	consider(search, sysroot, beside, &facts->link.crc, NULL);
	snprintf(beside, sizeof(beside), "%.*s%s.debug/%s", length, path, length ? "/" : "",
		 facts->link.name);
	if (search->rank < RANK_DWARF)
		consider(search, sysroot, beside, &facts->link.crc, NULL);
	/* debug directories mirror the tree of where it ran */
	path = search->path;
	length = (int)(strrchr(path, '/') ? strrchr(path, '/') - path : 0);
	for (size_t i = 0; search->rank < RANK_DWARF && i < places->directory_count; i++) {
		snprintf(beside, sizeof(beside), "%s/%.*s/%s", places->directories[i], length, path,
			 facts->link.name);
		consider(search, NULL, beside, &facts->link.crc, NULL);
	}
}

static void consider_binary(struct search *search, const struct sysroot *sysroot, const char *path)
{
	struct lines_facts facts;

	if (consider(search, sysroot, path, NULL, &facts) > 0 && search->rank < RANK_DWARF)
		consider_link(search, sysroot, path, &facts);
}

static void consider_loose(struct search *search)
{
	struct debugfile_finder *finder = search->finder;

	look_around(finder);
	for (size_t i = 0; search->rank < RANK_DWARF && i < loose_count(finder); i++) {
		const struct loose *loose = loose_at(finder, i);
		const bool is_same = search->build_id[0] ? !strcmp(search->build_id, loose->build_id) :
							   !strcmp(search->htlhash, loose->htlhash);

		if (is_same && loose->is_binary)
			consider_binary(search, NULL, loose->path);
		else if (is_same)
			consider(search, NULL, loose->path, NULL, NULL);
	}
}

/* Where they are installed, of each release that there is; which is the right one its build-id says. */
static void consider_modules(struct search *search)
{
	struct debugfile_finder *finder = search->finder;
	const struct module_file *file = NULL;

	module_files_look(&finder->modules, debugfile_finder_sysroot(finder), finder->places.directories,
			  finder->places.directory_count);
	while (search->rank < RANK_DWARF && (file = module_files_next(&finder->modules, search->path, file)))
		consider(search, file->sysroot, file->path, NULL, NULL);
	if (!search->rank && finder->modules.is_cut)
		note(search->best, "there is no file of this build among the first %u below a lib/modules; --binary names one",
		     (unsigned int)MODULE_FILES_MAX);
}

/* What a server has, by the GNU build-id alone. */
static void consider_fetched(struct search *search)
{
	struct debuginfod *debuginfod = search->finder->debuginfod;
	char path[PATH_MAX];

	if (!debuginfod || !search->build_id[0] || search->wants_code ||
	    debuginfod_get(debuginfod, search->build_id, path, search->debuginfod_note) < 0 ||
	    consider(search, NULL, path, NULL, NULL))
		return;
	/* what was read is no file of that build: its own name for it would have kept the lie */
	debuginfod_forget(debuginfod, search->build_id);
	snprintf(search->debuginfod_note, sizeof(search->debuginfod_note),
		 "what the debuginfod server gave is not its debug file");
}

/* What dwz moved into a file that several share. */
static void find_alt(struct search *whole)
{
	struct debugfile_finder *finder = whole->finder;
	struct debugfile *file = whole->best;
	struct debugfile alt = DEBUGFILE_NONE;
	struct search search = {
		.finder = finder, .build_id = file->facts.alt_build_id, .htlhash = "", .path = "",
		.best = &alt,
	};
	const char *inside = strstr(file->facts.alt_link, "/.dwz/");
	char path[PATH_MAX];

	consider_by_id(&search);
	/* Debian's are found by their names below debug directories alone */
	for (size_t i = 0; inside && search.rank < RANK_DWARF && i < finder->places.directory_count; i++) {
		snprintf(path, sizeof(path), "%s%s", finder->places.directories[i], inside);
		consider(&search, NULL, path, NULL, NULL);
	}
	if (search.rank < RANK_DWARF)
		consider_loose(&search);
	if (search.rank < RANK_DWARF)
		consider_fetched(&search);
	if (search.rank == RANK_DWARF) {
		file->alt = (struct parser_part){ .fd = steal_fd(&alt.fd), .size = alt.object->size };
	} else {
		strcpy(whole->debuginfod_note, search.debuginfod_note);
	}
	let_go(&alt);
}

/* Takes what is at @path as the package; which units are of the file says each by its id. */
static void consider_split(struct search *search, const struct sysroot *sysroot, const char *path)
{
	struct debugfile *file = search->best;
	struct object *object;
	struct lines_facts facts;
	int fd = open_object(sysroot, path, &object), r;

	if (fd < 0)
		return;
	r = parser_debug(search->finder->parser, object, fd, PARSER_LINES_MS, &facts);
	if (!r && facts.is_split) {
		file->split = (struct parser_part){ .fd = fd, .size = object->size };
		/* what an earlier place had does not matter any more */
		file->note[0] = '\0';
	} else {
		note(file, "%s: %s", path, r < 0 ? parser_error(r) : "it has no split DWARF");
		close(fd);
	}
	object_unref(object);
}

static const char *base_name(const char *path)
{
	return strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
}

/* The package that dwp made: beside the file and beside the program that it is of, or in a debug directory. */
static void find_split(struct search *search)
{
	const struct debugfile_finder *finder = search->finder;
	const struct debugfile_places *places = &finder->places;
	const struct debugfile *file = search->best;
	const char *path = file->object->path;
	char package[PATH_MAX];

	snprintf(package, sizeof(package), "%s.dwp", path);
	consider_split(search, file->root, package);
	if (file->split.fd < 0 && search->path[0] == '/' && !finder->sysroot_error &&
	    !sysroot_resolve(&finder->sysroot, search->path, package) && strlen(package) + 5 < sizeof(package)) {
		strcat(package, ".dwp");
		consider_split(search, &finder->sysroot, package);
	}
	for (size_t i = 0; file->split.fd < 0 && i < places->directory_count; i++) {
		snprintf(package, sizeof(package), "%s/%s.dwp", places->directories[i], base_name(search->path));
		consider_split(search, NULL, package);
	}
}

static void add_debuginfod_note(const struct search *search)
{
	const size_t length = strlen(search->best->note);

	if (search->debuginfod_note[0])
		snprintf(search->best->note + length, sizeof(search->best->note) - length, "%s%s",
			 length ? "; " : "", search->debuginfod_note);
}

/* Everywhere, until there is nothing better. */
static int search_all(struct search *search)
{
	const struct debugfile_finder *finder = search->finder;
	char path[PATH_MAX];

	*search->best = DEBUGFILE_NONE;
	if (!search->build_id[0] && !search->htlhash[0]) {
		note(search->best, "it has no build-id");
		return -ENOENT;
	}
	if (search->path[0] == '[' && !debugfile_is_kernel(search->path) && !debugfile_is_module(search->path)) {
		note(search->best, "the vDSO keeps its recorded names: its addresses cannot be matched to debug files");
		return -ENOENT;
	}
	if (search->wants_code && debugfile_is_module(search->path)) {
		note(search->best, "a module's file is not linked: its call and jump targets are filled in when it is loaded");
		return -ENOENT;
	}
	consider_by_id(search);
	if (search->rank < RANK_DWARF)
		consider_loose(search);
	if (search->rank < RANK_DWARF && debugfile_is_module(search->path))
		consider_modules(search);
	if (search->rank < RANK_DWARF && search->path[0] == '/' &&
	    !finder->sysroot_error && !sysroot_resolve(&finder->sysroot, search->path, path))
		consider_binary(search, &finder->sysroot, path);
	else if (search->rank < RANK_DWARF && finder->sysroot_error == -EHOSTDOWN)
		note(search->best, "%s: %s", search->path, parser_error(-EHOSTDOWN));
	if (search->rank < RANK_DWARF)
		consider_fetched(search);
	if (search->rank)
		return 0;
	if (!search->best->note[0])
		note(search->best, "there is no file of this build");
	add_debuginfod_note(search);
	return -ENOENT;
}

int debugfile_find_code(struct debugfile_finder *finder, const struct recorded_object *wanted,
			struct debugfile *ret_file)
{
	struct search search = {
		.finder = finder, .build_id = wanted->build_id, .htlhash = wanted->htlhash,
		.path = wanted->path, .wants_code = true, .best = ret_file,
	};

	return search_all(&search);
}

int debugfile_find(struct debugfile_finder *finder, const struct recorded_object *wanted,
		   struct debugfile *ret_file)
{
	struct search search = {
		.finder = finder, .build_id = wanted->build_id, .htlhash = wanted->htlhash,
		.path = wanted->path, .best = ret_file,
	};
	int r = search_all(&search);

	if (r < 0)
		return r;
	ret_file->with_dwarf = search.rank == RANK_DWARF;
	if (ret_file->with_dwarf && ret_file->facts.alt_build_id[0]) {
		find_alt(&search);
		/* half of what names are made of is not enough */
		ret_file->with_dwarf = ret_file->alt.fd >= 0;
		if (!ret_file->with_dwarf)
			note(ret_file, "without lines: a part of its DWARF is in a file that is not "
			     "here, build-id %s", ret_file->facts.alt_build_id);
	} else if (search.rank == RANK_DWARF) {
		find_split(&search);
	} else if (search.rank == RANK_GO) {
		note(ret_file, "lines without columns, of Go's own table: it has no DWARF");
	} else if (search.rank == RANK_SYMBOLS) {
		note(ret_file, "without lines: it has no DWARF");
	} else if (search.rank == RANK_EXPORTS) {
		note(ret_file, "names of exported functions alone: it has no DWARF and no symbols");
	}
	add_debuginfod_note(&search);
	return 0;
}

void debugfile_drop_split(struct debugfile *file)
{
	if (file->split.fd >= 0)
		close(steal_fd(&file->split.fd));
}

void debugfile_close(struct debugfile *file)
{
	let_go(file);
	if (file->alt.fd >= 0)
		close(steal_fd(&file->alt.fd));
	debugfile_drop_split(file);
}

bool debugfile_address(const struct debugfile *file, const struct recorded_location *location,
		       uint64_t *ret_address)
{
	const struct lines_facts *facts = &file->facts;
	uint64_t offset;

	/* a Mapping of what was in no segment */
	if (location->limit == UINT64_MAX)
		return false;
	/* it is recorded by its distance from where the image begins, wherever that was */
	if (file->is_kernel) {
		*ret_address = location->address - location->start + facts->image;
		/* the first byte is no code: on arm64 its address is 0, as that of what was withheld */
		return facts->image != UINT64_MAX && location->address > location->start &&
		       location->address < location->limit;
	}
	*ret_address = location->address;
	if (location->start == facts->vaddr)
		return true;
	/* addresses as they were when it ran, of others' recordings; a file of debug information cannot tell */
	offset = location->address - location->start + location->offset;
	for (uint32_t i = 0; i < facts->segment_count; i++) {
		const struct object_segment *segment = &facts->segments[i];

		/* the mapping may begin before it, by as much as a page has */
		if (location->address < location->start || offset - segment->offset >= segment->size)
			continue;
		*ret_address = offset - segment->offset + segment->vaddr;
		return true;
	}
	return false;
}
