// SPDX-License-Identifier: Apache-2.0
#include "symbol/symtab.h"

#include <string.h>

#include "base/pool.h"
#include "base/sort.h"
#include "symbol/kernel_module.h"
#include "symbol/plt.h"

enum {
	RANGES_MAX = 64,	/* executable sections or segments that are told apart */
	ALIAS_BYTES = 128,	/* of names compared to choose between aliases */
	BATCH = 2048,
};

/*
 * The order of aliases at one address, best first: functions, with a size, visible beyond the
 * file, fewer leading underscores, GLOBAL before WEAK, shorter, then by name. What is known without
 * the name is in rank's upper bits.
 */
enum {
	RANK_NOTYPE = 1 << 3,
	RANK_NO_SIZE = 1 << 2,
	RANK_LOCAL = 1 << 1,
	RANK_WEAK = 1 << 0,
};

struct candidate {
	uint32_t start, size, name;
	uint32_t rank;
};

struct range {
	uint64_t start, end;
};

struct builder {
	const struct elf *elf;
	const struct symtab_reclaim *reclaim;
	struct symtab *symtab;
	struct range ranges[RANGES_MAX];	/* executable, as fine as is known */
	size_t range_count;
	const struct function_range *functions;
	size_t function_count;
	uint64_t strings, strings_bytes;	/* of the symbols' string table in symtab's names */
	bool is_partial;	/* static functions may be missing: .dynsym, MiniDebugInfo */
	bool is_mini;
	struct candidate *candidates;
	size_t count, capacity;
};

static bool charge(const struct builder *builder, size_t bytes)
{
	while (!pool_charge(POOL_SYMBOLS, bytes))
		if (!builder->reclaim || !builder->reclaim->make_room(builder->reclaim->ctx, bytes))
			return false;
	return true;
}

static void add_range(struct builder *builder, uint64_t start, uint64_t size)
{
	if (builder->range_count < RANGES_MAX && size && size <= UINT64_MAX - start)
		builder->ranges[builder->range_count++] = (struct range){ start, start + size };
}

static int find_ranges(struct builder *builder)
{
	const struct elf *elf = builder->elf;
	uint64_t base = UINT64_MAX;

	for (size_t i = 0; i < elf->shdr_count; i++)
		if (elf->shdrs[i].sh_flags & SHF_EXECINSTR && elf->shdrs[i].sh_flags & SHF_ALLOC &&
		    kernel_module_is_placed(elf, &elf->shdrs[i]))
			add_range(builder, elf->shdrs[i].sh_addr, elf->shdrs[i].sh_size);
	for (size_t i = 0; builder->range_count == 0 && i < elf->phdr_count; i++)
		if (elf->phdrs[i].p_type == PT_LOAD && elf->phdrs[i].p_flags & PF_X)
			add_range(builder, elf->phdrs[i].p_vaddr, elf->phdrs[i].p_memsz);
	for (size_t i = 0; i < builder->range_count; i++)
		base = min_of(base, builder->ranges[i].start);
	builder->symtab->base = base;
	return builder->range_count ? 0 : -ENODATA;
}

static const struct range *range_of(const struct builder *builder, uint64_t address)
{
	for (size_t i = 0; i < builder->range_count; i++)
		if (address - builder->ranges[i].start <
		    builder->ranges[i].end - builder->ranges[i].start)
			return &builder->ranges[i];
	return NULL;
}

static bool add_candidate(struct builder *builder, uint64_t address, uint64_t size, uint32_t name,
			  uint32_t rank)
{
	const struct range *range = range_of(builder, address);
	uint64_t start = address - builder->symtab->base;

	if (!range || start > UINT32_MAX)
		return true;
	if (builder->count == builder->capacity) {
		size_t capacity = builder->capacity ? builder->capacity * 2 : 256;
		size_t more = (capacity - builder->capacity) * sizeof(*builder->candidates);
		struct candidate *grown;

		if (capacity > SYMTAB_SYMBOLS_MAX) {
			builder->symtab->partial = "it has too many functions";
			return false;
		}
		if (!charge(builder, more)) {
			builder->symtab->partial = "the memory for symbols is used up";
			return false;
		}
		grown = realloc(builder->candidates, capacity * sizeof(*grown));
		if (!grown) {
			pool_uncharge(POOL_SYMBOLS, more);
			builder->symtab->partial = "out of memory";
			return false;
		}
		builder->candidates = grown;
		builder->capacity = capacity;
	}
	builder->candidates[builder->count++] = (struct candidate){
		.start = (uint32_t)start,
		.size = (uint32_t)min_of(size, range->end - address),
		.name = name,
		.rank = rank,
	};
	return true;
}

