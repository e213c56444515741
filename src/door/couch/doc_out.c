/* From leaves to the JSON of a document, with what a client asked to know about its revisions. */
#include "door/couch/att.h"

void
couch_rev_write(struct rev_id rev, struct buf *out)
{
	char text[REV_HASH_LIMIT_BYTES + 32];
	struct buf plain = { .ptr = text, .cap = sizeof(text), .max_bytes = sizeof(text) };

	if (rev.hash.len == REV_HASH_BYTES) {
		buf_append_byte(out, '"');
		rev_id_write(rev, out);
		buf_append_byte(out, '"');
		return;
	}
	/* An opaque hash is a client's text and may need escapes. */
	rev_id_write(rev, &plain);
	if (buf_status(&plain) != STATUS_OK)
		out->failed = buf_status(&plain);
	json_write_str(out, buf_str(&plain));
}

unsigned
couch_doc_flags(const struct couch_req *r)
{
	static const struct {
		const char *name;
		unsigned flags;
	} known[] = {
		{ "revs", COUCH_DOC_REVS },
		{ "revs_info", COUCH_DOC_REVS_INFO },
		{ "conflicts", COUCH_DOC_CONFLICTS },
		{ "deleted_conflicts", COUCH_DOC_DELETED_CONFLICTS },
		{ "meta", COUCH_DOC_REVS_INFO | COUCH_DOC_CONFLICTS | COUCH_DOC_DELETED_CONFLICTS },
		{ "local_seq", COUCH_DOC_LOCAL_SEQ },
		{ "latest", COUCH_DOC_LATEST },
		{ "attachments", COUCH_DOC_ATTS },
		{ "att_encoding_info", COUCH_DOC_ATT_ENCODING },
	};
	unsigned flags = 0;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (couch_param_true(r, known[i].name))
			flags |= known[i].flags;
	}
	return flags;
}

static void
write_hash_string(struct str hash, struct buf *out)
{
	if (hash.len == REV_HASH_BYTES) {
		buf_append_byte(out, '"');
		buf_append_hex(out, hash);
		buf_append_byte(out, '"');
	} else {
		json_write_str(out, hash);
	}
}

/* A limit that has been lowered counts here at once, and in the store with the next edit. */
static void
write_revisions(const struct rev_branch *branch, uint64_t limit, struct buf *out)
{
	uint64_t told = branch->ancestors_count;

	if (limit && told > limit - 1)
		told = limit - 1;
	buf_append_cstr(out, ",\"_revisions\":{\"start\":");
	buf_append_u64(out, branch->rev.pos);
	buf_append_cstr(out, ",\"ids\":[");
	write_hash_string(branch->rev.hash, out);
	for (size_t i = 0; i < told; i++) {
		buf_append_byte(out, ',');
		write_hash_string(branch->ancestors[i], out);
	}
	buf_append_cstr(out, "]}");
}

/* Only leaves have bodies: every ancestor's is missing, as after a compaction in CouchDB. */
static void
write_revs_info(const struct rev_branch *branch, struct buf *out)
{
	buf_append_cstr(out, ",\"_revs_info\":[{\"rev\":");
	couch_rev_write(branch->rev, out);
	buf_append_cstr(out, branch->deleted ? ",\"status\":\"deleted\"}"
					     : ",\"status\":\"available\"}");
	for (size_t i = 0; i < branch->ancestors_count; i++) {
		struct rev_id rev = { branch->rev.pos - 1 - i, branch->ancestors[i] };

		buf_append_cstr(out, ",{\"rev\":");
		couch_rev_write(rev, out);
		buf_append_cstr(out, ",\"status\":\"missing\"}");
	}
	buf_append_byte(out, ']');
}

static void
write_conflicts(const struct couch_doc_out *d, bool deleted, struct buf *out)
{
	bool any = false;

	for (size_t i = 0; i < d->tree->count; i++) {
		const struct rev_branch *b = &d->tree->branches[i];

		if (b == d->branch || b->deleted != deleted)
			continue;
		if (any)
			buf_append_byte(out, ',');
		else
			buf_append_cstr(out, deleted ? ",\"_deleted_conflicts\":["
						     : ",\"_conflicts\":[");
		any = true;
		couch_rev_write(b->rev, out);
	}
	if (any)
		buf_append_byte(out, ']');
}

