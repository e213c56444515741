#include <assert.h>

#include "catalog/format.h"
#include "loop/step.h"
#include "model/revisioned/revisioned_int.h"

/* Formats of a branch. Stored: never renumber. */
enum {
	BRANCH_FORMAT = 1,
	/* The body's text lies in chunks, and the last element names it. An older frond refuses
	 * such a branch, since it would not clear the chunks. */
	BRANCH_FORMAT_TEXT = 2,
	/*
	 * In a partitioned database. Behind the ancestors always come: a boolean or null, the name
	 * of the body's text or null, and the sizes of the head. An older frond does not open the
	 * database.
	 */
	BRANCH_FORMAT_SIZES = 3,
};

enum status
rev_branches_bounds(struct buf *key, const struct catalog_db *db, struct str id,
		    size_t *ret_prefix_len)
{
	size_t prefix_len;

	rev_key_named(key, db, REV_SUBSPACE_REVISIONS, id);
	prefix_len = key->len;
	if (buf_reserve(key, prefix_len + 1)) {
		buf_append(key, key->ptr, prefix_len);
		buf_append_byte(key, CATALOG_KEY_LAST);
	}
	*ret_prefix_len = prefix_len;
	return catalog_key_status(key);
}

/*
 * All branches are read forwards, which RocksDB does several times as fast. The best ones alone can
 * only be read from the end.
 */
static struct kv_range_options
branches_options(size_t limit, enum kv_read mode)
{
	return (struct kv_range_options){ .limit = limit, .reverse = limit > 0, .mode = mode };
}

enum status
rev_branches_read(struct kv_tx *tx, const struct catalog_db *db, struct str id, size_t limit,
		  enum kv_read mode, struct buf *key, struct kv_future **ret)
{
	const struct kv_range_options options = branches_options(limit, mode);
	size_t prefix_len;

	TRY(rev_branches_bounds(key, db, id, &prefix_len));
	*ret = kv_get_range(tx, str_of(key->ptr, prefix_len),
			    str_of(key->ptr + prefix_len, key->len - prefix_len), &options);
	return STATUS_OK;
}

/* The name of a text in chunks. */
static enum status
branch_next_text_id(struct tuple_reader *v, struct rev_branch_record *row)
{
	struct tuple_elem e;

	if (tuple_next(v, &e) != STATUS_OK || e.kind != TUPLE_UUID)
		return STATUS_CORRUPT;
	memcpy(row->text_id, e.raw.ptr, sizeof(row->text_id));
	row->has_text = true;
	return STATUS_OK;
}

/* Takes a null that stands for an element which a branch does not have. */
static bool
branch_next_is_null(struct tuple_reader *v)
{
	struct tuple_reader peek = *v;
	struct tuple_elem e;

	if (tuple_next(&peek, &e) != STATUS_OK || e.kind != TUPLE_NULL)
		return false;
	*v = peek;
	return true;
}

static enum status
branch_next_flag(struct tuple_reader *v, struct rev_branch_record *row)
{
	TRY(tuple_next_bool(v, &row->has_atts));
	row->has_one_key = !row->has_atts;
	return STATUS_OK;
}

/* What comes behind the ancestors in BRANCH_FORMAT_SIZES. */
static enum status
branch_next_sizes(struct tuple_reader *v, struct rev_branch_record *row)
{
	if (!branch_next_is_null(v))
		TRY(branch_next_flag(v, row));
	if (!branch_next_is_null(v))
		TRY(branch_next_text_id(v, row));
	TRY(tuple_next_u64(v, &row->sizes.external));
	TRY(tuple_next_u64(v, &row->sizes.active));
	row->has_sizes = true;
	/* A branch with a text always says whether there are attachments. */
	if (row->has_text && !row->has_atts && !row->has_one_key)
		return STATUS_CORRUPT;
	return v->rest.len ? STATUS_CORRUPT : STATUS_OK;
}