/* Whether the symbol is a function's, and how good a name for its address. */
static bool rank_symbol(const struct elf *elf, const Elf64_Sym *symbol, uint32_t *ret_rank)
{
	unsigned int type = ELF64_ST_TYPE(symbol->st_info);
	unsigned int bind = ELF64_ST_BIND(symbol->st_info);
	uint32_t rank = 0;

	if (symbol->st_name == 0 || symbol->st_shndx == SHN_UNDEF ||
	    (symbol->st_shndx >= SHN_LORESERVE && symbol->st_shndx != SHN_XINDEX))
		return false;
	if (type == STT_NOTYPE) {
		/*
		 * mapping symbols ($x, $d) and labels are local; what has neither is a data label
		 */
		if (bind == STB_LOCAL || symbol->st_shndx >= elf->shdr_count)
			return false;
		rank |= RANK_NOTYPE;
	} else if (type != STT_FUNC && type != STT_GNU_IFUNC) {
		return false;
	}
	if (symbol->st_size == 0)
		rank |= RANK_NO_SIZE;
	if (bind == STB_LOCAL)
		rank |= RANK_LOCAL;
	else if (bind == STB_WEAK)
		rank |= RANK_WEAK;
	*ret_rank = rank;
	return true;
}

static void add_symbol(struct builder *builder, const Elf64_Sym *symbol, bool *ret_go_on)
{
	uint64_t address = symbol->st_value;
	uint32_t rank;

	*ret_go_on = true;
	if (symbol->st_name >= builder->strings_bytes ||
	    !rank_symbol(builder->elf, symbol, &rank))
		return;
	/* from where its section begins */
	if (builder->elf->type == ET_REL && symbol->st_shndx < builder->elf->shdr_count)
		address += builder->elf->shdrs[symbol->st_shndx].sh_addr;
	if (builder->elf->machine == EM_ARM)
		address &= ~1ULL;	/* Thumb */
	*ret_go_on = add_candidate(builder, address, symbol->st_size,
				   (uint32_t)builder->strings + symbol->st_name, rank);
}

/* Go's functions, which symbols of the same address come before. Its linker puts them beside each other. */
static void add_named_functions(struct builder *builder)
{
	struct symtab *symtab = builder->symtab;

	for (size_t i = 0; i < builder->function_count; i++) {
		const struct function_range *function = &builder->functions[i];

		if (function->name && symtab->go_start == symtab->go_end)
			symtab->go_start = function->start;
		if (function->name)
			symtab->go_end = max_of(symtab->go_end, function->end);
		if (function->name && function->name - symtab->names_offset < symtab->names_bytes &&
		    !add_candidate(builder, function->start, function->end - function->start,
				   (uint32_t)(function->name - symtab->names_offset), RANK_NOTYPE))
			return;
	}
}

static const struct function_range *function_at(const struct builder *builder, uint64_t address)
{
	size_t low = 0, high = builder->function_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (builder->functions[middle].start == address)
			return &builder->functions[middle];
		if (builder->functions[middle].start < address)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static int read_symbols(struct builder *builder, const Elf64_Shdr *shdr)
{
	const struct elf *elf = builder->elf;
	size_t entry = elf->is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	uint64_t left = shdr->sh_size / entry, offset = shdr->sh_offset;
	_cleanup_free_ void *batch = malloc(BATCH * sizeof(Elf64_Sym));
	bool go_on = true;

	if (!batch)
		return -ENOMEM;
	if (left > SYMTAB_ENTRIES_MAX) {
		builder->symtab->partial = "its symbol table is too long";
		return 0;
	}
	while (left && go_on) {
		size_t n = min_of(left, (uint64_t)BATCH);
		int r = elf_read(elf, offset, batch, n * entry);

		if (r == -ETIME)
			builder->symtab->partial = "reading it took too long";
		else if (r < 0)
			builder->symtab->partial = "its symbol table is cut off";
		if (r < 0)
			return 0;
		for (size_t i = 0; i < n && go_on; i++) {
			if (elf->is_64) {
				add_symbol(builder, (const Elf64_Sym *)batch + i, &go_on);
			} else {
				const Elf32_Sym *small = (const Elf32_Sym *)batch + i;
				const Elf64_Sym symbol = {
					.st_name = small->st_name,
					.st_info = small->st_info,
					.st_shndx = small->st_shndx,
					.st_value = small->st_value,
					.st_size = small->st_size,
				};

				add_symbol(builder, &symbol, &go_on);
			}
		}
		offset += n * entry;
		left -= n;
	}
	return 0;
}

static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->rank >> 1 != y->rank >> 1)
		return x->rank >> 1 < y->rank >> 1 ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

