// SPDX-License-Identifier: Apache-2.0
#include "view/page_files.h"

/* The assembler looks where the compiler runs, which is the top of the tree. */
#define EMBED(name, path)									\
	extern const char page_##name##_data[], page_##name##_data_end[];			\
	__asm__(".section .rodata\n"								\
		".globl page_" #name "_data\n"							\
		".globl page_" #name "_data_end\n"						\
		"page_" #name "_data:\n"							\
		".incbin \"daemon/view/page/" path "\"\n"					\
		"page_" #name "_data_end:\n"							\
		".byte 0\n"									\
		".previous\n")

EMBED(html, "page.html");
EMBED(css, "page.css");
EMBED(profile, "profile.js");
EMBED(layout, "layout.js");
EMBED(graph, "graph.js");
EMBED(heat, "heat.js");
EMBED(table, "table.js");
EMBED(start, "main.js");

#define FILE_OF(name) { page_##name##_data, page_##name##_data_end }

const struct page_file page_html = FILE_OF(html), page_css = FILE_OF(css);
const struct page_file page_scripts[] = {
	FILE_OF(profile), FILE_OF(layout), FILE_OF(graph), FILE_OF(heat), FILE_OF(table),
	FILE_OF(start), { NULL, NULL },
};
