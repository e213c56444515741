/* Checks that CHANGES has one entry for each winner, under its Sequence, and no other entry. */
#include "model/revisioned/record.h"
#include "model/revisioned/verify_int.h"

/* Makes the value that the entry of a winner has to have. */
static enum status
put_expected_change(struct buf *value, const struct verify_rev *rev, uint64_t count)
{
	buf_clear(value);
	tuple_put_u64(value, REV_CHANGE_FORMAT);
	buf_append_str(value, rev->id);
	buf_append_str(value, rev->rev);
	tuple_put_u64(value, count);
	tuple_put_bool(value, !rev->deleted);
	return buf_status(value);
}

enum status
verify_change(struct catalog_verify *v, const struct catalog_seq *seq, const struct verify_rev *rev,
	      uint64_t count)
{
	struct kv_future *f;
	struct str value;
	bool there;

	rev_key_change(&v->key, v->db, seq);
	TRY(catalog_key_status(&v->key));
	TRY(put_expected_change(&v->value, rev, count));
	TRY(catalog_verify_get(v, buf_str(&v->key), &f));
	there = kv_future_value(f, &value);
	rev_verify_of(v)->changes_there += there;
	if (!there)
		catalog_verify_found(v, REV_FINDING_CHANGE, buf_str(&v->key),
				     "a winner has this Sequence, and there is no entry under it");
	else if (!str_eq(value, buf_str(&v->value)))
		catalog_verify_found(
			v, REV_FINDING_CHANGE, buf_str(&v->key),
			"the entry does not tell of the winner that has this Sequence");
	kv_future_free(f);
	return STATUS_OK;
}

struct verify_change_entry {
	struct catalog_seq seq;
	struct verify_rev rev;
};

/* Parses the key and the value of an entry. */
static bool
verify_change_parse(const struct catalog_verify_cursor *c, struct verify_change_entry *ret)
{
	struct tuple_reader k = tuple_reader(c->tail);
	struct tuple_reader r = tuple_reader(c->pair.value);
	struct str hash;
	const char *rev;
	uint64_t n;
	bool not_deleted;

	*ret = (struct verify_change_entry){ 0 };
	if (!catalog_verify_seq_next(&k, &ret->seq) || k.rest.len ||
	    tuple_next_u64(&r, &n) != STATUS_OK || n != REV_CHANGE_FORMAT ||
	    !catalog_verify_text_next(&r, TUPLE_STRING, &ret->rev.id))
		return false;
	rev = r.rest.ptr;
	if (tuple_next_u64(&r, &n) != STATUS_OK || !verify_hash_next(&r, &hash))
		return false;
	ret->rev.rev = str_of(rev, (size_t)(r.rest.ptr - rev));
	if (tuple_next_u64(&r, &n) != STATUS_OK || tuple_next_bool(&r, &not_deleted) != STATUS_OK ||
	    r.rest.len)
		return false;
	ret->rev.deleted = !not_deleted;
	return true;
}

/* Checks of an entry what needs no other key. */
static void
verify_change_alone(struct catalog_verify *v, const struct catalog_verify_cursor *c)
{
	struct tuple_reader k = tuple_reader(c->tail);
	struct catalog_seq seq;
	struct verify_change_entry change;

	if (!catalog_verify_seq_next(&k, &seq) || k.rest.len) {
		catalog_verify_found(v, CATALOG_FINDING_KEY, c->pair.key, "not a Sequence");
		return;
	}
	rev_verify_of(v)->newest = seq;
	if (!verify_change_parse(c, &change))
		catalog_verify_found(v, CATALOG_FINDING_VALUE, c->pair.key,
				     "not an entry of changes");
	if (seq.bytes[0] > v->db->incarnation)
		catalog_verify_found(v, REV_FINDING_SEQUENCE, c->pair.key,
				     "Incarnation %u is above the database's, %u",
				     (unsigned)seq.bytes[0], (unsigned)v->db->incarnation);
	else if (seq.bytes[0] == v->db->incarnation && catalog_seq_version(&seq) > v->read_version)
		catalog_verify_found(v, REV_FINDING_SEQUENCE, c->pair.key,
				     "version %llu is above the store's, %llu",
				     (unsigned long long)catalog_seq_version(&seq),
				     (unsigned long long)v->read_version);
}

