// SPDX-License-Identifier: Apache-2.0
#include "export/relabel.h"

#include <pthread.h>
#include <string.h>

#include "base/fail.h"
#include "base/pattern.h"
#include "export/attributes.h"
#include "export/downsample.h"

enum {
	MAX_WORDS = 6,		/* "set KEY VALUE if KEY PATTERN" */
	MAX_VALUE = 1024,
};

_Static_assert((int)RELABEL_MAX_RULES <= ATTRIBUTES_OF_RULES, "each rule may set an attribute");

enum verb {
	VERB_KEEP,
	VERB_DROP,
	VERB_REMOVE,
	VERB_RENAME,
	VERB_SET,
	VERB_DOWNSAMPLE,
};

struct rule {
	enum verb verb;
	char text[RELABEL_MAX_TEXT];	/* as it was given */
	char words[RELABEL_MAX_TEXT];	/* where the following point to */
	const char *key, *value;	/* whose value is asked for; what is given */
	const char *where;		/* of set: the attribute that is asked, NULL: none */
	struct pattern *pattern;
	uint32_t one_in;
	_Atomic uint64_t matched, samples;
};

struct relabel {
	pthread_mutex_t lock;		/* a pattern is used by one thread at a time */
	size_t count;
	struct rule *rules[RELABEL_MAX_RULES];
};

static const struct {
	const char *name;
	enum verb verb;
	size_t words;
	const char *form;
} verbs[] = {
	{ "keep", VERB_KEEP, 3, "keep KEY PATTERN" },
	{ "drop", VERB_DROP, 3, "drop KEY PATTERN" },
	{ "remove", VERB_REMOVE, 2, "remove PATTERN" },
	{ "rename", VERB_RENAME, 3, "rename PATTERN KEY" },
	{ "set", VERB_SET, 3, "set KEY VALUE [if KEY PATTERN]" },
	{ "downsample", VERB_DOWNSAMPLE, 4, "downsample KEY PATTERN N" },
};

int relabel_new(struct relabel **ret_relabel)
{
	*ret_relabel = calloc(1, sizeof(**ret_relabel));
	if (!*ret_relabel)
		return -ENOMEM;
	pthread_mutex_init(&(*ret_relabel)->lock, NULL);
	return 0;
}

void relabel_free(struct relabel *relabel)
{
	if (!relabel)
		return;
	for (size_t i = 0; i < relabel->count; i++) {
		pattern_free(relabel->rules[i]->pattern);
		free(relabel->rules[i]);
	}
	pthread_mutex_destroy(&relabel->lock);
	free(relabel);
}

/* Cut @text into words in place; more than fit, or a quote without its end: 0. */
static size_t split(char *text, char *words[static MAX_WORDS])
{
	size_t count = 0;

	for (text += strspn(text, " \t"); *text; text += strspn(text, " \t")) {
		const bool is_quoted = *text == '"';

		if (count == MAX_WORDS)
			return 0;
		text += is_quoted;
		words[count++] = text;
		text += strcspn(text, is_quoted ? "\"" : " \t");
		if (*text)
			*text++ = '\0';
		else if (is_quoted)
			return 0;
	}
	return count;
}

/* 0: none of 1 to DOWNSAMPLE_MAX. */
static uint32_t number_of(const char *word)
{
	uint32_t number = 0;

	for (; *word >= '0' && *word <= '9' && number <= DOWNSAMPLE_MAX; word++)
		number = 10 * number + (uint32_t)(*word - '0');
	return *word || number > DOWNSAMPLE_MAX ? 0 : number;
}

