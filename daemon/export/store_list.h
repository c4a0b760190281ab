/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a store's directory, which have their times for names. */
#ifndef STACKTAP_EXPORT_STORE_LIST_H
#define STACKTAP_EXPORT_STORE_LIST_H

#include "base/macro.h"

struct store_name {
	char text[48];
};

struct store_name store_name(uint64_t time);	/* Unix ms */

/*
 * For readers, beside the owner: the files of a store's directory by their times, Unix ms, oldest first. What is in
 * a file was sampled before the next one's time. The caller frees *ret_times.
 */
int store_list(int directory, uint64_t **ret_times, size_t *ret_count);
int store_open_file(int directory, uint64_t time);	/* a descriptor, or -errno */
/* Only by who has the directory's lock. */
int store_remove_file(int directory, uint64_t time);

#endif /* STACKTAP_EXPORT_STORE_LIST_H */
