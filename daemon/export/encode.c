// SPDX-License-Identifier: Apache-2.0
#include "export/encode.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "export/downsample.h"
#include "export/frames.h"
#include "export/otlp.h"
#include "export/profile.h"
#include "export/relabel.h"
#include "export/resource.h"
#include "stacktap/version.h"

#define PAYLOAD_OVERHEAD 16384u	/* of a resource and of the envelopes */
#define RESOURCE_ROOM 4096u	/* of a resource and a Profile in it, as most are */
#define THREAD_ROOM 128u	/* of the attributes of a thread */
#define DOWNSAMPLE_STEP ((size_t)8192)	/* parts that are drawn of at once: up to a megabyte */
#define PAYLOAD_MIN ((size_t)65536) /* a smaller limit makes no sense */

struct encoder {
	const struct encode_options *options;
	const struct window *window;
	int (*sink)(void *ctx, struct payload *payload);
	void *ctx;
	size_t limit;			/* bytes of a payload */

	struct profile_part *parts;
	size_t part_count;

	/* the open payload */
	struct dictionary dictionary;
	struct profile_writer writer;
	struct downsample downsample;
	struct buffer resources;	/* ResourceProfiles, as field 1 */
	struct buffer profiles;		/* Profiles of the open resource */
	struct buffer resource;		/* its Resource */
	struct buffer scope, schema;	/* the same in all */
	uint64_t samples, profile_count;	/* in finished resources */
	uint64_t open_samples, open_profiles;	/* in the open one */
	bool *had_losses;		/* writer.has_losses when the open one began */
	uint64_t left_out;		/* samples that no payload has memory for */
};

static size_t part_count(const struct window *window)
{
	size_t count = 0;

	for (size_t i = 0; i < window->sample_count; i++)
		count += ((size_t)window->samples[i].count + PROFILE_PART_MAX - 1) /
			 PROFILE_PART_MAX;
	return count;
}

static int part_compare(const void *a, const void *b)
{
	const struct window_sample *left = ((const struct profile_part *)a)->sample;
	const struct window_sample *right = ((const struct profile_part *)b)->sample;

	if (left->image != right->image) {
		uint32_t left_tgid = left->image ? left->image->tgid : 0;
		uint32_t right_tgid = right->image ? right->image->tgid : 0;

		if (left_tgid != right_tgid)
			return left_tgid < right_tgid ? -1 : 1;
		return (uintptr_t)left->image < (uintptr_t)right->image ? -1 : 1;
	}
	if (left->profile != right->profile)
		return left->profile < right->profile ? -1 : 1;
	return (left > right) - (left < right);
}

static int parts_make(struct encoder *encoder)
{
	const struct window *window = encoder->window;
	size_t count = part_count(window);
	struct profile_part *part;

	if (!pool_charge(POOL_ENCODE, count * sizeof(*part)))
		return -ENOBUFS;
	encoder->part_count = count;
	encoder->parts = part = calloc(count ? count : 1, sizeof(*part));
	if (!part)
		return -ENOMEM;
	for (size_t i = 0; i < window->sample_count; i++) {
		const struct window_sample *sample = &window->samples[i];
		uint32_t first = 0;

		for (; first < sample->count; first += PROFILE_PART_MAX, part++) {
			part->sample = sample;
			part->first = first;
			part->count = min_of(sample->count - first, (uint32_t)PROFILE_PART_MAX);
		}
	}
	qsort(encoder->parts, count, sizeof(*part), part_compare);
	return 0;
}

static int payload_start(struct encoder *encoder)
{
	buffer_clear(&encoder->resources);
	buffer_clear(&encoder->profiles);
	encoder->samples = encoder->profile_count = 0;
	encoder->open_samples = encoder->open_profiles = 0;
	return dictionary_reset(&encoder->dictionary);
}

/* Hand the payload over and start the next one. */
static int payload_flush(struct encoder *encoder, bool is_last)
{
	struct payload payload = { .samples = encoder->samples,
				   .profiles = encoder->profile_count,
				   .window = encoder->window->number,
				   .is_last = is_last };
	size_t dictionary = dictionary_size(&encoder->dictionary), charged;
	int err;

	if (!encoder->profile_count)
		return is_last ? 0 : payload_start(encoder);
	err = buffer_field(&encoder->resources, OTLP_DATA_DICTIONARY, dictionary);
	if (err)
		return err;
	payload.size = encoder->resources.size + dictionary;
	payload.data = malloc(payload.size);
	if (!payload.data)
		return -ENOMEM;
	/*
	 * No larger than what it is made from, which has been granted, and gone in a moment: the
	 * sink takes it over. To refuse it now would lose samples that the pool had room for.
	 */
	charged = payload.size;
	pool_charge_always(POOL_ENCODE, charged);
	memcpy(payload.data, encoder->resources.data, encoder->resources.size);
	dictionary_write(&encoder->dictionary, payload.data + encoder->resources.size);
	pool_uncharge(POOL_ENCODE, charged);
	buffer_clear(&encoder->resources);
	err = encoder->sink(encoder->ctx, &payload);
	return err || is_last ? err : payload_start(encoder);
}