enum status
rev_branch_record_parse(struct str tail, struct str value, struct arena *arena,
			struct rev_branch_record *ret, struct err *err)
{
	struct tuple_reader k = tuple_reader(tail);
	struct tuple_reader v = tuple_reader(value);
	struct tuple_reader seq, ancestors;
	struct tuple_elem e;
	bool not_deleted;
	uint64_t format;

	*ret = (struct rev_branch_record){ 0 };
	TRY(tuple_next_bool(&k, &not_deleted));
	ret->deleted = !not_deleted;
	TRY(tuple_next_u64(&k, &ret->rev.pos));
	TRY(catalog_next_text(&k, TUPLE_BYTES, arena, false, &ret->rev.hash));
	if (k.rest.len)
		return STATUS_CORRUPT;

	TRY(catalog_format_next(&v, "branch of a document", BRANCH_FORMAT_SIZES, &format, err));
	if (tuple_next(&v, &e) != STATUS_OK)
		return STATUS_CORRUPT;
	if (e.kind == TUPLE_NESTED) {
		const uint8_t *stamp;
		uint64_t incarnation;

		seq = tuple_reader_nested(&e);
		TRY(tuple_next_u64(&seq, &incarnation));
		TRY(tuple_next_versionstamp(&seq, &stamp));
		TRY(tuple_next_u64(&v, &ret->branch_count));
		if (incarnation > UINT8_MAX)
			return STATUS_CORRUPT;
		ret->winner = true;
		ret->seq.bytes[0] = (uint8_t)incarnation;
		memcpy(ret->seq.bytes + 1, stamp, KV_VERSIONSTAMP_BYTES);
	} else if (e.kind != TUPLE_NULL || tuple_next(&v, &e) != STATUS_OK ||
		   e.kind != TUPLE_NULL) {
		return STATUS_CORRUPT;
	}
	if (format == BRANCH_FORMAT)
		TRY(tuple_last_nested(&v, &ancestors));
	else
		TRY(tuple_next_nested(&v, &ancestors));
	ret->ancestors = ancestors.rest;
	if (format == BRANCH_FORMAT_SIZES)
		return branch_next_sizes(&v, ret);
	if (v.rest.len == 0)
		return format == BRANCH_FORMAT_TEXT ? STATUS_CORRUPT : STATUS_OK;
	TRY(branch_next_flag(&v, ret));
	if (format == BRANCH_FORMAT_TEXT)
		TRY(branch_next_text_id(&v, ret));
	return v.rest.len ? STATUS_CORRUPT : STATUS_OK;
}

enum status
rev_branch_ask(struct kv_tx *tx, const struct catalog_db *db, struct str id, struct rev_id rev,
	       bool deleted, struct buf *key, struct kv_future **ret)
{
	rev_key_rev(key, db, REV_SUBSPACE_REVISIONS, id, deleted, rev);
	TRY(catalog_key_status(key));
	*ret = kv_get(tx, buf_str(key), KV_READ);
	return STATUS_OK;
}

enum status
rev_branch_wait(struct kv_tx *tx, struct rev_id rev, bool deleted, struct kv_future *f,
		struct arena *arena, struct rev_branch_record *ret)
{
	AUTO(buf_release) struct buf tail = CATALOG_KEY_INIT;
	struct str value;

	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return STATUS_NOT_FOUND;
	/* The key was made from the revision, so its end is known: the flag, position, hash. */
	tuple_put_bool(&tail, !deleted);
	tuple_put_u64(&tail, rev.pos);
	tuple_put_bytes(&tail, rev.hash);
	TRY(buf_status(&tail));
	TRY(rev_branch_record_parse(buf_str(&tail), value, arena, ret, kv_tx_err(tx)));
	ret->rev = rev;
	return STATUS_OK;
}

static enum status
branches_append(struct kv_tx *tx, const struct kv_range *range, size_t prefix_len,
		struct arena *arena, struct rev_branch_records *rows, size_t *cap)
{
	for (size_t i = 0; i < range->count; i++) {
		const struct kv_pair *pair = &range->pairs[i];

		TRY(catalog_array_grow(arena, (void **)&rows->rows, sizeof(*rows->rows),
				       rows->count, cap));
		TRY(rev_branch_record_parse(str_skip(pair->key, prefix_len), pair->value, arena,
					    &rows->rows[rows->count], kv_tx_err(tx)));
		rows->count++;
		TRY(step_count(1));
	}
	return STATUS_OK;
}

