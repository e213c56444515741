/* Settings from any file: an explanation with file and line, or values within their bounds. */
#include <stdint.h>
#include <stdlib.h>

#include "cli/settings.h"
#include "door/couch/wire/settings.h"
#include "kv/settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool
settings_make_sense(const struct settings *s)
{
	const struct couch_settings *couch = settings_of(s, &couch_setting_group);
	const struct kv_settings *kv = settings_of(s, &kv_setting_group);
	const struct settings_entry *people;

	return couch->doc_bytes <= COUCH_DOC_MAX_BYTES && *couch->host && *kv->url &&
	       settings_people(s, &people) <= SETTINGS_PEOPLE_LIMIT;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct settings *s = cli_settings_new();
	struct err err = { 0 };
	enum status status;
	FILE *file;

	file = size ? fmemopen((void *)(uintptr_t)data, size, "r") : NULL;
	if (file && s) {
		status = settings_read(s, file, "f", &err);
		if (status == STATUS_OK ? !settings_make_sense(s) : strncmp(err.text, "f:", 2) != 0)
			abort();
		fclose(file);
	}
	settings_free(s);
	return 0;
}
