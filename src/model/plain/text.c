/* Documents in chunks, and those that are written ahead of their transaction. */
#include "base/steady.h"
#include "base/rand.h"
#include "model/plain/plain_int.h"

enum {
	STAGE_CHUNKS = 20, /* of DOC_CHUNK_BYTES, that one transaction writes */
};

static enum status
header_set(struct kv_tx *tx, const struct catalog_db *db, const uint8_t text[PLAIN_TEXT_ID_BYTES],
	   const struct plain_text *header)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(KV_LIMIT_VALUE_BYTES);

	plain_key_text(db, text, &key);
	TRY(catalog_key_status(&key));
	plain_text_put(header, &value);
	TRY(buf_status(&value));
	return kv_set(tx, buf_str(&key), buf_str(&value));
}

/* What a record's key is behind the subspace: the header of its text names it. */
static enum status
owner_of(const struct plain *p, struct str record, struct str *ret)
{
	AUTO(buf_release) struct buf space = CATALOG_KEY_INIT;

	plain_key_space(&space, p->db, PLAIN_SPACE_RECORDS);
	TRY(catalog_key_status(&space));
	*ret = str_skip(record, space.len);
	return STATUS_OK;
}

enum status
plain_text_write(struct plain *p, struct str owner, struct str bytes,
		 uint8_t ret[PLAIN_TEXT_ID_BYTES])
{
	struct plain_text header = { .length = bytes.len };
	AUTO(buf_release) struct buf prefix = CATALOG_KEY_INIT;

	TRY(owner_of(p, owner, &header.owner));
	rand_bytes(ret, PLAIN_TEXT_ID_BYTES);
	TRY(header_set(p->tx, p->db, ret, &header));
	plain_key_text(p->db, ret, &prefix);
	TRY(catalog_key_status(&prefix));
	return doc_chunks_write(p->tx, buf_str(&prefix), bytes);
}

enum status
plain_text_publish(struct plain *p, struct str owner, const struct plain_doc *doc,
		   struct arena *arena)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct plain_text header = { 0 };
	struct kv_future *f;
	struct str value;
	enum status status;

	plain_key_text(p->db, doc->text, &key);
	TRY(catalog_key_status(&key));
	f = kv_get(p->tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return err_set(p->err, STATUS_TIMEOUT,
			       "the document was written ahead too long ago, and was removed");
	status = plain_text_parse(value, arena, &header, p->err);
	if (status == STATUS_OK && (!header.staged_ms || header.length != doc->bytes.len))
		status = STATUS_CORRUPT;
	if (status == STATUS_CORRUPT)
		return plain_fail_corrupt(p, buf_str(&key), "a text that was written ahead");
	TRY(status);
	header.staged_ms = 0;
	TRY(owner_of(p, owner, &header.owner));
	TRY(header_set(p->tx, p->db, doc->text, &header));
	plain_key_staged(p->db, doc->text, &key);
	TRY(catalog_key_status(&key));
	return kv_clear(p->tx, buf_str(&key));
}

enum status
plain_text_clear(struct plain *p, const uint8_t text[PLAIN_TEXT_ID_BYTES])
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	plain_key_text(p->db, text, &begin);
	TRY(catalog_key_status(&begin));
	TRY(plain_key_end(buf_str(&begin), &end));
	return kv_clear_range(p->tx, buf_str(&begin), buf_str(&end));
}

/* ---- Ahead ---- */

struct plain_doc
plain_doc_of(struct str bytes)
{
	return (struct plain_doc){ .bytes = bytes };
}

/* One transaction's part of a text. */
struct stage {
	const struct catalog_db *db;
	struct plain_doc *doc;
	uint64_t first; /* chunk */
	struct err *err;
};

static enum status
stage_body(struct kv_tx *tx, void *arg)
{
	struct stage *s = arg;
	const struct plain_text header = { .staged_ms = steady_ms(), .length = s->doc->bytes.len };
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	uint64_t last = s->first + STAGE_CHUNKS;

	/* A collection that was dropped meanwhile gets no more keys. */
	TRY(catalog_db_check_now(tx, s->db, s->err));
	/* The time is that of the latest part. */
	TRY(header_set(tx, s->db, s->doc->text, &header));
	plain_key_staged(s->db, s->doc->text, &key);
	TRY(catalog_key_status(&key));
	TRY(kv_set(tx, buf_str(&key), (struct str){ "", 0 }));
	for (uint64_t n = s->first; n < last && n * DOC_CHUNK_BYTES < s->doc->bytes.len; n++) {
		struct str rest = str_skip(s->doc->bytes, n * DOC_CHUNK_BYTES);

		plain_key_text(s->db, s->doc->text, &key);
		tuple_put_u64(&key, n);
		TRY(catalog_key_status(&key));
		if (rest.len > DOC_CHUNK_BYTES)
			rest.len = DOC_CHUNK_BYTES;
		TRY(kv_set(tx, buf_str(&key), rest));
	}
	return STATUS_OK;
}

enum status
plain_stage(struct kv_store *store, const struct catalog_db *db, struct str bytes,
	    struct plain_doc *ret, struct err *err)
{
	struct stage s = { .db = db, .doc = ret, .err = err };

	*ret = plain_doc_of(bytes);
	if (bytes.len <= PLAIN_AHEAD_BYTES || bytes.len > BSON_DOCUMENT_BYTES)
		return STATUS_OK; /* too long for any: the writer says so */
	rand_bytes(ret->text, sizeof(ret->text));
	for (; s.first * DOC_CHUNK_BYTES < bytes.len; s.first += STAGE_CHUNKS)
		TRY(kv_run(store, stage_body, &s, NULL, err));
	ret->staged = true;
	return STATUS_OK;
}