/* Asks for what comes behind `last`, the range being [prefix, prefix FF) as in `bounds`. */
static struct kv_future *
branches_ask_further(struct kv_tx *tx, struct buf *bounds, size_t prefix_len, struct str last,
		     const struct kv_range_options *options)
{
	struct str end = str_of(bounds->ptr + prefix_len, prefix_len + 1);
	struct buf begin = BUF_INIT(KV_LIMIT_KEY_BYTES + 1);
	struct kv_future *f;

	if (options->reverse)
		return kv_get_range(tx, str_of(bounds->ptr, prefix_len), last, options);
	buf_append_str(&begin, last);
	buf_append_byte(&begin, '\0');
	f = buf_status(&begin) == STATUS_OK ? kv_get_range(tx, buf_str(&begin), end, options)
					    : NULL;
	buf_release(&begin);
	return f;
}

static enum status
branches_order(struct rev_branch_records *rows, bool are_reversed)
{
	for (size_t i = 0; !are_reversed && i < rows->count / 2; i++) {
		struct rev_branch_record swap = rows->rows[i];

		rows->rows[i] = rows->rows[rows->count - 1 - i];
		rows->rows[rows->count - 1 - i] = swap;
	}
	/* The winner comes last in the range, and it alone is marked. */
	for (size_t i = 0; i < rows->count; i++)
		if (rows->rows[i].winner != (i == 0))
			return STATUS_CORRUPT;
	return STATUS_OK;
}

enum status
rev_branches_wait(struct kv_tx *tx, const struct catalog_db *db, struct str id, size_t limit,
		  enum kv_read mode, struct kv_future *f, struct buf *key, struct arena *arena,
		  struct rev_branch_records *ret)
{
	struct kv_range_options options = branches_options(limit, mode);
	struct rev_branch_records rows = { 0 };
	size_t prefix_len;
	size_t cap = 0;

	TRY(rev_branches_bounds(key, db, id, &prefix_len));
	for (;;) {
		struct kv_range range;

		TRY(kv_future_wait(f));
		range = kv_future_range(f);
		TRY(branches_append(tx, &range, prefix_len, arena, &rows, &cap));
		if (!range.more || range.count == 0 || (limit && rows.count >= limit))
			break;
		if (limit)
			options.limit = limit - rows.count;
		f = branches_ask_further(tx, key, prefix_len, range.pairs[range.count - 1].key,
					 &options);
		if (!f)
			return STATUS_NOMEM;
	}
	TRY(branches_order(&rows, options.reverse));
	*ret = rows;
	return STATUS_OK;
}

enum status
rev_branch_record_find(const struct rev_branch_record *row, struct rev_id rev, struct buf *scratch,
		       bool *ret_found, struct str *ret_rest)
{
	struct tuple_reader r = { row->ancestors, true };
	enum status status;
	struct tuple_elem e;
	struct str newer;

	*ret_found = false;
	if (rev.pos > row->rev.pos)
		return STATUS_OK;
	if (rev.pos == row->rev.pos) {
		*ret_found = str_eq(rev.hash, row->rev.hash);
		*ret_rest = row->ancestors;
		return STATUS_OK;
	}
	TRY(tuple_skip_strings(&r, row->rev.pos - rev.pos - 1, &newer));
	TRY(step_count((uint32_t)(newer.len / REV_SKIP_STEP_BYTES)));
	status = tuple_next(&r, &e);
	if (status == STATUS_NOT_FOUND) /* cut off by revs_limit, or never known */
		return STATUS_OK;
	TRY(status);
	buf_clear(scratch);
	tuple_put_bytes(scratch, rev.hash);
	TRY(buf_status(scratch));
	*ret_found = str_eq(e.encoding, buf_str(scratch));
	*ret_rest = r.rest;
	return STATUS_OK;
}

