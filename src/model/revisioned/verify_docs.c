/*
 * Checks REVISIONS, ALL_DOCS and DOCUMENTS side by side. In all three a document's keys begin with
 * its id, and in REVISIONS and DOCUMENTS a revision's keys begin with the same bytes. So their
 * orders agree, and one pass over each of them sees everything that belongs together.
 */
#include "doc/root.h"
#include "model/revisioned/record.h"
#include "model/revisioned/verify_int.h"

/* The document whose branches are being read, and the branch that was read last. */
struct walked_document {
	struct buf id;   /* encoded */
	struct buf last; /* the key of the last branch */
	size_t prefix_len;
	bool open;
	bool unreadable; /* a branch record could not be parsed, so what it says is not known */
	uint64_t branches;
	bool winner; /* the last branch carries a Sequence */
	struct catalog_seq seq;
	uint64_t branch_count;
	bool has_atts;                     /* the last branch record says so */
	bool has_one_key;                  /* the last branch record says so of its body */
	bool has_text;                     /* the last branch record names a text in chunks… */
	uint8_t text_id[REV_ATT_ID_BYTES]; /* …by this id */
	bool has_sizes;                    /* the last branch record has those of its head */
	struct rev_sizes sizes;
};

struct documents_walk {
	struct catalog_verify *v;
	struct catalog_verify_range *range; /* NULL: all documents */
	struct catalog_verify_cursor branches;
	struct catalog_verify_cursor entries;
	struct catalog_verify_cursor bodies;
	struct walked_document doc;
	struct verify_body body;
	struct doc_root root;   /* of the body that was read last; do not use `packed` later */
	struct buf stray;       /* the revision whose body was the last finding */
	struct rev_sizes found; /* of the head whose body is being read */
	struct verify_partitions partitions;
};

/* ---- ALL_DOCS ---- */

/* Gives the id of the entry under the cursor. If its key is no entry's: a finding, and false. */
static bool
walk_entry_id(struct documents_walk *w, struct str *ret)
{
	struct tuple_reader r = tuple_reader(w->entries.tail);

	if (catalog_verify_text_next(&r, TUPLE_STRING, ret) && r.rest.len == 0)
		return true;
	catalog_verify_found(w->v, CATALOG_FINDING_KEY, w->entries.pair.key, "not a document's id");
	return false;
}

/* Moves to the first entry whose id is not less than `id`. `*ret` is true if it is equal. */
static enum status
walk_seek_entry(struct documents_walk *w, struct str id, bool *ret)
{
	struct str at;

	*ret = false;
	while (!w->entries.done) {
		if (walk_entry_id(w, &at)) {
			int order = str_cmp(at, id);

			*ret = order == 0;
			if (order >= 0)
				return STATUS_OK;
			catalog_verify_found(w->v, REV_FINDING_ENTRY_STRAY, w->entries.pair.key,
					     "there is no such document");
		}
		TRY(catalog_verify_cursor_next(w->v, &w->entries));
	}
	return STATUS_OK;
}

static enum status
walk_check_entry(struct documents_walk *w, const struct verify_rev *winner)
{
	struct catalog_verify *v = w->v;
	struct err err = { 0 };
	struct rev_id named;
	bool there;

	TRY(walk_seek_entry(w, winner->id, &there));
	if (!there) {
		if (winner->deleted)
			return STATUS_OK;
		rev_key_space(&v->key, v->db, REV_SUBSPACE_ALL_DOCS);
		buf_append_str(&v->key, winner->id);
		catalog_verify_found(v, REV_FINDING_ENTRY, buf_str(&v->key),
				     "the document is not deleted, and has no entry");
		return buf_status(&v->key);
	}
	buf_clear(&v->value);
	tuple_put_u64(&v->value, REV_ENTRY_FORMAT);
	buf_append_str(&v->value, winner->rev);
	TRY(buf_status(&v->value));
	arena_clear(v->scratch);
	if (rev_entry_parse(w->entries.pair.value, false, v->scratch, &named, &err) == STATUS_NEWER)
		catalog_verify_found(v, CATALOG_FINDING_NEWER, w->entries.pair.key, "%s", err.text);
	else if (winner->deleted)
		catalog_verify_found(v, REV_FINDING_ENTRY_STRAY, w->entries.pair.key,
				     "the document is deleted");
	else if (!str_eq(w->entries.pair.value, buf_str(&v->value)))
		catalog_verify_found(v, REV_FINDING_ENTRY, w->entries.pair.key,
				     "the entry does not name the winner");
	return catalog_verify_cursor_next(v, &w->entries);
}

/* ---- DOCUMENTS ---- */

