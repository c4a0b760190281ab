/* SPDX-License-Identifier: Apache-2.0 */
/* Where the name of a frame came from. Each frame that is looked up has one. */
#ifndef STACKTAP_RESOLVE_SOURCE_H
#define STACKTAP_RESOLVE_SOURCE_H

enum name_source {
	SOURCE_NONE,		/* it has no name, and it is not known which function it is in */
	SOURCE_RANGE,		/* no name, but where its function begins */
	SOURCE_SYMTAB,
	SOURCE_DYNSYM,
	SOURCE_PLT,
	SOURCE_PCLNTAB,
	SOURCE_MINI,		/* MiniDebugInfo */
	SOURCE_DEBUG_FILE,
	SOURCE_DEBUGINFOD,
	SOURCE_DWARF,		/* alone: no symbol has it */
	SOURCE_PERF_MAP,
	SOURCE_JITDUMP,
	SOURCE_VDSO,
	SOURCE_KERNEL,
	SOURCE_MODULE,
	SOURCE_BPF,		/* and trampolines */
	SOURCES,
};

extern const char *const source_names[SOURCES];

#endif /* STACKTAP_RESOLVE_SOURCE_H */