int
rev_branch_record_cmp(const struct rev_branch_record *a, const struct rev_branch_record *b)
{
	return rev_id_cmp(!a->deleted, a->rev, !b->deleted, b->rev);
}

void
rev_ancestors_init(struct rev_ancestors *list, struct buf *out, const struct catalog_db *db)
{
	buf_clear(out);
	list->out = out;
	list->left = rev_db_revs_limit(db) - 1; /* the head counts, as in CouchDB */
}

/*
 * Opaque hashes can make a list too long for a value before it has revs_limit elements; then the
 * oldest are forgotten as if the limit were that much lower.
 */
static bool
ancestors_have_room(struct rev_ancestors *list, size_t encoded_bytes)
{
	if (list->left == 0 || encoded_bytes > REV_ANCESTORS_BYTES - list->out->len) {
		list->left = 0;
		return false;
	}
	list->left--;
	return true;
}

void
rev_ancestors_add(struct rev_ancestors *list, struct str hash)
{
	if (ancestors_have_room(list, rev_encoded_bytes(hash)))
		tuple_put_bytes(list->out, hash);
}

enum status
rev_ancestors_add_encoded(struct rev_ancestors *list, struct str ancestors, uint64_t most)
{
	struct tuple_reader r = { ancestors, true };
	struct tuple_elem e;
	enum status status;

	/* Nearly always all of them fit. Their length shows that, without parsing each. */
	if (most > list->left)
		TRY(tuple_skip_strings(&r, list->left, &ancestors));
	if (ancestors.len <= REV_ANCESTORS_BYTES - list->out->len) {
		buf_append_str(list->out, ancestors);
		list->left = 0;
		return STATUS_OK;
	}
	r = (struct tuple_reader){ ancestors, true };
	while (list->left) {
		status = tuple_next(&r, &e);
		if (status == STATUS_NOT_FOUND)
			break;
		TRY(status);
		if (ancestors_have_room(list, e.encoding.len))
			buf_append_str(list->out, e.encoding);
	}
	return STATUS_OK;
}

static void
branch_put_format(struct buf *value, const struct rev_branch_record *row)
{
	tuple_put_u64(value, row->has_sizes  ? BRANCH_FORMAT_SIZES
			     : row->has_text ? BRANCH_FORMAT_TEXT
					     : BRANCH_FORMAT);
}

static void
branch_put_ancestors_and_flags(struct buf *value, const struct rev_branch_record *row)
{
	assert(!row->has_text || row->has_atts || row->has_one_key);

	tuple_open(value);
	buf_append_str(value, row->ancestors);
	tuple_close(value);
	if (row->has_atts || row->has_one_key)
		tuple_put_bool(value, row->has_atts);
	else if (row->has_sizes)
		tuple_put_null(value);
	if (row->has_text)
		tuple_put_uuid(value, row->text_id);
	else if (row->has_sizes)
		tuple_put_null(value);
	if (row->has_sizes) {
		tuple_put_u64(value, row->sizes.external);
		tuple_put_u64(value, row->sizes.active);
	}
}

void
rev_branch_record_put_loser(struct buf *value, const struct rev_branch_record *row)
{
	buf_clear(value);
	branch_put_format(value, row);
	tuple_put_null(value);
	tuple_put_null(value);
	branch_put_ancestors_and_flags(value, row);
}

size_t
rev_branch_record_put_winner(struct buf *value, uint8_t incarnation, uint16_t order,
			     uint64_t branch_count, const struct rev_branch_record *row)
{
	uint8_t stamp[KV_VERSIONSTAMP_BYTES];
	size_t offset;

	catalog_stamp(order, stamp);
	buf_clear(value);
	branch_put_format(value, row);
	tuple_open(value);
	tuple_put_u64(value, incarnation);
	offset = tuple_put_versionstamp(value, stamp);
	tuple_close(value);
	tuple_put_u64(value, branch_count);
	branch_put_ancestors_and_flags(value, row);
	return offset;
}
