/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a file of the journal has of the profile model, each once, as entries of export/cut_format.h.
 * What is new is appended to the cut when it is asked for. An error of any of these leaves entries that
 * nothing refers to.
 */
#ifndef STACKTAP_EXPORT_CUT_DICTIONARY_H
#define STACKTAP_EXPORT_CUT_DICTIONARY_H

#include "base/buffer.h"
#include "export/encode_options.h"
#include "profile/window.h"

#define CUT_LEFT_OUT UINT32_MAX	/* index of an image that a rule leaves out */

struct cut_dictionary {
	struct encode_options options;
	struct buffer *buffer;		/* the cut's */
	struct buffer resource;
	struct buffer drafts;		/* Locations of the window that the file has without names */
	uint32_t epoch;			/* the file's; 0: one is to be begun */
	uint32_t objects, files, functions, images, locations;	/* in it */
	struct journalled kernel;	/* what runs without an image */

	/* of one window in it */
	uint16_t ordinal;		/* the window's, as Locations remember it */
	uint32_t first_stack, stacks;	/* numbers as stacks know them */
	const struct stack *stack;	/* the last one; NULL: none */
	uint32_t indices[STACKTAP_MAX_KERNEL_FRAMES + STACKTAP_MAX_USER_FRAMES];
};

void cut_dictionary_init(struct cut_dictionary *dictionary, const struct encode_options *options);
void cut_dictionary_free(struct cut_dictionary *dictionary);
/* A file begins, a window does. */
void cut_dictionary_begin(struct cut_dictionary *dictionary);
void cut_dictionary_window(struct cut_dictionary *dictionary);
/* As much as who reads the file has memory for. */
bool cut_dictionary_is_full(const struct cut_dictionary *dictionary);

/* Where an entry of @room bytes at most goes, NULL: there is no memory; and what is behind it then. */
static inline uint8_t *_must_check_ cut_begin(struct cut_dictionary *dictionary, size_t room)
{
	struct buffer *buffer = dictionary->buffer;

	/* which is nearly always the case */
	if (buffer->capacity - buffer->size >= room)
		return buffer->data + buffer->size;
	return buffer_reserve(buffer, room);
}

static inline void cut_end(struct cut_dictionary *dictionary, const uint8_t *at)
{
	dictionary->buffer->size = (size_t)(at - dictionary->buffer->data);
}

int cut_options(struct cut_dictionary *dictionary);
int cut_profile(struct cut_dictionary *dictionary, const struct profile_config *config);
/* NULL: the kernel's. -EAGAIN: rules look at what is not known yet, and would let it pass. */
int cut_image(struct cut_dictionary *dictionary, struct image *image, uint32_t *ret_index);
int cut_stack(struct cut_dictionary *dictionary, struct stack *stack, uint32_t *ret_index);
/* Thread B named Locations that the file has without names. */
int cut_names(struct cut_dictionary *dictionary);

#endif /* STACKTAP_EXPORT_CUT_DICTIONARY_H */
