/* The dump of a revisioned database: a document a line, all of it from one transaction. */

#include <stdio.h>

#include "base/base64.h"
#include "base/quote.h"
#include "doc/json.h"
#include "model/revisioned/att_json.h"
#include "model/revisioned/kind_int.h"
#include "model/revisioned/revisioned_int.h"

enum {
	PAGE_DOCS = 1000,
	PAGE_ARENA_BYTES = 256 * 1024 * 1024,
	DOC_ARENA_BYTES = 1024 * 1024 * 1024, /* a document's leaves: keys are long */
};

struct rev_dump {
	const struct catalog_dump *dump;
	struct kv_tx *tx;
	struct catalog_db *db;
	struct arena *page;
	struct arena *doc;
	struct err *err;
};

static void
dump_write_hash(struct buf *out, struct str hash)
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
dump_write_revision(struct rev_dump *s, struct buf *out, const struct rev_branch *branch)
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
	dump_write_hash(out, branch->rev.hash);
	for (size_t i = 0; i < branch->ancestors_count; i++) {
		buf_append_byte(out, ',');
		dump_write_hash(out, branch->ancestors[i]);
	}
	buf_append_cstr(out, "]}");
	return STATUS_OK;
}

static enum status
dump_explain_failed_read(struct rev_dump *s, struct str id, enum status status)
{
	const char *reason = kv_tx_error(s->tx);

	return err_set(s->err, status, "cannot read document \"%.*s\": %s%s%s", STR_ARG(id),
		       status_name(status), reason[0] ? ": " : "", reason);
}

/*
 * Reads a gzipped attachment to its end, before anything of it is written. If it is no valid gzip,
 * nothing can be shown but the bytes that are stored, and somebody is told.
 */
static enum status
dump_check_att(struct rev_dump *s, struct str id, const struct rev_att *att, bool *ret_decode)
{
	char text[ERR_TEXT_BYTES];
	struct rev_att_reader *reader;
	enum status status;
	struct str piece;

	*ret_decode = true;
	if (att->encoding != REV_ATT_GZIP)
		return STATUS_OK;
	TRY(rev_att_reader_new(s->db, att, true, 0, att->encoded_length, &reader));
	do
		status = rev_att_reader_next(reader, s->tx, &piece);
	while (status == STATUS_OK);
	*ret_decode = !rev_att_reader_is_invalid(reader);
	rev_att_reader_free(reader);
	if (*ret_decode)
		return status == STATUS_NOT_FOUND ? STATUS_OK : status;
	(void)snprintf(text, sizeof(text),
		       "the attachment \"%s\" of \"%s\" is stored as gzip and is not valid gzip: "
		       "its bytes are dumped as they are stored",
		       QUOTE_SHOW(att->name), QUOTE_SHOW(id));
	s->dump->warn(s->dump->arg, text);
	return STATUS_OK;
}

/* Writes the bytes in base64. The line is sent in parts, so it takes bounded memory. */
static enum status
dump_write_att_data(struct rev_dump *s, struct str id, const struct rev_att *att)
{
	bool decode;
	AUTO(buf_release) struct buf carry = BUF_INIT(REV_ATT_BASE64_BYTES);
	AUTO(buf_release) struct buf text = BUF_INIT(REV_ATT_BASE64_BYTES);
	struct rev_att_reader *reader;
	enum status status = STATUS_OK;
	struct str piece;

	TRY(dump_check_att(s, id, att, &decode));
	TRY(rev_att_reader_new(s->db, att, decode, 0, att->encoded_length, &reader));
	while (status == STATUS_OK) {
		status = rev_att_base64_next(reader, s->tx, &carry, &text, &piece);
		if (status != STATUS_OK)
			break;
		buf_append_str(s->dump->out, piece);
		status = s->dump->ready(s->dump->arg, s->err);
	}
	rev_att_reader_free(reader);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* Writes attachments as CouchDB shows them inline, which is what a load reads. */
static enum status
dump_write_atts(struct rev_dump *s, struct str id, const struct rev_doc *doc)
{
	struct buf *out = s->dump->out;

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
		TRY(dump_write_att_data(s, id, att));
		buf_append_cstr(out, "\"}");
	}
	buf_append_byte(out, '}');
	return STATUS_OK;
}

/* Writes one head of a document, or, if `branch` is NULL, its winner. */
static enum status
dump_write_head(struct rev_dump *s, struct str id, struct rev_id rev,
		const struct rev_branch *branch)
{
	struct buf *out = s->dump->out;
	struct arena_mark mark = arena_mark(s->doc);
	struct rev_doc doc = { 0 };
	enum status status;

	status = rev_doc_read_head(s->tx, s->db, id, rev, branch && branch->deleted, s->doc, &doc);
	/* A tombstone has no body unless its client gave it one. */
	if (status == STATUS_NOT_FOUND && branch && branch->deleted)
		status = STATUS_OK;
	if (status != STATUS_OK)
		return dump_explain_failed_read(s, id, status);
	buf_append_cstr(out, "{\"_id\":");
	json_write_str(out, id);
	if (branch)
		TRY(dump_write_revision(s, out, branch));
	status = rev_body_write(&doc, true, out);
	if (status == STATUS_OK && doc.atts_count) {
		out->len--; /* the members go in front of the closing brace */
		status = dump_write_atts(s, id, &doc);
		buf_append_byte(out, '}');
	}
	arena_reset(s->doc, mark);
	if (status != STATUS_OK)
		return dump_explain_failed_read(s, id, status);
	return s->dump->end_line(s->dump->arg, s->err);
}

static enum status
dump_winners(struct rev_dump *s)
{
	AUTO(buf_release) struct buf last = BUF_INIT(REV_DOC_ID_BYTES);
	struct name_range range = { .limit = PAGE_DOCS };
	struct rev_entry_page page;

	do {
		arena_clear(s->page);
		TRY(rev_all_docs_page(s->tx, s->db, &range, s->page, &page));
		for (size_t i = 0; i < page.count; i++)
			TRY(dump_write_head(s, page.entries[i].id, page.entries[i].rev, NULL));
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
dump_tree(struct rev_dump *s, struct str id)
{
	struct arena_mark mark = arena_mark(s->doc);
	struct rev_tree tree;
	enum status status = rev_tree_read(s->tx, s->db, id, REV_TREE_ALL, s->doc, &tree);

	if (status != STATUS_OK)
		return dump_explain_failed_read(s, id, status);
	for (size_t i = 0; i < tree.count; i++)
		TRY(dump_write_head(s, id, tree.branches[i].rev, &tree.branches[i]));
	arena_reset(s->doc, mark);
	return STATUS_OK;
}

/* Goes through CHANGES, because ALL_DOCS leaves out the deleted documents. */
static enum status
dump_trees(struct rev_dump *s)
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

enum status
rev_dump(const struct catalog_dump *dump)
{
	struct rev_dump s = {
		.dump = dump,
		.tx = dump->tx,
		.db = dump->db,
		.page = arena_new(PAGE_ARENA_BYTES),
		.doc = arena_new(DOC_ARENA_BYTES),
		.err = dump->err,
	};
	enum status status = STATUS_NOMEM;

	if (s.page && s.doc)
		status = dump->revs ? dump_trees(&s) : dump_winners(&s);
	arena_free(s.page);
	arena_free(s.doc);
	return status;
}
