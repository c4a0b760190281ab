// SPDX-License-Identifier: Apache-2.0
#include "symbol/dwarf_program.h"

#include <dwarf.h>

#include "base/clock.h"

enum {
	OPCODES_MAX = 255,
	FORMATS_MAX = 32,
	STEPS_PER_LOOK = 1 << 16,	/* at the clock */
};

/* A file or a directory. */
struct path {
	struct dwarf_value name;
	uint64_t directory;
};

struct paths {
	struct path *paths;
	uint32_t count, room;
};

struct dwarf_program {
	const struct dwarf_unit *unit;
	const uint8_t *bytes;
	void *owned;
	struct dwarf_header header;	/* sizes, for forms */
	struct paths directories, files;
	uint8_t minimum, operations, line_range, opcode_base;
	int8_t line_base;
	uint8_t lengths[OPCODES_MAX];	/* operands of standard opcodes */
	struct cursor code;
};

static int add_path(struct paths *paths, const struct path *path)
{
	if (paths->count == DWARF_PATHS_MAX)
		return -EFBIG;
	if (paths->count == paths->room) {
		const uint32_t room = paths->room ? 2 * paths->room : 64;
		struct path *grown = reallocarray(paths->paths, room, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		paths->paths = grown;
		paths->room = room;
	}
	paths->paths[paths->count++] = *path;
	return 0;
}

/* Before DWARF 5: strings, numbered from 1; 0 is where the compiler ran. */
static int read_old_paths(struct dwarf_program *program, struct cursor *cursor)
{
	struct path path = { .name = { .form = DW_FORM_string, .text = "" } };
	int r = add_path(&program->directories, &path);

	while (!r && *(path.name.text = cursor_text(cursor)))
		r = add_path(&program->directories, &path);
	path.name.text = "";
	r = r ?: add_path(&program->files, &path);
	while (!r && *(path.name.text = cursor_text(cursor))) {
		path.directory = cursor_uleb(cursor);
		cursor_uleb(cursor);	/* time and size */
		cursor_uleb(cursor);
		r = add_path(&program->files, &path);
	}
	return r;
}

static int read_paths(struct dwarf_program *program, struct cursor *cursor, struct paths *paths)
{
	struct {
		uint64_t content, form;
	} formats[FORMATS_MAX];
	const uint8_t format_count = cursor_u8(cursor);
	uint64_t count;
	int r = 0;

	if (format_count > FORMATS_MAX)
		return -EBADMSG;
	for (uint8_t i = 0; i < format_count; i++) {
		formats[i].content = cursor_uleb(cursor);
		formats[i].form = cursor_uleb(cursor);
	}
	count = cursor_uleb(cursor);
	for (uint64_t i = 0; !r && i < count && format_count; i++) {
		struct path path = { .directory = 0 };
		struct dwarf_value value;

		for (uint8_t k = 0; k < format_count; k++) {
			dwarf_value_read(cursor, &program->header,
					 formats[k].form <= UINT16_MAX ? (uint16_t)formats[k].form : 0, 0, &value);
			if (formats[k].content == DW_LNCT_path)
				path.name = value;
			else if (formats[k].content == DW_LNCT_directory_index)
				path.directory = value.number;
		}
		r = cursor->bad ? -EBADMSG : add_path(paths, &path);
	}
	return r;
}

static int read_header(struct dwarf_program *program, struct cursor cursor)
{
	struct dwarf_header *header = &program->header;
	uint64_t length;
	int r;

	header->version = cursor_u16(&cursor);
	if (header->version < 2 || header->version > 5)
		return -EBADMSG;
	if (header->version >= 5) {
		header->address_size = cursor_u8(&cursor);
		cursor_u8(&cursor);	/* of segments */
	}
	length = cursor_number(&cursor, header->offset_size);
	program->code = cursor;
	cursor_take(&program->code, length);
	program->minimum = cursor_u8(&cursor);
	program->operations = header->version >= 4 ? cursor_u8(&cursor) : 1;
	cursor_u8(&cursor);		/* whether rows are statements */
	program->line_base = (int8_t)cursor_u8(&cursor);
	program->line_range = cursor_u8(&cursor);
	program->opcode_base = cursor_u8(&cursor);
	for (uint8_t i = 1; i < program->opcode_base; i++)
		program->lengths[i - 1] = cursor_u8(&cursor);
	if (cursor.bad || program->code.bad || !program->line_range || !program->opcode_base ||
	    (header->address_size != 4 && header->address_size != 8))
		return -EBADMSG;
	r = header->version < 5 ? read_old_paths(program, &cursor) :
	    read_paths(program, &cursor, &program->directories) ?:
	    read_paths(program, &cursor, &program->files);
	return r;
}

static int open_at(struct dwarf_program *program, uint64_t offset)
{
	struct dwarf_file *file = program->unit->file;
	uint8_t start[12] = { 0 };
	struct cursor cursor = { .at = start, .end = start + sizeof(start) };
	uint64_t size, header = 4;
	int r = dwarf_peek(file, DWARF_LINE, offset, start, sizeof(start));

	if (r < 0)
		return r;
	size = cursor_u32(&cursor);
	program->header = program->unit->header;
	program->header.offset_size = 4;
	if (size == UINT32_MAX) {
		size = cursor_u64(&cursor);
		program->header.offset_size = 8;
		header = 12;
	}
	if (size > DWARF_PROGRAM_BYTES_MAX)
		return -EFBIG;
	r = dwarf_bytes(file, DWARF_LINE, offset + header, (size_t)size, &program->bytes, &program->owned);
	return r ?: read_header(program, (struct cursor){ .at = program->bytes, .end = program->bytes + size });
}

int dwarf_program_open(const struct dwarf_unit *unit, struct dwarf_program **ret_program)
{
	struct dwarf_program *program;
	int r;

	if (!unit->root.stmt_list.form)
		return -ENODATA;
	program = calloc(1, sizeof(*program));
	if (!program)
		return -ENOMEM;
	program->unit = unit;
	r = open_at(program, unit->root.stmt_list.number);
	if (r < 0) {
		dwarf_program_close(program);
		return r;
	}
	*ret_program = program;
	return 0;
}

void dwarf_program_close(struct dwarf_program *program)
{
	if (!program)
		return;
	free(program->directories.paths);
	free(program->files.paths);
	free(program->owned);
	free(program);
}

const char *dwarf_program_path(const struct dwarf_program *program, uint64_t file,
			       char ret_path[static DWARF_TEXT_MAX])
{
	char directory[DWARF_TEXT_MAX], name[DWARF_TEXT_MAX];
	const struct path *path;

	ret_path[0] = '\0';
	if (file >= program->files.count)
		return ret_path;
	path = &program->files.paths[file];
	dwarf_value_text(program->unit, &path->name, name);
	directory[0] = '\0';
	if (name[0] != '/' && path->directory < program->directories.count)
		dwarf_value_text(program->unit, &program->directories.paths[path->directory].name, directory);
	/* DWARF 5 has the unit's own at 0, which is put in front of what is relative anyway */
	if (program->header.version >= 5 && !path->directory && directory[0] != '/')
		directory[0] = '\0';
	if (snprintf(ret_path, DWARF_TEXT_MAX, "%s%s%s", name[0] ? directory : "",
		     name[0] && directory[0] ? "/" : "", name) >= DWARF_TEXT_MAX)
		ret_path[DWARF_TEXT_MAX - 1] = '\0';
	return ret_path;
}

/* What runs it. */
struct machine {
	const struct dwarf_program *program;
	struct cursor cursor;
	uint64_t address, operation;
	uint64_t file, line, column;
	/* the row before, until it is known how far it goes */
	bool has_row, is_code;		/* is_code: the sequence is one that the linker kept */
	uint64_t row_address, row_file, row_line, row_column;
	const uint64_t *addresses;
	uint32_t count;
	struct dwarf_row *rows;
};

static void start_sequence(struct machine *machine)
{
	machine->address = machine->operation = machine->column = 0;
	machine->file = machine->line = 1;
	machine->has_row = false;
}

static void advance(struct machine *machine, uint64_t operations)
{
	const struct dwarf_program *program = machine->program;

	if (program->operations > 1) {
		operations += machine->operation;
		machine->operation = operations % program->operations;
		operations /= program->operations;
	}
	machine->address += operations * program->minimum;
}

static uint32_t cut(uint64_t number)
{
	return number <= INT32_MAX ? (uint32_t)number : 0;
}

/* All addresses from the row before up to here are of that. */
static void end_row(struct machine *machine)
{
	uint32_t begin = 0, end = machine->count;

	while (begin < end) {
		const uint32_t middle = begin + (end - begin) / 2;

		if (machine->addresses[middle] < machine->row_address)
			begin = middle + 1;
		else
			end = middle;
	}
	for (; begin < machine->count && machine->addresses[begin] < machine->address; begin++)
		machine->rows[begin] = (struct dwarf_row){
			.file = cut(machine->row_file), .line = cut(machine->row_line),
			.column = cut(machine->row_column), .is_found = true,
		};
}

static void add_row(struct machine *machine, bool is_end)
{
	if (!machine->has_row)
		machine->is_code = dwarf_is_code(machine->program->unit->file, machine->address);
	else if (machine->is_code && machine->address > machine->row_address)
		end_row(machine);
	machine->has_row = true;
	machine->row_address = machine->address;
	machine->row_file = machine->file;
	machine->row_line = machine->line;
	machine->row_column = machine->column;
	if (is_end)
		start_sequence(machine);
}

static void run_extended(struct machine *machine)
{
	struct cursor *cursor = &machine->cursor;
	const uint64_t size = cursor_uleb(cursor);
	const uint8_t *bytes = cursor_take(cursor, size);
	struct cursor inner = { .at = bytes };

	if (!bytes || !size)
		return;
	inner.end = bytes + size;
	switch (cursor_u8(&inner)) {
	case DW_LNE_end_sequence:
		add_row(machine, true);
		break;
	case DW_LNE_set_address:
		machine->address = cursor_number(&inner, (unsigned int)min_of(size - 1, (uint64_t)16));
		machine->operation = 0;
		break;
	default:
		break;
	}
}

static void run_standard(struct machine *machine, uint8_t opcode)
{
	const struct dwarf_program *program = machine->program;
	struct cursor *cursor = &machine->cursor;

	switch (opcode) {
	case DW_LNS_copy:
		add_row(machine, false);
		break;
	case DW_LNS_advance_pc:
		advance(machine, cursor_uleb(cursor));
		break;
	case DW_LNS_advance_line:
		machine->line += (uint64_t)cursor_sleb(cursor);
		break;
	case DW_LNS_set_file:
		machine->file = cursor_uleb(cursor);
		break;
	case DW_LNS_set_column:
		machine->column = cursor_uleb(cursor);
		break;
	case DW_LNS_const_add_pc:
		advance(machine, (uint64_t)(255 - program->opcode_base) / program->line_range);
		break;
	case DW_LNS_fixed_advance_pc:
		machine->address += cursor_u16(cursor);
		machine->operation = 0;
		break;
	default:
		/* flags, and what is not known but says how much it takes */
		for (uint8_t i = 0; i < program->lengths[opcode - 1]; i++)
			cursor_uleb(cursor);
	}
}

int dwarf_program_rows(const struct dwarf_program *program, const uint64_t *addresses, uint32_t count,
		       uint64_t deadline, struct dwarf_row *ret_rows)
{
	struct machine machine = {
		.program = program, .cursor = program->code, .addresses = addresses, .count = count,
		.rows = ret_rows,
	};
	uint32_t steps = 0;

	memset(ret_rows, 0, count * sizeof(*ret_rows));
	start_sequence(&machine);
	while (machine.cursor.at < machine.cursor.end && !machine.cursor.bad) {
		const uint8_t opcode = cursor_u8(&machine.cursor);

		if (opcode >= program->opcode_base) {
			const uint8_t special = (uint8_t)(opcode - program->opcode_base);

			advance(&machine, special / program->line_range);
			machine.line += (uint64_t)(program->line_base + special % program->line_range);
			add_row(&machine, false);
		} else if (opcode) {
			run_standard(&machine, opcode);
		} else {
			run_extended(&machine);
		}
		if (++steps % STEPS_PER_LOOK == 0 && clock_monotonic() > deadline)
			return -ETIME;
	}
	return 0;
}
