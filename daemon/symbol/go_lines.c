// SPDX-License-Identifier: Apache-2.0
#include "symbol/go_lines.h"

#include <string.h>

#include "symbol/go_inlined.h"
#include "symbol/go_module.h"

enum {
	FRAMES_MAX = 256,	/* of one address */
	RUNS_MAX = 1 << 20,	/* of tables of values, for one address */
};

struct go_lines {
	struct pclntab pclntab;
	uint32_t runs_left;	/* what cached blocks have costs no look at the deadline */
	struct go_lists lists;	/* of inlined functions */
	char name[PCLNTAB_WINDOW], file[PCLNTAB_WINDOW];
};

/* The function that holds an address, and what there is to be known of it. */
struct place {
	struct pclntab_function function;
	uint64_t entry, end;
	uint32_t indices;	/* table of values: which inlined function an instruction is of; 0: none */
	uint64_t list;		/* address of these; 0: unknown */
};

/* A step outwards. */
struct step {
	uint64_t address;
	int32_t index;		/* of the inlined function that it is in; negative: in none */
	int32_t file, line;	/* where it is, if @has_place; else the address tells */
	bool has_place;
};

int go_lines_open(const struct elf *elf, struct go_lines **ret_go)
{
	struct go_lines *go = calloc(1, sizeof(*go));

	if (!go)
		return -ENOMEM;
	pclntab_find(elf, &go->pclntab);
	if (!go->pclntab.section) {
		free(go);
		return -ENODATA;
	}
	go_inlined_form(&go->pclntab, &go->lists);
	if (go->pclntab.has_offsets)
		go->lists.base = go_module_base(&go->pclntab, &go->lists);
	*ret_go = go;
	return 0;
}

void go_lines_free(struct go_lines *go)
{
	free(go);
}

/* The value that table @table has for @address; -ENODATA: none. */
static int value_at(struct go_lines *go, const struct place *place, uint32_t table, uint64_t address,
		    int32_t *ret_value)
{
	struct pclntab_run run;
	int r;

	if (!table)
		return -ENODATA;
	pclntab_values(&go->pclntab, table, place->entry, &run);
	do {
		if (!go->runs_left)
			return -EBADMSG;
		go->runs_left--;
		r = pclntab_next(&go->pclntab, &run);
	} while (r > 0 && run.end <= address);
	*ret_value = run.value;
	return r > 0 ? 0 : r ?: -ENODATA;
}

static int find_place(struct go_lines *go, uint64_t address, struct place *ret_place)
{
	struct pclntab *pclntab = &go->pclntab;
	const struct pclntab_function *function = &ret_place->function;
	const struct go_lists *lists = &go->lists;
	uint64_t list;
	int r;

	*ret_place = (struct place){ 0 };
	r = pclntab_search(pclntab, address, &ret_place->entry, &ret_place->end,
			   &ret_place->function);
	if (r < 0 || lists->form == GO_FORM_NONE || function->value_count <= lists->values)
		return r;
	r = pclntab_get(pclntab, &pclntab->function_window,
			pclntab->descriptions + function->more + 4 * (uint64_t)lists->values,
			&ret_place->indices, sizeof(ret_place->indices));
	if (r == 0 && (lists->base || !pclntab->has_offsets) && go_inlined_list(pclntab, lists, function, &list) == 0)
		ret_place->list = list;
	return r;
}

/* 0, too, where there is no line; -errno of reading. */
static int find_line(struct go_lines *go, const struct place *place, const struct step *step,
		     struct go_frame *frame)
{
	struct pclntab *pclntab = &go->pclntab;
	int32_t file = step->file, line = step->line;
	uint32_t offset;
	int r = step->has_place ? 0 : value_at(go, place, place->function.files, step->address, &file);

