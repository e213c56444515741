#include "doc/chunks.h"

#include "kv/tuple.h"

enum {
	KEY_SPARE_BYTES = 16, /* the number of a chunk, or the end of a range, behind a prefix */
};

void
doc_text_prefix(struct buf *ret, struct str texts, const uint8_t text_id[])
{
	buf_clear(ret);
	buf_append_str(ret, texts);
	tuple_put_uuid(ret, text_id);
}

uint64_t
doc_chunks_count(uint64_t text_bytes)
{
	return (text_bytes + DOC_CHUNK_BYTES - 1) / DOC_CHUNK_BYTES;
}

/* STATUS_KEY_TOO_LARGE where a buffer for a key was too small. */
static enum status
key_status(const struct buf *key)
{
	enum status status = buf_status(key);

	return status == STATUS_LIMIT ? STATUS_KEY_TOO_LARGE : status;
}

static void
put_chunk_key(struct buf *key, struct str prefix, uint64_t n)
{
	buf_clear(key);
	buf_append_str(key, prefix);
	tuple_put_u64(key, n);
}

enum status
doc_chunks_write(struct kv_tx *tx, struct str prefix, struct str text)
{
	AUTO(buf_release) struct buf key = BUF_INIT(KV_LIMIT_KEY_BYTES);

	for (uint64_t n = 0; text.len; n++) {
		size_t bytes = text.len < DOC_CHUNK_BYTES ? text.len : DOC_CHUNK_BYTES;

		put_chunk_key(&key, prefix, n);
		TRY(key_status(&key));
		TRY(kv_set(tx, buf_str(&key), str_of(text.ptr, bytes)));
		text = str_skip(text, bytes);
	}
	return STATUS_OK;
}

enum status
doc_chunks_open(struct doc_chunks_reader *r, struct kv_tx *tx, struct str prefix,
		uint64_t text_bytes)
{
	const struct kv_range_options options = { .limit_bytes = DOC_CHUNKS_READ_BYTES,
						  .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = BUF_INIT(prefix.len + KEY_SPARE_BYTES);
	AUTO(buf_release) struct buf end = BUF_INIT(prefix.len + KEY_SPARE_BYTES);

	put_chunk_key(&begin, prefix, 0);
	put_chunk_key(&end, prefix, doc_chunks_count(text_bytes));
	TRY(buf_status(&begin));
	TRY(buf_status(&end));
	r->prefix_len = prefix.len;
	r->next = 0;
	r->left = text_bytes;
	return kv_scan_init(&r->scan, tx, buf_str(&begin), buf_str(&end), &options);
}

/* True if the pair is the chunk that comes next, whole. */
static bool
is_next_chunk(const struct doc_chunks_reader *r, const struct kv_pair *pair)
{
	struct tuple_reader k = tuple_reader(str_skip(pair->key, r->prefix_len));
	uint64_t bytes = r->left < DOC_CHUNK_BYTES ? r->left : DOC_CHUNK_BYTES;
	uint64_t n;

	return tuple_next_u64(&k, &n) == STATUS_OK && n == r->next && k.rest.len == 0 &&
	       pair->value.len == bytes;
}

enum status
doc_chunks_next(struct doc_chunks_reader *r, struct str *ret)
{
	struct kv_pair pair;
	enum status status;

	if (r->left == 0)
		return STATUS_NOT_FOUND;
	status = kv_scan_next(&r->scan, &pair);
	if (status != STATUS_OK)
		return status == STATUS_NOT_FOUND ? STATUS_CORRUPT : status;
	if (!is_next_chunk(r, &pair))
		return STATUS_CORRUPT;
	r->next++;
	r->left -= pair.value.len;
	*ret = pair.value;
	return STATUS_OK;
}

void
doc_chunks_close(struct doc_chunks_reader *r)
{
	kv_scan_release(&r->scan);
}

enum status
doc_chunks_read(struct kv_tx *tx, struct str prefix, uint64_t text_bytes, struct arena *arena,
		struct str *ret)
{
	AUTO(doc_chunks_close) struct doc_chunks_reader r = { .next = 0 };
	char *text = arena_bytes(arena, text_bytes);
	enum status status;
	struct str piece;
	size_t at = 0;

	if (!text)
		return STATUS_LIMIT;
	TRY(doc_chunks_open(&r, tx, prefix, text_bytes));
	while ((status = doc_chunks_next(&r, &piece)) == STATUS_OK) {
		memcpy(text + at, piece.ptr, piece.len);
		at += piece.len;
	}
	if (status != STATUS_NOT_FOUND)
		return status;
	*ret = str_of(text, text_bytes);
	return STATUS_OK;
}
