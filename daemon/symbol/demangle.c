// SPDX-License-Identifier: Apache-2.0
#include "symbol/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>

#include "base/clock.h"
#include "base/credit.h"

/*
 * A name can expand exponentially and the demanglers have no way to be told to stop, so the
 * callback leaves them by longjmp(). The C++ one holds no heap memory. The Rust one does while it
 * prints an identifier that is not ASCII: a few hundred bytes leak then, this often at most.
 */
enum { RUST_ABORTS_MAX = 256 };
static unsigned int rust_aborts;

/*
 * Looking for what a pack expands to visits what references back stand for as often as they stand for it,
 * and says nothing meanwhile: a timer ends that the same way, which looks at ticks of 1 to 10 ms.
 */
enum {
	LIMIT_US = 1000,
	LONG_MIN = 64,		/* shorter names cannot do harm */
};

/* What long names may take that take long; then they are left for a while. */
#define SLOW_NS (NSEC_PER_MSEC / 2)
#define CREDIT_NS NSEC_PER_SEC
enum { CREDIT_PART = 50 };	/* of the time, in the long run */

struct output {
	char *text;
	size_t used;
	jmp_buf full;
};

static void append(const char *text, size_t length, void *ctx)
{
	struct output *output = ctx;

	if (length == 0)
		return;	/* @text may be NULL then */
	if (length >= DEMANGLE_MAX - output->used)
		longjmp(output->full, 1);
	memcpy(output->text + output->used, text, length);
	output->used += length;
}

enum { D_BITS_MAX = 12 };	/* a name of D may take 2^12 times what a plain one does */

/* "a.b!(int).c(int, char) const" without the last parentheses, which are of parameters, and what is behind. */
static void drop_parameters(char *name)
{
	char *at = strrchr(name, ')');
	int depth = 0;

	if (!at || at[1 + strspn(at + 1, " abcdefghijklmnopqrstuvwxyz")])
		return;
	at++;
	do {
		at--;
		depth += *at == ')';
		depth -= *at == '(';
	} while (depth && at > name);
	if (!depth && at > name && at[-1] != '!')
		*at = '\0';
}

static struct output *volatile limited;	/* NULL: there is no timer */

static void on_limit(int number _unused_)
{
	if (limited)
		longjmp(limited->full, 1);
}

/* A helper starts with all signals blocked. */
static bool handle_limit(void)
{
	/* the handler is left by longjmp(), which restores no mask */
	const struct sigaction action = { .sa_handler = on_limit, .sa_flags = SA_NODEFER };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGPROF);
	return !sigaction(SIGPROF, &action, NULL) && !sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* Of the CPU time of the process, which has no other thread that takes any. */
static bool start_limit(struct output *output)
{
	static const struct itimerval limit = { .it_value.tv_usec = LIMIT_US };
	static bool is_handled;

	is_handled = is_handled || handle_limit();
	limited = output;
	return is_handled && !setitimer(ITIMER_PROF, &limit, NULL);
}

static void stop_limit(void)
{
	static const struct itimerval none;

	if (!limited)
		return;
	limited = NULL;
	setitimer(ITIMER_PROF, &none, NULL);
}

/* Where the reference at @at, "Q" and a number of base 26, leads; NULL: nowhere. */
static const char *d_reference(const char *mangled, const char *at)
{
	const char *digit = at + 1;
	size_t distance = 0;

	for (; *digit >= 'A' && *digit <= 'Z' && distance < DEMANGLE_INPUT_MAX; digit++)
		distance = 26 * distance + (size_t)(*digit - 'A');
	if (*digit < 'a' || *digit > 'z' || distance >= DEMANGLE_INPUT_MAX)
		return NULL;
	distance = 26 * distance + (size_t)(*digit - 'a');
	return distance && distance <= (size_t)(at - mangled) ? at - distance : NULL;
}

/*
 * How often libiberty reads parts of a name again, as a power of two, at most: what may be a function after
 * the name of a type is tried as one and read anew if it is none; the length of a symbol in a template is
 * tried with each number of its digits. Within each other these multiply, and again at each reference back
 * to a type, which itself stands for all that is there.
 */
static unsigned int d_bits(const char *mangled)
{
	const bool has_template = strstr(mangled, "__T") || strstr(mangled, "__U");
	unsigned int bits = 0, references = 0;

	for (const char *at = mangled + 2; *at; at++) {
		const bool is_number = at[1] >= '0' && at[1] <= '9';
		const char *target;

		if (*at == 'Q') {
			target = d_reference(mangled, at);
			/* one to an identifier is no more than that */
			references += !target || *target < '0' || *target > '9';
		}
		if (!is_number && at[1] != '_' && at[1] != 'Q')
			continue;
		if (*at == 'S')
			bits += has_template && is_number ? 3 : 1;
		else if (*at == 'C' || *at == 'E' || *at == 'I' || (*at == 'D' && at[-1] == '_') ||
			 (*at == 'T' && !(at[-1] == '_' && at[-2] == '_')))
			bits++;
	}
	return references + bits * (1 + references);
}

static bool demangle_d(const char *mangled, char ret_name[static DEMANGLE_MAX])
{
	_cleanup_free_ char *name = NULL;

	if (d_bits(mangled) > D_BITS_MAX)
		return false;
	name = dlang_demangle(mangled, DMGL_NO_OPTS);
	if (!name || strlen(name) >= DEMANGLE_MAX)
		return false;
	drop_parameters(name);
	strcpy(ret_name, name);
	return true;
}

static bool is_rust_v0(const char *mangled)
{
	return mangled[0] == '_' && mangled[1] == 'R';
}

/* Is left by longjmp() if it takes too long; then and otherwise the caller stops the limit. */
static int demangle_cxx(const char *mangled, struct output *output)
{
	output->used = 0;
	if (strlen(mangled) >= LONG_MIN && !start_limit(output))
		return 0;
	return cplus_demangle_v3_callback(mangled, DMGL_NO_OPTS, append, output);
}

static bool demangle_other(const char *mangled, char ret_name[static DEMANGLE_MAX])
{
	struct output output = { .text = ret_name };
	int done;

	if (is_rust_v0(mangled) && rust_aborts >= RUST_ABORTS_MAX)
		return false;
	if (setjmp(output.full)) {
		stop_limit();
		if (is_rust_v0(mangled))
			rust_aborts++;
		return false;
	}
	/* Rust's older names are C++ names that end in a hash, which the first one removes */
	done = rust_demangle_callback(mangled, 0, append, &output);
	if (!done && mangled[1] == 'Z')
		done = demangle_cxx(mangled, &output);
	stop_limit();
	if (!done || output.used == 0)
		return false;
	ret_name[output.used] = '\0';
	return true;
}

bool demangle(const char *mangled, char ret_name[static DEMANGLE_MAX])
{
	static struct credit credit;
	const uint64_t began = strnlen(mangled, LONG_MIN) < LONG_MIN ? 0 : clock_monotonic();
	uint64_t took;
	bool done;

	if (!demangle_may(mangled))
		return false;
	if (began && !credit.limit)
		credit_init(&credit, CREDIT_NS, CREDIT_PART, began);
	if (began && !credit_left(&credit, began))
		return false;
	took = began ? clock_read(CLOCK_THREAD_CPUTIME_ID) : 0;
	done = demangle_is_d(mangled) ? demangle_d(mangled, ret_name) : demangle_other(mangled, ret_name);
	took = began ? clock_read(CLOCK_THREAD_CPUTIME_ID) - took : 0;
	if (took > SLOW_NS)
		credit_spend(&credit, began, began + took);
	return done;
}
