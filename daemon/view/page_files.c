// SPDX-License-Identifier: Apache-2.0
#include "view/page_files.h"

#include <assert.h>
#include <string.h>

#include "base/base64.h"
#include "base/sha256.h"
#include "view/escape.h"

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
EMBED(common_css, "common.css");
EMBED(css, "page.css");
EMBED(profile, "profile.js");
EMBED(slices, "slices.js");
EMBED(layout, "layout.js");
EMBED(graph, "graph.js");
EMBED(heat, "heat.js");
EMBED(table, "table.js");
EMBED(start, "main.js");
EMBED(site_html, "site.html");
EMBED(site_css, "site.css");
EMBED(site, "site.js");

#define FILE_OF(name) { page_##name##_data, page_##name##_data_end }
#define FILE_END { NULL, NULL }

static const struct page_file flame_styles[] = { FILE_OF(common_css), FILE_OF(css), FILE_END };
static const struct page_file flame_scripts[] = {
	FILE_OF(profile), FILE_OF(slices), FILE_OF(layout), FILE_OF(graph), FILE_OF(heat),
	FILE_OF(table), FILE_OF(start), FILE_END,
};
static const struct page_file site_styles[] = { FILE_OF(common_css), FILE_OF(site_css), FILE_END };
static const struct page_file site_scripts[] = { FILE_OF(site), FILE_END };

const struct page_files page_files_flame = {
	.html = FILE_OF(html), .styles = flame_styles, .scripts = flame_scripts,
};
const struct page_files page_files_site = {
	.html = FILE_OF(site_html), .styles = site_styles, .scripts = site_scripts,
};

/* 'sha256-...' of what stands between the tags, as a policy names it. */
static void put_hash(const struct page_file *files, FILE *file)
{
	char text[BASE64_CHARACTERS(SHA256_BYTES) + 1];
	struct sha256_part parts[SHA256_PARTS_MAX];
	uint8_t digest[SHA256_BYTES];
	size_t count = 0;

	for (; files->data; files++) {
		assert(count < ARRAY_SIZE(parts));
		parts[count++] = (struct sha256_part){ files->data, (size_t)(files->end - files->data) };
	}
	sha256_of(parts, count, digest);
	base64_encode(digest, sizeof(digest), text);
	fprintf(file, "'sha256-%s'", text);
}

static void put_files(const struct page_file *files, FILE *file)
{
	for (; files->data; files++)
		fwrite(files->data, 1, (size_t)(files->end - files->data), file);
}

static bool is_mark(const char *at, const char *end, const char *name)
{
	size_t length = strlen(name);

	return (size_t)(end - at) >= length && !memcmp(at, name, length);
}

void page_files_fill(const struct page_files *files, const char *title,
		     void (*put_data)(void *ctx, FILE *file), void *ctx, FILE *file)
{
	for (const char *at = files->html.data, *end = files->html.end; at < end;) {
		if (is_mark(at, end, "@TITLE@")) {
			escape_xml(file, title);
		} else if (is_mark(at, end, "@STYLE@")) {
			put_files(files->styles, file);
		} else if (is_mark(at, end, "@SHA_S@")) {
			put_hash(files->styles, file);
		} else if (is_mark(at, end, "@SHA_J@")) {
			put_hash(files->scripts, file);
		} else if (is_mark(at, end, "@DATA_@")) {
			put_data(ctx, file);
		} else if (is_mark(at, end, "@CODE_@")) {
			put_files(files->scripts, file);
		} else {
			fputc(*at++, file);
			continue;
		}
		at += strlen("@TITLE@");
	}
}
