/*
 * Any bytes as _attachments: what is taken of them keeps the model's bounds, and inline data is
 * decoded into an upload or refused.
 */
#include <stdlib.h>

#include "model/revisioned/att_json.h"
#include "catalog/catalog_int.h"
#include "model/revisioned/revisioned_int.h"

enum {
	MAX_BYTES = 1 << 22,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
load(const struct rev_att_json *att, struct catalog_db *db)
{
	const struct rev_upload_options options = { .db = db,
						    .gzip_level = 1,
						    .memory_bytes = MAX_BYTES };
	struct rev_att_edit edit = { 0 };
	uint8_t md5[REV_ATT_DIGEST_BYTES];
	struct rev_upload *upload;

	if (rev_upload_new(&options, &upload) != STATUS_OK)
		return;
	/* Less than a batch: nothing goes into a store, and there is none. */
	if (rev_att_inline(att, upload, NULL) == STATUS_OK &&
	    rev_upload_finish(upload, &edit, md5, NULL) == STATUS_OK &&
	    (edit.source != REV_ATT_DATA || edit.data.len != edit.att.encoded_length))
		abort();
	rev_upload_free(upload, true);
}

static void
check(const struct rev_att_json *att, struct catalog_db *db)
{
	const struct rev_att *a = &att->edit.att;

	if (!a->name.ptr || (a->name.len && a->name.ptr[0] == '_') ||
	    a->type.len > REV_ATT_TYPE_BYTES || memchr(a->type.ptr, '\n', a->type.len))
		abort();
	(void)rev_att_type_in(a->type, STR("text/*, application/*"));
	if (att->kind == REV_ATT_KIND_INLINE)
		load(att, db);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct catalog_db *db;
	struct arena *arena = arena_new(MAX_BYTES);
	struct rev_att_json *atts;
	struct err err = { 0 };
	enum status status;
	size_t count;

	if (!db) {
		const struct catalog_db from = { .name = STR("db"), .number = 1 };

		db = catalog_db_new(&from);
	}
	if (!arena || !db)
		return 0;
	status = rev_atts_parse(str_of(data, size), arena, &atts, &count, &err);
	for (size_t i = 0; status == STATUS_OK && i < count; i++)
		check(&atts[i], db);
	if (status != STATUS_OK && !err.text[0])
		abort();
	arena_free(arena);
	return 0;
}