static uint64_t start_of(const void *candidate)
{
	return ((const struct candidate *)candidate)->start;
}

static void sort_candidates(struct builder *builder)
{
	sort_items(builder->candidates, builder->count, sizeof(*builder->candidates), start_of, compare_candidates);
}

static int alias_name(const struct builder *builder, uint32_t name, char *ret_name)
{
	const struct symtab *symtab = builder->symtab;
	size_t room;
	int r;

	if (name & SYMBOL_PLT) {
		ret_name[0] = '\0';
		return 0;
	}
	if (symtab->names) {
		strncpy(ret_name, symtab->names + name, ALIAS_BYTES - 1);
		ret_name[ALIAS_BYTES - 1] = '\0';
		return 0;
	}
	room = min_of(symtab->names_bytes - name, (uint64_t)ALIAS_BYTES - 1);
	r = elf_read(builder->elf, symtab->names_offset + name, ret_name, room);
	ret_name[room] = '\0';
	return r;
}

static bool is_better_name(const char *name, uint32_t rank, const char *than, uint32_t than_rank)
{
	size_t underscores = strspn(name, "_"), than_underscores = strspn(than, "_");
	size_t length = strlen(name), than_length = strlen(than);

	/* _Z and _R begin every mangled name */
	if (underscores != than_underscores)
		return underscores < than_underscores;
	if ((rank ^ than_rank) & RANK_WEAK)
		return than_rank & RANK_WEAK;
	if (length != than_length)
		return length < than_length;
	return strcmp(name, than) < 0;
}

/* Of candidates [first, end), equal in start and rank's upper bits, the one with the best name. */
static size_t choose_alias(struct builder *builder, size_t first, size_t end)
{
	char best_name[ALIAS_BYTES], name[ALIAS_BYTES];
	size_t best = first;

	for (size_t i = first; i < end && end - first > 1; i++) {
		if (alias_name(builder, builder->candidates[i].name, name) < 0) {
			builder->symtab->partial = "reading it took too long";
			break;
		}
		if (i > first && !is_better_name(name, builder->candidates[i].rank, best_name,
						 builder->candidates[best].rank))
			continue;
		best = i;
		memcpy(best_name, name, sizeof(name));
	}
	return best;
}

