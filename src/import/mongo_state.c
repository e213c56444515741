/* The state of an import from MongoDB's protocol, as JSON. */
#include <stdlib.h>

#include "import/mongo.h"

enum status
mongo_failed(const char *what, const bson_error_t *why, struct err *err)
{
	return err_set(err, STATUS_IO, "%s: %s", what, why->message);
}

enum status
mongo_state_write(struct mongo *m, struct err *err)
{
	bson_t state = BSON_INITIALIZER;
	enum status status;
	size_t len;
	char *text;

	bson_append_document(&state, "done", -1, &m->done);
	bson_append_document(&state, "place", -1, &m->place);
	bson_append_document(&state, "token", -1, &m->token);
	text = bson_as_canonical_extended_json(&state, &len);
	status = text ? import_state_write(m->import, str_of(text, len), err)
		      : err_set(err, STATUS_NOMEM, "out of memory");
	bson_free(text);
	bson_destroy(&state);
	return status;
}

static void
state_take(const bson_t *state, const char *name, bson_t *to)
{
	bson_iter_t it;
	const uint8_t *bytes;
	uint32_t len;
	bson_t part;

	if (!bson_iter_init_find(&it, state, name) || !BSON_ITER_HOLDS_DOCUMENT(&it))
		return;
	bson_iter_document(&it, &len, &bytes);
	if (bson_init_static(&part, bytes, len)) {
		bson_destroy(to);
		bson_copy_to(&part, to);
	}
}

enum status
mongo_state_read(struct mongo *m, struct err *err)
{
	bson_error_t why;
	char *text;
	bson_t *state;

	TRY(import_state_read(m->import, &text, err));
	if (!text)
		return STATUS_OK;
	state = bson_new_from_json((const uint8_t *)text, -1, &why);
	free(text);
	if (!state)
		return err_set(err, STATUS_INVALID, "%s is no state of an import from MongoDB",
			       m->import->state);
	state_take(state, "done", &m->done);
	state_take(state, "place", &m->place);
	state_take(state, "token", &m->token);
	bson_destroy(state);
	import_tell(m->import, "goes on: %u collections are there already",
		    bson_count_keys(&m->done));
	return STATUS_OK;
}
