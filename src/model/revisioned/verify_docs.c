/*
 * REVISIONS, ALL_DOCS and DOCUMENTS, side by side: in all three a document's keys begin with its
 * id, and in the first and the last a revision's keys with the same bytes, so that their orders
 * agree and one pass over each of them sees everything.
 */
#include "model/revisioned/verify_int.h"

/* The document whose branches are being read, and the branch that was read last. */
struct document {
	struct buf id;   /* encoded */
	struct buf last; /* the key of the last branch */
	size_t prefix_len;
	bool open;
	bool unreadable; /* a branch of it is; what it would have said is not known */
	uint64_t branches;
	bool winner; /* the last branch carries a Sequence */
	struct rev_seq seq;
	uint64_t branch_count;
	bool has_atts;    /* the last branch says so */
	bool has_one_key; /* likewise, of its body */
};

struct walk {
	struct verify *v;
	struct verify_cursor branches;
	struct verify_cursor entries;
	struct verify_cursor bodies;
	struct document doc;
	struct verify_body body;
	bool root_more;   /* of a packed body: the root tells of attachments */
	struct buf stray; /* the revision whose body was told of last */
};

/* ---- ALL_DOCS ---- */

/* The id of the entry that the cursor stands at; false, having told it, for what is no entry. */
static bool
entry_id(struct walk *w, struct str *ret)
{
	struct tuple_reader r = tuple_reader(w->entries.tail);

	if (verify_text_next(&r, TUPLE_STRING, ret) && r.rest.len == 0)
		return true;
	verify_found(w->v, REV_FINDING_KEY, w->entries.pair.key, "not a document's id");
	return false;
}

/* Up to the first entry whose id is not less than `id`; `*ret` if it is that one. */
static enum status
entries_seek(struct walk *w, struct str id, bool *ret)
{
	struct str at;

	*ret = false;
	while (!w->entries.done) {
		if (entry_id(w, &at)) {
			int order = str_cmp(at, id);

			*ret = order == 0;
			if (order >= 0)
				return STATUS_OK;
			verify_found(w->v, REV_FINDING_ENTRY_STRAY, w->entries.pair.key,
				     "there is no such document");
		}
		TRY(verify_cursor_next(w->v, &w->entries));
	}
	return STATUS_OK;
}

static enum status
check_entry(struct walk *w, const struct verify_rev *winner)
{
	struct verify *v = w->v;
	bool there;

	TRY(entries_seek(w, winner->id, &there));
	if (!there) {
		if (winner->deleted)
			return STATUS_OK;
		rev_key_space(&v->key, v->db, REV_SUBSPACE_ALL_DOCS);
		buf_append_str(&v->key, winner->id);
		verify_found(v, REV_FINDING_ENTRY, buf_str(&v->key),
			     "the document is not deleted, and has no entry");
		return buf_status(&v->key);
	}
	buf_clear(&v->value);
	tuple_put_u64(&v->value, REV_FORMAT);
	buf_append_str(&v->value, winner->rev);
	TRY(buf_status(&v->value));
	if (winner->deleted)
		verify_found(v, REV_FINDING_ENTRY_STRAY, w->entries.pair.key,
			     "the document is deleted");
	else if (!str_eq(w->entries.pair.value, buf_str(&v->value)))
		verify_found(v, REV_FINDING_ENTRY, w->entries.pair.key,
			     "the entry does not name the winner");
	return verify_cursor_next(v, &w->entries);
}

/* ---- DOCUMENTS ---- */

/* The pair under the cursor belongs to a revision that is no leaf; told once for each of them. */
static enum status
body_is_stray(struct walk *w, const struct verify_rev *rev)
{
	if (str_eq(rev->encoding, buf_str(&w->stray)))
		return STATUS_OK;
	buf_clear(&w->stray);
	buf_append_str(&w->stray, rev->encoding);
	verify_found(w->v, REV_FINDING_BODY_STRAY,
		     str_of(w->bodies.pair.key.ptr, w->bodies.prefix_len + rev->encoding.len),
		     "the revision is no leaf of a document");
	return buf_status(&w->stray);
}

