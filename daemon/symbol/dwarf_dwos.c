// SPDX-License-Identifier: Apache-2.0
#include "symbol/dwarf_dwos.h"

#include <unistd.h>

static void close_open(struct dwarf_dwos *dwos)
{
	dwarf_split_close(&dwos->open);
	dwos->opened = NULL;
}

void dwarf_dwos_close(struct dwarf_dwos *dwos)
{
	close_open(dwos);
	for (uint32_t i = 0; i < dwos->count; i++)
		if (dwos->dwos[i].fd >= 0)
			close(dwos->dwos[i].fd);
	dwos->count = 0;
}

static struct dwarf_dwo *find(struct dwarf_dwos *dwos, const struct dwarf_unit *skeleton)
{
	for (uint32_t i = 0; i < dwos->count; i++)
		if (dwos->dwos[i].skeleton == skeleton->header.offset)
			return &dwos->dwos[i];
	return NULL;
}

int dwarf_dwos_want(struct dwarf_dwos *dwos, const struct dwarf_unit *skeleton)
{
	struct dwarf_dwo dwo = { .skeleton = skeleton->header.offset, .fd = -1 };

	if (!dwarf_unit_dwo_id(skeleton, &dwo.id) || !skeleton->root.dwo_name.form || find(dwos, skeleton))
		return 0;
	if (dwos->count == DWARF_DWOS_MAX)
		return -ENOSPC;
	dwos->dwos[dwos->count++] = dwo;
	return 0;
}

int dwarf_dwos_names(const struct dwarf_dwos *dwos, uint32_t number, struct dwarf_file *file,
		     struct dwarf_dwo_names *ret_names)
{
	struct dwarf_unit *skeleton;
	int r = number < dwos->count ? dwarf_unit_open(file, dwos->dwos[number].skeleton, true, NULL, &skeleton) :
				       -ENOENT;

	if (r < 0)
		return r;
	dwarf_value_text(skeleton, &skeleton->root.dwo_name, ret_names->name);
	dwarf_value_text(skeleton, &skeleton->root.comp_dir, ret_names->directory);
	dwarf_unit_close(skeleton);
	return 0;
}

static int open_one(struct dwarf_dwos *dwos, const struct dwarf_dwo *dwo, int fd, uint64_t size, uint64_t deadline)
{
	int r;

	close_open(dwos);
	r = dwarf_split_open(&dwos->open, fd, size, deadline);
	if (!r)
		dwos->opened = dwo;
	/* whatever is wrong with it, the linked file's lines are there */
	return !r || r == -ENOMEM || r == -ETIME ? r : -EBADMSG;
}

int dwarf_dwos_set(struct dwarf_dwos *dwos, uint32_t number, int *fd, uint64_t size, uint64_t deadline)
{
	struct dwarf_dwo *dwo;
	int r;

	if (number >= dwos->count || dwos->dwos[number].fd >= 0)
		return -ESTALE;
	dwo = &dwos->dwos[number];
	r = open_one(dwos, dwo, *fd, size, deadline);
	if (!r)
		r = dwarf_split_has(&dwos->open, dwo->id);
	close_open(dwos);
	if (r < 0)
		return r;
	dwo->fd = steal_fd(fd);
	dwo->size = size;
	return 0;
}

int dwarf_dwos_find(struct dwarf_dwos *dwos, const struct dwarf_unit *skeleton, uint64_t deadline,
		    struct dwarf_split **ret_split, struct dwarf_unit **ret_unit)
{
	const struct dwarf_dwo *dwo = find(dwos, skeleton);
	int r = dwo && dwo->fd >= 0 ? 0 : -ENOENT;

	if (!r && dwos->opened != dwo)
		r = open_one(dwos, dwo, dwo->fd, dwo->size, deadline);
	if (r < 0)
		return r;
	dwos->open.elf.deadline = deadline;
	*ret_split = &dwos->open;
	return dwarf_split_find(&dwos->open, skeleton, ret_unit);
}

int dwarf_dwos_failure(struct dwarf_dwos *dwos)
{
	return dwarf_take_failure(dwos->open.file);
}

void dwarf_dwos_drop(struct dwarf_dwos *dwos, const struct dwarf_unit *skeleton)
{
	struct dwarf_dwo *dwo = find(dwos, skeleton);

	close_open(dwos);
	if (dwo && dwo->fd >= 0)
		close(steal_fd(&dwo->fd));
}
