// SPDX-License-Identifier: Apache-2.0
#include "base/pattern.h"

#include <ctype.h>
#include <string.h>

enum {
	MAX_STEPS = 512,	/* of a program */
	MAX_SETS = 32,
	MAX_DEPTH = 32,		/* parentheses in each other */
	MAX_REPEAT = 255,
	SET_WORDS = 256 / 64,
	SLOTS = 2 * PATTERN_MAX_GROUPS,
};

/* Jumps are relative, so that what has been written can be moved and repeated as it is. */
enum op {
	OP_BYTE,
	OP_ANY,
	OP_SET,
	OP_SAVE,
	OP_JUMP,
	OP_FORK,	/* the next step first, then the other */
	OP_FORK_OTHER,	/* the other first */
	OP_MATCH,
};

struct step {
	uint8_t op;
	uint8_t value;		/* byte, set or slot */
	int16_t jump;
};

/* A place in the program, with what it has seen so far of the groups. */
struct thread {
	uint16_t step;
	uint16_t slots[SLOTS];
};

struct pattern {
	struct step steps[MAX_STEPS];
	size_t count;
	uint64_t sets[MAX_SETS][SET_WORDS];
	size_t set_count, groups;
	struct thread *threads;		/* two lists of @count */
	uint32_t reached[MAX_STEPS];	/* at which position last, so that each step is in a list once */
	uint32_t position;
};

struct parser {
	struct pattern *pattern;
	const char *at, *error;
	unsigned int depth;
};

static bool fail(struct parser *parser, const char *error)
{
	if (!parser->error)
		parser->error = error;
	return false;
}

static bool make_room(struct parser *parser, size_t where, size_t count)
{
	struct pattern *pattern = parser->pattern;

	if (pattern->count + count >= MAX_STEPS)
		return fail(parser, "it is too long");
	memmove(&pattern->steps[where + count], &pattern->steps[where],
		(pattern->count - where) * sizeof(pattern->steps[0]));
	pattern->count += count;
	return true;
}

static bool put_at(struct parser *parser, size_t where, enum op op, uint8_t value, long jump)
{
	if (!make_room(parser, where, 1))
		return false;
	parser->pattern->steps[where] = (struct step){ (uint8_t)op, value, (int16_t)jump };
	return true;
}

static bool put(struct parser *parser, enum op op, uint8_t value)
{
	return put_at(parser, parser->pattern->count, op, value, 0);
}

static void set_add(uint64_t *set, unsigned char byte)
{
	set[byte / 64] |= UINT64_C(1) << byte % 64;
}

static bool set_has(const uint64_t *set, unsigned char byte)
{
	return set[byte / 64] >> byte % 64 & 1;
}

static bool parse_class(struct parser *parser, uint64_t *set)
{
	static const struct {
		const char *name;
		int (*is)(int c);
	} classes[] = {
		{ "alnum:]", isalnum }, { "alpha:]", isalpha }, { "blank:]", isblank },
		{ "digit:]", isdigit }, { "lower:]", islower }, { "punct:]", ispunct },
		{ "space:]", isspace }, { "upper:]", isupper }, { "xdigit:]", isxdigit },
	};

	for (size_t i = 0; i < ARRAY_SIZE(classes); i++) {
		if (strncmp(parser->at + 2, classes[i].name, strlen(classes[i].name)) != 0)
			continue;
		/* of ASCII, whatever the locale is */
		for (int c = 0; c < 128; c++)
			if (classes[i].is(c))
				set_add(set, (unsigned char)c);
		parser->at += 2 + strlen(classes[i].name);
		return true;
	}
	return fail(parser, "unknown character class");
}

static bool parse_set(struct parser *parser)
{
	struct pattern *pattern = parser->pattern;
	uint64_t set[SET_WORDS] = { 0 };
	bool is_inverse = *parser->at == '^', is_first = true;

	parser->at += is_inverse;
	for (; is_first || *parser->at != ']'; is_first = false) {
		unsigned char first, last;

		if (!*parser->at)
			return fail(parser, "a [ has no ]");
		if (parser->at[0] == '[' && parser->at[1] == ':') {
			if (!parse_class(parser, set))
				return false;
			continue;
		}
		first = last = (unsigned char)*parser->at++;
		if (parser->at[0] == '-' && parser->at[1] && parser->at[1] != ']') {
			last = (unsigned char)parser->at[1];
			parser->at += 2;
		}
		if (first > last)
			return fail(parser, "a range in [ ] goes backwards");
		for (unsigned int byte = first; byte <= last; byte++)
			set_add(set, (unsigned char)byte);
	}
	parser->at++;
	for (size_t i = 0; is_inverse && i < SET_WORDS; i++)
		set[i] = ~set[i];
	if (pattern->set_count == MAX_SETS)
		return fail(parser, "too many [ ]");
	memcpy(pattern->sets[pattern->set_count], set, sizeof(set));
	return put(parser, OP_SET, (uint8_t)pattern->set_count++);
}