static int append_string(struct buffer *buffer, unsigned int field, const char *text)
{
	size_t size = strlen(text);

	return buffer_field(buffer, field, size) ?: buffer_append(buffer, text, size);
}

/* What frames the Profiles of every resource: the scope before them, the schema after them. */
static int frame_make(struct encoder *encoder)
{
	char name[] = "stacktap", version[] = STACKTAP_VERSION;
	uint8_t packed[sizeof(name) + sizeof(version) + 16];
	OtlpScope scope;
	size_t size;

	/* one field number, so that the same bytes end both messages */
	_Static_assert((int)OTLP_SCOPE_PROFILES_SCHEMA_URL == OTLP_RESOURCE_PROFILES_SCHEMA_URL,
		       "schema_url");
	otlp_common_init(instrumentation_scope, &scope);
	scope.name = name;
	scope.version = version;
	size = protobuf_c_message_pack(&scope.base, packed);
	return buffer_field(&encoder->scope, OTLP_SCOPE_PROFILES_SCOPE, size) ?:
	       buffer_append(&encoder->scope, packed, size) ?:
	       append_string(&encoder->schema, OTLP_SCOPE_PROFILES_SCHEMA_URL, OTLP_SCHEMA_URL);
}

/* Wrap the open resource's Profiles: ScopeProfiles in ResourceProfiles. */
static int resource_finish(struct encoder *encoder)
{
	struct buffer *resource = &encoder->resource, *out = &encoder->resources;
	size_t scope_size, before = out->size;
	int err;

	if (!encoder->open_profiles)
		return 0;
	scope_size = encoder->scope.size + encoder->profiles.size + encoder->schema.size;
	err = buffer_field(out, OTLP_DATA_RESOURCE_PROFILES,
			   resource->size + buffer_field_size(scope_size) + encoder->schema.size) ?:
	      buffer_append(out, resource->data, resource->size) ?:
	      buffer_field(out, OTLP_RESOURCE_PROFILES_SCOPE_PROFILES, scope_size) ?:
	      buffer_append(out, encoder->scope.data, encoder->scope.size) ?:
	      buffer_append(out, encoder->profiles.data, encoder->profiles.size) ?:
	      buffer_append(out, encoder->schema.data, encoder->schema.size) ?:
	      buffer_append(out, encoder->schema.data, encoder->schema.size);
	if (err) {
		out->size = before;
		return err;
	}
	encoder->samples += encoder->open_samples;
	encoder->profile_count += encoder->open_profiles;
	buffer_clear(&encoder->profiles);
	encoder->open_samples = encoder->open_profiles = 0;
	return 0;
}

/* Parts of one Profile at the start of @parts. */
static size_t profile_run(const struct profile_part *parts, size_t count)
{
	size_t run = 1;

	while (run < count && parts[run].sample->profile == parts->sample->profile)
		run++;
	return run;
}

/*
 * A resource goes into the open payload as a whole if it can; else it starts a new payload, and is
 * split only where that one is full.
 */
static int resource_encode(struct encoder *encoder, const struct profile_part *parts, size_t count)
{
	size_t losses = encoder->window->profile_count * sizeof(bool);
	struct profile_writer *writer = &encoder->writer;
	struct dictionary_mark mark;
	size_t done = 0, run, written, used, room;
	uint64_t samples;
	bool forced;
	int err;

	dictionary_mark(&encoder->dictionary, &mark);
	memcpy(encoder->had_losses, writer->has_losses, losses);
	while (done < count) {
		run = profile_run(parts + done, count - done);
		used = dictionary_size(&encoder->dictionary) + encoder->resources.size +
		       encoder->profiles.size + PAYLOAD_OVERHEAD;
		room = encoder->limit > used ? encoder->limit - used : 0;
		/* an empty payload takes one part even if that alone is beyond the limit */
		forced = !encoder->resources.size && !encoder->profiles.size;
		err = profile_write(writer, &encoder->profiles, forced, parts + done, run, room,
				    &written, &samples);
		/* what no payload has memory for is left out, and missed by who counts: the others are not lost with it */
		if (err == -ENOBUFS && forced) {
			err = payload_start(encoder);
			if (err)
				return err;
			dictionary_mark(&encoder->dictionary, &mark);
			encoder->left_out += parts[done].count;
			done++;
			continue;
		}
		if (err)
			return err;
		if (written) {
			encoder->open_profiles++;
			encoder->open_samples += samples;
			done += written;
		}
		if (written == run)
			continue;
		if (encoder->resources.size) {
			dictionary_take_back(&encoder->dictionary, &mark);
			memcpy(writer->has_losses, encoder->had_losses, losses);
			encoder->profiles.size = 0;
			encoder->open_samples = encoder->open_profiles = 0;
			done = 0;
		} else {
			err = resource_finish(encoder);
			if (err)
				return err;
		}
		err = payload_flush(encoder, false);
		if (err)
			return err;
	}
	return resource_finish(encoder);
}

