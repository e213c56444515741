/* What `frond inspect` shows of a revisioned database. */
#include "base/utf8.h"
#include "catalog/draw.h"
#include "doc/root.h"
#include "index/engine/draw.h"
#include "index/json/form.h"
#include "model/revisioned/local_root.h"
#include "model/revisioned/kind_int.h"
#include "model/revisioned/revisioned_int.h"

/* ---- Names and values ---- */

static const char *const rev_space_names[] = {
	[REV_SUBSPACE_ALL_DOCS] = "all_docs",     [REV_SUBSPACE_CHANGES] = "changes",
	[REV_SUBSPACE_REVISIONS] = "revisions",   [REV_SUBSPACE_DOCUMENTS] = "documents",
	[REV_SUBSPACE_LOCAL] = "local",           [REV_SUBSPACE_ATTACHMENTS] = "attachments",
	[REV_SUBSPACE_INDEXES] = "indexes",       [REV_SUBSPACE_CONFIG] = "config",
	[REV_SUBSPACE_STATS] = "stats",           [REV_SUBSPACE_TALLIES] = "tallies",
	[REV_SUBSPACE_PURGES] = "purges",         [REV_SUBSPACE_ENTRIES] = "entries",
	[REV_SUBSPACE_PARTITIONS] = "partitions", [REV_SUBSPACE_VIEWS] = "views",
};

const char *
rev_space_name(uint64_t space)
{
	return space < sizeof(rev_space_names) / sizeof(rev_space_names[0]) ? rev_space_names[space]
									    : NULL;
}

const char *
rev_summary(const struct catalog_db *db)
{
	if (!rev_db_is_partitioned(db))
		return rev_scheme_name(rev_db_scheme(db));
	return rev_db_scheme(db) == REV_SCHEME_PACKED ? "packed, partitioned"
						      : "exploded, partitioned";
}

/* A container without members, or a number whose text matters: see doc/doc.h. */
static bool
inspect_draw_nested(const struct tuple_elem *e, struct buf *ret)
{
	struct tuple_reader r = tuple_reader_nested(e);
	struct tuple_elem first;
	struct tuple_elem second;
	enum status status = tuple_next(&r, &first);

	if (status == STATUS_NOT_FOUND) {
		buf_append_cstr(ret, "[]");
		return true;
	}
	if (status == STATUS_OK && first.kind == TUPLE_NESTED && first.raw.len == 0) {
		buf_append_cstr(ret, "{}");
		return true;
	}
	if (status == STATUS_OK && first.kind == TUPLE_DOUBLE &&
	    tuple_next(&r, &second) == STATUS_OK && second.kind == TUPLE_STRING) {
		buf_append_str(ret, second.raw);
		return true;
	}
	return false;
}

/*
 * A root value that has the packed document, with the JSON as it is: (2, {"a":1}). False for any
 * other value. A local document's has its revision in front of the text.
 */
static bool
inspect_draw_packed(struct str value, bool local, struct buf *ret)
{
	struct rev_local_root local_root;
	struct doc_root root;
	struct str text;
	bool more = false;

	if (local) {
		if (rev_local_root_read(value, &local_root, NULL) != STATUS_OK)
			return false;
		text = local_root.packed;
	} else {
		if (doc_root_read(value, &root, NULL) != STATUS_OK)
			return false;
		text = root.packed;
		more = root.more;
	}
	if (!text.ptr)
		return false;
	buf_printf(ret, "(%d, ", DOC_FORM_PACKED);
	if (local)
		buf_printf(ret, "%llu, ", (unsigned long long)local_root.rev);
	if (text.len <= CATALOG_DRAW_TEXT_BYTES) {
		buf_append_str(ret, text);
	} else {
		buf_append(ret, text.ptr,
			   utf8_valid_prefix(str_of(text.ptr, CATALOG_DRAW_TEXT_BYTES)));
		buf_printf(ret, "...(%zu bytes)", text.len);
	}
	buf_append_cstr(ret, more ? ", true)" : ")");
	return true;
}

/* (P, ATTACHMENTS, "refs", id) */
static bool
is_att_counter(struct str key)
{
	struct tuple_reader r = tuple_reader(key);
	struct tuple_elem e;
	uint64_t skipped;

	return tuple_next_u64(&r, &skipped) == STATUS_OK &&
	       tuple_next_u64(&r, &skipped) == STATUS_OK && tuple_next(&r, &e) == STATUS_OK &&
	       e.kind == TUPLE_STRING && str_eq(e.raw, STR("refs"));
}

bool
rev_draw_key(uint64_t space, struct str tail, struct str value, struct buf *ret)
{
	return space == REV_SUBSPACE_ENTRIES && index_json_draw_entry_key(tail, value, ret);
}