static void
write_meta(const struct couch_doc_out *d, struct buf *out)
{
	unsigned flags = d->opts ? d->opts->flags : 0;

	if (flags & COUCH_DOC_REVS)
		write_revisions(d->branch, d->opts->revs_limit, out);
	if (flags & COUCH_DOC_REVS_INFO)
		write_revs_info(d->branch, out);
	if (flags & COUCH_DOC_CONFLICTS)
		write_conflicts(d, false, out);
	if (flags & COUCH_DOC_DELETED_CONFLICTS)
		write_conflicts(d, true, out);
	if (flags & COUCH_DOC_LOCAL_SEQ) {
		buf_append_cstr(out, ",\"_local_seq\":\"");
		rev_seq_write(&d->tree->seq, out);
		buf_append_byte(out, '"');
	}
}

enum status
couch_doc_write(const struct couch_doc_out *d, struct buf *out)
{
	buf_append_cstr(out, "{\"_id\":");
	json_write_str(out, d->id);
	buf_append_cstr(out, ",\"_rev\":");
	couch_rev_write(d->doc->rev, out);
	if (d->doc->deleted)
		buf_append_cstr(out, ",\"_deleted\":true");
	if (d->tree)
		write_meta(d, out);

	TRY(rev_body_write(d->doc, true, out));
	if (d->doc->atts_count == 0)
		return STATUS_OK;
	/* They go in front of the closing brace, behind everything that is small. */
	out->len--;
	TRY(couch_atts_write(d, out));
	buf_append_byte(out, '}');
	return buf_status(out);
}

enum status
couch_leaf_is(enum status status, const struct rev_branch *branch, struct rev_doc *doc)
{
	if (status == STATUS_NOT_FOUND && branch->deleted)
		*doc = (struct rev_doc){ .rev = branch->rev };
	else if (status != STATUS_OK)
		return status;
	doc->deleted = branch->deleted;
	return STATUS_OK;
}

enum status
couch_leaf_read(struct couch_req *r, struct kv_tx *tx, struct str id,
		const struct rev_branch *branch, struct rev_doc *ret)
{
	enum status status = rev_doc_read_leaf(tx, r->db, id, branch->rev, branch->deleted,
					       r->arena, ret);

	return couch_leaf_is(status, branch, ret);
}

enum status
couch_leaf_write(struct couch_req *r, struct kv_tx *tx, struct str id, const struct rev_tree *tree,
		 const struct rev_branch *branch, const struct couch_doc_opts *opts,
		 struct buf *out)
{
	struct rev_doc doc;
	struct couch_doc_out d = { id, &doc, tree, branch, opts };

	TRY(couch_leaf_read(r, tx, id, branch, &doc));
	return couch_doc_write(&d, out);
}

static bool
branch_has(const struct rev_branch *branch, struct rev_id rev)
{
	uint64_t back;

	if (rev.pos > branch->rev.pos)
		return false;
	back = branch->rev.pos - rev.pos;
	if (back == 0)
		return str_eq(branch->rev.hash, rev.hash);
	return back <= branch->ancestors_count && str_eq(branch->ancestors[back - 1], rev.hash);
}

const struct rev_branch *
couch_leaf_find(const struct rev_tree *tree, struct rev_id rev, bool latest)
{
	for (size_t i = 0; i < tree->count; i++) {
		const struct rev_branch *b = &tree->branches[i];

		if (rev_id_eq(b->rev, rev) || (latest && branch_has(b, rev)))
			return b;
	}
	return NULL;
}

static void
add_leaf(struct couch_wanted *w, const struct rev_branch *leaf)
{
	for (size_t i = 0; i < w->leaves_count; i++)
		if (w->leaves[i] == leaf)
			return;
	w->leaves[w->leaves_count++] = leaf;
}

static void
add_missing(struct couch_wanted *w, struct rev_id rev)
{
	for (size_t i = 0; i < w->missing_count; i++)
		if (rev_id_eq(w->missing[i], rev))
			return;
	w->missing[w->missing_count++] = rev;
}

enum status
couch_leaves_wanted(const struct rev_tree *tree, const struct rev_id *revs, size_t count,
		    bool latest, struct arena *arena, struct couch_wanted *ret)
{
	*ret = (struct couch_wanted){
		.leaves = arena_alloc(arena, (tree->count + 1) * sizeof(const struct rev_branch *)),
		.missing = arena_alloc(arena, (count + 1) * sizeof(struct rev_id)),
	};
	if (!ret->leaves || !ret->missing)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		bool found = false;

		for (size_t j = 0; j < tree->count; j++) {
			const struct rev_branch *b = &tree->branches[j];

			if (!rev_id_eq(b->rev, revs[i]) && !(latest && branch_has(b, revs[i])))
				continue;
			add_leaf(ret, b);
			found = true;
		}
		if (!found)
			add_missing(ret, revs[i]);
	}
	return STATUS_OK;
}
