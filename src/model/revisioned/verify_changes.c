/* CHANGES: one entry for each winner, under its Sequence, and no other. */
#include "model/revisioned/verify_int.h"

/* What the entry of a winner has to say. */
static enum status
put_change(struct buf *value, const struct verify_rev *rev, uint64_t count)
{
	buf_clear(value);
	tuple_put_u64(value, REV_FORMAT);
	buf_append_str(value, rev->id);
	buf_append_str(value, rev->rev);
	tuple_put_u64(value, count);
	tuple_put_bool(value, !rev->deleted);
	return buf_status(value);
}

static uint64_t
seq_version(const struct rev_seq *seq)
{
	uint64_t version = 0;

	for (size_t i = 1; i <= sizeof(version); i++)
		version = version << 8 | seq->bytes[i];
	return version;
}

enum status
verify_change(struct verify *v, const struct rev_seq *seq, const struct verify_rev *rev,
	      uint64_t count)
{
	struct kv_future *f;
	struct str value;
	bool there;

	rev_key_change(&v->key, v->db, seq);
	TRY(rev_key_status(&v->key));
	TRY(put_change(&v->value, rev, count));
	TRY(verify_get(v, buf_str(&v->key), &f));
	there = kv_future_value(f, &value);
	v->changes_there += there;
	if (!there)
		verify_found(v, REV_FINDING_CHANGE, buf_str(&v->key),
			     "a winner has this Sequence, and there is no entry under it");
	else if (!str_eq(value, buf_str(&v->value)))
		verify_found(v, REV_FINDING_CHANGE, buf_str(&v->key),
			     "the entry does not tell of the winner that has this Sequence");
	kv_future_free(f);
	return STATUS_OK;
}

struct change {
	struct rev_seq seq;
	struct verify_rev rev;
};

/* The entry's key and value. */
static bool
parse(const struct verify_cursor *c, struct change *ret)
{
	struct tuple_reader k = tuple_reader(c->tail);
	struct tuple_reader r = tuple_reader(c->pair.value);
	struct str hash;
	const char *rev;
	uint64_t n;
	bool not_deleted;

	*ret = (struct change){ 0 };
	if (!verify_seq_next(&k, &ret->seq) || k.rest.len || rev_next_format(&r) != STATUS_OK ||
	    !verify_text_next(&r, TUPLE_STRING, &ret->rev.id))
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

/* What can be said of an entry by itself. */
static void
check_alone(struct verify *v, const struct verify_cursor *c)
{
	struct tuple_reader k = tuple_reader(c->tail);
	struct rev_seq seq;
	struct change change;

	if (!verify_seq_next(&k, &seq) || k.rest.len) {
		verify_found(v, REV_FINDING_KEY, c->pair.key, "not a Sequence");
		return;
	}
	v->newest = seq;
	if (!parse(c, &change))
		verify_found(v, REV_FINDING_VALUE, c->pair.key, "not an entry of changes");
	if (seq.bytes[0] > v->db->incarnation)
		verify_found(v, REV_FINDING_SEQUENCE, c->pair.key,
			     "Incarnation %u is above the database's, %u", (unsigned)seq.bytes[0],
			     (unsigned)v->db->incarnation);
	else if (seq.bytes[0] == v->db->incarnation && seq_version(&seq) > v->read_version)
		verify_found(v, REV_FINDING_SEQUENCE, c->pair.key,
			     "version %llu is above the store's, %llu",
			     (unsigned long long)seq_version(&seq),
			     (unsigned long long)v->read_version);
}

/* Does the leaf that the entry names win, under this Sequence? */
static enum status
is_of_winner(struct verify *v, const struct change *change, bool *ret)
{
	struct rev_row row = { 0 };
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
	if (v->key.len > KV_LIMIT_KEY_BYTES) /* no leaf has such a key */
		return STATUS_OK;
	TRY(verify_get(v, buf_str(&v->key), &f));
	if (kv_future_value(f, &value))
		*ret = rev_row_parse(str_skip(buf_str(&v->key), tail), value, v->scratch, &row) ==
			       STATUS_OK &&
		       row.winner && rev_seq_cmp(&row.seq, &change->seq) == 0;
	kv_future_free(f);
	return STATUS_OK;
}

/* There are other entries than winners have asked for: which ones? */
static enum status
find_strays(struct verify *v)
{
	AUTO(verify_cursor_close) struct verify_cursor c = { .done = true };
	struct change change;
	bool right;

	TRY(verify_cursor_open(v, &c, REV_SUBSPACE_CHANGES));
	while (!c.done) {
		if (parse(&c, &change)) { /* otherwise it has been told */
			arena_clear(v->scratch);
			TRY(is_of_winner(v, &change, &right));
			if (!right)
				verify_found(v, REV_FINDING_CHANGE_STRAY, c.pair.key,
					     "no winner has this Sequence");
		}
		TRY(verify_cursor_next(v, &c));
	}
	return STATUS_OK;
}

enum status
verify_changes(struct verify *v)
{
	AUTO(verify_cursor_close) struct verify_cursor c = { .done = true };
	uint64_t entries = 0;

	TRY(verify_cursor_open(v, &c, REV_SUBSPACE_CHANGES));
	while (!c.done) {
		entries++;
		check_alone(v, &c);
		TRY(verify_cursor_next(v, &c));
	}
	/* Each winner's Sequence is another one, so as many entries as were found are all. */
	return entries == v->changes_there ? STATUS_OK : find_strays(v);
}
