// SPDX-License-Identifier: Apache-2.0
#include "service/secret.h"

#include <string.h>

#include "base/file.h"
#include "export/environment.h"
#include "helper/memfd.h"
#include "service/config.h"

enum { SECRET_BYTES_MAX = 4 << 20 };	/* a bundle of certificates has some 200 KiB */

static bool is(const char *named, const char *path)
{
	return named && !strcmp(named, path);
}

static bool is_in_environment(const char *path)
{
	struct environment environment;
	char error[256];
	bool is_named;

	if (environment_load(&environment, error, sizeof(error)) < 0)
		return false;
	is_named = is(environment.certificate, path) || is(environment.client_certificate, path) ||
		   is(environment.client_key, path) || is(environment.metrics_certificate, path) ||
		   is(environment.metrics_client_certificate, path) || is(environment.metrics_client_key, path);
	environment_free(&environment);
	return is_named;
}

bool secret_is_named(const char *config_path, const char *path)
{
	struct config config;
	char error[512];
	bool is_named;

	if (is_in_environment(path))
		return true;
	if (config_load(config_path, &config, error, sizeof(error)) < 0)
		return false;
	is_named = is(config.headers_file, path) || is(config.certificate, path) ||
		   is(config.client_certificate, path) || is(config.client_key, path);
	for (size_t i = 0; i < config.receiver_count && !is_named; i++)
		is_named = is(config.receivers[i].headers_file, path) || is(config.receivers[i].certificate, path) ||
			   is(config.receivers[i].client_certificate, path) ||
			   is(config.receivers[i].client_key, path);
	config_done(&config);
	return is_named;
}

int secret_read(const char *path)
{
	_cleanup_close_ int file = file_open_regular(path), fd = -1;
	_cleanup_free_ char *data = NULL;
	size_t size;
	int r = file < 0 ? file : file_read_fd(file, SECRET_BYTES_MAX, &data, &size);

	if (r < 0)
		return r;
	fd = memfd_new();
	r = fd < 0 ? fd : file_write(fd, data, size);
	explicit_bzero(data, size);
	return r < 0 ? r : memfd_seal(&fd);
}
