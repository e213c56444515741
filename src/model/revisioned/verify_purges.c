/*
 * Checks the record of purges: the newest record is the newest purge's, the counter counts them,
 * and what has been cleared was seen by every reader.
 */
#include "model/revisioned/record.h"
#include "model/revisioned/verify_int.h"

struct verify_purges {
	struct catalog_seq newest; /* of the records */
	struct catalog_seq oldest;
	struct catalog_seq cleared;
	uint64_t next_part; /* of the newest record */
	bool any_reader;
	struct catalog_seq least; /* of the readers */
};

/* (P, PURGES, "records", Sequence, part) */
static enum status
verify_purge_record(struct catalog_verify *v, struct verify_purges *p,
		    const struct catalog_verify_cursor *c, struct str tail)
{
	struct err err = { 0 };
	struct catalog_seq seq;
	struct rev_purge purge;
	uint64_t part;
	enum status status;

	if (rev_purge_key_parse(tail, &seq, &part) != STATUS_OK) {
		catalog_verify_found(v, CATALOG_FINDING_KEY, c->pair.key,
				     "not the Sequence of a purge");
		return STATUS_OK;
	}
	if (rev_verify_of(v)->purges == 0)
		p->oldest = seq;
	if (rev_verify_of(v)->purges == 0 || catalog_seq_cmp(&seq, &p->newest) != 0) {
		rev_verify_of(v)->purges++;
		p->newest = seq;
		p->next_part = 0;
	}
	if (part != p->next_part++)
		catalog_verify_found(v, REV_FINDING_PURGE, c->pair.key,
				     "parts of the purge's record are missing before this one");
	status = rev_purge_record_parse(c->pair.value, v->scratch, &purge, &err);
	if (status == STATUS_LIMIT || status == STATUS_NOMEM)
		return status;
	if (status != STATUS_OK)
		catalog_verify_unreadable(v, status, &err, c->pair.key, "not a record of a purge");
	return STATUS_OK;
}

/* (P, PURGES, "readers", name), (P, PURGES, "cleared") */
static void
verify_purge_mark(struct catalog_verify *v, struct verify_purges *p,
		  const struct catalog_verify_cursor *c, bool of_reader)
{
	struct err err = { 0 };
	struct catalog_seq seq;
	enum status status = rev_purge_mark_parse(c->pair.value, &seq, &err);

	if (status != STATUS_OK) {
		catalog_verify_unreadable(v, status, &err, c->pair.key,
					  "not a place in the record of purges");
		return;
	}
	if (seq.bytes[0] > v->db->incarnation)
		catalog_verify_found(v, REV_FINDING_SEQUENCE, c->pair.key,
				     "Incarnation %u is above the database's, %u",
				     (unsigned)seq.bytes[0], (unsigned)v->db->incarnation);
	if (!of_reader)
		p->cleared = seq;
	else if (!p->any_reader || catalog_seq_cmp(&seq, &p->least) < 0)
		p->least = seq;
	p->any_reader = p->any_reader || of_reader;
}

static enum status
verify_purge_pair(struct catalog_verify *v, struct verify_purges *p,
		  const struct catalog_verify_cursor *c)
{
	struct tuple_reader r = tuple_reader(c->tail);
	struct tuple_elem part;

	if (tuple_next(&r, &part) != STATUS_OK)
		part = (struct tuple_elem){ .kind = TUPLE_NULL };
	if (part.kind == TUPLE_STRING && str_eq(part.raw, REV_PURGES_RECORDS))
		return verify_purge_record(v, p, c, r.rest);
	if (part.kind == TUPLE_STRING && str_eq(part.raw, REV_PURGES_CLEARED) && !r.rest.len) {
		verify_purge_mark(v, p, c, false);
		return STATUS_OK;
	}
	if (part.kind == TUPLE_STRING && str_eq(part.raw, REV_PURGES_READERS) &&
	    tuple_next(&r, &part) == STATUS_OK && part.kind == TUPLE_STRING && !r.rest.len) {
		verify_purge_mark(v, p, c, true);
		return STATUS_OK;
	}
	catalog_verify_found(v, CATALOG_FINDING_KEY, c->pair.key,
			     "the record of purges has no such part");
	return STATUS_OK;
}

/*
 * A store of before there were records may have purges and no record. Once there are some, the
 * newest is the newest purge's, since the limit always leaves one.
 */
static enum status
verify_purge_places(struct catalog_verify *v, const struct verify_purges *p)
{
	bool any = rev_verify_of(v)->purges > 0;

	rev_key_named(&v->key, v->db, REV_SUBSPACE_STATS, REV_STAT_PURGED);
	TRY(catalog_key_status(&v->key));
	if (any && catalog_seq_cmp(&p->newest, &rev_verify_of(v)->purged) != 0)
		catalog_verify_found(v, REV_FINDING_PURGE, buf_str(&v->key),
				     "the newest purge and the newest record of one differ");
	rev_key_named(&v->key, v->db, REV_SUBSPACE_PURGES, REV_PURGES_CLEARED);
	TRY(catalog_key_status(&v->key));
	if (any && catalog_seq_cmp(&p->oldest, &p->cleared) <= 0)
		catalog_verify_found(v, REV_FINDING_PURGE, buf_str(&v->key),
				     "records of purges are left among those that were cleared");
	if (p->any_reader && catalog_seq_cmp(&p->least, &p->cleared) < 0)
		catalog_verify_found(v, REV_FINDING_PURGE, buf_str(&v->key),
				     "records of purges were cleared that a reader has not seen");
	return STATUS_OK;
}

enum status
verify_purges(struct catalog_verify *v)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };
	struct verify_purges p = { 0 };

	TRY(catalog_verify_cursor_open(v, &c, REV_SUBSPACE_PURGES));
	while (!c.done) {
		arena_clear(v->scratch);
		TRY(verify_purge_pair(v, &p, &c));
		TRY(catalog_verify_cursor_next(v, &c));
	}
	return verify_purge_places(v, &p);
}
