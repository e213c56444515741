/* The check of one revisioned database: its settings and counters, and the order of all parts. */
#include "model/revisioned/record.h"
#include "model/revisioned/verify.h"

#include "base/utf8.h"
#include "index/engine/update.h"
#include "kv/keyspace.h"
#include "model/revisioned/verify_int.h"

enum {
	COUNTER_BYTES = 8,
};

/* ---- CONFIG and STATS ---- */

static enum status
verify_config(struct catalog_verify *v)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };

	TRY(catalog_verify_cursor_open(v, &c, REV_SUBSPACE_CONFIG));
	while (!c.done) {
		struct tuple_reader r = tuple_reader(c.tail);
		struct str name;

		if (!catalog_verify_text_next(&r, TUPLE_STRING, &name) || r.rest.len)
			catalog_verify_found(v, CATALOG_FINDING_KEY, c.pair.key,
					     "not the name of a setting");
		else if (utf8_valid_prefix(c.pair.value) < c.pair.value.len)
			catalog_verify_found(v, CATALOG_FINDING_VALUE, c.pair.key, "not a text");
		TRY(catalog_verify_cursor_next(v, &c));
	}
	return STATUS_OK;
}

/* A counter's value; ptr NULL if it is absent. v->key becomes its key. */
static enum status
verify_read_stat(struct catalog_verify *v, struct str name, struct kv_future **ret_future,
		 struct str *ret)
{
	rev_key_named(&v->key, v->db, REV_SUBSPACE_STATS, name);
	TRY(catalog_key_status(&v->key));
	TRY(catalog_verify_get(v, buf_str(&v->key), ret_future));
	if (!kv_future_value(*ret_future, ret))
		*ret = (struct str){ NULL, 0 };
	return STATUS_OK;
}

static enum status
verify_counter(struct catalog_verify *v, struct str name, uint64_t count)
{
	struct kv_future *f;
	struct str value;
	uint64_t n = 0;

	TRY(verify_read_stat(v, name, &f, &value));
	for (size_t i = 0; i < value.len && i < COUNTER_BYTES; i++)
		n |= (uint64_t)(uint8_t)value.ptr[i] << (8 * i);
	if (value.ptr && value.len != COUNTER_BYTES)
		catalog_verify_found(v, CATALOG_FINDING_VALUE, buf_str(&v->key), "not a counter");
	else if (n != count)
		catalog_verify_found(v, REV_FINDING_COUNTER, buf_str(&v->key),
				     "the counter says %lld, and there are %llu", (long long)n,
				     (unsigned long long)count);
	kv_future_free(f);
	return STATUS_OK;
}

/* The Sequence of the newest purge, which moves the watched key as a change does. */
static enum status
verify_purged(struct catalog_verify *v)
{
	struct kv_future *f;
	struct catalog_seq seq;
	struct str value;

	TRY(verify_read_stat(v, REV_STAT_PURGED, &f, &value));
	if (value.len == sizeof(seq.bytes)) {
		memcpy(seq.bytes, value.ptr, sizeof(seq.bytes));
		rev_verify_of(v)->purged = seq;
		if (catalog_seq_cmp(&seq, &rev_verify_of(v)->newest) > 0)
			rev_verify_of(v)->newest = seq;
	} else if (value.ptr) {
		catalog_verify_found(v, CATALOG_FINDING_VALUE, buf_str(&v->key), "not a Sequence");
	}
	kv_future_free(f);
	return STATUS_OK;
}

/* The key that feeds watch has the versionstamp of the newest change or purge. */
static enum status
verify_changed(struct catalog_verify *v)
{
	static const struct catalog_seq none;
	bool any = catalog_seq_cmp(&rev_verify_of(v)->newest, &none) != 0;
	struct kv_future *f;
	struct str value;

	TRY(verify_read_stat(v, REV_STAT_CHANGED, &f, &value));
	if (value.ptr ? !str_eq(value,
				str_of(rev_verify_of(v)->newest.bytes + 1, KV_VERSIONSTAMP_BYTES))
		      : any)
		catalog_verify_found(v, REV_FINDING_COUNTER, buf_str(&v->key),
				     "not the versionstamp of the newest change");
	kv_future_free(f);
	return STATUS_OK;
}