/* Where the first range behind @address begins. */
static uint64_t next_function(const struct builder *builder, uint64_t address)
{
	size_t low = 0, high = builder->function_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (builder->functions[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < builder->function_count ? builder->functions[low].start : UINT64_MAX;
}

static void take_size(const struct builder *builder, struct candidate *candidate)
{
	const struct function_range *function =
		function_at(builder, builder->symtab->base + candidate->start);

	if (!function)
		return;
	candidate->size = (uint32_t)min_of(function->end - function->start, (uint64_t)UINT32_MAX);
	candidate->rank &= ~(uint32_t)RANK_NO_SIZE;
}

/* One candidate per address, in place; sizes for those that have none. */
static void settle(struct builder *builder)
{
	struct candidate *all = builder->candidates;
	uint64_t base = builder->symtab->base, covered = 0;
	size_t kept = 0;

	if (builder->count == 0)
		return;
	sort_candidates(builder);
	for (size_t i = 0; i < builder->count;) {
		size_t end = i + 1, next, best;

		while (end < builder->count && all[end].start == all[i].start &&
		       all[end].rank >> 1 == all[i].rank >> 1)
			end++;
		for (next = end; next < builder->count && all[next].start == all[i].start;)
			next++;
		best = choose_alias(builder, i, end);
		if (all[best].rank & RANK_NO_SIZE)
			take_size(builder, &all[best]);
		/*
		 * A label inside a function that has a size is no function. Where static functions
		 * have no names, nobody knows how far one without a size goes.
		 */
		if (all[best].rank & RANK_NO_SIZE &&
		    (all[best].start < covered || builder->is_partial)) {
			i = next;
			continue;
		}
		covered = max_of(covered, (uint64_t)all[best].start + all[best].size);
		all[kept++] = all[best];
		i = next;
	}
	for (size_t i = 0; i < kept; i++) {
		uint64_t address = base + all[i].start;
		uint64_t end;

		if (!(all[i].rank & RANK_NO_SIZE))
			continue;
		end = range_of(builder, address)->end;
		if (i + 1 < kept)
			end = min_of(end, base + all[i + 1].start);
		end = min_of(end, next_function(builder, address));
		all[i].size = (uint32_t)min_of(end - address, (uint64_t)UINT32_MAX);
	}
	builder->count = kept;
}

/* Those up to @middle and those behind it are in order: so are all then. */
static void merge_candidates(struct builder *builder, size_t middle)
{
	size_t left = builder->count - middle;
	struct candidate *all = builder->candidates, *to = all + builder->count;
	_cleanup_free_ struct candidate *behind = malloc(left * sizeof(*behind));

	if (!behind) {
		sort_candidates(builder);
		return;
	}
	memcpy(behind, all + middle, left * sizeof(*behind));
	/* from the end, where there is room */
	while (left)
		*--to = middle && compare_candidates(&all[middle - 1], &behind[left - 1]) > 0 ? all[--middle] :
												behind[--left];
}

/* Behind settle(): where a function is known to be and no other begins or goes on. */
static void add_nameless(struct builder *builder)
{
	uint64_t base = builder->symtab->base, covered = 0;
	size_t named = builder->count, next = 0;

	for (size_t i = 0; i < builder->function_count; i++) {
		const struct function_range *function = &builder->functions[i];

		for (; next < named && base + builder->candidates[next].start <= function->start; next++)
			covered = max_of(covered, base + builder->candidates[next].start +
						  builder->candidates[next].size);
		if (function->start >= covered &&
		    !add_candidate(builder, function->start, function->end - function->start,
				   SYMBOL_NAMELESS, 0))
			break;
	}
	if (builder->count > named)
		merge_candidates(builder, named);
}

static void keep_symbols(struct builder *builder)
{
	struct symtab *symtab = builder->symtab;
	struct symbol *symbols, *fitted;

	if (builder->count == 0)
		return;
	/* in place, an entry never moves up: symbols are smaller than candidates */
	symbols = (struct symbol *)(void *)builder->candidates;
	for (size_t i = 0; i < builder->count; i++) {
		struct candidate one = builder->candidates[i];

		symbols[i] = (struct symbol){ one.start, one.size, one.name };
	}
	builder->candidates = NULL;
	symtab->count = (uint32_t)builder->count;
	fitted = realloc(symbols, builder->count * sizeof(*symbols));
	symtab->symbols = fitted ? fitted : symbols;
	pool_uncharge(POOL_SYMBOLS, builder->capacity * sizeof(struct candidate) -
					    builder->count * sizeof(*symbols));
	builder->capacity = 0;
	symtab->bytes += builder->count * sizeof(*symbols);
}

static int read_plt(struct builder *builder)
{
	struct symtab *symtab = builder->symtab;
	struct plt plt;
	char *names;
	int r;

	r = plt_read(builder->elf, &plt);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (plt.count && charge(builder, plt.names_bytes)) {
		for (uint32_t i = 0; i < plt.count; i++)
			if (!add_candidate(builder, plt.entries[i].address, plt.entries[i].size,
					   plt.entries[i].name | SYMBOL_PLT, 0))
				break;
		names = realloc(plt.names, plt.names_bytes);
		symtab->plt_names = names ? names : plt.names;
		symtab->plt_bytes = plt.names_bytes;
		symtab->bytes += plt.names_bytes;
		plt.names = NULL;
	}
	plt_done(&plt);
	return 0;
}

static void keep_names(struct builder *builder)
{
	struct symtab *symtab = builder->symtab;
	char *names;

	if ((symtab->names_bytes > SYMTAB_NAMES_KEPT && builder->elf->fd >= 0) ||
	    !charge(builder, symtab->names_bytes + 1))
		return;
	names = malloc(symtab->names_bytes + 1);
	if (!names ||
	    elf_read(builder->elf, symtab->names_offset, names, symtab->names_bytes) < 0) {
		pool_uncharge(POOL_SYMBOLS, symtab->names_bytes + 1);
		free(names);
		return;
	}
	names[symtab->names_bytes] = '\0';
	symtab->names = names;
	symtab->bytes += symtab->names_bytes + 1;
}

/* The symbols' section, and where names are: those of its string table and of functions. */
static const Elf64_Shdr *find_symbols(struct builder *builder)
{
	const Elf64_Shdr *shdr = elf_find_section(builder->elf, SHT_SYMTAB, NULL), *strings = NULL;
	uint64_t start = UINT64_MAX, end = 0, size = builder->elf->size;
	struct symtab *symtab = builder->symtab;

	if (!shdr || shdr->sh_size == 0) {
		shdr = elf_find_section(builder->elf, SHT_DYNSYM, NULL);
		symtab->is_dynamic = shdr;
		symtab->is_stripped = true;
		builder->is_partial = true;
	}
	if (shdr && shdr->sh_link < builder->elf->shdr_count)
		strings = &builder->elf->shdrs[shdr->sh_link];
	if (strings && strings->sh_type == SHT_STRTAB && strings->sh_offset <= size) {
		start = strings->sh_offset;
		end = start + min_of(strings->sh_size, size - start);
	} else {
		shdr = NULL;
	}
	builder->strings_bytes = end - min_of(start, end);
	for (size_t i = 0; i < builder->function_count && !builder->is_mini; i++)
		if (builder->functions[i].name) {
			start = min_of(start, builder->functions[i].name);
			end = size;
		}
	if (start >= end)
		return shdr;
	symtab->names_offset = start;
	symtab->names_bytes = min_of(end - start, (uint64_t)SYMBOL_PLT - 1);
	/* those that are beyond have their names in nothing that stays */
	if (builder->is_mini && symtab->names_bytes > SYMTAB_NAMES_MINI) {
		symtab->names_bytes = SYMTAB_NAMES_MINI;
		symtab->partial = "it has too many names";
	}
	if (!shdr)
		return NULL;
	builder->strings = strings->sh_offset - start;
	if (builder->strings >= symtab->names_bytes)
		return NULL;
	builder->strings_bytes = min_of(builder->strings_bytes, symtab->names_bytes - builder->strings);
	return shdr;
}

static int build(struct builder *builder, struct symtab **ret_symtab)
{
	const Elf64_Shdr *shdr;
	struct symtab *symtab;
	int r = 0;

	if (!charge(builder, sizeof(*symtab)))
		return -ENOBUFS;
	symtab = calloc(1, sizeof(*symtab));
	if (!symtab) {
		pool_uncharge(POOL_SYMBOLS, sizeof(*symtab));
		return -ENOMEM;
	}
	symtab->bytes = sizeof(*symtab);
	builder->symtab = symtab;
	if (find_ranges(builder) < 0)
		goto out;
	shdr = find_symbols(builder);
	if (!shdr && !builder->function_count)
		goto out;
	keep_names(builder);
	if (shdr)
		r = read_symbols(builder, shdr);
	if (!builder->is_mini)
		add_named_functions(builder);
	if (r == 0)
		r = read_plt(builder);
	settle(builder);
	if (!builder->is_mini)
		add_nameless(builder);
	if (r == 0)
		keep_symbols(builder);
	symtab->is_late = elf_is_late(builder->elf);
out:
	pool_uncharge(POOL_SYMBOLS, builder->capacity * sizeof(struct candidate));
	free(builder->candidates);
	if (r < 0) {
		symtab_free(symtab);
		return r;
	}
	*ret_symtab = symtab;
	return 0;
}

int symtab_read(const struct elf *elf, const struct function_range *ranges, size_t range_count,
		const struct symtab_reclaim *reclaim, struct symtab **ret_symtab)
{
	struct builder builder = {
		.elf = elf, .reclaim = reclaim, .functions = ranges, .function_count = range_count,
	};

	return build(&builder, ret_symtab);
}

int symtab_read_mini(const struct elf *elf, const struct function_range *ranges, size_t range_count,
		     struct symtab **ret_symtab)
{
	struct builder builder = {
		.elf = elf, .functions = ranges, .function_count = range_count, .is_partial = true,
		.is_mini = true,
	};

	return build(&builder, ret_symtab);
}
