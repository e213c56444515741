/* The dump of a revisioned database: a document a line, all of it from one transaction. */

#include <stdio.h>

#include "base/base64.h"
#include "base/quote.h"
#include "doc/json.h"
#include "model/revisioned/att_json.h"
#include "model/revisioned/kind_int.h"
#include "model/revisioned/revisioned_int.h"
#include "model/revisioned/salvage.h"

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

/* ---- What is left of a damaged database ---- */

struct rev_salvage {
	struct rev_dump dump;
	const struct catalog_broken *broken;
	struct arena *row;          /* of one branch */
	struct buf id;              /* of the document */
	struct buf hash;            /* of the revision */
	struct tuple_reader rest;   /* of the key, behind the id */
	struct tuple_reader behind; /* behind the revision */
	bool deleted;
	uint64_t pos;
};

/* True if a failure says that something is not there, or not as it was written. */
static bool
salvage_can_go_on(enum status status)
{
	return status == STATUS_CORRUPT || status == STATUS_NOT_FOUND || status == STATUS_NEWER ||
	       status == STATUS_DELETED || status == STATUS_ATT_MISSING;
}

static void
salvage_tell(const struct rev_salvage *s, const char *what, const char *why)
{
	AUTO(buf_release) struct buf text = BUF_INIT(ERR_TEXT_BYTES);

	buf_printf(&text, "revision %llu-", (unsigned long long)s->pos);
	buf_append_hex(&text, buf_str(&s->hash));
	buf_printf(&text, ": %s: %s", what, why);
	buf_append_byte(&text, '\0');
	s->broken->tell(s->broken->arg, buf_str(&s->id),
			buf_status(&text) == STATUS_OK ? text.ptr : why);
}

/* Reads all that an attachment has, as it is stored. */
static enum status
salvage_att_read(struct rev_salvage *s, const struct rev_att *att)
{
	struct rev_att_reader *reader;
	enum status status;
	struct str piece;

	TRY(rev_att_reader_new(s->dump.db, att, false, 0, att->encoded_length, &reader));
	do
		status = rev_att_reader_next(reader, s->dump.tx, &piece);
	while (status == STATUS_OK);
	rev_att_reader_free(reader);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* Leaves out the attachments of which something is missing. */
static enum status
salvage_atts(struct rev_salvage *s, struct rev_doc *doc)
{
	size_t kept = 0;

	for (size_t i = 0; i < doc->atts_count; i++) {
		AUTO(buf_release) struct buf what = BUF_INIT(ERR_TEXT_BYTES);
		enum status status = salvage_att_read(s, &doc->atts[i]);

		if (status == STATUS_OK) {
			doc->atts[kept++] = doc->atts[i];
			continue;
		}
		if (!salvage_can_go_on(status))
			return status;
		buf_printf(&what, "without its attachment \"%s\"", QUOTE_SHOW(doc->atts[i].name));
		buf_append_byte(&what, '\0');
		salvage_tell(s, buf_status(&what) == STATUS_OK ? what.ptr : "an attachment",
			     "its bytes are lost");
	}
	doc->atts_count = kept;
	return STATUS_OK;
}

static enum status
salvage_write(struct rev_salvage *s, const struct rev_branch *branch, struct rev_doc *doc)
{
	struct buf *out = s->dump.dump->out;

	buf_append_cstr(out, "{\"_id\":");
	json_write_str(out, buf_str(&s->id));
	TRY(dump_write_revision(&s->dump, out, branch));
	TRY(rev_body_write(doc, true, out));
	if (doc->atts_count) {
		out->len--; /* the members go in front of the closing brace */
		TRY(dump_write_atts(&s->dump, buf_str(&s->id), doc));
		buf_append_byte(out, '}');
	}
	return s->dump.dump->end_line(s->dump.dump->arg, s->dump.err);
}

/* Writes a revision, if all of its body is there. */
static enum status
salvage_head(struct rev_salvage *s, const struct rev_branch *branch)
{
	struct buf *out = s->dump.dump->out;
	struct rev_doc doc = { 0 };
	size_t begun = out->len;
	enum status status;

	arena_clear(s->dump.doc);
	status = rev_doc_read_head(s->dump.tx, s->dump.db, buf_str(&s->id), branch->rev,
				   branch->deleted, s->dump.doc, &doc);
	if (status == STATUS_NOT_FOUND && branch->deleted)
		status = STATUS_OK;
	if (status == STATUS_OK)
		status = salvage_atts(s, &doc);
	if (status == STATUS_OK) {
		status = salvage_write(s, branch, &doc);
		/* Nothing was given out if the body turned out to be broken only now. */
		if (salvage_can_go_on(status))
			out->len = begun;
	}
	if (!salvage_can_go_on(status))
		return status;
	salvage_tell(s, "its body is lost", status_name(status));
	return STATUS_OK;
}

/* Takes a key of REVISIONS or DOCUMENTS apart. False: it is none. */
static bool
salvage_key(struct rev_salvage *s, struct str tail)
{
	struct tuple_reader r = tuple_reader(tail);
	struct str text;
	bool alive;

	if (tuple_next_str(&r, &s->id, &text) != STATUS_OK)
		return false;
	/* What has no NUL in it is not copied. */
	if (text.ptr != s->id.ptr)
		buf_set(&s->id, text);
	s->rest = r;
	if (tuple_next_bool(&r, &alive) != STATUS_OK || tuple_next_u64(&r, &s->pos) != STATUS_OK ||
	    tuple_next_bytes(&r, &s->hash, &text) != STATUS_OK)
		return false;
	if (text.ptr != s->hash.ptr)
		buf_set(&s->hash, text);
	s->deleted = !alive;
	s->behind = r;
	return buf_status(&s->id) == STATUS_OK && buf_status(&s->hash) == STATUS_OK;
}

/* Writes a branch of REVISIONS. */
static enum status
salvage_branch(struct rev_salvage *s, const struct kv_pair *pair, struct str tail)
{
	struct rev_branch_record record;
	struct rev_branch branch = { 0 };
	struct err err = { 0 };
	enum status status;

	if (!salvage_key(s, tail))
		return STATUS_OK;
	arena_clear(s->row);
	status = rev_branch_record_parse(s->rest.rest, pair->value, s->row, &record, &err);
	if (status == STATUS_OK)
		status = rev_branch_copy(&record, true, s->row, &branch);
	if (status == STATUS_OK)
		return salvage_head(s, &branch);
	if (!salvage_can_go_on(status))
		return status;
	salvage_tell(s, "its history cannot be read", status_name(status));
	return STATUS_OK;
}

/* Writes a body of DOCUMENTS that no branch has, which comes back without its history. */
static enum status
salvage_body(struct rev_salvage *s, const struct kv_pair *pair, struct str tail)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct rev_branch branch = { 0 };
	struct kv_future *f;
	struct str value;

	(void)pair;
	/* Only the root of a body. */
	if (!salvage_key(s, tail) || s->behind.rest.len)
		return STATUS_OK;
	branch.rev = (struct rev_id){ .pos = s->pos, .hash = buf_str(&s->hash) };
	branch.deleted = s->deleted;
	rev_key_rev(&key, s->dump.db, REV_SUBSPACE_REVISIONS, buf_str(&s->id), s->deleted,
		    branch.rev);
	TRY(catalog_key_status(&key));
	f = kv_get(s->dump.tx, buf_str(&key), KV_SNAPSHOT);
	TRY(kv_future_wait(f));
	if (kv_future_value(f, &value)) {
		kv_future_free(f);
		return STATUS_OK;
	}
	kv_future_free(f);
	salvage_tell(s, "it comes back without its history", "the record of the revision is lost");
	return salvage_head(s, &branch);
}