/* Reports a body whose revision is no head, once for each such revision. */
static enum status
walk_report_stray_body(struct documents_walk *w, const struct verify_rev *rev)
{
	if (str_eq(rev->encoding, buf_str(&w->stray)))
		return STATUS_OK;
	buf_clear(&w->stray);
	buf_append_str(&w->stray, rev->encoding);
	catalog_verify_found(
		w->v, REV_FINDING_BODY_STRAY,
		str_of(w->bodies.pair.key.ptr, w->bodies.prefix_len + rev->encoding.len),
		"the revision is no head of a document");
	return buf_status(&w->stray);
}

/* Moves to the first body whose revision is not before this one. `*ret`: it is this one's. */
static enum status
walk_seek_body(struct documents_walk *w, struct str encoding, struct verify_rev *at, bool *ret)
{
	*ret = false;
	while (!w->bodies.done) {
		if (verify_rev_parse(w->bodies.tail, at)) {
			int order = str_cmp(at->encoding, encoding);

			*ret = order == 0;
			if (order >= 0)
				return STATUS_OK;
			TRY(walk_report_stray_body(w, at));
		} else {
			catalog_verify_found(w->v, CATALOG_FINDING_KEY, w->bodies.pair.key,
					     "not the key of a revision's body");
		}
		TRY(catalog_verify_cursor_next(w->v, &w->bodies));
	}
	return STATUS_OK;
}

static void
walk_add_body_bytes(struct documents_walk *w, uint64_t bytes)
{
	w->found.external += bytes;
	w->found.active += bytes;
}

static enum status
walk_check_body_pair(struct documents_walk *w, const struct verify_rev *at, bool *ret_pointer)
{
	struct doc_root *root = &w->root;
	struct err err = { 0 };
	enum status status;

	if (str_starts_with(at->rest, REV_ATT_MARK)) {
		*ret_pointer = true;
		return verify_pointer(w->v, w->bodies.pair.key, at->rest, w->bodies.pair.value,
				      &w->found);
	}
	if (at->rest.len) {
		walk_add_body_bytes(w, at->rest.len + w->bodies.pair.value.len);
		return verify_body_leaf(w->v, &w->body, at->rest, w->bodies.pair.value);
	}
	status = doc_root_read(w->bodies.pair.value, root, &err);
	if (status != STATUS_OK)
		catalog_verify_unreadable(w->v, status, &err, w->bodies.pair.key,
					  "not the form of a body");
	walk_add_body_bytes(w,
			    root->form == DOC_FORM_CHUNKED ? root->text_bytes : root->packed.len);
	TRY(verify_body_root(w->v, &w->body, root->packed));
	if (root->form != DOC_FORM_CHUNKED)
		return STATUS_OK;
	w->body.packed = true;
	return verify_text_pointer(w->v, buf_str(&w->body.key), root);
}

/* Checks that the branch record and the root value name the same text in chunks, or none. */
static void
walk_check_text_of_branch(struct documents_walk *w)
{
	bool named = w->root.form == DOC_FORM_CHUNKED;

	if (w->doc.unreadable || (!named && !w->doc.has_text))
		return;
	if (named != w->doc.has_text ||
	    memcmp(w->root.text_id, w->doc.text_id, sizeof(w->doc.text_id)) != 0)
		catalog_verify_found(w->v, REV_FINDING_BODY_CORRUPT, buf_str(&w->doc.last),
				     w->doc.has_text
					     ? "the branch names a text that its body does not have"
					     : "the branch does not name the text of its body");
}

static enum status
walk_check_body(struct documents_walk *w, const struct verify_rev *rev)
{
	struct catalog_verify *v = w->v;
	struct verify_rev at;
	bool there, any = false, pointers = false, leaves = false;

	w->root = (struct doc_root){ .form = DOC_FORM_EXPLODED };
	w->found = (struct rev_sizes){ 0 };
	for (;;) {
		TRY(walk_seek_body(w, rev->encoding, &at, &there));
		if (!there)
			break;
		if (!any)
			TRY(verify_body_begin(&w->body,
					      str_of(w->bodies.pair.key.ptr,
						     w->bodies.prefix_len + at.encoding.len)));
		any = true;
		leaves = leaves || (at.rest.len && !str_starts_with(at.rest, REV_ATT_MARK));
		TRY(walk_check_body_pair(w, &at, &pointers));
		TRY(catalog_verify_cursor_next(v, &w->bodies));
	}
	if (any && !leaves && w->root.form == DOC_FORM_EXPLODED)
		walk_add_body_bytes(w, REV_EMPTY_BODY_BYTES);
	if (!w->doc.unreadable && w->doc.has_atts != pointers)
		catalog_verify_found(
			v, REV_FINDING_ATT, buf_str(&w->doc.last),
			pointers ? "the branch does not know of its attachments"
				 : "the branch knows of attachments that are not there");
	if (!w->doc.unreadable && w->doc.has_one_key && leaves && !w->body.packed)
		catalog_verify_found(v, REV_FINDING_BODY_CORRUPT, buf_str(&w->doc.last),
				     "the branch knows of no leaves below its root");
	if (any && w->body.packed && w->root.more != pointers)
		catalog_verify_found(
			v, REV_FINDING_ATT, buf_str(&w->body.key),
			pointers ? "the packed body does not know of its attachments"
				 : "the packed body knows of attachments that are not there");
	walk_check_text_of_branch(w);
	if (!w->doc.unreadable)
		verify_partitions_head(v, &w->partitions, buf_str(&w->doc.last), &w->doc.sizes,
				       w->doc.has_sizes, &w->found);
	if (any)
		return verify_body_end(v, &w->body);
	if (rev->deleted)
		return STATUS_OK;
	rev_key_space(&v->key, v->db, REV_SUBSPACE_DOCUMENTS);
	buf_append_str(&v->key, rev->encoding);
	catalog_verify_found(v, REV_FINDING_BODY, buf_str(&v->key),
			     "the head is not deleted and has no body");
	return buf_status(&v->key);
}

