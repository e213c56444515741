/* What the catalog has to know of revisioned databases. */
#include "base/quote.h"
#include "index/engine/update.h"
#include "index/json/form.h"
#include "model/revisioned/indexed_docs.h"
#include "kv/keyspace.h"
#include "model/revisioned/kind_int.h"
#include "model/revisioned/revisioned_int.h"

#include "model/revisioned/verify.h"
#include "model/revisioned/viewed_docs.h"

/* Asks for the newest change. */
static enum status
rev_newest_read(struct kv_tx *tx, uint64_t number, struct kv_future **ret)
{
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;
	const struct kv_range_options options = { .limit = 1,
						  .reverse = true,
						  .mode = KV_SNAPSHOT };

	tuple_put_u64(&lo, number);
	tuple_put_u64(&lo, REV_SUBSPACE_CHANGES);
	buf_append_buf(&hi, &lo);
	buf_append_byte(&hi, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&lo));
	TRY(catalog_key_status(&hi));
	*ret = kv_get_range(tx, buf_str(&lo), buf_str(&hi), &options);
	return STATUS_OK;
}

/* (P, CHANGES, incarnation, stamp) */
static enum status
rev_newest_parse(struct str key, struct catalog_seq *ret)
{
	struct tuple_reader r = tuple_reader(key);
	uint64_t number, space, incarnation;
	const uint8_t *stamp;

	TRY(tuple_next_u64(&r, &number));
	TRY(tuple_next_u64(&r, &space));
	TRY(tuple_next_u64(&r, &incarnation));
	TRY(tuple_next_versionstamp(&r, &stamp));
	if (incarnation > UINT8_MAX)
		return STATUS_CORRUPT;
	ret->bytes[0] = (uint8_t)incarnation;
	memcpy(ret->bytes + 1, stamp, KV_VERSIONSTAMP_BYTES);
	return STATUS_OK;
}

/* ---- The table ---- */

static enum status
rev_check_name(struct str name, struct err *err)
{
	if (rev_db_name_valid(name))
		return STATUS_OK;
	return err_set(err, STATUS_INVALID,
		       "Name: '%s'. Only lowercase characters (a-z), digits (0-9), and "
		       "any of the characters _, $, (, ), +, -, and / are allowed. Must "
		       "begin with a letter.",
		       QUOTE_SHOW(name));
}

static enum status
rev_check_options(const uint64_t options[CATALOG_OPTIONS])
{
	uint64_t scheme = options[REV_OPTION_SCHEME];
	uint64_t limit = options[REV_OPTION_REVS_LIMIT];

	if ((scheme != REV_SCHEME_EXPLODED && scheme != REV_SCHEME_PACKED) || limit < 1 ||
	    limit > REV_LIMIT_MAX || options[REV_OPTION_PARTITIONED] > 1)
		return STATUS_CORRUPT;
	return STATUS_OK;
}

static enum status
rev_watch_key(struct str prefix, struct buf *key)
{
	const struct catalog_db db = { .prefix = prefix };

	rev_key_named(key, &db, REV_SUBSPACE_STATS, REV_STAT_CHANGED);
	return catalog_key_status(key);
}

static enum status
rev_wake(struct kv_tx *tx, struct str prefix)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	const struct catalog_db db = { .prefix = prefix };

	return rev_stat_changed(tx, &db, 0, &key);
}

static bool
rev_is_document(struct str key)
{
	struct tuple_reader r = tuple_reader(key);
	uint64_t space;

	return tuple_next_u64(&r, &space) == STATUS_OK && space == REV_SUBSPACE_CHANGES;
}

/* Builds of indexes that were under way go on here. */
static enum status
rev_move_arrive(struct kv_tx *tx, const struct catalog_db *db, struct err *err)
{
	return index_work_survey(tx, db, err);
}

static const struct catalog_tally_list rev_lists[REV_LISTS] = {
	[REV_LIST_DOCS] = {
		.space = REV_SUBSPACE_ALL_DOCS,
		.counters = REV_SUBSPACE_TALLIES,
		.totals = REV_SUBSPACE_STATS,
		.total_names = { "doc_count" },
	},
	[REV_LIST_CHANGES] = {
		.space = REV_SUBSPACE_CHANGES,
		.counters = REV_SUBSPACE_TALLIES,
		.totals = REV_SUBSPACE_STATS,
		.total_names = { "doc_count", "doc_del_count" },
	},
	[REV_LIST_ENTRIES] = {
		.space = INDEX_SPACE_ENTRIES,
		.counters = REV_SUBSPACE_TALLIES,
		.totals = REV_SUBSPACE_STATS,
		.total_names = { INDEX_STAT_ENTRIES },
	},
};

const struct catalog_kind rev_kind = {
	.number = CATALOG_KIND_REVISIONED,
	.name = "revisioned",
	.space = CATALOG_SPACE_COUCH,
	.lists = rev_lists,
	.lists_count = REV_LISTS,
	.check_name = rev_check_name,
	.check_options = rev_check_options,
	.extend = index_set_load,
	.extension_free = index_set_free,
	.index_form = &index_json_form,
	.watch_key = rev_watch_key,
	.wake = rev_wake,
	.newest_read = rev_newest_read,
	.newest_parse = rev_newest_parse,
	.summary = rev_summary,
	.space_name = rev_space_name,
	.draw_key = rev_draw_key,
	.draw_value = rev_draw_value,
	.inspect = rev_inspect,
	.dump = rev_dump,
	.verify = rev_verify,
	.root_part = KV_ROOT_UPLOADS,
	.verify_root = rev_verify_upload,
	.move_prepare = rev_uploads_clear,
	.move_arrive = rev_move_arrive,
	.is_document = rev_is_document,
};

void
rev_register(void)
{
	catalog_kind_register(&rev_kind);
	index_documents_register(&rev_indexed_documents);
	view_documents_register(&rev_viewed_documents);
}