/*
 * Put Locations and Stacks into order if the parts fit the open payload with what they refer to: else it is not
 * known which ones it will have, and none that nothing refers to shall be in it.
 */
static int frames_arrange(struct encoder *encoder, const struct profile_part *parts, size_t count)
{
	struct dictionary *dictionary = &encoder->dictionary;
	struct buffer stacks = { .pool = POOL_ENCODE };
	size_t bytes = encoder->resources.size + PAYLOAD_OVERHEAD, more = 0;
	struct stack *const *all;
	struct dictionary_mark mark;
	bool fits = false;
	int err = 0;

	for (size_t i = 0; !err && i < count && bytes <= encoder->limit; i++) {
		const struct window_sample *sample = parts[i].sample;

		bytes += profile_part_room(&parts[i]) + THREAD_ROOM;
		if (!i || sample->image != parts[i - 1].sample->image ||
		    sample->profile != parts[i - 1].sample->profile)
			bytes += RESOURCE_ROOM;
		err = buffer_append(&stacks, &sample->stack, sizeof(sample->stack));
	}
	if (!err && bytes <= encoder->limit) {
		all = (struct stack *const *)(const void *)stacks.data;
		dictionary_mark(dictionary, &mark);
		err = frames_order(dictionary, all, count, &more);
		fits = !err && dictionary_size(dictionary) + bytes + more <= encoder->limit;
		if (fits)
			err = frames_order_stacks(dictionary, all, count);
		/* with Stacks come Locations that have no name, which more did not count */
		if (!fits || err || dictionary_size(dictionary) + bytes > encoder->limit)
			dictionary_take_back(dictionary, &mark);
	}
	buffer_free(&stacks);
	/* what there is no memory for goes without */
	return err == -ENOBUFS || err == -ENOMEM ? 0 : err;
}

static bool has_rules(const struct encode_options *options)
{
	return options->had_rules || relabel_rules(options->relabel);
}

/* Where it comes from the journal the rule is one of a daemon that is gone. */
static void count_left_out(const struct encode_options *options, const struct relabel_result *sent, uint64_t samples)
{
	if (sent->rule >= 0 && !options->is_again)
		relabel_left_out(options->relabel, sent->rule, samples);
}

static int parts_encode(struct encoder *encoder, const struct profile_part *parts, size_t count)
{
	int err = has_rules(encoder->options) ? frames_arrange(encoder, parts, count) : 0;

	return err ?: resource_encode(encoder, parts, count);
}

/* In as many steps as there is memory for. */
static int downsampled_encode(struct encoder *encoder, const struct relabel_result *sent,
			      const struct profile_part *parts, size_t count)
{
	struct downsample *downsample = &encoder->downsample;
	size_t step = DOWNSAMPLE_STEP;
	int err = 0;

	for (size_t done = 0; !err && done < count;) {
		step = min_of(step, count - done);
		err = downsample_choose(downsample, sent->one_in, parts + done, step);
		if (err == -ENOBUFS && step > 1) {
			step /= 2;
			err = 0;
			continue;
		}
		if (err)
			break;
		count_left_out(encoder->options, sent, downsample->left_out);
		if (downsample->count)
			err = parts_encode(encoder, downsample_parts(downsample), downsample->count);
		done += step;
	}
	downsample_clear(downsample);
	return err;
}

/* @count parts of one image, as far as rules leave them in. */
static int image_encode(struct encoder *encoder, const struct profile_part *parts, size_t count)
{
	const struct encode_options *options = encoder->options;
	struct relabel_result sent = RELABEL_ALL;
	int err;

	encoder->resource.size = 0;
	if (options->resource_of)
		err = options->resource_of(options->resource_ctx, parts->sample->image, &encoder->resource,
					   &sent.one_in);
	else
		err = resource_write(&encoder->resource, options, parts->sample->image, &sent);
	if (err)
		return err;
	encoder->writer.one_in = sent.one_in;
	if (sent.one_in > 1)
		return downsampled_encode(encoder, &sent, parts, count);
	if (sent.one_in)
		return parts_encode(encoder, parts, count);
	for (size_t i = 0; i < count; i++)
		count_left_out(options, &sent, parts[i].count);
	return 0;
}