/* Up to the first body that is not of a revision before this one; `*ret` if it is of this one. */
static enum status
bodies_seek(struct walk *w, struct str encoding, struct verify_rev *at, bool *ret)
{
	*ret = false;
	while (!w->bodies.done) {
		if (verify_rev_parse(w->bodies.tail, at)) {
			int order = str_cmp(at->encoding, encoding);

			*ret = order == 0;
			if (order >= 0)
				return STATUS_OK;
			TRY(body_is_stray(w, at));
		} else {
			verify_found(w->v, REV_FINDING_KEY, w->bodies.pair.key,
				     "not the key of a revision's body");
		}
		TRY(verify_cursor_next(w->v, &w->bodies));
	}
	return STATUS_OK;
}

static enum status
body_pair(struct walk *w, const struct verify_rev *at, bool *ret_pointer)
{
	struct str packed = { NULL, 0 };

	if (str_starts_with(at->rest, REV_ATT_MARK)) {
		*ret_pointer = true;
		return verify_pointer(w->v, w->bodies.pair.key, at->rest, w->bodies.pair.value);
	}
	if (at->rest.len)
		return verify_body_leaf(w->v, &w->body, at->rest, w->bodies.pair.value);
	if (doc_root_read(w->bodies.pair.value, &packed, &w->root_more) != STATUS_OK)
		verify_found(w->v, REV_FINDING_VALUE, w->bodies.pair.key, "not the form of a body");
	return verify_body_root(w->v, &w->body, packed);
}

static enum status
check_body(struct walk *w, const struct verify_rev *rev)
{
	struct verify *v = w->v;
	struct verify_rev at;
	bool there, any = false, pointers = false, leaves = false;

	for (;;) {
		TRY(bodies_seek(w, rev->encoding, &at, &there));
		if (!there)
			break;
		if (!any)
			TRY(verify_body_begin(&w->body,
					      str_of(w->bodies.pair.key.ptr,
						     w->bodies.prefix_len + at.encoding.len)));
		any = true;
		leaves = leaves || (at.rest.len && !str_starts_with(at.rest, REV_ATT_MARK));
		TRY(body_pair(w, &at, &pointers));
		TRY(verify_cursor_next(v, &w->bodies));
	}
	if (!w->doc.unreadable && w->doc.has_atts != pointers)
		verify_found(v, REV_FINDING_ATT, buf_str(&w->doc.last),
			     pointers ? "the branch does not know of its attachments"
				      : "the branch knows of attachments that are not there");
	if (!w->doc.unreadable && w->doc.has_one_key && leaves && !w->body.packed)
		verify_found(v, REV_FINDING_BODY_CORRUPT, buf_str(&w->doc.last),
			     "the branch knows of no leaves below its root");
	if (any && w->body.packed && w->root_more != pointers)
		verify_found(v, REV_FINDING_ATT, buf_str(&w->body.key),
			     pointers ? "the packed body does not know of its attachments"
				      : "the packed body knows of attachments that are not there");
	if (any)
		return verify_body_end(v, &w->body);
	if (rev->deleted)
		return STATUS_OK;
	rev_key_space(&v->key, v->db, REV_SUBSPACE_DOCUMENTS);
	buf_append_str(&v->key, rev->encoding);
	verify_found(v, REV_FINDING_BODY, buf_str(&v->key),
		     "the leaf is not deleted and has no body");
	return buf_status(&v->key);
}

/* ---- REVISIONS ---- */

/* All branches of the document have been read, and the last of them is its winner. */
static enum status
document_end(struct walk *w)
{
	struct document *d = &w->doc;
	struct str key = buf_str(&d->last);
	struct verify *v = w->v;
	struct verify_rev winner;

	if (!d->open)
		return STATUS_OK;
	d->open = false;
	v->sum.documents++;
	if (!verify_rev_parse(str_skip(key, d->prefix_len), &winner))
		return STATUS_CORRUPT; /* it could be read before */
	if (winner.deleted)
		v->deleted++;
	else
		v->live++;
	if (!d->unreadable && !d->winner)
		verify_found(v, REV_FINDING_WINNER, key, "the winner carries no Sequence");
	if (!d->unreadable && d->winner && d->branch_count != d->branches)
		verify_found(v, REV_FINDING_BRANCH_COUNT, key,
			     "the winner counts %llu branches, and there are %llu",
			     (unsigned long long)d->branch_count, (unsigned long long)d->branches);
	if (d->winner)
		TRY(verify_change(v, &d->seq, &winner, d->branch_count));
	return check_entry(w, &winner);
}

