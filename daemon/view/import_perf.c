// SPDX-License-Identifier: Apache-2.0
/*
 * What `perf script' prints: a line per sample, "COMM PID[/TID] [CPU] SECONDS: PERIOD EVENT:", and below it one per
 * frame, "ADDRESS SYMBOL+OFFSET (OBJECT)", leaf first. What is neither is counted and passed over.
 */
#include <ctype.h>
#include <string.h>

#include "base/hash.h"
#include "export/otlp.h"
#include "view/import.h"

enum {
	LINE_BYTES = 16384,	/* longer ones are cut */
	FRAMES_MAX = 4096,
	LINES_MAX = 64,		/* inlined frames in one Location */
	FRACTION_DIGITS = 9,
};

struct known_process {
	uint32_t pid, resource;
};

struct script {
	struct import *import;
	struct rows processes;		/* struct known_process */
	struct import_sample sample;
	struct buffer stack;		/* int32_t */
	bool has_sample;
	OtlpLine lines[LINES_MAX];	/* inlined into the frame that comes next */
	size_t line_count;
};

struct header {
	char *comm, *event;
	const char *rest;		/* a lone frame may stand behind the event */
	uint32_t pid, tid;
	int64_t cpu, period;		/* -1: not said */
	uint64_t time;
};

static const char *skip_space(const char *at)
{
	while (*at == ' ' || *at == '\t')
		at++;
	return at;
}

static bool take_number(const char **at, uint64_t *ret_number)
{
	char *end;

	if (!isdigit((unsigned char)**at))
		return false;
	errno = 0;
	*ret_number = strtoull(*at, &end, 10);
	*at = end;
	return !errno;
}

/* "12345.678901:" */
static bool take_time(const char **at, uint64_t *ret_time)
{
	uint64_t seconds, part = 0;
	int digits = 0;

	if (!take_number(at, &seconds) || **at != '.' || seconds > INT64_MAX / 1000000000)
		return false;
	for ((*at)++; isdigit((unsigned char)**at) && digits < FRACTION_DIGITS; (*at)++, digits++)
		part = part * 10 + (uint64_t)(**at - '0');
	for (; digits < FRACTION_DIGITS; digits++)
		part *= 10;
	*ret_time = seconds * 1000000000 + part;
	if (**at != ':')
		return false;
	(*at)++;
	return true;
}

/* A thread that was no more when it was sampled has the number -1, in perf as of the kernel; here it has none, 0. */
static bool take_id(const char **at, uint64_t *ret_id)
{
	if (strncmp(*at, "-1", 2) != 0)
		return take_number(at, ret_id);
	*at += 2;
	*ret_id = 0;
	return true;
}

/* "PID/TID [CPU] TIME:" at @at, behind a comm that may have spaces and digits itself. */
static bool take_ids(const char **at, struct header *header)
{
	uint64_t first, second = 0, cpu;

	if (!take_id(at, &first))
		return false;
	second = first;
	if (**at == '/') {
		(*at)++;
		if (!take_id(at, &second))
			return false;
	}
	if (**at != ' ' && **at != '\t')
		return false;
	*at = skip_space(*at);
	header->cpu = -1;
	if (**at == '[') {
		(*at)++;
		if (!take_number(at, &cpu) || **at != ']')
			return false;
		header->cpu = (int64_t)min_of(cpu, (uint64_t)INT32_MAX);
		*at = skip_space(*at + 1);
	}
	header->pid = (uint32_t)min_of(first, (uint64_t)INT32_MAX);
	header->tid = (uint32_t)min_of(second, (uint64_t)INT32_MAX);
	return take_time(at, &header->time);
}

/* Changes @line, which the header points into. */
static bool parse_header(char *line, struct header *header)
{
	const char *at = NULL;
	char *digits, *end;
	uint64_t period;

	for (digits = line; *digits; digits++) {
		if (digits == line || !isspace((unsigned char)digits[-1]))
			continue;
		at = digits;
		if (take_ids(&at, header))
			break;
	}
	if (!*digits)
		return false;
	for (end = digits; end > line && isspace((unsigned char)end[-1]); end--)
		;
	*end = '\0';
	header->comm = (char *)(uintptr_t)skip_space(line);
	at = skip_space(at);
	header->period = -1;
	if (take_number(&at, &period) && (*at == ' ' || *at == '\t')) {
		header->period = (int64_t)min_of(period, (uint64_t)INT64_MAX);
		at = skip_space(at);
	}
	header->event = (char *)(uintptr_t)at;
	end = header->event + strcspn(header->event, " \t");
	header->rest = *end ? skip_space(end + 1) : end;
	*end = '\0';
	if (end > header->event && end[-1] == ':')
		end[-1] = '\0';
	return header->event[0];
}