	if (r == 0)
		r = pclntab_file(pclntab, &place->function, file, &offset);
	if (r == 0)
		r = pclntab_text(pclntab, pclntab->files + offset, go->file, sizeof(go->file));
	/* a line of no file */
	if (r == -ENODATA)
		r = 0;
	if (r == 0 && !step->has_place)
		r = value_at(go, place, place->function.lines, step->address, &line);
	if (r == 0 && line > 0)
		frame->line = (uint32_t)line;
	return r == -EBADMSG || r == -ENODATA ? 0 : r;
}

/* From inlined function @inlined to where it was called. */
static int step_out(struct go_lines *go, const struct place *place, const struct go_inlined *inlined, struct step *step)
{
	step->index = inlined->parent;
	if (go->lists.form == GO_FORM_PLACES) {
		step->file = inlined->file;
		step->line = inlined->line;
		step->has_place = true;
		return 0;
	}
	step->address = place->entry + inlined->call;
	return go->lists.form == GO_FORM_CALLS ? 0 : value_at(go, place, place->indices, step->address, &step->index);
}

/* The function at @step, and the step to where it was called. 1: it was inlined there; 0: it is the outermost. */
static int walk(struct go_lines *go, const struct place *place, struct step *step,
		struct go_frame *frame)
{
	struct pclntab *pclntab = &go->pclntab;
	struct go_inlined inlined = {
		.name = place->function.name, .start_line = place->function.start_line,
	};
	const bool is_inlined = step->index >= 0;
	int r = 0;

	*frame = (struct go_frame){ .name = go->name, .file = go->file };
	go->name[0] = go->file[0] = '\0';
	if (is_inlined)
		r = place->list ? go_inlined_get(pclntab, &go->lists, place->list, (uint32_t)step->index,
						 &inlined) : -EBADMSG;
	if (r == 0 && is_inlined && inlined.call >= place->end - place->entry)
		r = -EBADMSG;
	if (r == 0)
		r = pclntab_text(pclntab, pclntab->names + inlined.name, go->name, sizeof(go->name));
	if (r == 0)
		r = find_line(go, place, step, frame);
	if (r < 0)
		return r;
	frame->start_line = inlined.start_line <= INT32_MAX ? inlined.start_line : 0;
	if (!is_inlined)
		return 0;
	return step_out(go, place, &inlined, step) ?: 1;
}

/* Frames of @address; the first pass sees whether all of them can be read. */
static int walk_all(struct go_lines *go, const struct place *place, struct step step,
		    void (*take)(void *ctx, const struct go_frame *frame), void *ctx)
{
	struct go_frame frame;
	int r = 1;

	for (unsigned int i = 0; r == 1; i++) {
		r = i < FRAMES_MAX ? walk(go, place, &step, &frame) : -EBADMSG;
		if (r >= 0 && take)
			take(ctx, &frame);
	}
	return r;
}

/* The function alone. */
static int take_name(struct go_lines *go, const struct place *place,
		     void (*take)(void *ctx, const struct go_frame *frame), void *ctx)
{
	const struct go_frame frame = { .name = go->name, .file = "" };
	int r = pclntab_text(&go->pclntab, go->pclntab.names + place->function.name, go->name,
			     sizeof(go->name));

	if (r == 0)
		take(ctx, &frame);
	return r;
}

int go_lines_find(struct go_lines *go, uint64_t address,
		  void (*take)(void *ctx, const struct go_frame *frame), void *ctx)
{
	struct step step = { .address = address, .index = -1 };
	struct place place;
	int r = find_place(go, address, &place);

	go->runs_left = RUNS_MAX;
	if (r == 0 && place.indices)
		r = value_at(go, &place, place.indices, address, &step.index);
	/* behind a function's last value is what aligns the next */
	if (r == -ENODATA && place.end)
		r = 0;
	if (r == 0)
		r = walk_all(go, &place, step, NULL, NULL);
	if (r == 0)
		r = walk_all(go, &place, step, take, ctx);
	else if (r == -EBADMSG && place.end)
		r = take_name(go, &place, take, ctx);
	/* a table that is broken there may have others whole */
	return r == -EBADMSG ? -ENODATA : r;
}
