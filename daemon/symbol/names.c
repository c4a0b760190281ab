// SPDX-License-Identifier: Apache-2.0
#include "symbol/names.h"

#include <string.h>
#include <sys/random.h>

#include "base/hash.h"
#include "base/pool.h"
#include "base/utf8.h"
#include "symbol/demangle.h"

enum { SLOTS_MIN = 1024, NAME_BYTES = 4096 };

struct names {
	struct function **slots;	/* open addressing, by system_name */
	size_t mask, count;
	uint64_t seed;			/* random: names may be chosen to collide */
};

static struct function **find_slot(const struct names *names, struct function **slots, size_t mask,
				   const char *system_name)
{
	size_t i = (size_t)hash_string(names->seed, system_name) & mask;

	while (slots[i] && strcmp(slots[i]->system_name, system_name))
		i = (i + 1) & mask;
	return &slots[i];
}

int names_new(struct names **ret_names)
{
	_cleanup_free_ struct names *names = calloc(1, sizeof(*names));

	if (!names)
		return -ENOMEM;
	names->slots = calloc(SLOTS_MIN, sizeof(*names->slots));
	if (!names->slots)
		return -ENOMEM;
	names->mask = SLOTS_MIN - 1;
	if (getrandom(&names->seed, sizeof(names->seed), GRND_NONBLOCK) < 0)
		names->seed = (uint64_t)(uintptr_t)names;
	pool_charge_always(POOL_SYMBOLS, SLOTS_MIN * sizeof(*names->slots));
	*ret_names = steal_ptr(names);
	return 0;
}

void names_free(struct names *names)
{
	if (!names)
		return;
	for (size_t i = 0; i <= names->mask; i++)
		function_unref(names->slots[i]);
	pool_uncharge(POOL_SYMBOLS, (names->mask + 1) * sizeof(*names->slots));
	free(names->slots);
	free(names);
}

static int rebuild(struct names *names, size_t slots_count)
{
	struct function **slots = calloc(slots_count, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i <= names->mask; i++)
		if (names->slots[i])
			*find_slot(names, slots, slots_count - 1, names->slots[i]->system_name) =
				names->slots[i];
	pool_charge_always(POOL_SYMBOLS, slots_count * sizeof(*slots));
	pool_uncharge(POOL_SYMBOLS, (names->mask + 1) * sizeof(*slots));
	free(names->slots);
	names->slots = slots;
	names->mask = slots_count - 1;
	return 0;
}

size_t names_sweep(struct names *names)
{
	size_t count = 0, slots_count;
	struct function **kept = calloc(names->mask + 1, sizeof(*kept));
	size_t before = names->count;

	if (!kept)
		return 0;
	for (size_t i = 0; i <= names->mask; i++) {
		struct function *function = names->slots[i];

		if (!function)
			continue;
		/* only this thread makes new references of a Function that is held here alone */
		if (atomic_load_explicit(&function->refs, memory_order_acquire) == 1) {
			function_unref(function);
			continue;
		}
		*find_slot(names, kept, names->mask, function->system_name) = function;
		count++;
	}
	free(names->slots);
	names->slots = kept;
	names->count = count;
	for (slots_count = names->mask + 1; slots_count > SLOTS_MIN && count * 8 < slots_count;)
		slots_count /= 2;
	if (slots_count != names->mask + 1)
		rebuild(names, slots_count);
	return before - count;
}

static int make_room(struct names *names)
{
	if ((names->count + 1) * 4 <= (names->mask + 1) * 3)
		return 0;
	names_sweep(names);
	if ((names->count + 1) * 2 <= names->mask + 1)
		return 0;
	return rebuild(names, (names->mask + 1) * 2);
}

int names_get(struct names *names, const char *symbol, struct function **ret_function)
{
	char system_name[NAME_BYTES], plain[DEMANGLE_MAX], name[NAME_BYTES];
	struct function **slot;
	int r;

	utf8_copy(system_name, sizeof(system_name), symbol);
	slot = find_slot(names, names->slots, names->mask, system_name);
	if (!*slot) {
		r = make_room(names);
		if (r < 0)
			return r;
		utf8_copy(name, sizeof(name), demangle(symbol, plain) ? plain : symbol);
		slot = find_slot(names, names->slots, names->mask, system_name);
		*slot = function_new(name, system_name);
		if (!*slot)
			return -ENOMEM;
		names->count++;
	}
	*ret_function = function_ref(*slot);
	return 0;
}
