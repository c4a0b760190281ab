// SPDX-License-Identifier: Apache-2.0
#include "symbol/kallsyms.h"

#include <fcntl.h>
#include <string.h>

#include "base/pool.h"

/* addresses are kept in 32 bits: text, modules and BPF programs are within 2 GiB of each other */
#define REACH ((uint64_t)1 << 31)
#define KERNEL_HALF ((uint64_t)1 << 63)

struct line {
	uint64_t address;
	char type;
	char *name;
};

/* "ffffffff81000000 T _text" or "ffffffffc0001000 t init [nf_tables]" */
static bool parse_line(char *text, struct line *ret_line)
{
	char *end, *name;

	ret_line->address = strtoull(text, &end, 16);
	if (end == text || end[0] != ' ' || !end[1] || end[2] != ' ')
		return false;
	ret_line->type = end[1];
	name = end + 3;
	name[strcspn(name, " \t\n")] = '\0';
	ret_line->name = name;
	return name[0] != '\0';
}

static bool is_function(const struct line *line)
{
	if (!strchr("tTwW", line->type))
		return false;
	/* mapping symbols of arm64 and compiler's labels */
	return line->name[0] != '$' && strncmp(line->name, ".L", 2);
}

/* Grow a charged array to hold @used + @more bytes of at most @max. */
static int grow(struct kallsyms *kallsyms, void **array, size_t *capacity, size_t used, size_t more,
		size_t max)
{
	size_t wanted = max_of(*capacity, (size_t)64 * 1024);
	void *grown;

	if (used + more <= *capacity)
		return 0;
	while (wanted < used + more)
		wanted += wanted / 2;
	wanted = min_of(wanted, max);
	if (wanted < used + more || !pool_charge(POOL_SYMBOLS, wanted - *capacity))
		return -ENOBUFS;
	kallsyms->bytes += wanted - *capacity;
	grown = realloc(*array, wanted);
	if (!grown)
		return -ENOMEM;
	*array = grown;
	*capacity = wanted;
	return 0;
}

struct reader {
	struct kallsyms *kallsyms;
	size_t symbols_capacity, names_capacity;
};

static int add_function(struct reader *reader, const struct line *line)
{
	struct kallsyms *kallsyms = reader->kallsyms;
	size_t length = strlen(line->name) + 1;
	int r;

	if (!kallsyms->base)
		kallsyms->base = line->address - REACH;
	if (line->address - kallsyms->base > UINT32_MAX)
		return 0;
	if (kallsyms->count == KALLSYMS_SYMBOLS_MAX)
		return -ENOBUFS;
	r = grow(kallsyms, (void **)&kallsyms->symbols, &reader->symbols_capacity,
		 kallsyms->count * sizeof(*kallsyms->symbols), sizeof(*kallsyms->symbols),
		 KALLSYMS_SYMBOLS_MAX * sizeof(*kallsyms->symbols));
	if (r == 0)
		r = grow(kallsyms, (void **)&kallsyms->names, &reader->names_capacity,
			 kallsyms->names_bytes, length + 1, KALLSYMS_NAMES_MAX);
	if (r < 0)
		return r;
	kallsyms->symbols[kallsyms->count++] = (struct kallsym){
		.start = (uint32_t)(line->address - kallsyms->base),
		.name = kallsyms->names_bytes,
	};
	/* the type goes before the name while aliases are to be told apart */
	kallsyms->names[kallsyms->names_bytes] = line->type;
	memcpy(kallsyms->names + kallsyms->names_bytes + 1, line->name, length);
	kallsyms->names_bytes += (uint32_t)length + 1;
	return 0;
}

static int read_lines(struct reader *reader, FILE *file)
{
	struct kallsyms *kallsyms = reader->kallsyms;
	_cleanup_free_ char *text = NULL;
	size_t capacity = 0;
	struct line line;

	while (getline(&text, &capacity, file) >= 0) {
		int r;

		if (!parse_line(text, &line))
			continue;
		if (line.address < KERNEL_HALF)
			continue;	/* per-CPU offsets and hidden addresses */
		if (!strcmp(line.name, "_text"))
			kallsyms->text = line.address;
		else if (!strcmp(line.name, "_end"))
			kallsyms->end = line.address;
		if (!is_function(&line))
			continue;
		r = add_function(reader, &line);
		if (r == -ENOBUFS) {
			kallsyms->is_partial = true;
			break;
		}
		if (r < 0)
			return r;
	}
	kallsyms->is_hidden = !kallsyms->count && !kallsyms->is_partial;
	return 0;
}

