/* What the catalog has to know of collections. */
#include "base/quote.h"
#include "base/utf8.h"
#include "catalog/check.h"
#include "index/bson/form.h"
#include "index/engine/build.h"
#include "kv/keyspace.h"
#include "model/plain/plain_int.h"

/* "db.collection": no character in the database's part that MongoDB does not allow. */
static enum status
plain_check_name(struct str name, struct err *err)
{
	const char *dot = name.len ? memchr(name.ptr, '.', name.len) : NULL;
	size_t db = dot ? (size_t)(dot - name.ptr) : 0;
	bool good = db && db <= PLAIN_DB_NAME_BYTES && db + 1 < name.len &&
		    name.len <= CATALOG_NAME_BYTES && name.ptr[db + 1] != '.' &&
		    utf8_valid_prefix(name) == name.len;

	for (size_t i = 0; good && i < name.len; i++)
		good = name.ptr[i] && (i >= db || !strchr("/\\ \"$*<>:|?", name.ptr[i]));
	if (good && !memchr(name.ptr + db, '$', name.len - db))
		return STATUS_OK;
	return err_set(err, STATUS_INVALID,
		       "no collection can be called \"%s\": a name is a database's of up to %d "
		       "bytes, a dot, and a collection's, %d bytes in all",
		       QUOTE_SHOW(name), PLAIN_DB_NAME_BYTES, CATALOG_NAME_BYTES);
}

static enum status
plain_check_options(const uint64_t options[CATALOG_OPTIONS])
{
	return options[PLAIN_OPTION_SCHEME] <= PLAIN_EXPLODED ? STATUS_OK : STATUS_CORRUPT;
}

/* Asks for the newest event. */
static enum status
plain_newest_read(struct kv_tx *tx, uint64_t number, struct kv_future **ret)
{
	const struct kv_range_options options = { .limit = 1,
						  .reverse = true,
						  .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	tuple_put_u64(&begin, number);
	tuple_put_u64(&begin, PLAIN_SPACE_LOG);
	TRY(catalog_key_status(&begin));
	TRY(plain_key_end(buf_str(&begin), &end));
	*ret = kv_get_range(tx, buf_str(&begin), buf_str(&end), &options);
	return STATUS_OK;
}

static enum status
plain_newest_parse(struct str key, struct catalog_seq *ret)
{
	struct tuple_reader r = tuple_reader(key);
	uint64_t number, space;

	TRY(tuple_next_u64(&r, &number));
	TRY(tuple_next_u64(&r, &space));
	return plain_seq_parse(r.rest, ret);
}

static const char *
plain_summary(const struct catalog_db *db)
{
	return plain_scheme_of(db) == PLAIN_EXPLODED ? "exploded collection" : "packed collection";
}

static bool
plain_is_document(struct str key)
{
	struct tuple_reader r = tuple_reader(key);
	struct tuple_elem e;
	uint64_t space;

	return tuple_next_u64(&r, &space) == STATUS_OK && space == PLAIN_SPACE_RECORDS &&
	       tuple_next(&r, &e) == STATUS_OK && !r.rest.len;
}

/* Builds of indexes that were under way go on here. */
static enum status
plain_move_arrive(struct kv_tx *tx, const struct catalog_db *db, struct err *err)
{
	return index_work_survey(tx, db, err);
}

static const struct catalog_tally_list plain_lists[] = {
	[PLAIN_LIST_ENTRIES] = {
		.space = INDEX_SPACE_ENTRIES,
		.counters = PLAIN_SPACE_TALLIES,
		.totals = PLAIN_SPACE_STATS,
		.total_names = { INDEX_STAT_ENTRIES },
	},
};

const struct catalog_kind plain_kind = {
	.number = CATALOG_KIND_PLAIN,
	.name = "collection",
	.space = CATALOG_SPACE_MONGO,
	.lists = plain_lists,
	.lists_count = sizeof(plain_lists) / sizeof(plain_lists[0]),
	.check_name = plain_check_name,
	.check_options = plain_check_options,
	.extend = plain_extend,
	.extension_free = plain_extension_free,
	.extension_indexes = plain_extension_indexes,
	.index_form = &index_bson_form,
	.kept_ms = PLAIN_KEPT_MS,
	.kept_spaces = { PLAIN_SPACE_LOG, PLAIN_SPACE_IMAGES },
	.watch_key = plain_changed_key,
	.wake = plain_changed_write,
	.newest_read = plain_newest_read,
	.newest_parse = plain_newest_parse,
	.summary = plain_summary,
	.space_name = plain_space_name,
	.draw_pair = plain_draw_pair,
	.inspect = plain_inspect,
	.dump = plain_dump,
	.verify = plain_verify,
	.move_arrive = plain_move_arrive,
	.is_document = plain_is_document,
};

void
plain_register(void)
{
	catalog_kind_register(&plain_kind);
	index_documents_register(&plain_indexed_documents);
	catalog_verify_register(KV_ROOT_NOTICES, plain_notices_verify);
}
