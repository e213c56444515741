/* Settings from any file: an explanation with file and line, or values within their bounds. */
#include <stdint.h>
#include <stdlib.h>

#include "server/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config c;
	struct err err = { 0 };
	enum status status;
	FILE *file;

	if (size == 0)
		return 0;
	file = fmemopen((void *)(uintptr_t)data, size, "r");
	if (!file || config_init(&c) != STATUS_OK)
		abort();
	status = config_read(&c, file, "f", &err);
	if (status == STATUS_OK ? c.doc_bytes > 8000000 || c.admins_count > AUTH_ADMINS_LIMIT ||
					  !*c.store || !*c.host
				: strncmp(err.text, "f:", 2) != 0)
		abort();
	config_fini(&c);
	fclose(file);
	return 0;
}