static bool is_clock(const char *event)
{
	return !strncmp(event, "cpu-clock", strlen("cpu-clock")) ||
	       !strncmp(event, "task-clock", strlen("task-clock"));
}

static int add_attributes(struct script *script, const struct header *header)
{
	struct dictionary *dictionary = &script->import->dictionary;
	int32_t attributes[3];
	size_t count = 0;
	int index;

	attributes[count++] = dictionary_attribute_int(dictionary, "thread.id", header->tid);
	attributes[count++] = dictionary_attribute_string(dictionary, "thread.name", header->comm);
	if (header->cpu >= 0)
		attributes[count++] = dictionary_attribute_int(dictionary, "cpu.logical_number",
							       header->cpu);
	for (size_t i = 0; i < count; i++)
		if (attributes[i] < 0)
			return -E2BIG;
	index = import_set(script->import, attributes, count);
	script->sample.set = (uint32_t)index;
	return index < 0 ? index : 0;
}

static uint64_t process_hash(uint32_t pid)
{
	return hash_words((const uint64_t[]){ pid }, 1);
}

static uint64_t process_hash_of(const void *ctx, uint32_t position)
{
	return process_hash(((const struct known_process *)ctx + position)->pid);
}

/* It is called by its main thread, as that is at the time, or by the first that was seen: there are no other names. */
static int process_of(struct script *script, const struct header *header)
{
	uint64_t hash = process_hash(header->pid);
	struct index_probe probe = index_first(&script->processes.index, hash);
	struct known_process process = { .pid = header->pid }, *known = NULL;
	uint32_t i;
	int index;

	while (!known && (i = index_next(&script->processes.index, &probe)) != INDEX_NONE) {
		known = (struct known_process *)(void *)script->processes.data.data + i;
		if (known->pid != header->pid)
			known = NULL;
	}
	if (known && header->tid != header->pid)
		return (int)known->resource;
	index = import_process(script->import, &(struct import_process){
		.name = header->comm, .pid = header->pid,
	});
	if (index < 0)
		return index;
	process.resource = (uint32_t)index;
	if (known)
		*known = process;
	else if (rows_add(&script->processes, hash, process_hash_of, &process, sizeof(process), &i))
		return -E2BIG;
	return index;
}

static int begin_sample(struct script *script, const struct header *header)
{
	int index;

	script->has_sample = true;
	script->stack.size = script->line_count = 0;
	script->sample = (struct import_sample){
		.time = header->time, .value = header->period < 0 ? 1 : header->period,
	};
	index = process_of(script, header);
	if (index < 0)
		return index;
	script->sample.resource = (uint32_t)index;
	index = import_event(script->import, &(struct import_event){
		.type = header->event,
		.unit = header->period >= 0 && is_clock(header->event) ? "nanoseconds" : "count",
	});
	if (index < 0)
		return index;
	script->sample.event = (uint32_t)index;
	return add_attributes(script, header);
}

static int end_sample(struct script *script)
{
	OtlpStack message;
	int index;

	if (!script->has_sample)
		return 0;
	script->has_sample = false;
	otlp_init(stack, &message);
	message.location_indices = (int32_t *)(void *)script->stack.data;
	message.n_location_indices = script->stack.size / sizeof(int32_t);
	index = dictionary_message(&script->import->dictionary, TABLE_STACK, &message.base);
	if (index < 0)
		return -E2BIG;
	script->sample.stack = (uint32_t)index;
	script->import->samples++;
	return import_add(script->import, &script->sample);
}

static bool is_kernel(uint64_t address, const char *object)
{
	return address >> 63 || !strncmp(object, "[kernel", strlen("[kernel")) ||
	       !strncmp(object, "[guest.kernel", strlen("[guest.kernel"));
}

static int mapping_of(struct script *script, const char *object)
{
	OtlpMapping message;
	int index;

	if (!strcmp(object, "[unknown]"))
		return 0;
	otlp_init(mapping, &message);
	message.memory_limit = UINT64_MAX;
	message.filename_strindex = dictionary_string(&script->import->dictionary, object);
	if (message.filename_strindex < 0)
		return -E2BIG;
	index = dictionary_message(&script->import->dictionary, TABLE_MAPPING, &message.base);
	return index < 0 ? -E2BIG : index;
}

