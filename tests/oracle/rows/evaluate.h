/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an unwind rule, and what libdw's description of the same, come to on a machine whose
 * registers and memory hold numbers made from a seed.
 */
#ifndef STACKTAP_TESTS_EVALUATE_H
#define STACKTAP_TESTS_EVALUATE_H

#include <elfutils/libdw.h>

#include "unwind/machine.h"

enum evaluate_kind {
	EVALUATE_VALUE,
	EVALUATE_UNDEFINED,
	EVALUATE_UNKNOWN,	/* an operation that is not known here */
};

struct evaluate_result {
	enum evaluate_kind kind;
	uint64_t value;
};

struct evaluate {
	const struct machine *machine;
	uint64_t seed, address;
	uint64_t cfa;
};

/* libdw's operations for the CFA. */
struct evaluate_result evaluate_cfa(const struct evaluate *evaluate, const Dwarf_Op *ops,
				    size_t count);
/* libdw's rule for a register of the caller. */
struct evaluate_result evaluate_register(const struct evaluate *evaluate, Dwarf_Frame *frame,
					 int number);
/* A rule's value; @extra as for the CFA, else 0. */
uint64_t evaluate_how(const struct evaluate *evaluate, uint8_t how, int32_t offset, uint8_t extra);
/* What register @number holds. */
uint64_t evaluate_initial(const struct evaluate *evaluate, uint64_t number);

#endif /* STACKTAP_TESTS_EVALUATE_H */
