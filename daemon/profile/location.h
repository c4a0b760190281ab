/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP's Location and Function, shared by all processes and windows.
 *
 * Thread A makes a Location on first sight of an address, keyed by the file and the offset in it,
 * with no I/O. Thread B resolves it (address, Lines) once, when the first window that holds it
 * passes; later threads see it because windows travel A -> B -> C through queues.
 */
#ifndef STACKTAP_PROFILE_LOCATION_H
#define STACKTAP_PROFILE_LOCATION_H

#include "base/macro.h"
#include "process/object.h"

enum frame_type {
	FRAME_NATIVE,
	FRAME_KERNEL,
};

/* What made the code of a frame in user mode; profile.frame.type. */
enum frame_runtime {
	RUNTIME_NATIVE,
	RUNTIME_GO,
	RUNTIME_JVM,
	RUNTIME_V8JS,
	RUNTIME_DOTNET,
	RUNTIME_CPYTHON,
	RUNTIME_BEAM,
	RUNTIMES,
};

/* Functions are interned by the symbol stage and live as long as a Location refers to them. */
struct function {
	_Atomic unsigned int refs;
	struct journalled journalled;
	struct encoded encoded;
	const char *name;	/* demangled */
	const char *system_name; /* as in the symbol table; may equal name */
	const char *filename;	/* source file, NULL when unknown */
	int64_t start_line;	/* 0: unknown */
};

/* Strings are copied. Charged to POOL_SYMBOLS: NULL when that or memory is used up. */
struct function *function_new(const char *name, const char *system_name) _must_check_;
/* The same of a source file, and where it begins there. @filename may be NULL. */
struct function *function_new_at(const char *name, const char *system_name, const char *filename,
				 int64_t start_line) _must_check_;
/* Memory of a Function with these. */
size_t function_bytes(const char *name, const char *system_name, const char *filename);
struct function *function_ref(struct function *function);
void function_unref(struct function *function);	/* any thread; NULL is fine */

struct line {
	struct function *function; /* owned */
	int64_t line;		/* 1-based, 0: unknown */
	int64_t column;
};

struct location {
	_Atomic unsigned int refs;
	struct journalled journalled;
	struct encoded encoded;
	uint64_t listed;	/* thread C's: the last list of Locations to encode that has it */
	struct mapped_file *file; /* owned; NULL for an address in no mapping */
	uint64_t offset;	/* file offset; run-time address for the kernel and without a file */
	enum frame_type type;
	bool is_return;		/* a return address: look names up at offset - 1 */

	/* thread B, once; who does not get it from B may read what follows once this is true (acquire) */
	_Atomic bool is_resolved;
	bool is_refused;	/* it has a name that there was no memory for */
	/* what it is may be known later: thread A makes another one for windows to come */
	_Atomic bool is_put_off;
	bool is_late;		/* it was put off for want of time */
	bool is_claimed;	/* no file is behind it, and it is known which image's it is */
	uint8_t source;		/* thread B's, enum name_source */
	enum frame_runtime runtime;
	bool has_function;	/* no Line, but it is known which function it is in: */
	struct object *object;	/* owned; NULL when unknown */
	uint64_t function_start; /* ELF virtual */
	uint64_t address;	/* ELF virtual; link-time for the kernel, from its start for a module */
	struct line *lines;	/* innermost first; none: no name known */
	uint32_t line_count;
};

/* Has it no name because there was no time to look it up? For whoever sees it resolved. */
static inline bool location_lacks_time(const struct location *location)
{
	return location->is_late && !location->line_count;
}

/* What is known of where a Location is, worst first. */
enum naming {
	NAMING_NONE,
	NAMING_RANGE,		/* its function's start */
	NAMING_NAME,
};

static inline enum naming location_naming(const struct location *location)
{
	if (!atomic_load_explicit(&location->is_resolved, memory_order_acquire))
		return NAMING_NONE;
	return location->line_count ? NAMING_NAME :
	       location->has_function ? NAMING_RANGE : NAMING_NONE;
}

/*
 * @file may be NULL; a reference of its own is taken. Charged to POOL_SYMBOLS: NULL when that is
 * used up, and the remedy is to close the window and drop cached Locations.
 */
struct location *location_new(struct mapped_file *file, uint64_t offset, enum frame_type type,
			      bool is_return) _must_check_;
struct location *location_ref(struct location *location);
void location_unref(struct location *location);	/* any thread; NULL is fine */
/*
 * Thread B: give the Location its only Line; takes over the reference on @function. -ENOBUFS,
 * -ENOMEM
 */
int location_set_function(struct location *location, struct function *function);
/* Instead of those it has. Takes over the references on Functions, not the array; on failure as well. */
int location_set_lines(struct location *location, const struct line *lines, uint32_t count);

#endif /* STACKTAP_PROFILE_LOCATION_H */