static int parse(struct rule *rule, char *error, size_t error_size)
{
	char *words[MAX_WORDS] = { NULL };
	size_t count = split(rule->words, words), i;
	const char *pattern = NULL, *wrong;
	bool is_conditional;
	int ret;

	if (!count && rule->text[strspn(rule->text, " \t")])
		return fail_invalid(error, error_size,
				    "the rule `%s' has a double quote without its end, or more "
				    "than %d words", rule->text, MAX_WORDS);
	for (i = 0; count && i < ARRAY_SIZE(verbs); i++)
		if (!strcmp(words[0], verbs[i].name))
			break;
	if (!count || i == ARRAY_SIZE(verbs))
		return fail_invalid(error, error_size,
				    "unknown rule `%s': it must begin with keep, drop, remove, "
				    "rename, set or downsample",
				    rule->text);
	rule->verb = verbs[i].verb;
	is_conditional = rule->verb == VERB_SET && count == 6 && !strcmp(words[3], "if");
	if ((count != verbs[i].words && !is_conditional) || !words[1][0])
		return fail_invalid(error, error_size,
				    "the rule `%s' is not of the form %s", rule->text,
				    verbs[i].form);
	switch (rule->verb) {
	case VERB_KEEP:
	case VERB_DROP:
		rule->key = words[1];
		pattern = words[2];
		break;
	case VERB_DOWNSAMPLE:
		rule->key = words[1];
		pattern = words[2];
		rule->one_in = number_of(words[3]);
		if (!rule->one_in)
			return fail_invalid(error, error_size,
					    "the rule `%s': N must be a number from 1 to %d", rule->text,
					    DOWNSAMPLE_MAX);
		break;
	case VERB_REMOVE:
		pattern = words[1];
		break;
	case VERB_RENAME:
		pattern = words[1];
		rule->value = words[2];
		break;
	case VERB_SET:
		rule->key = words[1];
		rule->value = words[2];
		rule->where = is_conditional ? words[4] : NULL;
		pattern = is_conditional ? words[5] : NULL;
		break;
	}
	if (!pattern)
		return 0;
	ret = pattern_new(pattern, &rule->pattern, &wrong);
	return ret == -EINVAL ? fail_invalid(error, error_size,
					     "invalid pattern `%s': %s", pattern,
					     wrong) : ret;
}

int relabel_add(struct relabel *relabel, const char *text, char *ret_error, size_t error_size)
{
	struct rule *rule;
	int ret;

	if (relabel->count == RELABEL_MAX_RULES) {
		fail_invalid(ret_error, error_size, "more than %d rules", RELABEL_MAX_RULES);
		return -E2BIG;
	}
	if (strlen(text) >= RELABEL_MAX_TEXT)
		return fail_invalid(ret_error, error_size,
				    "a rule may have at most %d bytes", RELABEL_MAX_TEXT - 1);
	rule = calloc(1, sizeof(*rule));
	if (!rule)
		return -ENOMEM;
	strcpy(rule->text, text);
	strcpy(rule->words, text);
	ret = parse(rule, ret_error, error_size);
	if (ret < 0) {
		free(rule);
		return ret;
	}
	relabel->rules[relabel->count++] = rule;
	return 0;
}

/* @template with \0 to \9 replaced by groups of @text; no more than fits. */
static void expand(char *ret_value, size_t size, const char *template, const char *text,
		   const struct pattern_span *spans)
{
	size_t used = 0;

	for (; *template && used + 1 < size; template++) {
		if (template[0] == '\\' && template[1] >= '0' && template[1] <= '9') {
			const struct pattern_span *span = &spans[*++template - '0'];
			size_t length = min_of((size_t)(span->end - span->start), size - 1 - used);

			memcpy(ret_value + used, text + span->start, length);
			used += length;
			continue;
		}
		if (template[0] == '\\' && template[1] == '\\')
			template++;
		ret_value[used++] = *template;
	}
	ret_value[used] = '\0';
}

static const char *text_of(const struct attributes *attributes, const char *key,
			   char number[static 24])
{
	ssize_t i = attributes_find(attributes, key);

	return i < 0 ? "" : attributes_text(attributes, (size_t)i, number);
}