/* True if the head that the entry names is a winner that carries this Sequence. */
static enum status
change_is_of_winner(struct catalog_verify *v, const struct verify_change_entry *change, bool *ret)
{
	struct rev_branch_record row = { 0 };
	struct kv_future *f;
	struct str value;
	size_t tail;

	*ret = false;
	rev_key_space(&v->key, v->db, REV_SUBSPACE_REVISIONS);
	buf_append_str(&v->key, change->rev.id);
	tail = v->key.len;
	tuple_put_bool(&v->key, !change->rev.deleted);
	buf_append_str(&v->key, change->rev.rev);
	TRY(buf_status(&v->key));
	if (v->key.len > KV_LIMIT_KEY_BYTES) /* no head has such a key */
		return STATUS_OK;
	TRY(catalog_verify_get(v, buf_str(&v->key), &f));
	if (kv_future_value(f, &value))
		*ret = rev_branch_record_parse(str_skip(buf_str(&v->key), tail), value, v->scratch,
					       &row, NULL) == STATUS_OK &&
		       row.winner && catalog_seq_cmp(&row.seq, &change->seq) == 0;
	kv_future_free(f);
	return STATUS_OK;
}

/* An entry that can be read has a winner that carries its Sequence. */
static enum status
verify_change_has_winner(struct catalog_verify *v, const struct catalog_verify_cursor *c)
{
	struct verify_change_entry change;
	bool right;

	if (!verify_change_parse(c, &change)) /* it has been reported */
		return STATUS_OK;
	arena_clear(v->scratch);
	TRY(change_is_of_winner(v, &change, &right));
	if (!right)
		catalog_verify_found(v, REV_FINDING_CHANGE_STRAY, c->pair.key,
				     "no winner has this Sequence");
	return STATUS_OK;
}

/* Finds the entries that belong to no winner. Called only if there are some. */
static enum status
verify_find_stray_changes(struct catalog_verify *v)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };

	TRY(catalog_verify_cursor_open(v, &c, REV_SUBSPACE_CHANGES));
	while (!c.done) {
		TRY(verify_change_has_winner(v, &c));
		TRY(catalog_verify_cursor_next(v, &c));
	}
	return STATUS_OK;
}

enum status
verify_changes(struct catalog_verify *v)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };
	uint64_t entries = 0;

	TRY(catalog_verify_cursor_open(v, &c, REV_SUBSPACE_CHANGES));
	while (!c.done) {
		entries++;
		verify_change_alone(v, &c);
		TRY(catalog_verify_cursor_next(v, &c));
	}
	/*
	 * No two winners share a Sequence, so equal numbers mean that every entry has its winner.
	 */
	return entries == rev_verify_of(v)->changes_there ? STATUS_OK
							  : verify_find_stray_changes(v);
}

enum status
verify_changes_range(struct catalog_verify *v, struct catalog_verify_range *range)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };
	struct rev_verify own = { 0 };

	v->own = &own;
	TRY(catalog_verify_cursor_open_from(v, &c, REV_SUBSPACE_CHANGES, buf_str(&range->from)));
	while (!c.done && !catalog_verify_range_is_full(range)) {
		verify_change_alone(v, &c);
		TRY(verify_change_has_winner(v, &c));
		TRY(catalog_verify_cursor_next(v, &c));
	}
	range->more = !c.done;
	if (range->more)
		buf_append_str(&range->next, c.tail);
	return STATUS_OK;
}

enum status
verify_newest_change(struct catalog_verify *v)
{
	struct kv_range_options options = { .limit = 1, .reverse = true, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct tuple_reader r;
	struct kv_future *f;
	struct kv_range range;

	rev_key_space(&v->key, v->db, REV_SUBSPACE_CHANGES);
	TRY(catalog_key_status(&v->key));
	TRY(tuple_prefix_end(buf_str(&v->key), &end));
	TRY(catalog_verify_get_range(v, buf_str(&v->key), buf_str(&end), &options, &f));
	range = kv_future_range(f);
	if (range.count) {
		r = tuple_reader(str_skip(range.pairs[0].key, v->key.len));
		/* Another key is told by verify_changes_range(). */
		(void)catalog_verify_seq_next(&r, &rev_verify_of(v)->newest);
	}
	kv_future_free(f);
	return STATUS_OK;
}
