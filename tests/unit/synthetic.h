/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes, files and samples made up for tests of everything behind the ring.
 */
#ifndef STACKTAP_TESTS_SYNTHETIC_H
#define STACKTAP_TESTS_SYNTHETIC_H

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "export/encode.h"
#include "profile/window.h"

/*
 * A file whose code is [0x1000, 0x9000) and appears at ELF addresses from 0x401000; tied to an
 * object when @has_object.
 */
struct mapped_file *synthetic_file(const char *path, bool has_object);
struct mapped_file *synthetic_kernel(void);

/* A process with these details (name NULL: none known), without mappings. */
struct image *synthetic_image(uint32_t tgid, const char *name, const char *container);
/* Map the file's code at @start. */
void synthetic_map(struct image *image, uint64_t start, uint64_t since, struct mapped_file *file);

struct synthetic_sample {
	uint64_t time, period;
	uint32_t cpu, tid;
	uint16_t source, flags, marks;
	uint8_t kernel_end, user_end;
	const char *comm;
	struct image *image;
	const uint64_t *kernel, *user;
	uint32_t kernel_count, user_count;
};

int synthetic_add(struct aggregator *aggregator, const struct synthetic_sample *sample);

/* What the symbol stage would do: names like "f_401234", none for addresses that end in 0xff. */
void synthetic_resolve(struct window *window);

/* A source that counts cpu-clock at 100 Hz, and one that counts cycles in frequency mode. */
extern const struct profile_config synthetic_clock, synthetic_cycles;

/* Three processes, kernel threads, cut stacks, all marks; some 2,500 samples. */
struct window *synthetic_window(struct aggregator *aggregator);

/* Assert that no pool holds a byte. */
void synthetic_check_pools(void);

#endif /* STACKTAP_TESTS_SYNTHETIC_H */