bool
rev_draw_value(uint64_t space, struct str key, struct str value, struct buf *ret)
{
	static const struct catalog_draw_manner body = { .nested = inspect_draw_nested };
	static const struct catalog_draw_manner branches = { .brackets = true };

	if (space == REV_SUBSPACE_STATS || space == REV_SUBSPACE_PARTITIONS ||
	    (space == REV_SUBSPACE_ATTACHMENTS && is_att_counter(key))) {
		if (catalog_draw_counter(value, ret) || catalog_draw_stamp(value, ret))
			return true;
	}
	if (space == REV_SUBSPACE_ATTACHMENTS) {
		/* The data of an attachment, which may be any bytes. */
		buf_printf(ret, "(%zu bytes)", value.len);
		return true;
	}
	if (space == REV_SUBSPACE_INDEXES)
		return index_draw_def(&index_json_form, value, ret) == STATUS_OK;
	if (space == REV_SUBSPACE_ENTRIES)
		return index_json_draw_entry(value, ret);
	if (space == REV_SUBSPACE_DOCUMENTS || space == REV_SUBSPACE_LOCAL) {
		if (!inspect_draw_packed(value, space == REV_SUBSPACE_LOCAL, ret))
			catalog_draw_tuple(value, &body, ret);
		return true;
	}
	if (space == REV_SUBSPACE_REVISIONS) {
		catalog_draw_tuple(value, &branches, ret);
		return true;
	}
	return false;
}

/* ---- One document ---- */

struct doc_inspect {
	struct kv_tx *tx;
	const struct catalog_db *db;
	struct str id;
	struct arena *arena;
	catalog_draw_prefix *draw;
	void *arg;
};

/* (P, subspace, id…). */
static enum status
inspect_draw_document_in(struct doc_inspect *i, enum rev_subspace subspace)
{
	AUTO(buf_release) struct buf key = BUF_INIT(KV_LIMIT_KEY_BYTES);

	buf_append_str(&key, i->db->prefix);
	tuple_put_u64(&key, subspace);
	tuple_put_str(&key, i->id);
	TRY(buf_status(&key));
	return i->draw(i->arg, buf_str(&key));
}

/* Draws the document's change, whose Sequence is in the branch record of the winner. */
static enum status
inspect_draw_change(struct doc_inspect *i)
{
	AUTO(buf_release) struct buf key = BUF_INIT(KV_LIMIT_KEY_BYTES);
	struct rev_tree tree;
	enum status status = rev_tree_read(i->tx, i->db, i->id, REV_TREE_ALL, i->arena, &tree);

	if (status == STATUS_NOT_FOUND) /* a local document has none */
		return STATUS_OK;
	TRY(status);
	buf_append_str(&key, i->db->prefix);
	tuple_put_u64(&key, REV_SUBSPACE_CHANGES);
	tuple_put_u64(&key, tree.seq.bytes[0]);
	tuple_put_versionstamp(&key, tree.seq.bytes + 1);
	TRY(buf_status(&key));
	return i->draw(i->arg, buf_str(&key));
}

/* (P, ATTACHMENTS, space, id…) */
static enum status
inspect_draw_att(struct doc_inspect *i, const struct rev_att *att, struct str space)
{
	AUTO(buf_release) struct buf key = BUF_INIT(KV_LIMIT_KEY_BYTES);

	buf_append_str(&key, i->db->prefix);
	tuple_put_u64(&key, REV_SUBSPACE_ATTACHMENTS);
	tuple_put_str(&key, space);
	tuple_put_uuid(&key, att->id);
	TRY(buf_status(&key));
	return i->draw(i->arg, buf_str(&key));
}

/* Draws the attachments that the document's pointer records name. */
static enum status
inspect_draw_atts(struct doc_inspect *i)
{
	struct str id = i->id;
	struct rev_tree tree;
	enum status status = rev_tree_read(i->tx, i->db, id, REV_TREE_ALL, i->arena, &tree);

	if (status == STATUS_NOT_FOUND)
		return STATUS_OK;
	TRY(status);
	for (size_t b = 0; b < tree.count; b++) {
		const struct rev_branch *branch = &tree.branches[b];
		struct rev_doc doc = { 0 };

		status = rev_doc_read_head(i->tx, i->db, id, branch->rev, branch->deleted, i->arena,
					   &doc);
		if (status != STATUS_OK && status != STATUS_NOT_FOUND)
			return status;
		for (size_t a = 0; status == STATUS_OK && a < doc.atts_count; a++) {
			TRY(inspect_draw_att(i, &doc.atts[a], STR("data")));
			TRY(inspect_draw_att(i, &doc.atts[a], STR("refs")));
		}
	}
	return STATUS_OK;
}

enum status
rev_inspect(struct kv_tx *tx, const struct catalog_db *db, struct str id, struct arena *arena,
	    catalog_draw_prefix *draw, void *arg)
{
	struct doc_inspect i = { tx, db, id, arena, draw, arg };

	TRY(inspect_draw_document_in(&i, REV_SUBSPACE_ALL_DOCS));
	TRY(inspect_draw_change(&i));
	TRY(inspect_draw_document_in(&i, REV_SUBSPACE_REVISIONS));
	TRY(inspect_draw_document_in(&i, REV_SUBSPACE_DOCUMENTS));
	TRY(inspect_draw_document_in(&i, REV_SUBSPACE_LOCAL));
	return inspect_draw_atts(&i);
}
