/* Reads attachments chunk after chunk in bounded memory, and decompresses them on request. */
#define ZLIB_CONST
#include <assert.h>
#include <zlib.h>

#include "base/mem.h"
#include "loop/step.h"
#include "model/revisioned/revisioned_int.h"

enum {
	INFLATE_STEP_BYTES = 32, /* inflated in a step, taken and given */
	INFLATE_CALL_STEPS = 4,  /* what a call costs that does nearly nothing */
	GZIP_WINDOW = 16 + 15,   /* zlib's way to say gzip, with the largest window */
};

struct rev_att_reader {
	struct catalog_db *db;
	struct rev_att att;
	uint64_t at; /* stored bytes: the next one to be read… */
	uint64_t end;
	struct buf key;
	struct kv_future *future;
	struct kv_range range;
	size_t next;        /* of its pairs */
	size_t read_bytes;  /* of one range */
	size_t piece_bytes; /* the most that one piece has */

	bool decode;
	bool inflating; /* `z` is open */
	bool member_ended;
	z_stream z;
	Bytef *out;
	size_t out_len; /* bytes of the piece that is being decoded */
	bool invalid;   /* the stored bytes are there, and are not gzip */
};

enum status
rev_att_reader_new(struct catalog_db *db, const struct rev_att *att, bool decode, uint64_t begin,
		   uint64_t end, struct rev_att_reader **ret)
{
	struct rev_att_reader *r = mem_zalloc(sizeof(*r));

	if (!r)
		return STATUS_NOMEM;
	r->db = catalog_db_ref(db);
	r->att = *att;
	r->at = begin;
	r->end = end;
	r->read_bytes = REV_ATT_READ_BYTES;
	r->piece_bytes = REV_ATT_CHUNK_BYTES;
	r->key = CATALOG_KEY_INIT;
	r->decode = decode && att->encoding == REV_ATT_GZIP;
	if (r->decode) {
		r->out = mem_alloc(REV_ATT_PIECE_BYTES);
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
	catalog_db_unref(r->db);
	mem_free(r);
}

void
rev_att_reader_limit(struct rev_att_reader *r, size_t read_bytes, size_t piece_bytes)
{
	assert(read_bytes && piece_bytes);
	r->read_bytes = read_bytes;
	r->piece_bytes = piece_bytes;
}

void
rev_att_reader_rest(struct rev_att_reader *r)
{
	/* What zlib has not taken of its input lies in the read that is freed here. */
	r->at -= r->z.avail_in;
	r->z.avail_in = 0;
	r->z.next_in = NULL;
	kv_future_free(r->future);
	r->future = NULL;
}

void
rev_att_reader_back(struct rev_att_reader *r, size_t n)
{
	assert(!r->decode && !r->future && n <= r->at);
	r->at -= n;
}

/* Makes the key of chunk `n` in r->key, which it replaces. */
static enum status
att_reader_chunk_key(struct rev_att_reader *r, uint64_t n, struct str *ret)
{
	rev_key_att(&r->key, r->db, REV_ATT_SPACE_DATA, r->att.id);
	tuple_put_u64(&r->key, n);
	*ret = buf_str(&r->key);
	return catalog_key_status(&r->key);
}

static enum status
att_reader_ask(struct rev_att_reader *r, struct kv_tx *tx)
{
	const struct kv_range_options options = { .limit_bytes = r->read_bytes,
						  .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct str begin;
	enum status status;

	TRY(att_reader_chunk_key(r, (r->end - 1) / REV_ATT_CHUNK_BYTES + 1, &begin));
	buf_append_str(&end, begin);
	TRY(catalog_key_status(&end));
	TRY(att_reader_chunk_key(r, r->at / REV_ATT_CHUNK_BYTES, &begin));
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

/* Gives the next piece of the stored bytes. */
static enum status
att_reader_next_stored(struct rev_att_reader *r, struct kv_tx *tx, struct str *ret)
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
		TRY(att_reader_ask(r, tx));
	if (size > REV_ATT_CHUNK_BYTES)
		size = REV_ATT_CHUNK_BYTES;
	TRY(att_reader_chunk_key(r, n, &key));
	pair = &r->range.pairs[r->next];
	if (!str_eq(pair->key, key) || pair->value.len != size)
		return STATUS_CORRUPT;
	*ret = str_skip(pair->value, (size_t)(r->at - chunk_at));
	if (ret->len > r->end - r->at)
		ret->len = (size_t)(r->end - r->at);
	if (ret->len > r->piece_bytes)
		ret->len = r->piece_bytes;
	r->at += ret->len;
	if (r->at == chunk_at + size)
		r->next++;
	return STATUS_OK;
}

static enum status
att_reader_invalid(struct rev_att_reader *r)
{
	r->invalid = true;
	return STATUS_CORRUPT;
}

/*
 * Decodes into what is free of r->out. A long gzip file may decode to no bytes at all, so the steps
 * are counted here, by what is read, and not where the decoded pieces are used.
 */
static enum status
att_reader_inflate(struct rev_att_reader *r)
{
	size_t taken = r->z.avail_in;
	size_t given;
	int code;

	/* A gzip file may consist of several members in a row. */
	if (r->member_ended && inflateReset(&r->z) != Z_OK)
		return STATUS_CORRUPT;
	r->member_ended = false;
	r->z.next_out = r->out + r->out_len;
	r->z.avail_out = (uInt)(REV_ATT_PIECE_BYTES - r->out_len);
	code = inflate(&r->z, Z_NO_FLUSH);
	if (code == Z_MEM_ERROR)
		return STATUS_NOMEM;
	if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
		return att_reader_invalid(r);
	r->member_ended = code == Z_STREAM_END;
	given = REV_ATT_PIECE_BYTES - r->z.avail_out - r->out_len;
	r->out_len += given;
	step_pause(INFLATE_CALL_STEPS +
		   (uint32_t)((taken - r->z.avail_in + given) / INFLATE_STEP_BYTES));
	return STATUS_OK;
}

/*
 * Gives pieces that are full, but for the last one. So a caller that has the first piece knows that
 * a short attachment is valid to its end. A failure keeps what has been decoded of a piece.
 */
static enum status
att_reader_next_decoded(struct rev_att_reader *r, struct kv_tx *tx, struct str *ret)
{
	while (r->out_len < REV_ATT_PIECE_BYTES) {
		if (r->z.avail_in == 0) {
			struct str piece;
			enum status status = att_reader_next_stored(r, tx, &piece);

			if (status == STATUS_NOT_FOUND && !r->member_ended && r->att.encoded_length)
				return att_reader_invalid(r);
			if (status == STATUS_NOT_FOUND && r->out_len)
				break;
			TRY(status);
			r->z.next_in = (const Bytef *)piece.ptr;
			r->z.avail_in = (uInt)piece.len;
		}
		TRY(att_reader_inflate(r));
	}
	*ret = str_of(r->out, r->out_len);
	r->out_len = 0;
	return STATUS_OK;
}

enum status
rev_att_reader_next(struct rev_att_reader *r, struct kv_tx *tx, struct str *ret)
{
	return r->decode ? att_reader_next_decoded(r, tx, ret) : att_reader_next_stored(r, tx, ret);
}

bool
rev_att_reader_is_invalid(const struct rev_att_reader *r)
{
	return r->invalid;
}

enum status
rev_att_reader_is_kept(struct rev_att_reader *r, struct kv_tx *tx, bool *ret)
{
	struct kv_future *f;
	enum status status;
	struct str value;

	rev_key_att(&r->key, r->db, REV_ATT_SPACE_REFS, r->att.id);
	TRY(catalog_key_status(&r->key));
	f = kv_get(tx, buf_str(&r->key), KV_SNAPSHOT);
	status = kv_future_wait(f);
	*ret = status == STATUS_OK && kv_future_value(f, &value);
	kv_future_free(f);
	return status;
}