static int compare_starts(const void *a, const void *b)
{
	const struct kallsym *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

/* Names with their type in front: exported first, then fewer underscores, shorter, by name. */
static bool is_better(const char *a, const char *b)
{
	bool a_weak = a[0] == 'w' || a[0] == 'W', b_weak = b[0] == 'w' || b[0] == 'W';
	size_t a_underscores = strspn(a + 1, "_"), b_underscores = strspn(b + 1, "_");

	if ((a[0] == 't') != (b[0] == 't'))
		return b[0] == 't';
	if (a_underscores != b_underscores)
		return a_underscores < b_underscores;
	if (a_weak != b_weak)
		return b_weak;
	if (strlen(a) != strlen(b))
		return strlen(a) < strlen(b);
	return strcmp(a, b) < 0;
}

static void drop_aliases(struct kallsyms *kallsyms)
{
	struct kallsym *symbols = kallsyms->symbols;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < kallsyms->count; i++) {
		if (kept && symbols[kept - 1].start == symbols[i].start) {
			if (is_better(kallsyms->names + symbols[i].name,
				      kallsyms->names + symbols[kept - 1].name))
				symbols[kept - 1] = symbols[i];
			continue;
		}
		symbols[kept++] = symbols[i];
	}
	kallsyms->count = kept;
}

/* Give back what growing took too much. */
static void shrink(struct kallsyms *kallsyms)
{
	size_t symbols_bytes = kallsyms->count * sizeof(*kallsyms->symbols);
	size_t bytes = sizeof(*kallsyms) + symbols_bytes + kallsyms->names_bytes;
	void *symbols, *names;

	if (kallsyms->count == 0)
		return;
	symbols = realloc(kallsyms->symbols, symbols_bytes);
	if (symbols)
		kallsyms->symbols = symbols;
	names = realloc(kallsyms->names, kallsyms->names_bytes);
	if (names)
		kallsyms->names = names;
	if (!symbols || !names)
		return;
	pool_uncharge(POOL_SYMBOLS, kallsyms->bytes - bytes);
	kallsyms->bytes = bytes;
}

int kallsyms_read_fd(int fd, struct kallsyms **ret_kallsyms)
{
	_cleanup_fclose_ FILE *file = fdopen(fd, "r");
	struct reader reader = { 0 };
	struct kallsyms *kallsyms;
	int r;

	if (!file) {
		close(fd);
		return -ENOMEM;
	}
	kallsyms = calloc(1, sizeof(*kallsyms));
	if (!kallsyms)
		return -ENOMEM;
	pool_charge_always(POOL_SYMBOLS, sizeof(*kallsyms));
	kallsyms->bytes = sizeof(*kallsyms);
	reader.kallsyms = kallsyms;
	r = read_lines(&reader, file);
	if (r < 0) {
		kallsyms_free(kallsyms);
		return r;
	}
	if (kallsyms->count)
		qsort(kallsyms->symbols, kallsyms->count, sizeof(*kallsyms->symbols),
		      compare_starts);
	drop_aliases(kallsyms);
	shrink(kallsyms);
	*ret_kallsyms = kallsyms;
	return 0;
}

int kallsyms_read(const char *path, struct kallsyms **ret_kallsyms)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : kallsyms_read_fd(fd, ret_kallsyms);
}

void kallsyms_free(struct kallsyms *kallsyms)
{
	if (!kallsyms)
		return;
	pool_uncharge(POOL_SYMBOLS, kallsyms->bytes);
	free(kallsyms->symbols);
	free(kallsyms->names);
	free(kallsyms);
}

const char *kallsyms_find(const struct kallsyms *kallsyms, uint64_t address, uint64_t *ret_start)
{
	uint32_t low = 0, high = kallsyms->count;
	uint64_t offset = address - kallsyms->base;

	if (address < kallsyms->base || offset > UINT32_MAX)
		return NULL;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (kallsyms->symbols[middle].start <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return NULL;
	*ret_start = kallsyms->base + kallsyms->symbols[low - 1].start;
	return kallsyms->names + kallsyms->symbols[low - 1].name + 1;
}
