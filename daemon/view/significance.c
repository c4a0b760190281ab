// SPDX-License-Identifier: Apache-2.0
#include "view/significance.h"

#include <math.h>

#define Z95 1.959964

unsigned int slice_of(uint64_t first, uint64_t last, uint64_t time)
{
	const double span = (double)(last - first) + 1, slice = (double)(time - first) / span * SLICES;

	/* the last moment's may be rounded up, and one outside has no number */
	return slice < SLICES - 1 ? (unsigned int)slice : SLICES - 1u;
}

bool sliced_is_telling(const struct sliced *sliced)
{
	return !sliced->has_times || sliced->used >= SLICES_MIN;
}

double sliced_size(const struct sliced *sliced)
{
	return sliced->squares > 0 ? sliced->weight * sliced->weight / sliced->squares : 0;
}

/* Of slices joined to groups of @join. */
static double factor_of(const struct sliced *sliced, const double *part, double share,
			unsigned int join)
{
	double squares = 0, independent;
	unsigned int used = 0;

	for (unsigned int i = 0; i < SLICES; i += join) {
		double all = 0, rest = 0;

		for (unsigned int k = i; k < i + join; k++) {
			all += sliced->slices[k];
			rest += part[k] - share * sliced->slices[k];
		}
		used += all > 0;
		squares += rest * rest;
	}
	if (used < SLICES_MIN)
		return 1;
	independent = share * (1 - share) / sliced_size(sliced);
	return squares / (sliced->weight * sliced->weight) * used / (used - 1) / independent;
}

double sliced_factor(const struct sliced *sliced, const double *part)
{
	double sum = 0, share, factor = 1;

	for (unsigned int i = 0; i < SLICES; i++)
		sum += part[i];
	share = sliced->weight > 0 ? sum / sliced->weight : 0;
	if (!sliced->has_times || share <= 0 || share >= 1)
		return 1;
	for (unsigned int join = 1; join <= 4; join *= 2)
		factor = fmax(factor, factor_of(sliced, part, share, join));
	return factor;
}

static double freedom_of(const struct sliced *sliced)
{
	return sliced->has_times && sliced->used >= SLICES_MIN ? sliced->used - 1 : INFINITY;
}

/* What 95 % of Student's distribution lie within: first terms of its expansion around the normal one's. */
static double t95(double freedom)
{
	const double z = Z95, z3 = z * z * z, z5 = z3 * z * z;

	return z + (z3 + z) / (4 * freedom) + (5 * z5 + 16 * z3 + 3 * z) / (96 * freedom * freedom);
}

double share_error(const struct sliced *sliced, double part, double phi)
{
	const double share = part / sliced->weight, size = sliced_size(sliced);

	if (part <= 0 || part >= sliced->weight)
		return -1;
	return t95(freedom_of(sliced)) * sqrt(share * (1 - share) * phi / size);
}

static double pooled_share(const struct sliced sides[2], const double parts[2])
{
	double size = 0, samples = 0;

	for (unsigned int i = 0; i < 2; i++) {
		size += sliced_size(&sides[i]);
		samples += sides[i].weight > 0 ? parts[i] / sides[i].weight * sliced_size(&sides[i]) : 0;
	}
	return size > 0 ? samples / size : 0;
}

double share_expected(const struct sliced sides[2], const double parts[2], const double phi[2])
{
	const double pooled = pooled_share(sides, parts);

	return fmin(sliced_size(&sides[0]) / phi[0], sliced_size(&sides[1]) / phi[1]) *
	       fmin(pooled, 1 - pooled);
}

void share_test(const struct sliced sides[2], const double parts[2], const double phi[2],
		struct share_test *ret_test)
{
	double size[2], variance[2][2] = { { 0 } }, pooled, freedom = 0;
	const double *larger;

	*ret_test = (struct share_test){ .p = 1 };
	for (unsigned int i = 0; i < 2; i++) {
		ret_test->phi[i] = phi[i];
		ret_test->share[i] = sides[i].weight > 0 ? parts[i] / sides[i].weight : 0;
		size[i] = sliced_size(&sides[i]);
	}
	ret_test->change = ret_test->share[1] - ret_test->share[0];
	if (size[0] <= 0 || size[1] <= 0)
		return;
	pooled = pooled_share(sides, parts);
	ret_test->expected = share_expected(sides, parts, phi);
	for (unsigned int i = 0; i < 2; i++) {
		const double share = ret_test->share[i];

		variance[0][i] = fmax(pooled * (1 - pooled), 0) * phi[i] / size[i];
		variance[1][i] = fmax(share * (1 - share), 0) * phi[i] / size[i];
	}
	/*
	 * If nothing changed, the first is right, but where a share came out too small its phi did, too. The
	 * second gives that phi less weight; the larger one has no more false discoveries than it should.
	 */
	larger = variance[variance[1][0] + variance[1][1] > variance[0][0] + variance[0][1]];
	if (larger[0] + larger[1] <= 0)
		return;
	/* Welch and Satterthwaite: the degrees of a sum of two estimates */
	for (unsigned int i = 0; i < 2; i++)
		freedom += larger[i] * larger[i] / freedom_of(&sides[i]);
	freedom = freedom > 0 ? (larger[0] + larger[1]) * (larger[0] + larger[1]) / freedom : INFINITY;
	ret_test->z = ret_test->change / sqrt(larger[0] + larger[1]);
	ret_test->p = student_p(ret_test->z, freedom);
	ret_test->error = t95(freedom) * sqrt(variance[1][0] + variance[1][1]);
}

/* The continued fraction of the incomplete beta function, by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
	double c = 1, d = 1 - (a + b) * x / (a + 1), result;

	d = 1 / (fabs(d) < 1e-300 ? 1e-300 : d);
	result = d;
	for (int m = 1; m < 500; m++) {
		const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		double step = 1;

		for (int k = 0; k < 2; k++) {
			const double term = k ? odd : even;

			d = 1 + term * d;
			c = 1 + term / c;
			d = 1 / (fabs(d) < 1e-300 ? 1e-300 : d);
			c = fabs(c) < 1e-300 ? 1e-300 : c;
			step = c * d;
			result *= step;
		}
		if (fabs(step - 1) < 1e-14)
			break;
	}
	return result;
}

static double incomplete_beta(double a, double b, double x)
{
	double front;

	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	/* each side of this the fraction converges fast */
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double student_p(double t, double freedom)
{
	if (isinf(freedom))
		return erfc(fabs(t) / sqrt(2));
	return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t));
}

static int order(const void *a, const void *b)
{
	const double left = **(const double *const *)a, right = **(const double *const *)b;

	return (left > right) - (left < right);
}

int discovery_rates(double *p, size_t count)
{
	_cleanup_free_ double **sorted = calloc(count + 1, sizeof(*sorted));
	double least = 1;

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		sorted[i] = &p[i];
	qsort(sorted, count, sizeof(*sorted), order);
	for (size_t i = count; i-- > 0;) {
		least = fmin(least, *sorted[i] * (double)count / (double)(i + 1));
		*sorted[i] = least;
	}
	return 0;
}