static int add_location(struct script *script, uint64_t address, const char *object)
{
	struct dictionary *dictionary = &script->import->dictionary;
	OtlpLine *pointers[LINES_MAX];
	OtlpLocation message;
	int32_t type, index;

	otlp_init(location, &message);
	message.mapping_index = mapping_of(script, object);
	type = dictionary_attribute_string(dictionary, "profile.frame.type",
					   is_kernel(address, object) ? "kernel" : "native");
	if (message.mapping_index < 0 || type < 0)
		return -E2BIG;
	message.address = address;
	message.attribute_indices = &type;
	message.n_attribute_indices = 1;
	message.lines = pointers;
	for (; message.n_lines < script->line_count; message.n_lines++)
		pointers[message.n_lines] = &script->lines[message.n_lines];
	index = dictionary_message(dictionary, TABLE_LOCATION, &message.base);
	script->line_count = 0;
	if (index < 0 || buffer_append(&script->stack, &index, sizeof(index)))
		return -E2BIG;
	return 0;
}

/* "main+0x12": an offset is none of the name. */
static void cut_offset(char *symbol)
{
	char *plus = strrchr(symbol, '+');

	if (plus && plus > symbol && !strncmp(plus, "+0x", 3) &&
	    !plus[3 + strspn(plus + 3, "0123456789abcdef")])
		*plus = '\0';
}

/* False: it is no frame. */
static bool parse_frame(char *line, uint64_t *ret_address, char **ret_symbol, char **ret_object)
{
	char *at = (char *)(uintptr_t)skip_space(line), *end = at + strlen(at), *open;

	if (!isxdigit((unsigned char)*at))
		return false;
	errno = 0;
	*ret_address = strtoull(at, &at, 16);
	if (errno || *at != ' ')
		return false;
	while (end > at && isspace((unsigned char)end[-1]))
		end--;
	*end = '\0';
	*ret_symbol = (char *)(uintptr_t)skip_space(at);
	*ret_object = (char *)(uintptr_t)"[unknown]";
	open = strrchr(at, '(');
	/* names of objects may have brackets in them, but not of this kind as a rule */
	if (!open || open == at || end[-1] != ')')
		return true;
	end[-1] = '\0';
	*ret_object = open + 1;
	while (open > *ret_symbol && open[-1] == ' ')
		open--;
	*open = '\0';
	return true;
}

static int add_frame(struct script *script, uint64_t address, char *symbol, const char *object)
{
	OtlpLine *line = &script->lines[script->line_count];

	if (script->stack.size / sizeof(int32_t) >= FRAMES_MAX || script->line_count == LINES_MAX) {
		script->import->passed++;
		return 0;
	}
	cut_offset(symbol);
	if (symbol[0] && strcmp(symbol, "[unknown]") != 0) {
		otlp_init(line, line);
		line->function_index = import_function(script->import, symbol, NULL, NULL, 0);
		if (line->function_index < 0)
			return -E2BIG;
		script->line_count++;
	}
	return strcmp(object, "inlined") ? add_location(script, address, object) : 0;
}

static int take_frame(struct script *script, char *line)
{
	char *symbol, *object;
	uint64_t address;

	if (script->has_sample && parse_frame(line, &address, &symbol, &object))
		return add_frame(script, address, symbol, object);
	script->import->passed++;
	return 0;
}

static int take_line(struct script *script, char *line)
{
	struct header header;
	char *rest;
	int err;

	line[strcspn(line, "\r\n")] = '\0';
	if (!*skip_space(line))
		return end_sample(script);
	if (line[0] == '#')
		return 0;
	/* a comm is aligned to the right, so that it may follow blanks as well; frames have no time */
	if (!parse_header(line, &header))
		return take_frame(script, line);
	err = end_sample(script) ?: begin_sample(script, &header);
	if (err || !header.rest[0])
		return err;
	rest = (char *)(uintptr_t)header.rest;
	return take_frame(script, rest);
}

int import_perf_script(struct import *import, FILE *file)
{
	_cleanup_free_ struct script *script = calloc(1, sizeof(*script));
	_cleanup_free_ char *line = malloc(LINE_BYTES);
	bool is_rest = false;
	int err = script && line ? 0 : -E2BIG;

	if (err)
		return err;
	script->import = import;
	buffer_init(&script->stack, POOL_REPORT);
	rows_init(&script->processes);
	import->format = "linux_perf";
	import->loss = "names of processes but for their threads', build-ids, registers and raw data";
	while (!err && fgets(line, LINE_BYTES, file)) {
		bool has_end = strchr(line, '\n');

		/* what does not fit is cut */
		if (!is_rest)
			err = take_line(script, line);
		is_rest = !has_end;
	}
	if (!err)
		err = end_sample(script);
	buffer_free(&script->stack);
	rows_free(&script->processes);
	return err ?: ferror(file) ? -EIO : 0;
}
