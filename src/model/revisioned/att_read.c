/* Reading attachments: chunk after chunk in bounded memory, gunzipped where that is wanted. */
#define ZLIB_CONST
#include <zlib.h>

#include "base/mem.h"
#include "model/revisioned/revisioned_int.h"

enum {
	OUT_BYTES = 64 * 1024, /* of a decoded piece */
	GZIP_WINDOW = 16 + 15, /* zlib's way to say gzip, with the largest window */
};

struct rev_att_reader {
	struct rev_db *db;
	struct rev_att att;
	uint64_t at; /* stored bytes: the next one to be read… */
	uint64_t end;
	struct buf key;
	struct kv_future *future;
	struct kv_range range;
	size_t next; /* of its pairs */

	bool decode;
	bool inflating; /* `z` is open */
	bool member_ended;
	z_stream z;
	Bytef *out;
};

enum status
rev_att_reader_new(struct rev_db *db, const struct rev_att *att, bool decode, uint64_t begin,
		   uint64_t end, struct rev_att_reader **ret)
{
	struct rev_att_reader *r = mem_zalloc(sizeof(*r));

	if (!r)
		return STATUS_NOMEM;
	r->db = rev_db_ref(db);
	r->att = *att;
	r->at = begin;
	r->end = end;
	r->key = REV_KEY_INIT;
	r->decode = decode && att->encoding == REV_ATT_GZIP;
	if (r->decode) {
		r->out = mem_alloc(OUT_BYTES);
		r->inflating = r->out && inflateInit2(&r->z, GZIP_WINDOW) == Z_OK;
		if (!r->inflating) {
			rev_att_reader_free(r);
			return STATUS_NOMEM;
		}
	}
	*ret = r;
	return STATUS_OK;
}

void
rev_att_reader_free(struct rev_att_reader *r)
{
	if (!r)
		return;
	kv_future_free(r->future);
	if (r->inflating)
		(void)inflateEnd(&r->z);
	mem_free(r->out);
	buf_release(&r->key);
	rev_db_unref(r->db);
	mem_free(r);
}

/* The key of chunk `n`, alone in the buffer or behind what is there. */
static enum status
chunk_key(struct rev_att_reader *r, uint64_t n, struct str *ret)
{
	rev_key_att(&r->key, r->db, REV_ATT_SPACE_DATA, r->att.id);
	tuple_put_u64(&r->key, n);
	*ret = buf_str(&r->key);
	return rev_key_status(&r->key);
}

static enum status
ask(struct rev_att_reader *r, struct kv_tx *tx)
{
	const struct kv_range_options options = { .limit_bytes = REV_ATT_READ_BYTES,
						  .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf end = REV_KEY_INIT;
	struct str begin;
	enum status status;

	TRY(chunk_key(r, (r->end - 1) / REV_ATT_CHUNK_BYTES + 1, &begin));
	buf_append_str(&end, begin);
	TRY(rev_key_status(&end));
	TRY(chunk_key(r, r->at / REV_ATT_CHUNK_BYTES, &begin));
	r->future = kv_get_range(tx, begin, buf_str(&end), &options);
	status = kv_future_wait(r->future);
	if (status != STATUS_OK) {
		kv_future_free(r->future);
		r->future = NULL;
		return status;
	}
	r->range = kv_future_range(r->future);
	r->next = 0;
	return r->range.count ? STATUS_OK : STATUS_CORRUPT;
}

/* The next piece of what is stored. */
static enum status
stored_next(struct rev_att_reader *r, struct kv_tx *tx, struct str *ret)
{
	uint64_t n = r->at / REV_ATT_CHUNK_BYTES;
	uint64_t chunk_at = n * REV_ATT_CHUNK_BYTES;
	uint64_t size = r->att.encoded_length - chunk_at;
	const struct kv_pair *pair;
	struct str key;

	if (r->at >= r->end)
		return STATUS_NOT_FOUND;
	if (r->future && r->next == r->range.count) {
		kv_future_free(r->future);
		r->future = NULL;
	}
	if (!r->future)
		TRY(ask(r, tx));
	if (size > REV_ATT_CHUNK_BYTES)
		size = REV_ATT_CHUNK_BYTES;
	TRY(chunk_key(r, n, &key));
	pair = &r->range.pairs[r->next++];
	if (!str_eq(pair->key, key) || pair->value.len != size)
		return STATUS_CORRUPT;
	*ret = str_skip(pair->value, (size_t)(r->at - chunk_at));
	if (ret->len > r->end - r->at)
		ret->len = (size_t)(r->end - r->at);
	r->at += ret->len;
	return STATUS_OK;
}

static enum status
inflate_some(struct rev_att_reader *r, size_t *ret_len)
{
	int code;

	/* One gzip file may be several in a row. */
	if (r->member_ended && inflateReset(&r->z) != Z_OK)
		return STATUS_CORRUPT;
	r->member_ended = false;
	r->z.next_out = r->out;
	r->z.avail_out = OUT_BYTES;
	code = inflate(&r->z, Z_NO_FLUSH);
	if (code == Z_MEM_ERROR)
		return STATUS_NOMEM;
	if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
		return STATUS_CORRUPT;
	r->member_ended = code == Z_STREAM_END;
	*ret_len = OUT_BYTES - r->z.avail_out;
	return STATUS_OK;
}

enum status
rev_att_reader_next(struct rev_att_reader *r, struct kv_tx *tx, struct str *ret)
{
	size_t len = 0;

	if (!r->decode)
		return stored_next(r, tx, ret);
	do {
		if (r->z.avail_in == 0) {
			struct str piece;
			enum status status = stored_next(r, tx, &piece);

			if (status == STATUS_NOT_FOUND && !r->member_ended)
				return r->att.encoded_length ? STATUS_CORRUPT : STATUS_NOT_FOUND;
			TRY(status);
			r->z.next_in = (const Bytef *)piece.ptr;
			r->z.avail_in = (uInt)piece.len;
		}
		TRY(inflate_some(r, &len));
	} while (len == 0);
	*ret = str_of(r->out, len);
	return STATUS_OK;
}
