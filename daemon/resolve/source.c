// SPDX-License-Identifier: Apache-2.0
#include "resolve/source.h"

const char *const source_names[SOURCES] = {
	[SOURCE_NONE] = "none",
	[SOURCE_RANGE] = "function_range",
	[SOURCE_SYMTAB] = "symtab",
	[SOURCE_DYNSYM] = "dynsym",
	[SOURCE_PLT] = "plt",
	[SOURCE_PCLNTAB] = "gopclntab",
	[SOURCE_MINI] = "minidebuginfo",
	[SOURCE_DEBUG_FILE] = "debug_file",
	[SOURCE_DEBUGINFOD] = "debuginfod",
	[SOURCE_DWARF] = "dwarf",
	[SOURCE_PERF_MAP] = "perf_map",
	[SOURCE_JITDUMP] = "jitdump",
	[SOURCE_VDSO] = "vdso",
	[SOURCE_KERNEL] = "kernel",
	[SOURCE_MODULE] = "module",
	[SOURCE_BPF] = "bpf",
};