static enum status
document_begin(struct walk *w, struct str id)
{
	struct document *d = &w->doc;

	TRY(document_end(w));
	buf_clear(&d->id);
	buf_append_str(&d->id, id);
	d->open = true;
	d->unreadable = false;
	d->winner = false;
	d->branches = 0;
	return buf_status(&d->id);
}

/* The ancestors of a branch: hashes, fewer than its position. */
static bool
ancestors_are_good(const struct rev_row *row)
{
	struct tuple_reader r = { row->ancestors, true };
	uint64_t count = 0;
	struct str hash;

	while (r.rest.len) {
		if (!verify_hash_next(&r, &hash))
			return false;
		count++;
	}
	return count < row->rev.pos;
}

static enum status
branch(struct walk *w, const struct verify_rev *rev)
{
	struct verify *v = w->v;
	struct document *d = &w->doc;
	struct rev_row row;
	enum status status;

	arena_clear(v->scratch);
	status = rev_row_parse(str_skip(w->branches.tail, rev->id.len), w->branches.pair.value,
			       v->scratch, &row);
	if (status == STATUS_OK && !ancestors_are_good(&row))
		status = STATUS_CORRUPT;
	if (status != STATUS_OK && status != STATUS_CORRUPT)
		return status;
	if (d->winner)
		verify_found(v, REV_FINDING_WINNER, buf_str(&d->last),
			     "a branch that does not win carries a Sequence");
	d->winner = status == STATUS_OK && row.winner;
	d->seq = row.seq;
	d->branch_count = row.branch_count;
	d->has_atts = row.has_atts;
	d->has_one_key = row.has_one_key;
	d->branches++;
	if (status == STATUS_CORRUPT) {
		verify_found(v, REV_FINDING_VALUE, w->branches.pair.key, "not what a branch has");
		d->unreadable = true;
	}
	buf_clear(&d->last);
	buf_append_str(&d->last, w->branches.pair.key);
	return buf_status(&d->last);
}

static enum status
walk_step(struct walk *w)
{
	struct verify_rev rev;

	if (!verify_rev_parse(w->branches.tail, &rev) || rev.rest.len) {
		verify_found(w->v, REV_FINDING_KEY, w->branches.pair.key,
			     "not the key of a branch");
		return STATUS_OK;
	}
	if (!w->doc.open || !str_eq(rev.id, buf_str(&w->doc.id)))
		TRY(document_begin(w, rev.id));
	TRY(branch(w, &rev));
	return check_body(w, &rev);
}

/* What is left in the other two when all branches have been read. */
static enum status
walk_end(struct walk *w)
{
	struct verify_rev at;
	bool there;

	TRY(document_end(w));
	TRY(entries_seek(w, STR("\xff"), &there));
	return bodies_seek(w, STR("\xff"), &at, &there);
}

static enum status
walk(struct walk *w)
{
	TRY(verify_cursor_open(w->v, &w->branches, REV_SUBSPACE_REVISIONS));
	TRY(verify_cursor_open(w->v, &w->entries, REV_SUBSPACE_ALL_DOCS));
	TRY(verify_cursor_open(w->v, &w->bodies, REV_SUBSPACE_DOCUMENTS));
	w->doc.prefix_len = w->branches.prefix_len;
	while (!w->branches.done) {
		TRY(walk_step(w));
		TRY(verify_cursor_next(w->v, &w->branches));
	}
	return walk_end(w);
}

enum status
verify_documents(struct verify *v)
{
	struct walk w = {
		.v = v,
		.branches.done = true,
		.entries.done = true,
		.bodies.done = true,
		.doc = { .id = REV_KEY_INIT, .last = REV_KEY_INIT },
		.stray = REV_KEY_INIT,
	};
	enum status status;

	verify_body_init(&w.body);
	status = walk(&w);
	verify_body_release(&w.body);
	buf_release(&w.stray);
	buf_release(&w.doc.last);
	buf_release(&w.doc.id);
	verify_cursor_close(&w.bodies);
	verify_cursor_close(&w.entries);
	verify_cursor_close(&w.branches);
	return status;
}
