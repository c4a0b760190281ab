// SPDX-License-Identifier: Apache-2.0
#include "resolve/contexts.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/credit.h"
#include "base/log.h"
#include "helper/protocol.h"
#include "process/scan.h"
#include "symbol/context.h"

#define CREDIT_NS NSEC_PER_SEC
#define WAIT_NS (10 * NSEC_PER_SEC)		/* less than a window that is not cut short */
#define WAIT_MAX_NS (3600 * NSEC_PER_SEC)

enum { CREDIT_PART = 20 };	/* of the time, in the long run */

struct contexts {
	struct opener *opener;
	struct parser *parser;
	struct credit credit;
	struct contexts_stats stats;
};

int contexts_new(struct opener *opener, struct parser *parser, struct contexts **ret_contexts)
{
	struct contexts *contexts = calloc(1, sizeof(*contexts));

	if (!contexts)
		return -ENOMEM;
	contexts->opener = opener;
	contexts->parser = parser;
	credit_init(&contexts->credit, CREDIT_NS, CREDIT_PART, clock_monotonic());
	*ret_contexts = contexts;
	return 0;
}

void contexts_free(struct contexts *contexts)
{
	free(contexts);
}

/* -ENOBUFS: there is no room for it. */
static int publish(struct image *image, const struct context_facts *facts)
{
	struct image_context *context = calloc(1, sizeof(*context));

	if (!context)
		return -ENOBUFS;
	context->service_name = facts->service_name[0] ? strdup(facts->service_name) : NULL;
	context->attributes = facts->attributes[0] ? strdup(facts->attributes) : NULL;
	return image_set_context(image, context);
}

static int take(struct contexts *contexts, struct image *image, int fd, uint64_t size, uint64_t published)
{
	struct object payload = {
		.kind = OBJECT_FILE, .inode = image->tgid, .size = size, .ctime_ns = (int64_t)published,
	};
	struct context_facts facts;
	char path[64];
	int r;

	snprintf(path, sizeof(path), "the process context of process %" PRIu32, image->tgid);
	payload.path = path;
	r = parser_context(contexts->parser, &payload, fd, &facts);
	return r < 0 ? r : publish(image, &facts);
}

static int read_context(struct contexts *contexts, struct image *image, const char *executable)
{
	struct open_context question = {
		.start_time = atomic_load_explicit(&image->start_time, memory_order_relaxed),
		.address = image->context_address, .published = image->context_published,
		.tgid = image->tgid,
	};
	struct open_context_answer answer;
	_cleanup_close_ int fd = -1;
	uint64_t size;
	int r;

	snprintf(question.executable_path, sizeof(question.executable_path), "%s", executable);
	r = opener_context(contexts->opener, &question, &answer, &fd, &size);
	if (r < 0)
		return r;
	if (fd >= 0) {
		r = take(contexts, image, fd, size, answer.published);
		/* the same one says nothing else the next time */
		if (r == -EDQUOT || r == -EAGAIN || r == -EPIPE || r == -ETIMEDOUT || r == -ETIME)
			return r;
		contexts->stats.read += r == 0;
	}
	image->context_address = answer.address;
	image->context_published = answer.published;
	return r;
}

static void count_error(struct contexts *contexts, const struct image *image, int error)
{
	if (error == -ENOBUFS)
		contexts->stats.refused++;
	if (error != -EBADMSG && error != -ENOTRECOVERABLE)
		return;
	if (contexts->stats.bad++ == 0)
		log_warning("the OpenTelemetry process context of process %" PRIu32 " (%s) cannot be read, and is left "
			    "out; more of them are counted in contexts_bad", image->tgid, image->comm);
}

static void look(struct contexts *contexts, struct image *image)
{
	const struct image_details *details = image_details(image);
	const uint64_t began = clock_monotonic();
	int r;

	if (began < image->context_next || !details || !details->executable_path)
		return;
	/* most that a window has samples of under churn: nobody has to be asked about them */
	if (process_has_gone(image->tgid)) {
		image->context_next = UINT64_MAX;
		return;
	}
	if (!credit_left(&contexts->credit, began)) {
		contexts->stats.put_off++;
		return;
	}
	r = read_context(contexts, image, details->executable_path);
	credit_spend(&contexts->credit, began, clock_monotonic());
	count_error(contexts, image, r);
	if (r == -ENODATA || r == -EBADMSG)
		image->context_address = 0;
	if (r == 0 || r == -EAGAIN || r == -EDQUOT || r == -ETIME || !image->context_wait)
		image->context_wait = WAIT_NS;
	else
		image->context_wait = min_of(2 * image->context_wait, (uint64_t)WAIT_MAX_NS);
	image->context_next = began + image->context_wait;
}

void contexts_look(struct contexts *contexts, const struct window *window, const struct deadline *deadline)
{
	struct image *last = NULL;

	for (size_t i = 0; i < window->sample_count; i++) {
		struct image *image = window->samples[i].image;

		if (!image || image == last)
			continue;
		last = image;
		if (!deadline_left_ns(deadline)) {
			contexts->stats.put_off++;
			continue;
		}
		/* of many samples of one image only the first finds that it is due */
		look(contexts, image);
	}
}

const struct contexts_stats *contexts_stats(const struct contexts *contexts)
{
	return &contexts->stats;
}