/* ---- REVISIONS ---- */

/* Called when all branches of the document have been read. The last of them is its winner. */
static enum status
walk_end_document(struct documents_walk *w)
{
	struct walked_document *d = &w->doc;
	struct str key = buf_str(&d->last);
	struct catalog_verify *v = w->v;
	struct verify_rev winner;

	if (!d->open)
		return STATUS_OK;
	d->open = false;
	v->sum.documents++;
	if (!verify_rev_parse(str_skip(key, d->prefix_len), &winner))
		return STATUS_CORRUPT; /* cannot happen: the same key has been parsed before */
	if (winner.deleted) {
		rev_verify_of(v)->deleted++;
		verify_partitions_deleted(&w->partitions);
	} else {
		rev_verify_of(v)->live++;
	}
	if (!d->unreadable && !d->winner)
		catalog_verify_found(v, REV_FINDING_WINNER, key, "the winner carries no Sequence");
	if (!d->unreadable && d->winner && d->branch_count != d->branches)
		catalog_verify_found(v, REV_FINDING_BRANCH_COUNT, key,
				     "the winner counts %llu branches, and there are %llu",
				     (unsigned long long)d->branch_count,
				     (unsigned long long)d->branches);
	if (d->winner)
		TRY(verify_change(v, &d->seq, &winner, d->branch_count));
	return walk_check_entry(w, &winner);
}

static enum status
walk_begin_document(struct documents_walk *w, struct str id)
{
	struct walked_document *d = &w->doc;

	TRY(walk_end_document(w));
	buf_clear(&d->id);
	buf_append_str(&d->id, id);
	d->open = true;
	d->unreadable = false;
	d->winner = false;
	d->branches = 0;
	TRY(verify_partitions_document(w->v, &w->partitions, id, w->branches.pair.key));
	return buf_status(&d->id);
}

/* True if the ancestors of a branch are hashes, and fewer than its head's position. */
static bool
branch_ancestors_are_good(const struct rev_branch_record *row)
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
walk_read_branch(struct documents_walk *w, const struct verify_rev *rev)
{
	struct catalog_verify *v = w->v;
	struct walked_document *d = &w->doc;
	struct err err = { 0 };
	struct rev_branch_record row;
	enum status status;

	arena_clear(v->scratch);
	status = rev_branch_record_parse(str_skip(w->branches.tail, rev->id.len),
					 w->branches.pair.value, v->scratch, &row, &err);
	if (status == STATUS_OK && !branch_ancestors_are_good(&row))
		status = STATUS_CORRUPT;
	if (status != STATUS_OK && status != STATUS_CORRUPT && status != STATUS_NEWER)
		return status;
	if (d->winner)
		catalog_verify_found(v, REV_FINDING_WINNER, buf_str(&d->last),
				     "a branch that does not win carries a Sequence");
	d->winner = status == STATUS_OK && row.winner;
	d->seq = row.seq;
	d->branch_count = row.branch_count;
	d->has_atts = row.has_atts;
	d->has_one_key = row.has_one_key;
	d->has_text = row.has_text;
	memcpy(d->text_id, row.text_id, sizeof(d->text_id));
	d->has_sizes = row.has_sizes;
	d->sizes = row.sizes;
	d->branches++;
	if (status != STATUS_OK) {
		catalog_verify_unreadable(v, status, &err, w->branches.pair.key,
					  "not what a branch has");
		d->unreadable = true;
	}
	buf_clear(&d->last);
	buf_append_str(&d->last, w->branches.pair.key);
	return buf_status(&d->last);
}

