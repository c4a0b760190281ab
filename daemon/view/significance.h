/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How sure a difference of two shares is when samples depend on their neighbours in time. Rao and Scott, "A
 * simple method for the analysis of clustered binary data", Biometrics 48 (1992), with slices of time as
 * clusters: the variance of a share as slices show it, divided by that of independent samples, is how many
 * samples are worth one.
 */
#ifndef STACKTAP_VIEW_SIGNIFICANCE_H
#define STACKTAP_VIEW_SIGNIFICANCE_H

#include "base/macro.h"

enum {
	SLICES = 40,		/* also joined to a half and a quarter of them */
	SLICES_MIN = 8,		/* that have samples; with fewer nothing is said of dependence */
};

/* A recording cut into slices of equal time. */
struct sliced {
	double weight, squares;		/* sum of all samples' weights, and of their squares */
	double slices[SLICES];		/* weight of each */
	bool has_times;
	unsigned int used;		/* slices with samples */
};

/* Which one a moment is in, of what goes from @first to @last. */
unsigned int slice_of(uint64_t first, uint64_t last, uint64_t time);

/* Do its slices say how samples depend on each other, if these have times? Bursts in a few of them do not. */
bool sliced_is_telling(const struct sliced *sliced);

/* How many independent samples of equal weight say as much as these. */
double sliced_size(const struct sliced *sliced);

/*
 * The variance factor phi of a part of it, at least 1: the largest of slices, pairs of slices and fours of
 * them, so that what depends for longer than a slice is seen, too. 1 without times.
 */
double sliced_factor(const struct sliced *sliced, const double *part);

struct share_test {
	double share[2], change;	/* second - first */
	double phi[2];
	double error;			/* half of the 95 % interval of the change */
	double z, p;			/* two-sided */
	double expected;		/* independent samples in the smaller one, if nothing changed */
};

/* @parts: weight of the part in each; @phi as sliced_factor() gives it. */
void share_test(const struct sliced sides[2], const double parts[2], const double phi[2],
		struct share_test *ret_test);
/* The same as its `expected`, without the test. */
double share_expected(const struct sliced sides[2], const double parts[2], const double phi[2]);
/*
 * Half of the 95 % interval of one share; -1: not known, as where nothing or all was seen its variance is none: of n
 * samples without it 3/n may have it.
 */
double share_error(const struct sliced *sliced, double part, double phi);

/* Two-sided p of Student's distribution; @freedom INFINITY: the normal one. */
double student_p(double t, double freedom);

/*
 * Benjamini and Hochberg, "Controlling the false discovery rate", J. R. Stat. Soc. B 57 (1995): each p
 * becomes the least rate at which it would be a discovery. Of @count values; -ENOMEM.
 */
int discovery_rates(double *p, size_t count);

#endif /* STACKTAP_VIEW_SIGNIFICANCE_H */