static enum status
verify_stats(struct catalog_verify *v)
{
	static const struct str names[] = {
		{ "doc_count", 9 }, { "doc_del_count", 13 },    { "changed", 7 },  { "purged", 6 },
		{ "purges", 6 },    { INDEX_STAT_ENTRIES, 11 }, { "external", 8 }, { "active", 6 },
	};
	const size_t count = rev_db_is_partitioned(v->db) ? 8 : 6;
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };

	if (!v->held) {
		TRY(verify_counter(v, REV_STAT_DOCS, rev_verify_of(v)->live));
		TRY(verify_counter(v, REV_STAT_DELETED, rev_verify_of(v)->deleted));
	}
	if (rev_db_is_partitioned(v->db) && !v->held) {
		TRY(verify_counter(v, REV_STAT_EXTERNAL, rev_verify_of(v)->sizes.external));
		TRY(verify_counter(v, REV_STAT_ACTIVE, rev_verify_of(v)->sizes.active));
	}
	TRY(verify_purged(v));
	TRY(verify_changed(v));
	TRY(verify_purges(v));
	TRY(verify_counter(v, REV_STAT_PURGES, rev_verify_of(v)->purges));
	TRY(catalog_verify_cursor_open(v, &c, REV_SUBSPACE_STATS));
	while (!c.done) {
		bool known = false;

		for (size_t i = 0; i < count; i++) {
			rev_key_named(&v->key, v->db, REV_SUBSPACE_STATS, names[i]);
			TRY(catalog_key_status(&v->key));
			known = known || str_eq(c.pair.key, buf_str(&v->key));
		}
		if (!known)
			catalog_verify_found(v, CATALOG_FINDING_KEY, c.pair.key,
					     "there is no such counter");
		TRY(catalog_verify_cursor_next(v, &c));
	}
	return STATUS_OK;
}

/* The counter of the entries of all indexes. Which there have to be, verify_indexes() knows. */
static enum status
verify_entry_count(struct catalog_verify *v)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	unsigned failures = 0;
	enum status status;
	uint64_t count;

	rev_key_space(&begin, v->db, REV_SUBSPACE_ENTRIES);
	rev_key_space(&end, v->db, REV_SUBSPACE_ENTRIES);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&begin));
	TRY(catalog_key_status(&end));
	while ((status = catalog_keys_count(v->tx, buf_str(&begin), buf_str(&end), &count)) !=
	       STATUS_OK)
		TRY(catalog_verify_again(v, &failures, status));
	return verify_counter(v, STR(INDEX_STAT_ENTRIES), count);
}

/* ---- One database ---- */

static bool
subspace_is_known(uint64_t space, bool partitioned)
{
	switch (space) {
	case REV_SUBSPACE_ALL_DOCS:
	case REV_SUBSPACE_CHANGES:
	case REV_SUBSPACE_REVISIONS:
	case REV_SUBSPACE_DOCUMENTS:
	case REV_SUBSPACE_LOCAL:
	case REV_SUBSPACE_ATTACHMENTS:
	case REV_SUBSPACE_CONFIG:
	case REV_SUBSPACE_STATS:
	case REV_SUBSPACE_INDEXES:
	case REV_SUBSPACE_TALLIES:
	case REV_SUBSPACE_PURGES:
	case REV_SUBSPACE_ENTRIES:
	case REV_SUBSPACE_VIEWS:
		return true;
	case REV_SUBSPACE_PARTITIONS:
		return partitioned;
	default:
		return false;
	}
}