static bool parse_choices(struct parser *parser);

static bool parse_group(struct parser *parser)
{
	size_t group = parser->pattern->groups++;
	bool is_kept = group < PATTERN_MAX_GROUPS;

	if (++parser->depth > MAX_DEPTH)
		return fail(parser, "( is nested too deeply");
	if (is_kept && !put(parser, OP_SAVE, (uint8_t)(2 * group)))
		return false;
	if (!parse_choices(parser))
		return false;
	if (*parser->at != ')')
		return fail(parser, "a ( has no )");
	parser->at++;
	parser->depth--;
	return !is_kept || put(parser, OP_SAVE, (uint8_t)(2 * group + 1));
}

static bool parse_atom(struct parser *parser)
{
	unsigned char c = (unsigned char)*parser->at++;

	switch (c) {
	case '(':
		return parse_group(parser);
	case '[':
		return parse_set(parser);
	case '^':
	case '$':
		return fail(parser, "^ and $ are not allowed, as patterns match whole values; \\^ "
				    "and \\$ match the characters");
	case '.':
		return put(parser, OP_ANY, 0);
	case '*':
	case '+':
	case '?':
	case '{':
		return fail(parser, "nothing to repeat before *, +, ? or {");
	case '\\':
		c = (unsigned char)*parser->at++;
		if (!c || isalnum(c))
			return fail(parser,
				    "\\ before a letter, a digit or the end is not allowed");
		break;
	default:
		break;
	}
	return put(parser, OP_BYTE, c);
}

/* @count more copies of [@start, @start + @length). */
static bool repeat(struct parser *parser, size_t start, size_t length)
{
	struct pattern *pattern = parser->pattern;
	size_t to = pattern->count;

	if (!make_room(parser, to, length))
		return false;
	memcpy(&pattern->steps[to], &pattern->steps[start], length * sizeof(pattern->steps[0]));
	return true;
}

static bool parse_number(struct parser *parser, unsigned int *ret_number)
{
	unsigned int number = 0;

	if (!isdigit((unsigned char)*parser->at))
		return false;
	while (isdigit((unsigned char)*parser->at) && number <= MAX_REPEAT)
		number = 10 * number + (unsigned int)(*parser->at++ - '0');
	*ret_number = number;
	return number <= MAX_REPEAT;
}

/* The atom from @start on, which has been written once, @least to @most times; @most 0: without end. */
static bool write_times(struct parser *parser, size_t start, unsigned int least, unsigned int most)
{
	struct pattern *pattern = parser->pattern;
	size_t length = pattern->count - start;
	unsigned int written = 1;

	for (; written < least; written++)
		if (!repeat(parser, start, length))
			return false;
	if (!most && least)
		return put_at(parser, pattern->count, OP_FORK_OTHER, 0, -(long)length);
	if (!most)
		return put_at(parser, start, OP_FORK, 0, (long)length + 2) &&
		       put_at(parser, pattern->count, OP_JUMP, 0, -(long)length - 1);
	if (!least) {
		/* so that what is copied is without the fork */
		if (!put_at(parser, start, OP_FORK, 0, (long)length + 1))
			return false;
		start++;
	}
	for (; written < most; written++)
		if (!put_at(parser, pattern->count, OP_FORK, 0, (long)length + 1) ||
		    !repeat(parser, start, length))
			return false;
	return true;
}

static bool parse_braces(struct parser *parser, unsigned int *ret_least, unsigned int *ret_most)
{
	if (!parse_number(parser, ret_least))
		return fail(parser, "invalid repeat count: use {n}, {n,} or {n,m} with numbers up to 255");
	*ret_most = *ret_least;
	if (*parser->at == ',') {
		parser->at++;
		*ret_most = 0;
		if (*parser->at != '}' && (!parse_number(parser, ret_most) || !*ret_most))
			return fail(parser, "invalid repeat count: use {n}, {n,} or {n,m} with numbers up to 255");
	} else if (!*ret_least) {
		return fail(parser, "{0} repeats nothing");
	}
	if (*parser->at++ != '}')
		return fail(parser, "a { has no }");
	return !*ret_most || *ret_least <= *ret_most ||
	       fail(parser, "a range in { } goes backwards");
}

static bool parse_pieces(struct parser *parser)
{
	while (*parser->at && *parser->at != '|' && *parser->at != ')') {
		size_t start = parser->pattern->count;
		unsigned int least, most;

		if (!parse_atom(parser))
			return false;
		switch (*parser->at) {
		case '*':
			least = most = 0;
			break;
		case '+':
			least = 1;
			most = 0;
			break;
		case '?':
			least = 0;
			most = 1;
			break;
		case '{':
			parser->at++;
			if (!parse_braces(parser, &least, &most) ||
			    !write_times(parser, start, least, most))
				return false;
			continue;
		default:
			continue;
		}
		parser->at++;
		if (!write_times(parser, start, least, most))
			return false;
	}
	return true;
}