static enum status
salvage_space(struct rev_salvage *s, enum rev_subspace space,
	      enum status (*take)(struct rev_salvage *s, const struct kv_pair *pair,
				  struct str tail))
{
	const struct kv_range_options options = { .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct kv_scan scan;
	struct kv_pair pair;
	enum status status;

	rev_key_space(&begin, s->dump.db, space);
	buf_append_buf(&end, &begin);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&begin));
	TRY(catalog_key_status(&end));
	TRY(kv_scan_init(&scan, s->dump.tx, buf_str(&begin), buf_str(&end), &options));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		status = take(s, &pair, str_skip(pair.key, begin.len));
		if (status != STATUS_OK)
			break;
	}
	kv_scan_release(&scan);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
rev_salvage_dump(const struct catalog_dump *dump, const struct catalog_broken *broken)
{
	struct rev_salvage s = {
		.dump = { .dump = dump,
			  .tx = dump->tx,
			  .db = dump->db,
			  .doc = arena_new(DOC_ARENA_BYTES),
			  .err = dump->err },
		.broken = broken,
		.row = arena_new(PAGE_ARENA_BYTES),
		.id = BUF_INIT(KV_LIMIT_KEY_BYTES),
		.hash = BUF_INIT(KV_LIMIT_KEY_BYTES),
	};
	enum status status = s.dump.doc && s.row ? STATUS_OK : STATUS_NOMEM;

	if (status == STATUS_OK)
		status = salvage_space(&s, REV_SUBSPACE_REVISIONS, salvage_branch);
	if (status == STATUS_OK)
		status = salvage_space(&s, REV_SUBSPACE_DOCUMENTS, salvage_body);
	arena_free(s.dump.doc);
	arena_free(s.row);
	buf_release(&s.id);
	buf_release(&s.hash);
	return status;
}

static enum status
rev_adopt(struct kv_tx *tx, const struct catalog_db *db, uint64_t options[CATALOG_OPTIONS],
	  const char **ret_made, struct err *err)
{
	const struct kv_range_options one = { .limit = 1, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct kv_future *f;

	(void)err;
	*ret_made = NULL;
	rev_key_space(&begin, db, REV_SUBSPACE_PARTITIONS);
	buf_append_buf(&end, &begin);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&begin));
	TRY(catalog_key_status(&end));
	f = kv_get_range(tx, buf_str(&begin), buf_str(&end), &one);
	TRY(kv_future_wait(f));
	options[REV_OPTION_SCHEME] = REV_SCHEME_DEFAULT;
	options[REV_OPTION_REVS_LIMIT] = REV_LIMIT_DEFAULT;
	options[REV_OPTION_PARTITIONED] = kv_future_range(f).count > 0;
	return STATUS_OK;
}

const struct catalog_salvage_kind rev_salvage = {
	.kind = &rev_kind,
	.own_space = REV_SUBSPACE_REVISIONS,
	.adopt = rev_adopt,
	.dump = rev_salvage_dump,
};
