// SPDX-License-Identifier: Apache-2.0
#include "cli/module_files.h"

#include <fts.h>
#include <string.h>
#include <sys/stat.h>

enum {
	DEPTH_MAX = 16,
	IN_RELEASE = 2,			/* lib/modules/RELEASE/... */
};

static const char *const directories[] = { "/lib/modules", "/usr/lib/modules" };

/* A directory whatever it is called; what is found in it is in @sysroot, or not. */
struct module_tree {
	const struct sysroot *sysroot;
	dev_t device;
	ino_t inode;
};

static const struct module_file *file_at(const struct module_files *modules, size_t i)
{
	return &((const struct module_file *)(const void *)modules->files.data)[i];
}

static size_t file_count(const struct module_files *modules)
{
	return modules->files.size / sizeof(struct module_file);
}

void module_files_init(struct module_files *modules)
{
	*modules = (struct module_files){ .has_looked = false };
	buffer_init(&modules->files, POOL_REPORT);
	buffer_init(&modules->trees, POOL_REPORT);
}

void module_files_free(struct module_files *modules)
{
	for (size_t i = 0; i < file_count(modules); i++)
		free(file_at(modules, i)->path);
	buffer_free(&modules->files);
	buffer_free(&modules->trees);
}

/* The characters of its name that are the module's; 0: it is none's. */
static size_t stem(const char *name)
{
	static const char *const ends[] = { ".ko", ".ko.debug", ".ko.gz", ".ko.xz", ".ko.zst" };
	const size_t length = strlen(name);

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		const size_t end = strlen(ends[i]);

		if (length > end && !strcmp(name + length - end, ends[i]))
			return length - end;
	}
	return 0;
}

static void add_file(struct module_files *modules, const struct sysroot *sysroot, const char *path)
{
	struct module_file file = { .sysroot = sysroot, .path = strdup(path) };

	if (!file.path || buffer_append(&modules->files, &file, sizeof(file)))
		free(file.path);
}

/* False: it was looked into by another name, or is not there. */
static bool is_new(struct module_files *modules, const struct sysroot *sysroot, const char *directory)
{
	const struct module_tree *trees = (const void *)modules->trees.data;
	struct module_tree tree = { .sysroot = sysroot };
	struct stat st;

	if (lstat(directory, &st) < 0 || !S_ISDIR(st.st_mode))
		return false;
	tree.device = st.st_dev;
	tree.inode = st.st_ino;
	for (size_t i = 0; i < modules->trees.size / sizeof(tree); i++)
		if (trees[i].sysroot == sysroot && trees[i].device == tree.device && trees[i].inode == tree.inode)
			return false;
	/* it is looked into twice if there is no room to remember */
	(void)!buffer_append(&modules->trees, &tree, sizeof(tree));
	return true;
}

/* A kernel's sources and its vDSOs, which may be many, and no modules that are installed. */
static bool is_beside_modules(const FTSENT *entry)
{
	static const char *const names[] = { "build", "source", "vdso" };
	bool is = false;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		is |= !strcmp(entry->fts_name, names[i]);
	return is && entry->fts_level == IN_RELEASE;
}

/* No link is followed, so that it stays in there, and no other file system is entered. */
static void walk(struct module_files *modules, const struct sysroot *sysroot, char *directory)
{
	char *const roots[] = { directory, NULL };
	FTS *fts = is_new(modules, sysroot, directory) ? fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL) : NULL;
	unsigned int count = 0;
	FTSENT *entry;

	while (fts && (entry = fts_read(fts))) {
		if (entry->fts_info == FTS_D && (entry->fts_level > DEPTH_MAX || is_beside_modules(entry)))
			fts_set(fts, entry, FTS_SKIP);
		/* directories come twice */
		if (entry->fts_info != FTS_DP && ++count > MODULE_FILES_MAX) {
			modules->is_cut = true;
			break;
		}
		if (entry->fts_info == FTS_F && stem(entry->fts_name))
			add_file(modules, sysroot, entry->fts_path);
	}
	if (fts)
		fts_close(fts);
}

void module_files_look(struct module_files *modules, const struct sysroot *sysroot, const char *const *debug_directories,
		       size_t count)
{
	char path[PATH_MAX];

	if (modules->has_looked)
		return;
	modules->has_looked = true;
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < ARRAY_SIZE(directories); k++)
			if (snprintf(path, sizeof(path), "%s%s", debug_directories[i], directories[k]) < (int)sizeof(path))
				walk(modules, NULL, path);
	/* a process' root is no host's */
	for (size_t k = 0; sysroot && !sysroot->space && k < ARRAY_SIZE(directories); k++)
		if (!sysroot_resolve(sysroot, directories[k], path))
			walk(modules, sysroot, path);
}

/* The kernel has underscores where file names may have either. */
static bool is_of(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
	const size_t length = stem(file);

	if (strlen(name) != length + 2)
		return false;
	for (size_t i = 0; i < length; i++)
		if ((file[i] == '-' ? '_' : file[i]) != (name[i + 1] == '-' ? '_' : name[i + 1]))
			return false;
	return true;
}

const struct module_file *module_files_next(const struct module_files *modules, const char *name,
					    const struct module_file *last)
{
	for (size_t i = last ? (size_t)(last - file_at(modules, 0)) + 1 : 0; i < file_count(modules); i++)
		if (is_of(file_at(modules, i)->path, name))
			return file_at(modules, i);
	return NULL;
}