static void encoder_done(struct encoder *encoder)
{
	dictionary_free(&encoder->dictionary);
	profile_writer_free(&encoder->writer);
	downsample_free(&encoder->downsample);
	buffer_free(&encoder->resources);
	buffer_free(&encoder->profiles);
	buffer_free(&encoder->resource);
	buffer_free(&encoder->scope);
	buffer_free(&encoder->schema);
}

static int encoder_init(struct encoder *encoder, const struct encode_options *options)
{
	struct buffer *buffers[] = { &encoder->resources, &encoder->profiles, &encoder->resource,
				     &encoder->scope, &encoder->schema };

	memset(encoder, 0, sizeof(*encoder));
	for (size_t i = 0; i < ARRAY_SIZE(buffers); i++)
		buffer_init(buffers[i], POOL_ENCODE);
	dictionary_init(&encoder->dictionary);
	profile_writer_init(&encoder->writer);
	downsample_init(&encoder->downsample);
	encoder->options = options;
	encoder->writer.dictionary = &encoder->dictionary;
	encoder->writer.with_cpu = options->with_cpu;
	encoder->writer.rounds_times = options->rounds_times;
	encoder->dictionary.names_ranges = options->form.names_ranges;
	encoder->dictionary.repeats_functions = options->form.repeats_functions;
	encoder->dictionary.kernel_suffix = options->form.kernel_suffix;
	encoder->limit = min_of(options->max_bytes, pool_get(POOL_ENCODE)->limit / 4);
	if (options->form.max_bytes)
		encoder->limit = min_of(encoder->limit, options->form.max_bytes);
	encoder->limit = max_of(encoder->limit, PAYLOAD_MIN);
	return frame_make(encoder) ?: payload_start(encoder);
}

static int images_encode(struct encoder *encoder)
{
	size_t first = 0, next;
	int err = 0;

	/* what rules leave out is not known yet */
	if (!has_rules(encoder->options))
		err = frames_arrange(encoder, encoder->parts, encoder->part_count);
	while (!err && first < encoder->part_count) {
		const struct profile_part *parts = encoder->parts;

		for (next = first + 1; next < encoder->part_count; next++)
			if (parts[next].sample->image != parts[first].sample->image)
				break;
		err = image_encode(encoder, parts + first, next - first);
		first = next;
	}
	return err ?: payload_flush(encoder, true);
}

static int window_encode(struct encoder *encoder, const struct window *window,
			 int (*sink)(void *ctx, struct payload *payload), void *ctx)
{
	struct profile_writer *writer = &encoder->writer;
	int err = -ENOMEM;

	encoder->window = writer->window = window;
	encoder->sink = sink;
	encoder->ctx = ctx;
	writer->ordinal = 0;
	writer->has_losses = calloc(window->profile_count, sizeof(bool));
	encoder->had_losses = calloc(window->profile_count, sizeof(bool));
	if (writer->has_losses && encoder->had_losses)
		err = parts_make(encoder) ?: images_encode(encoder);
	pool_uncharge(POOL_ENCODE, encoder->part_count * sizeof(*encoder->parts));
	encoder->part_count = 0;
	free(steal_ptr(encoder->parts));
	free(steal_ptr(writer->has_losses));
	free(steal_ptr(encoder->had_losses));
	return err;
}

/* Once a minute: whoever runs such a program does so in every window. */
static bool may_warn(void)
{
	static _Atomic uint64_t next;
	uint64_t now = clock_monotonic(), due = atomic_load(&next);

	return now >= due && atomic_compare_exchange_strong(&next, &due, now + 60 * NSEC_PER_SEC);
}

int encode_window(const struct encode_options *options, const struct window *window,
		  int (*sink)(void *ctx, struct payload *payload), void *ctx)
{
	struct encoder encoder;
	int err;

	if (!window->sample_count)
		return 0;
	err = encoder_init(&encoder, options) ?: window_encode(&encoder, window, sink, ctx);
	if (!err && encoder.left_out && options->wants_all)
		err = -ENOBUFS;
	else if (!err && encoder.left_out && !options->is_again && may_warn())
		log_warning("%" PRIu64 " samples are left out of a window: the names of a stack of theirs need more memory than "
			    "the pool `encode' has", encoder.left_out);
	encoder_done(&encoder);
	return err;
}
