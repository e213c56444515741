/*
 * The dump of a collection, as canonical Extended JSON. The first line describes the collection:
 *
 *     {"frond":"collection","format":2,"scheme":"packed","options":{…},"indexes":[{…},…]}
 *
 * where the format is 1 and `indexes` is not there if it has none, and 3 if one has a collation.
 * Each other line is a document, which begins with its `_id`.
 */
#include "bson/json.h"
#include "bson/order.h"
#include "model/plain/index.h"
#include "model/plain/plain_int.h"
#include "model/plain/salvage.h"

enum {
	DUMP_ARENA_BYTES = 128 * 1024 * 1024, /* of one document, and what it is read with */
	DUMP_FORMAT_BARE = 1,                 /* without indexes */
	ADOPT_PAIRS = 100,                    /* that are looked at */
	DUMP_DRAWN_BYTES = 16 * KV_LIMIT_KEY_BYTES,
	DUMP_FORMAT_BYTES = 2, /* with indexes that order texts by their bytes */
};

/* The oldest format that has what the indexes are. */
static int
dump_format(const struct index_set *set)
{
	int format = DUMP_FORMAT_BARE;

	for (size_t i = 0; set && i < set->count; i++) {
		if (!index_def_is_live(&set->defs[i]))
			continue;
		if (set->defs[i].collation.len)
			return PLAIN_DUMP_FORMAT;
		format = DUMP_FORMAT_BYTES;
	}
	return format;
}

/* One that has failed, or is being dropped, is none of them. */
static void
dump_indexes(const struct catalog_dump *dump, const struct index_set *set)
{
	bool any = false;

	for (size_t i = 0; i < set->count; i++) {
		if (!index_def_is_live(&set->defs[i]))
			continue;
		buf_append_cstr(dump->out, any ? "," : ",\"indexes\":[");
		bson_json_write(dump->out, set->defs[i].spec, BSON_JSON_CANONICAL);
		any = true;
	}
	if (any)
		buf_append_byte(dump->out, ']');
}

static enum status
dump_header(const struct catalog_dump *dump)
{
	bool exploded = plain_scheme_of(dump->db) == PLAIN_EXPLODED;
	const struct index_set *set = index_set_of(dump->db);

	buf_printf(dump->out,
		   "{\"frond\":\"collection\",\"format\":%d,\"scheme\":\"%s\",\"options\":",
		   dump_format(set), exploded ? "exploded" : "packed");
	bson_json_write(dump->out, plain_options_of(dump->db), BSON_JSON_CANONICAL);
	if (set)
		dump_indexes(dump, set);
	buf_append_cstr(dump->out, "}\n");
	TRY(buf_status(dump->out));
	return dump->ready(dump->arg, dump->err);
}

enum status
plain_dump_header_read(struct str line, struct buf *room, struct plain_dump_header *ret,
		       struct err *err)
{
	struct bson_value v;
	int64_t format = 0;
	struct str header;

	TRY(bson_json_read(line, room, err));
	header = buf_str(room);
	if (!bson_find(header, STR("frond"), &v) || v.type != BSON_STRING ||
	    !str_eq(bson_text(&v), STR("collection")))
		return err_set(err, STATUS_INVALID, "this is no dump of a collection");
	if (!bson_find(header, STR("format"), &v) || !bson_to_int64(&v, &format) || format < 1)
		return err_set(err, STATUS_INVALID, "\"format\" is a whole number");
	if (format > PLAIN_DUMP_FORMAT)
		return err_set(err, STATUS_NEWER, "a newer frond has written this dump");
	*ret = (struct plain_dump_header){ .options = BSON_EMPTY, .indexes = BSON_EMPTY };
	if (bson_find(header, STR("scheme"), &v) && v.type == BSON_STRING &&
	    str_eq(bson_text(&v), STR("exploded")))
		ret->scheme = PLAIN_EXPLODED;
	if (bson_find(header, STR("options"), &v) && v.type == BSON_DOCUMENT)
		ret->options = bson_text(&v);
	if (bson_find(header, STR("indexes"), &v) && v.type == BSON_ARRAY)
		ret->indexes = bson_text(&v);
	return STATUS_OK;
}

/* The collection is empty, so its indexes have nothing to be built of. */
static enum status
create_indexes(struct kv_tx *tx, const struct catalog_db *db, struct str indexes,
	       struct arena *arena, struct err *err)
{
	struct bson_element e;
	struct bson_iter i;

