/*
 * The dump of a collection, as canonical Extended JSON. The first line describes the collection:
 *
 *     {"frond":"collection","format":1,"scheme":"packed","options":{…}}
 *
 * and each other line is a document, which begins with its `_id`.
 */
#include "bson/json.h"
#include "model/plain/plain_int.h"

enum {
	DUMP_ARENA_BYTES = 128 * 1024 * 1024, /* of one document, and what it is read with */
};

static enum status
dump_header(const struct catalog_dump *dump)
{
	bool exploded = plain_scheme_of(dump->db) == PLAIN_EXPLODED;

	buf_printf(dump->out,
		   "{\"frond\":\"collection\",\"format\":%d,\"scheme\":\"%s\",\"options\":",
		   PLAIN_DUMP_FORMAT, exploded ? "exploded" : "packed");
	bson_json_write(dump->out, plain_options_of(dump->db), BSON_JSON_CANONICAL);
	buf_append_cstr(dump->out, "}\n");
	TRY(buf_status(dump->out));
	return dump->ready(dump->arg, dump->err);
}

static enum status
dump_documents(const struct catalog_dump *dump, struct plain_scan *scan, struct arena *arena)
{
	enum status status;
	struct str doc;

	while ((status = plain_scan_next(scan, arena, &doc)) == STATUS_OK) {
		bson_json_write(dump->out, doc, BSON_JSON_CANONICAL);
		TRY(buf_status(dump->out));
		TRY(dump->end_line(dump->arg, dump->err));
		arena_clear(arena);
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status
plain_dump(const struct catalog_dump *dump)
{
	const struct plain_range all = { .mode = KV_SNAPSHOT };
	struct arena *arena = arena_new(DUMP_ARENA_BYTES);
	struct plain_scan scan = { 0 };
	enum status status;
	struct plain p;

	if (!arena)
		return STATUS_NOMEM;
	plain_init(&p, dump->tx, dump->db, 0, dump->err);
	status = dump_header(dump);
	if (status == STATUS_OK)
		status = plain_scan_open(&scan, &p, &all);
	if (status == STATUS_OK)
		status = dump_documents(dump, &scan, arena);
	plain_scan_close(&scan);
	arena_free(arena);
	return status;
}
