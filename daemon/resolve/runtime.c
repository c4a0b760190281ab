// SPDX-License-Identifier: Apache-2.0
#include "resolve/runtime.h"

#include <string.h>

struct known {
	const char *name;	/* what a name begins with, */
	bool is_whole;		/* or all of it */
	enum frame_runtime runtime;
};

static enum frame_runtime find(const struct known *known, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (known[i].is_whole ? !strcmp(name, known[i].name) :
					!strncmp(name, known[i].name, strlen(known[i].name)))
			return known[i].runtime;
	return RUNTIME_NATIVE;
}

enum frame_runtime runtime_of_program(const char *name)
{
	static const struct known programs[] = {
		{ "java", true, RUNTIME_JVM },
		{ "node", true, RUNTIME_V8JS },
		{ "nodejs", true, RUNTIME_V8JS },
		{ "deno", true, RUNTIME_V8JS },
		{ "electron", true, RUNTIME_V8JS },
		{ "chrome", true, RUNTIME_V8JS },
		{ "chromium", true, RUNTIME_V8JS },
		{ "dotnet", true, RUNTIME_DOTNET },
		{ "beam.smp", true, RUNTIME_BEAM },
	};

	return find(programs, ARRAY_SIZE(programs), name);
}

enum frame_runtime runtime_of_library(const char *path)
{
	static const struct known libraries[] = {
		{ "libjvm.so", true, RUNTIME_JVM },
		{ "libnode.so", false, RUNTIME_V8JS },
		{ "libv8.so", false, RUNTIME_V8JS },
		{ "libcoreclr.so", true, RUNTIME_DOTNET },
	};
	const char *slash = strrchr(path, '/');

	return slash ? find(libraries, ARRAY_SIZE(libraries), slash + 1) : RUNTIME_NATIVE;
}

enum frame_runtime runtime_of_function(const char *name)
{
	static const struct known functions[] = {
		{ "py::", false, RUNTIME_CPYTHON },
		{ "LazyCompile:", false, RUNTIME_V8JS },
		{ "JS:", false, RUNTIME_V8JS },
		{ "Function:", false, RUNTIME_V8JS },
		{ "Script:", false, RUNTIME_V8JS },
		{ "BytecodeHandler:", false, RUNTIME_V8JS },
		{ "RegExp:", false, RUNTIME_V8JS },
	};

	return find(functions, ARRAY_SIZE(functions), name);
}