static enum status
walk_visit_branch(struct documents_walk *w)
{
	struct verify_rev rev;

	if (!verify_rev_parse(w->branches.tail, &rev) || rev.rest.len) {
		catalog_verify_found(w->v, CATALOG_FINDING_KEY, w->branches.pair.key,
				     "not the key of a branch");
		return STATUS_OK;
	}
	if (!w->doc.open || !str_eq(rev.id, buf_str(&w->doc.id)))
		TRY(walk_begin_document(w, rev.id));
	TRY(walk_read_branch(w, &rev));
	return walk_check_body(w, &rev);
}

/*
 * Reports what ALL_DOCS and DOCUMENTS still have in front of `end`, an id as it is encoded, when
 * all branches there have been read.
 */
static enum status
walk_finish(struct documents_walk *w, struct str end)
{
	struct verify_rev at;
	bool there;

	TRY(walk_end_document(w));
	if (!w->range)
		TRY(verify_partitions_end(w->v, &w->partitions));
	TRY(walk_seek_entry(w, end, &there));
	return walk_seek_body(w, end, &at, &there);
}

/* True if the branch under the cursor is another document's, and the range ends in front of it. */
static bool
walk_range_ends(struct documents_walk *w)
{
	struct catalog_verify_range *range = w->range;
	struct verify_rev rev;

	if (!range || !verify_rev_parse(w->branches.tail, &rev) ||
	    (w->doc.open && str_eq(rev.id, buf_str(&w->doc.id))) ||
	    !catalog_verify_range_is_full(range))
		return false;
	range->more = true;
	buf_append_str(&range->next, rev.id);
	return true;
}

static enum status
walk_documents(struct documents_walk *w)
{
	struct str from = w->range ? buf_str(&w->range->from) : STR("");
	bool more = false;

	TRY(catalog_verify_cursor_open_from(w->v, &w->branches, REV_SUBSPACE_REVISIONS, from));
	TRY(catalog_verify_cursor_open_from(w->v, &w->entries, REV_SUBSPACE_ALL_DOCS, from));
	TRY(catalog_verify_cursor_open_from(w->v, &w->bodies, REV_SUBSPACE_DOCUMENTS, from));
	TRY(verify_partitions_open(w->v, &w->partitions));
	w->doc.prefix_len = w->branches.prefix_len;
	while (!w->branches.done && !more) {
		more = walk_range_ends(w);
		if (more)
			break;
		TRY(walk_visit_branch(w));
		TRY(catalog_verify_cursor_next(w->v, &w->branches));
	}
	return walk_finish(w, more ? buf_str(&w->range->next) : STR("\xff"));
}

static enum status
verify_walk(struct catalog_verify *v, struct catalog_verify_range *range)
{
	struct documents_walk w = {
		.range = range,
		.v = v,
		.branches.done = true,
		.entries.done = true,
		.bodies.done = true,
		.doc = { .id = CATALOG_KEY_INIT, .last = CATALOG_KEY_INIT },
		.stray = CATALOG_KEY_INIT,
		.partitions = { .prefix = CATALOG_KEY_INIT, .counters.done = true },
	};
	enum status status;

	verify_body_init(&w.body);
	status = walk_documents(&w);
	verify_body_release(&w.body);
	verify_partitions_close(&w.partitions);
	buf_release(&w.stray);
	buf_release(&w.doc.last);
	buf_release(&w.doc.id);
	catalog_verify_cursor_close(&w.bodies);
	catalog_verify_cursor_close(&w.entries);
	catalog_verify_cursor_close(&w.branches);
	return status;
}

enum status
verify_documents(struct catalog_verify *v)
{
	return verify_walk(v, NULL);
}

/* Finds the document behind the first one from range->from on, which cannot be read in time. */
static enum status
walk_pass_over(struct catalog_verify *v, struct catalog_verify_range *range)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };
	AUTO(buf_release) struct buf id = CATALOG_KEY_INIT;
	struct verify_rev rev;

	TRY(catalog_verify_cursor_open_from(v, &c, REV_SUBSPACE_REVISIONS, buf_str(&range->from)));
	while (!c.done && range->next.len == 0) {
		bool parsed = verify_rev_parse(c.tail, &rev);

		if (parsed && id.len == 0) {
			catalog_verify_unchecked(v, c.pair.key, "the document");
			buf_append_str(&id, rev.id);
		} else if (parsed && !str_eq(rev.id, buf_str(&id))) {
			buf_append_str(&range->next, rev.id);
		}
		TRY(buf_status(&id));
		TRY(catalog_verify_cursor_next(v, &c));
	}
	range->more = range->next.len > 0;
	return STATUS_OK;
}

enum status
verify_documents_range(struct catalog_verify *v, struct catalog_verify_range *range)
{
	struct rev_verify own = { 0 };

	v->own = &own;
	return range->skips ? walk_pass_over(v, range) : verify_walk(v, range);
}
