/* Dumping from a store: everything from one read-only transaction. */
#include "cli/dump.h"

#include "base/base64.h"
#include "doc/json.h"
#include "model/revisioned/att_json.h"

enum {
	PAGE_DOCS = 1000,
	PAGE_ARENA_BYTES = 256 * 1024 * 1024,
	DOC_ARENA_BYTES = 1024 * 1024 * 1024, /* a document's leaves: keys are long */
};

struct store_dump {
	struct dump *dump;
	struct kv_tx *tx;
	struct rev_db *db;
	struct arena *page;
	struct arena *doc;
	struct err *err;
};

static void
write_hash(struct buf *out, struct str hash)
{
	if (hash.len != REV_HASH_BYTES) {
		json_write_str(out, hash);
		return;
	}
	buf_append_byte(out, '"');
	buf_append_hex(out, hash);
	buf_append_byte(out, '"');
}

/* ,"_rev":...,"_deleted":true,"_revisions":{"start":...,"ids":[...]} */
static enum status
write_revision(struct store_dump *s, struct buf *out, const struct rev_branch *branch)
{
	AUTO(buf_release) struct buf rev = BUF_INIT(REV_HASH_LIMIT_BYTES * 2 + 32);

	rev_id_write(branch->rev, &rev);
	if (buf_status(&rev) != STATUS_OK)
		return err_set(s->err, buf_status(&rev), "out of memory");
	buf_append_cstr(out, ",\"_rev\":");
	json_write_str(out, buf_str(&rev));
	if (branch->deleted)
		buf_append_cstr(out, ",\"_deleted\":true");
	buf_append_cstr(out, ",\"_revisions\":{\"start\":");
	buf_append_u64(out, branch->rev.pos);
	buf_append_cstr(out, ",\"ids\":[");
	write_hash(out, branch->rev.hash);
	for (size_t i = 0; i < branch->ancestors_count; i++) {
		buf_append_byte(out, ',');
		write_hash(out, branch->ancestors[i]);
	}
	buf_append_cstr(out, "]}");
	return STATUS_OK;
}

static enum status
fail_read(struct store_dump *s, struct str id, enum status status)
{
	const char *reason = kv_tx_error(s->tx);

	return err_set(s->err, status, "cannot read document \"%.*s\": %s%s%s", STR_ARG(id),
		       status_name(status), reason[0] ? ": " : "", reason);
}

