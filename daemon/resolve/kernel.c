// SPDX-License-Identifier: Apache-2.0
#include "resolve/kernel.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/pool.h"
#include "broker/broker.h"
#include "resolve/source.h"
#include "symbol/elf.h"
#include "symbol/htlhash.h"
#include "symbol/kallsyms.h"

#if defined(__x86_64__)
/* __START_KERNEL_map plus the default CONFIG_PHYSICAL_START, which no distribution changes */
#define LINK_TEXT 0xffffffff81000000ULL
#else
#define LINK_TEXT 0ULL
#endif

enum {
	MODULES_MAX = 2048,
	MODULES_BYTES = 1024 * 1024,	/* of /proc/modules */
	NOTES_BYTES = 64 * 1024,
	FUNCTION_MAX = 1024 * 1024,	/* what is further from a symbol is not its function's */
	GONE_MAX = 64,
	GONE_BATCHES = 2,		/* the one in which it is missed, and the one that had begun by then */
};
#define REFRESH_NS (10 * NSEC_PER_SEC)
#define MISSED_MAX_NS (3600 * NSEC_PER_SEC)

struct module {
	uint64_t start, size;
	char name[64];
	struct object *object;	/* owned; made when its first Location is resolved */
	ino_t inode;		/* of its directory in sysfs: another one after it was loaded again */
	bool has_symbols;	/* they were read after it came */
};

/* Where a module was: samples of it may still come, whatever is there now. */
struct gone {
	uint64_t start, limit;
	unsigned int batches;
};

struct kernel {
	char *sysroot;
	struct mapped_file *file;
	struct kallsyms *symbols;	/* NULL: unreadable */
	struct module *modules;		/* sorted by start */
	size_t module_count;
	struct gone gone[GONE_MAX];	/* the last ones */
	unsigned int gone_count;
	bool is_changed, is_warned;
	bool is_stale;			/* modules came or went after the symbols were read */
	bool may_read;			/* the symbols: there is time for it */
	bool lacks_time;		/* they had to be read in this batch, and there was none */
	bool is_looked;			/* for modules that came or went, in this batch */
	bool is_missed;			/* an address had no name that may have one by now */
	uint64_t now, read_time, missed_wait;
};

static void read_build_id(const struct kernel *kernel, const char *path, char ret_hex[static 41])
{
	_cleanup_free_ char *notes = NULL;
	char whole[PATH_MAX];
	size_t size;

	ret_hex[0] = '\0';
	snprintf(whole, sizeof(whole), "%s%s", kernel->sysroot, path);
	if (file_read(AT_FDCWD, whole, NOTES_BYTES, &notes, &size) == 0)
		elf_notes_build_id(notes, size, 4, ret_hex);
}

static void read_module_build_id(const struct kernel *kernel, const char *name,
				 char ret_hex[static 41])
{
	char path[256];

	snprintf(path, sizeof(path), "/sys/module/%s/notes/.note.gnu.build-id", name);
	read_build_id(kernel, path, ret_hex);
}

/*
 * What runs is no file any more, of which htlhash could be made; the build-id says which it was, so htlhash is
 * that of a file with nothing but the build-id's digits in it.
 */
static void set_htlhash(struct object *object)
{
	if (object->build_id[0])
		htlhash_memory(object->build_id, strlen(object->build_id), object->htlhash);
}