/* Keys that match are removed, or renamed. */
static bool change_keys(struct rule *rule, struct attributes *attributes)
{
	struct pattern_span spans[PATTERN_MAX_GROUPS];
	char key[MAX_VALUE];
	bool has_matched = false;

	/* from the end on: what is removed behind it moves only what has been looked at */
	for (size_t left = attributes->count; left-- > 0;) {
		if (!pattern_match(rule->pattern, attributes->pairs[left].key, spans))
			continue;
		has_matched = true;
		if (rule->verb == VERB_REMOVE) {
			attributes_remove(attributes, left);
			continue;
		}
		expand(key, sizeof(key), rule->value, attributes->pairs[left].key, spans);
		left = attributes_rename(attributes, left, key);
	}
	return has_matched;
}

static bool set_value(struct rule *rule, struct attributes *attributes)
{
	struct pattern_span spans[PATTERN_MAX_GROUPS] = { { 0 } };
	char value[MAX_VALUE], number[24];
	const char *text = "";
	ssize_t old;

	if (rule->where) {
		text = text_of(attributes, rule->where, number);
		if (!pattern_match(rule->pattern, text, spans))
			return false;
	}
	expand(value, sizeof(value), rule->value, text, spans);
	old = attributes_find(attributes, rule->key);
	if (old >= 0)
		attributes_remove(attributes, (size_t)old);
	attributes_string(attributes, rule->key, value);
	return true;
}

static struct relabel_result apply_all(struct relabel *relabel, struct attributes *attributes, bool is_counted)
{
	struct relabel_result result = RELABEL_ALL;
	char number[24];

	for (size_t i = 0; i < relabel->count; i++) {
		struct rule *rule = relabel->rules[i];
		bool has_matched = false, leaves_out = false;

		switch (rule->verb) {
		case VERB_KEEP:
		case VERB_DROP:
			has_matched = pattern_match(rule->pattern,
						    text_of(attributes, rule->key, number), NULL);
			leaves_out = has_matched == (rule->verb == VERB_DROP);
			break;
		case VERB_REMOVE:
		case VERB_RENAME:
			has_matched = change_keys(rule, attributes);
			break;
		case VERB_SET:
			has_matched = set_value(rule, attributes);
			break;
		case VERB_DOWNSAMPLE:
			has_matched = pattern_match(rule->pattern,
						    text_of(attributes, rule->key, number), NULL);
			if (has_matched)
				result = (struct relabel_result){ .rule = (int)i, .one_in = rule->one_in };
			break;
		}
		if (is_counted)
			atomic_fetch_add_explicit(&rule->matched, has_matched, memory_order_relaxed);
		if (leaves_out)
			return (struct relabel_result){ .rule = (int)i, .one_in = 0 };
	}
	return result;
}

struct relabel_result relabel_apply(struct relabel *relabel, struct attributes *attributes, bool is_counted)
{
	struct relabel_result result;

	if (!relabel)
		return RELABEL_ALL;
	pthread_mutex_lock(&relabel->lock);
	result = apply_all(relabel, attributes, is_counted);
	pthread_mutex_unlock(&relabel->lock);
	return result;
}

void relabel_left_out(struct relabel *relabel, int rule, uint64_t samples)
{
	atomic_fetch_add_explicit(&relabel->rules[rule]->samples, samples, memory_order_relaxed);
}

size_t relabel_rules(const struct relabel *relabel)
{
	return relabel ? relabel->count : 0;
}

const char *relabel_text(const struct relabel *relabel, size_t rule)
{
	return relabel->rules[rule]->text;
}

struct relabel_count relabel_count(const struct relabel *relabel, size_t rule)
{
	const struct rule *of = relabel->rules[rule];

	return (struct relabel_count){
		.matched = atomic_load_explicit(&of->matched, memory_order_relaxed),
		.samples = atomic_load_explicit(&of->samples, memory_order_relaxed),
	};
}

uint64_t relabel_samples(const struct relabel *relabel)
{
	uint64_t samples = 0;

	for (size_t i = 0; i < relabel_rules(relabel); i++)
		samples += relabel_count(relabel, i).samples;
	return samples;
}