/* The bytes in base64; the line goes out as it grows. */
static enum status
write_data(struct store_dump *s, const struct rev_att *att)
{
	AUTO(buf_release) struct buf carry = BUF_INIT(REV_ATT_BASE64_BYTES);
	AUTO(buf_release) struct buf text = BUF_INIT(REV_ATT_BASE64_BYTES);
	struct rev_att_reader *reader;
	enum status status = rev_att_reader_new(s->db, att, true, 0, att->encoded_length, &reader);
	struct str piece;

	TRY(status);
	while (status == STATUS_OK) {
		status = rev_att_base64_next(reader, s->tx, &carry, &text, &piece);
		if (status != STATUS_OK)
			break;
		buf_append_str(output_buf(&s->dump->output), piece);
		status = output_ready(&s->dump->output, s->err);
	}
	rev_att_reader_free(reader);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* As CouchDB shows them inline: what a load takes. */
static enum status
write_atts(struct store_dump *s, const struct rev_doc *doc)
{
	struct buf *out = output_buf(&s->dump->output);

	for (size_t i = 0; i < doc->atts_count; i++) {
		const struct rev_att *att = &doc->atts[i];

		buf_append_cstr(out, i ? "," : ",\"_attachments\":{");
		json_write_str(out, att->name);
		buf_append_cstr(out, ":{\"content_type\":");
		json_write_str(out, att->type);
		if (s->dump->revs) {
			buf_append_cstr(out, ",\"revpos\":");
			buf_append_u64(out, att->revpos);
			buf_append_cstr(out, ",\"digest\":\"md5-");
			base64_encode(out, str_of(att->digest, sizeof(att->digest)),
				      BASE64_STANDARD);
			buf_append_byte(out, '"');
		}
		buf_append_cstr(out, ",\"data\":\"");
		TRY(write_data(s, att));
		buf_append_cstr(out, "\"}");
	}
	buf_append_byte(out, '}');
	return STATUS_OK;
}

/* One leaf of a document's tree, or, without a branch, its winner. */
static enum status
write_leaf(struct store_dump *s, struct str id, struct rev_id rev, const struct rev_branch *branch)
{
	struct buf *out = output_buf(&s->dump->output);
	struct arena_mark mark = arena_mark(s->doc);
	struct rev_doc doc = { 0 };
	uint64_t from = output_position(&s->dump->output);
	enum status status;

	status = rev_doc_read_leaf(s->tx, s->db, id, rev, branch && branch->deleted, s->doc, &doc);
	/* A tombstone has no body unless its client gave it one. */
	if (status == STATUS_NOT_FOUND && branch && branch->deleted)
		status = STATUS_OK;
	if (status != STATUS_OK)
		return fail_read(s, id, status);
	buf_append_cstr(out, "{\"_id\":");
	json_write_str(out, id);
	if (branch)
		TRY(write_revision(s, out, branch));
	status = rev_body_write(&doc, true, out);
	if (status == STATUS_OK && doc.atts_count) {
		out->len--; /* they go in front of the closing brace */
		status = write_atts(s, &doc);
		buf_append_byte(out, '}');
	}
	arena_reset(s->doc, mark);
	if (status != STATUS_OK)
		return fail_read(s, id, status);
	return dump_end_line(s->dump, from, s->err);
}

static enum status
dump_winners(struct store_dump *s)
{
	AUTO(buf_release) struct buf last = BUF_INIT(REV_DOC_ID_BYTES);
	struct rev_name_range range = { .limit = PAGE_DOCS };
	struct rev_entry_page page;

	do {
		arena_clear(s->page);
		TRY(rev_all_docs_page(s->tx, s->db, &range, s->page, &page));
		for (size_t i = 0; i < page.count; i++)
			TRY(write_leaf(s, page.entries[i].id, page.entries[i].rev, NULL));
		if (page.count) {
			buf_clear(&last);
			buf_append_str(&last, page.entries[page.count - 1].id);
			TRY(buf_status(&last));
			range.begin = buf_str(&last);
			range.has_begin = true;
			range.exclusive_begin = true;
		}
	} while (page.more);
	return STATUS_OK;
}

static enum status
dump_tree(struct store_dump *s, struct str id)
{
	struct arena_mark mark = arena_mark(s->doc);
	struct rev_tree tree;
	enum status status = rev_tree_read(s->tx, s->db, id, s->doc, &tree);

	if (status != STATUS_OK)
		return fail_read(s, id, status);
	for (size_t i = 0; i < tree.count; i++)
		TRY(write_leaf(s, id, tree.branches[i].rev, &tree.branches[i]));
	arena_reset(s->doc, mark);
	return STATUS_OK;
}

/* By changes, because the index of all documents leaves out the deleted ones. */
static enum status
dump_trees(struct store_dump *s)
{
	struct rev_change_range range = { .limit = PAGE_DOCS };
	struct rev_change_page page;

	memset(&range.until, 0xff, sizeof(range.until));
	do {
		arena_clear(s->page);
		TRY(rev_changes_page(s->tx, s->db, &range, s->page, &page));
		for (size_t i = 0; i < page.count; i++)
			TRY(dump_tree(s, page.changes[i].id));
		if (page.count)
			range.since = page.changes[page.count - 1].seq;
	} while (page.more);
	return STATUS_OK;
}

static enum status
dump_database(struct store_dump *s)
{
	enum status status;

	status = rev_db_open(s->tx, NULL, str_from_cstr(s->dump->db), &s->db, s->err);
	if (status == STATUS_NOT_FOUND)
		return err_set(s->err, status, "there is no database \"%s\"", s->dump->db);
	TRY(status);
	status = s->dump->revs ? dump_trees(s) : dump_winners(s);
	rev_db_unref(s->db);
	return status;
}

enum status
dump_store(struct dump *d, struct kv_store *store, struct err *err)
{
	struct store_dump s = {
		.dump = d,
		.page = arena_new(PAGE_ARENA_BYTES),
		.doc = arena_new(DOC_ARENA_BYTES),
		.err = err,
	};
	enum status status = STATUS_NOMEM;

	if (s.page && s.doc)
		status = kv_begin(store, KV_TX_READ_ONLY, &s.tx);
	if (status == STATUS_OK)
		status = dump_database(&s);
	if (status != STATUS_OK && !err->text[0])
		status = err_set(err, status, "cannot read the database: %s%s%s",
				 status_name(status), s.tx ? ": " : "",
				 s.tx ? kv_tx_error(s.tx) : "");
	kv_tx_free(s.tx);
	arena_free(s.page);
	arena_free(s.doc);
	return status;
}