/* Keys of the database that are in no subspace; those are jumped over. */
static enum status
verify_spaces(struct catalog_verify *v)
{
	AUTO(buf_release) struct buf at = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	enum status status;

	buf_append_str(&at, v->db->prefix);
	TRY(catalog_key_status(&at));
	TRY(tuple_prefix_end(v->db->prefix, &end));
	while ((status = catalog_verify_first_key(v, buf_str(&at), buf_str(&end), &key)) ==
	       STATUS_OK) {
		struct tuple_reader r = tuple_reader(str_skip(buf_str(&key), v->db->prefix.len));
		uint64_t space;

		buf_clear(&at);
		if (tuple_next_u64(&r, &space) == STATUS_OK &&
		    subspace_is_known(space, rev_db_is_partitioned(v->db))) {
			TRY(tuple_prefix_end(str_of(key.ptr, key.len - r.rest.len), &at));
		} else {
			catalog_verify_found(v, CATALOG_FINDING_KEY, buf_str(&key),
					     "the database has no such part");
			buf_append_buf(&at, &key);
			buf_append_byte(&at, CATALOG_KEY_NEXT);
		}
		TRY(buf_status(&at));
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- In ranges ---- */

/* What the change that is the last one now has to say, in place of all changes. */
static enum status
verify_stats_now(struct catalog_verify *v)
{
	struct rev_verify own = { 0 };

	v->own = &own;
	TRY(verify_newest_change(v));
	TRY(verify_config(v));
	return verify_stats(v);
}

static enum status
verify_locals_now(struct catalog_verify *v)
{
	struct rev_verify own = { 0 };

	v->own = &own;
	return verify_locals(v);
}

static enum status
verify_views_now(struct catalog_verify *v)
{
	struct rev_verify own = { 0 };

	v->own = &own;
	return verify_views(v);
}

/*
 * Counters of documents are the sums of those of ranges, and each of these is compared with the
 * keys of its range. What refers to data is not counted, nor what is in a partition: that takes all
 * documents at one version.
 */
static enum status
verify_in_ranges(struct catalog_verify *v)
{
	struct verify_data data = { 0 };

	TRY(catalog_verify_ranges(v, verify_documents_range, NULL));
	TRY(catalog_verify_ranges(v, verify_changes_range, NULL));
	TRY(catalog_verify_ranges(v, verify_attachments_range, &data));
	TRY(catalog_verify_tallies_in_ranges(v));
	TRY(catalog_verify_once(v, verify_stats_now, "settings and counters"));
	TRY(catalog_verify_once(v, verify_locals_now, "local documents"));
	TRY(catalog_verify_once(v, verify_entry_count, "the number of entries of indexes"));
	TRY(verify_indexes_in_ranges(v));
	TRY(catalog_verify_once(v, verify_views_now, "views"));
	return catalog_verify_once(v, verify_spaces, "the list of parts");
}

enum status
rev_verify(struct catalog_verify *v)
{
	struct rev_verify own = { 0 };

	if (catalog_verify_needs_ranges(v))
		return verify_in_ranges(v);
	v->own = &own;
	TRY(verify_documents(v));
	TRY(verify_changes(v));
	TRY(verify_attachments(v));
	TRY(verify_locals(v));
	TRY(verify_config(v));
	TRY(verify_stats(v));
	TRY(verify_entry_count(v));
	TRY(verify_indexes(v));
	TRY(verify_views(v));
	TRY(catalog_verify_tallies(v));
	return verify_spaces(v);
}

/* ---- What lies outside of the databases ---- */

/* (ROOT, 3, P, id): when an upload has begun and given its last sign of life. */
void
rev_verify_upload(struct catalog_verify *v, struct tuple_reader key, const struct kv_pair *pair)
{
	struct rev_upload_record record;
	struct err err = { 0 };
	struct tuple_elem id;
	enum status status;
	uint64_t number;

	status = rev_upload_record_parse(pair->value, &record, &err);
	if (tuple_next_u64(&key, &number) != STATUS_OK || tuple_next(&key, &id) != STATUS_OK ||
	    id.kind != TUPLE_UUID || key.rest.len)
		catalog_verify_found(v, CATALOG_FINDING_KEY, pair->key, "not an upload's id");
	else if (status != STATUS_OK)
		catalog_verify_unreadable(v, status, &err, pair->key, "not the times of an upload");
}