static int compare_modules(const void *a, const void *b)
{
	const struct module *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* "nf_tables 303104 0 - Live 0xffffffffc0a00000" */
static bool parse_module(const char *line, struct module *ret_module)
{
	*ret_module = (struct module){ 0 };
	return sscanf(line, "%63s %" SCNu64 " %*s %*s %*s %" SCNx64, ret_module->name,
		      &ret_module->size, &ret_module->start) == 3 &&
	       ret_module->start && ret_module->size &&
	       ret_module->size <= UINT64_MAX - ret_module->start &&
	       !strchr(ret_module->name, '/');
}

/* What shows its addresses by who opened it. */
static int open_addresses(const struct kernel *kernel, enum broker_kernel_file file, const char *path)
{
	char whole[PATH_MAX];
	int fd;

	if (!kernel->sysroot[0] && broker_is_there())
		return broker_open_kernel(file);
	snprintf(whole, sizeof(whole), "%s%s", kernel->sysroot, path);
	fd = open(whole, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static ino_t module_inode(const struct kernel *kernel, const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/sys/module/%s", kernel->sysroot, name);
	return stat(path, &st) == 0 ? st.st_ino : 0;
}

static int read_modules(const struct kernel *kernel, struct module **ret_modules, size_t *ret_count)
{
	_cleanup_close_ int fd = open_addresses(kernel, BROKER_MODULES, "/proc/modules");
	_cleanup_free_ char *text = NULL;
	char *line, *rest;
	struct module *modules, *smaller;
	size_t count = 0;
	int r;

	*ret_modules = NULL;
	*ret_count = 0;
	/* a kernel without modules has no such file */
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	r = file_read_fd(fd, MODULES_BYTES, &text, NULL);
	if (r < 0)
		return r;
	modules = calloc(MODULES_MAX, sizeof(*modules));
	if (!modules)
		return -ENOMEM;
	for (line = strtok_r(text, "\n", &rest); line && count < MODULES_MAX;
	     line = strtok_r(NULL, "\n", &rest))
		count += parse_module(line, &modules[count]);
	qsort(modules, count, sizeof(*modules), compare_modules);
	r = pool_charge(POOL_SYMBOLS, count * sizeof(*modules)) ? 0 : -ENOBUFS;
	if (r < 0 || !count) {
		free(modules);
		return r;
	}
	smaller = realloc(modules, count * sizeof(*modules));
	*ret_modules = smaller ?: modules;
	*ret_count = count;
	for (size_t i = 0; i < count; i++)
		(*ret_modules)[i].inode = module_inode(kernel, (*ret_modules)[i].name);
	return 0;
}

static void free_modules(struct module *modules, size_t count)
{
	for (size_t i = 0; i < count; i++)
		object_unref(modules[i].object);
	pool_uncharge(POOL_SYMBOLS, count * sizeof(*modules));
	free(modules);
}

static struct module *find_module(const struct kernel *kernel, uint64_t address)
{
	size_t low = 0, high = kernel->module_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (kernel->modules[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	/* sizes include data that may be elsewhere: the nearest start decides */
	if (low == 0 || address - kernel->modules[low - 1].start >= kernel->modules[low - 1].size)
		return NULL;
	return &kernel->modules[low - 1];
}

/* Once it is initialized it is smaller. */
static bool is_same_module(const struct module *a, const struct module *b)
{
	return a->start == b->start && a->inode == b->inode && !strcmp(a->name, b->name);
}

/* Its size is that of data elsewhere, too: it ends where the next one begins. */
static void note_gone(struct kernel *kernel, size_t i)
{
	const struct module *module = &kernel->modules[i];
	uint64_t limit = module->start + module->size;

	if (i + 1 < kernel->module_count)
		limit = min_of(limit, kernel->modules[i + 1].start);
	if (kernel->gone_count == GONE_MAX)
		memmove(kernel->gone, kernel->gone + 1, --kernel->gone_count * sizeof(kernel->gone[0]));
	kernel->gone[kernel->gone_count++] = (struct gone){ module->start, limit, GONE_BATCHES };
}

static void forget_gone(struct kernel *kernel)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < kernel->gone_count; i++)
		if (--kernel->gone[i].batches)
			kernel->gone[kept++] = kernel->gone[i];
	kernel->gone_count = kept;
}

static bool is_gone(const struct kernel *kernel, uint64_t address)
{
	for (unsigned int i = 0; i < kernel->gone_count; i++)
		if (address >= kernel->gone[i].start && address < kernel->gone[i].limit)
			return true;
	return false;
}

/* What is known of modules that stayed where they are stays. */
static void take_modules(struct kernel *kernel, struct module *modules, size_t count)
{
	size_t old = 0;

	for (size_t i = 0; i < count; i++) {
		for (; old < kernel->module_count && kernel->modules[old].start < modules[i].start; old++)
			note_gone(kernel, old);
		if (old == kernel->module_count || kernel->modules[old].start != modules[i].start)
			continue;
		if (is_same_module(&kernel->modules[old], &modules[i])) {
			modules[i].has_symbols = kernel->modules[old].has_symbols;
			modules[i].object = kernel->modules[old].object;
			kernel->modules[old].object = NULL;
		} else {
			note_gone(kernel, old);
		}
		old++;
	}
	for (; old < kernel->module_count; old++)
		note_gone(kernel, old);
	free_modules(kernel->modules, kernel->module_count);
	kernel->modules = modules;
	kernel->module_count = count;
}

static void warn_hidden(struct kernel *kernel)
{
	if (kernel->is_warned)
		return;
	kernel->is_warned = true;
	log_warning("kernel functions will have no names: /proc/kallsyms hides its addresses; "
		    "run with CAP_SYSLOG and kernel.kptr_restrict below 2, and in a unit "
		    "without ProtectKernelTunables=");
}

static void read_symbols(struct kernel *kernel, uint64_t now)
{
	struct kallsyms *symbols;
	struct module *modules;
	size_t count;
	int r;

	kernel->is_missed = false;
	kernel->read_time = now;
	/* modules first: one that comes in between has symbols and no range, and is read again */
	if (read_modules(kernel, &modules, &count) == 0)
		take_modules(kernel, modules, count);
	r = open_addresses(kernel, BROKER_SYMBOLS, "/proc/kallsyms");
	if (r >= 0)
		r = kallsyms_read_fd(r, &symbols);
	if (r < 0 || symbols->is_hidden)
		warn_hidden(kernel);
	if (r < 0)
		return;
	if (symbols->is_partial)
		log_warning("some kernel functions will have no names: they do not fit");
	kallsyms_free(kernel->symbols);
	kernel->symbols = symbols;
	kernel->is_changed = kernel->is_stale = false;
	for (size_t i = 0; i < kernel->module_count; i++)
		kernel->modules[i].has_symbols = true;
}

static int make_file(struct kernel *kernel)
{
	struct object *object = object_new(OBJECT_KERNEL, "[kernel]");

	if (!object)
		return -ENOMEM;
	read_build_id(kernel, "/sys/kernel/notes", object->build_id);
	set_htlhash(object);
	if (kernel->symbols && kernel->symbols->text &&
	    kernel->symbols->end > kernel->symbols->text) {
		object->address_start = LINK_TEXT;
		object->address_limit = LINK_TEXT + kernel->symbols->end - kernel->symbols->text;
	}
	atomic_store_explicit(&object->state, OBJECT_READY, memory_order_release);
	kernel->file = mapped_file_new(OBJECT_KERNEL, "[kernel]");
	if (!kernel->file) {
		object_unref(object);
		return -ENOMEM;
	}
	if (kernel->symbols && kernel->symbols->text) {
		kernel->file->fixed_start = kernel->symbols->text;
		kernel->file->fixed_limit = kernel->symbols->end;
	}
	atomic_store_explicit(&kernel->file->object, object, memory_order_release);
	return 0;
}

int kernel_new(const char *sysroot, struct kernel **ret_kernel)
{
	struct kernel *kernel = calloc(1, sizeof(*kernel));

	if (!kernel)
		return -ENOMEM;
	kernel->sysroot = strdup(sysroot);
	if (!kernel->sysroot) {
		kernel_free(kernel);
		return -ENOMEM;
	}
	kernel->missed_wait = 2 * REFRESH_NS;
	kernel->may_read = true;
	kernel->now = clock_monotonic();
	read_symbols(kernel, kernel->now);
	if (make_file(kernel) < 0) {
		kernel_free(kernel);
		return -ENOMEM;
	}
	*ret_kernel = kernel;
	return 0;
}

void kernel_free(struct kernel *kernel)
{
	if (!kernel)
		return;
	mapped_file_unref(kernel->file);
	kallsyms_free(kernel->symbols);
	free_modules(kernel->modules, kernel->module_count);
	free(kernel->sysroot);
	free(kernel);
}

struct mapped_file *kernel_file(const struct kernel *kernel)
{
	return kernel->file;
}

void kernel_changed(struct kernel *kernel)
{
	kernel->is_changed = true;
}

void kernel_let_read(struct kernel *kernel, bool may_read)
{
	kernel->may_read = may_read;
}

/* @wait: until names that are missed have them read again. */
static void read_in_time(struct kernel *kernel, uint64_t wait)
{
	kernel->lacks_time = !kernel->may_read;
	if (kernel->lacks_time)
		return;
	kernel->missed_wait = wait;
	read_symbols(kernel, kernel->now);
}

/* The side band tells of text that is added with a symbol; filters of seccomp have none, and are hit on every host. */
void kernel_refresh(struct kernel *kernel, uint64_t now)
{
	const uint64_t age = now - kernel->read_time;

	kernel->now = now;
	kernel->is_looked = false;
	kernel->lacks_time = false;
	forget_gone(kernel);
	if (age < REFRESH_NS)
		return;
	if (kernel->is_changed || kernel->is_stale)
		read_in_time(kernel, 2 * REFRESH_NS);
	else if (kernel->is_missed && age >= kernel->missed_wait)
		read_in_time(kernel, min_of(2 * kernel->missed_wait, (uint64_t)MISSED_MAX_NS));
}

/*
 * Modules come and go without a record in the side band, and one may get the place of another: before the first
 * address of a batch that may be a module's, those that are there are compared with those that are known.
 */
static void look_for_modules(struct kernel *kernel)
{
	struct module *modules;
	size_t count;
	bool is_same;

	if (kernel->is_looked)
		return;
	kernel->is_looked = true;
	if (read_modules(kernel, &modules, &count) < 0)
		return;
	is_same = count == kernel->module_count;
	for (size_t i = 0; is_same && i < count; i++)
		is_same = is_same_module(&modules[i], &kernel->modules[i]) && modules[i].size == kernel->modules[i].size;
	if (is_same) {
		free_modules(modules, count);
		return;
	}
	take_modules(kernel, modules, count);
	kernel->is_stale = true;
	if (kernel->now - kernel->read_time >= REFRESH_NS)
		read_in_time(kernel, 2 * REFRESH_NS);
}

static struct object *module_object(const struct kernel *kernel, struct module *module)
{
	if (!module->object) {
		struct object *object = object_new(OBJECT_MODULE, module->name);

		if (!object)
			return NULL;
		read_module_build_id(kernel, module->name, object->build_id);
		set_htlhash(object);
		object->address_limit = module->size;
		atomic_store_explicit(&object->state, OBJECT_READY, memory_order_release);
		module->object = object;
	}
	return object_ref(module->object);
}

static bool is_in_image(const struct kernel *kernel, uint64_t address)
{
	const struct kallsyms *symbols = kernel->symbols;

	return symbols && symbols->text && address >= symbols->text && address < symbols->end;
}

void kernel_resolve(struct kernel *kernel, struct names *names, struct location *location,
		    bool with_address)
{
	uint64_t lookup = location->offset - location->is_return, from, start;
	struct module *module = NULL;
	struct function *function;
	const char *name;
	enum name_source source = SOURCE_BPF;
	bool is_known = true;
	int r;

	if (!is_in_image(kernel, lookup)) {
		look_for_modules(kernel);
		is_known = !is_gone(kernel, lookup);
		module = is_known ? find_module(kernel, lookup) : NULL;
		is_known = is_known && (module ? module->has_symbols : !kernel->is_stale && !kernel->is_changed);
	}
	if (module) {
		location->object = module_object(kernel, module);
		location->address = location->offset - module->start;
		from = module->start;
		source = SOURCE_MODULE;
	} else if (is_in_image(kernel, lookup)) {
		location->object = object_ref(mapped_file_object(kernel->file));
		location->address = location->offset - kernel->symbols->text + LINK_TEXT;
		from = kernel->symbols->text;
		source = SOURCE_KERNEL;
	} else {
		/* BPF programs and trampolines, or an image whose place is hidden */
		location->object = NULL;
		location->address = 0;
		from = 0;
	}
	if (!with_address)
		location->address = 0;
	if (!kernel->symbols || !kernel->symbols->count)
		return;
	name = is_known ? kallsyms_find(kernel->symbols, lookup, &start) : NULL;
	if (name && (start < from || lookup - start >= FUNCTION_MAX ||
		     (!from && (is_in_image(kernel, start) || find_module(kernel, start)))))
		name = NULL;
	r = name ? names_get(names, name, NULL, &function) : 0;
	if (name && !r)
		r = location_set_function(location, function);
	if (name && !r)
		location->source = source;
	location->is_refused = r < 0 && r != -EAGAIN;
	if (r == -EAGAIN)
		atomic_store_explicit(&location->is_put_off, true, memory_order_relaxed);
	/* what has no name may have one in symbols that were not read */
	location->is_late = kernel->lacks_time && !name && (!is_known || !from);
	/* text that came after the symbols were read, or that has none */
	if (is_known && !name && !from)
		kernel->is_missed = true;
}