	for (bson_iter_begin(&i, indexes); bson_iter_read(&i, &e);) {
		struct bson_element earlier;
		struct bson_value name, other;
		struct bson_iter k;
		uint64_t number;

		if (e.value.type != BSON_DOCUMENT ||
		    !bson_find(bson_text(&e.value), STR("name"), &name) || name.type != BSON_STRING)
			return err_set(err, STATUS_INVALID,
				       "an index is a document with a name and a key");
		bson_iter_begin(&k, indexes);
		while (bson_iter_read(&k, &earlier) && earlier.bytes.ptr != e.bytes.ptr)
			if (bson_find(bson_text(&earlier.value), STR("name"), &other) &&
			    bson_equals(&other, &name))
				return err_set(err, STATUS_INVALID,
					       "there are two indexes of one name");
		TRY(plain_index_create(tx, db, bson_text(&e.value), arena, &number, err));
	}
	return STATUS_OK;
}

enum status
plain_dump_create(struct kv_tx *tx, struct str name, const struct plain_dump_header *header,
		  struct arena *arena, struct err *err)
{
	struct catalog_db *db;
	enum status status;

	TRY(plain_create(tx, name, header->scheme, header->options, err));
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_MONGO, name, &db, err));
	status = create_indexes(tx, db, header->indexes, arena, err);
	catalog_db_unref(db);
	return status;
}

/* Tells of a document that cannot be read. */
static void
tell_broken(const struct catalog_dump *dump, const struct catalog_broken *broken,
	    const struct plain_scan *scan, enum status status)
{
	AUTO(buf_release) struct buf drawn = BUF_INIT(DUMP_DRAWN_BYTES);

	tuple_draw(plain_scan_place(scan), &drawn);
	broken->tell(broken->arg, buf_str(&drawn),
		     dump->err->text[0] ? dump->err->text : status_name(status));
	*dump->err = (struct err){ 0 };
}

/* `broken`: is told of what cannot be read, and the dump goes on; NULL: it ends there. */
static enum status
dump_documents(const struct catalog_dump *dump, const struct catalog_broken *broken,
	       struct plain_scan *scan, struct arena *arena)
{
	for (;;) {
		struct str doc;
		enum status status;

		arena_clear(arena);
		status = plain_scan_next(scan, arena, &doc);
		if (status == STATUS_NOT_FOUND)
			return STATUS_OK;
		if (broken && (status == STATUS_CORRUPT || status == STATUS_NEWER)) {
			tell_broken(dump, broken, scan, status);
			continue;
		}
		TRY(status);
		bson_json_write(dump->out, doc, BSON_JSON_CANONICAL);
		TRY(buf_status(dump->out));
		TRY(dump->end_line(dump->arg, dump->err));
	}
}

static enum status
dump_collection(const struct catalog_dump *dump, const struct catalog_broken *broken)
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
		status = dump_documents(dump, broken, &scan, arena);
	plain_scan_close(&scan);
	arena_free(arena);
	return status;
}

enum status
plain_dump(const struct catalog_dump *dump)
{
	return dump_collection(dump, NULL);
}

/* ---- What is left of a damaged collection ---- */

/* Records that have keys below them are exploded; the first few tell. */
static enum status
plain_adopt(struct kv_tx *tx, const struct catalog_db *db, uint64_t options[CATALOG_OPTIONS],
	    const char **ret_made, struct err *err)
{
	const struct kv_range_options few = { .limit = ADOPT_PAIRS, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct kv_range range;
	size_t record_bytes;

	(void)err;
	*ret_made = NULL;
	plain_key_space(&begin, db, PLAIN_SPACE_RECORDS);
	TRY(catalog_key_status(&begin));
	TRY(plain_key_end(buf_str(&begin), &end));
	f = kv_get_range(tx, buf_str(&begin), buf_str(&end), &few);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	options[PLAIN_OPTION_SCHEME] = PLAIN_PACKED;
	for (size_t i = 0; i < range.count; i++)
		if (plain_key_record_bytes(db, range.pairs[i].key, &record_bytes) == STATUS_OK &&
		    record_bytes < range.pairs[i].key.len)
			options[PLAIN_OPTION_SCHEME] = PLAIN_EXPLODED;
	return STATUS_OK;
}

const struct catalog_salvage_kind plain_salvage = {
	.kind = &plain_kind,
	.own_space = PLAIN_SPACE_RECORDS,
	.adopt = plain_adopt,
	.dump = dump_collection,
};