static bool parse_choices(struct parser *parser)
{
	struct pattern *pattern = parser->pattern;
	size_t start = pattern->count, jump, length;

	if (!parse_pieces(parser))
		return false;
	if (*parser->at != '|')
		return true;
	parser->at++;
	length = pattern->count - start;
	if (!put_at(parser, start, OP_FORK, 0, (long)length + 2) || !put(parser, OP_JUMP, 0))
		return false;
	jump = pattern->count - 1;
	if (!parse_choices(parser))
		return false;
	pattern->steps[jump].jump = (int16_t)(pattern->count - jump);
	return true;
}

int pattern_new(const char *text, struct pattern **ret_pattern, const char **ret_error)
{
	struct pattern *pattern = calloc(1, sizeof(*pattern));
	struct parser parser = { .pattern = pattern, .at = text };

	if (!pattern)
		return -ENOMEM;
	pattern->groups = 1;
	if (parse_choices(&parser) && *parser.at == ')')
		fail(&parser, "a ) has no (");
	if (!parser.error)
		put(&parser, OP_MATCH, 0);
	if (parser.error) {
		*ret_error = parser.error;
		free(pattern);
		return -EINVAL;
	}
	pattern->threads = calloc(2 * pattern->count, sizeof(*pattern->threads));
	if (!pattern->threads) {
		free(pattern);
		return -ENOMEM;
	}
	*ret_pattern = pattern;
	return 0;
}

void pattern_free(struct pattern *pattern)
{
	if (!pattern)
		return;
	free(pattern->threads);
	free(pattern);
}

/* Follow what takes no byte, in the order of preference. */
static void follow(struct pattern *pattern, struct thread *list, size_t *count, size_t at,
		   uint16_t *slots, uint16_t position)
{
	/* not deeper than the program is long: no step twice at a position */
	for (;;) {
		const struct step *step = &pattern->steps[at];
		size_t other = (size_t)((long)at + step->jump);
		uint16_t slot;

		if (pattern->reached[at] == pattern->position)
			return;
		pattern->reached[at] = pattern->position;
		switch (step->op) {
		case OP_JUMP:
			at = other;
			continue;
		case OP_FORK:
			follow(pattern, list, count, at + 1, slots, position);
			at = other;
			continue;
		case OP_FORK_OTHER:
			follow(pattern, list, count, other, slots, position);
			at++;
			continue;
		case OP_SAVE:
			slot = slots[step->value];
			slots[step->value] = position;
			follow(pattern, list, count, at + 1, slots, position);
			slots[step->value] = slot;
			return;
		default:
			list[*count].step = (uint16_t)at;
			memcpy(list[*count].slots, slots, sizeof(list->slots));
			(*count)++;
			return;
		}
	}
}

static void next_position(struct pattern *pattern)
{
	if (++pattern->position)
		return;
	memset(pattern->reached, 0, sizeof(pattern->reached));
	pattern->position = 1;
}

static bool takes(const struct pattern *pattern, const struct step *step, unsigned char byte)
{
	switch (step->op) {
	case OP_BYTE:
		return step->value == byte;
	case OP_SET:
		return set_has(pattern->sets[step->value], byte);
	default:
		return step->op == OP_ANY;
	}
}

bool pattern_match(struct pattern *pattern, const char *text,
		   struct pattern_span ret_spans[PATTERN_MAX_GROUPS])
{
	size_t length = strnlen(text, PATTERN_MAX_TEXT + 1), count = 0;
	struct thread *now = pattern->threads, *next = now + pattern->count;
	uint16_t slots[SLOTS] = { 0 };

	if (length > PATTERN_MAX_TEXT)
		return false;
	next_position(pattern);
	follow(pattern, now, &count, 0, slots, 0);
	for (size_t at = 0; at < length && count; at++) {
		struct thread *swap = now;
		size_t next_count = 0;

		next_position(pattern);
		for (size_t i = 0; i < count; i++)
			if (takes(pattern, &pattern->steps[now[i].step], (unsigned char)text[at]))
				follow(pattern, next, &next_count, now[i].step + 1u, now[i].slots,
				       (uint16_t)(at + 1));
		now = next;
		next = swap;
		count = next_count;
	}
	for (size_t i = 0; i < count; i++) {
		if (pattern->steps[now[i].step].op != OP_MATCH)
			continue;
		for (size_t group = 0; ret_spans && group < PATTERN_MAX_GROUPS; group++)
			ret_spans[group] = (struct pattern_span){ now[i].slots[2 * group],
								  now[i].slots[2 * group + 1] };
		if (ret_spans)
			ret_spans[0] = (struct pattern_span){ 0, (uint16_t)length };
		return true;
	}
	return false;
}
