/*
 * Uploads: bytes come in pieces of any size, are digested and perhaps compressed, and are written
 * to the store in batches of whole chunks, before the revision that they belong to.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <assert.h>

#include <openssl/md5.h>
#define ZLIB_CONST
#include <zlib.h>

#include "base/budget.h"
#include "base/clock.h"
#include "base/steady.h"
#include "base/mem.h"
#include "base/rand.h"
#include "loop/step.h"
#include "loop/wait.h"
#include "catalog/chores.h"
#include "model/revisioned/record.h"
#include "model/revisioned/revisioned_int.h"

enum {
	BATCH_BYTES = REV_ATT_CHUNK_BYTES * REV_ATT_BATCH_CHUNKS,
	PIECE_BYTES = 64 * 1024,    /* taken in at once */
	OUT_BYTES = 32 * 1024,      /* made by zlib at once */
	OFFLOAD_BYTES = 16 * 1024,  /* larger pieces are compressed on another thread */
	HASH_STEP_BYTES = 32,       /* hashed in a step, twice */
	DEFLATE_STEP_BYTES = 4,     /* compressed in a step */
	GZIP_WINDOW = 16 + 15,      /* zlib's way to say gzip, with the largest window */
	DEFLATE_BYTES = 260 * 1024, /* what zlib takes */
	GZIP_MEMORY = 8,            /* zlib's default, and CouchDB's: the digest depends on it */
};

struct rev_upload {
	struct rev_upload_options options;
	uint8_t id[REV_ATT_ID_BYTES];
	MD5_CTX md5_in;
	MD5_CTX md5_stored;
	uint64_t in_bytes;
	uint64_t stored_bytes;
	bool deflating; /* `z` is open */
	z_stream z;
	struct buf held;      /* stored bytes that are not in the store yet */
	size_t counted_bytes; /* what the budget counts of all this */
	uint64_t chunks;      /* in the store */
	uint64_t begun_ms;
	uint64_t touched_ns;

	/*
	 * The arguments and the result of upload_deflate_piece(). It may run on a thread of the
	 * pool. The uploading fiber waits meanwhile, so only one of the two uses the upload at a
	 * time.
	 */
	struct str piece;
	int flush;
	enum status deflated;
};

/*
 * Counts what the upload takes now. Only the uploading fiber does so: pieces may be deflated on
 * another thread, which must not touch the part.
 */
static void
upload_count_memory(struct rev_upload *u)
{
	size_t now = u->held.cap + (u->deflating ? DEFLATE_BYTES : 0);

	if (!u->options.part)
		return;
	if (now > u->counted_bytes)
		budget_count(u->options.part, now - u->counted_bytes);
	else
		budget_unuse(u->options.part, u->counted_bytes - now);
	u->counted_bytes = now;
}

enum status
rev_upload_new(const struct rev_upload_options *options, struct rev_upload **ret)
{
	struct rev_upload *u = mem_zalloc(sizeof(*u));

	if (!u)
		return STATUS_NOMEM;
	u->options = *options;
	u->options.db = catalog_db_ref(options->db);
	u->begun_ms = steady_ms();
	u->touched_ns = clock_mono_ns();
	buf_init(&u->held, BATCH_BYTES + 4 * PIECE_BYTES);
	rand_bytes(u->id, sizeof(u->id));
	MD5_Init(&u->md5_in);
	MD5_Init(&u->md5_stored);
	if (options->gzip_level) {
		u->deflating = deflateInit2(&u->z, options->gzip_level, Z_DEFLATED, GZIP_WINDOW,
					    GZIP_MEMORY, Z_DEFAULT_STRATEGY) == Z_OK;
		if (!u->deflating) {
			rev_upload_free(u, true);
			return STATUS_NOMEM;
		}
	}
	upload_count_memory(u);
	*ret = u;
	return STATUS_OK;
}

/* ---- Into the store ---- */

struct upload_store_call {
	struct rev_upload *u;
	struct str data; /* whole chunks, or the last ones */
	struct err *err;
};

static enum status
upload_has_record(struct rev_upload *u, struct kv_tx *tx, struct buf *key, bool *ret)
{
	struct kv_future *f;
	struct str value;

	rev_key_upload(key, u->options.db->number, u->id);
	TRY(catalog_key_status(key));
	f = kv_get(tx, buf_str(key), KV_READ);
	TRY(kv_future_wait(f));
	*ret = kv_future_value(f, &value);
	return STATUS_OK;
}

static enum status
upload_store_held_body(struct kv_tx *tx, void *arg)
{
	struct upload_store_call *s = arg;
	struct rev_upload *u = s->u;
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(64);
	bool staged;

	TRY(catalog_db_check_now(tx, u->options.db, s->err));
	TRY(upload_has_record(u, tx, &key, &staged));
	if (u->chunks && !staged)
		return err_set(s->err, STATUS_TIMEOUT,
			       "the upload has taken too long and was given up");
	rev_upload_record_put(&value, &(struct rev_upload_record){ u->begun_ms, steady_ms() });
	TRY(buf_status(&value));
	TRY(kv_set(tx, buf_str(&key), buf_str(&value)));
	return rev_att_write_data(tx, u->options.db, u->id, u->chunks, s->data, &key);
}

/*
 * Writes the first `n` bytes that are held into the store. Only the last call of an upload may end
 * with a part of a chunk. With `n` 0 it renews the record alone.
 */
static enum status
upload_store_held(struct rev_upload *u, size_t n, struct err *err)
{
	struct upload_store_call s = { u, str_of(u->held.ptr, n), err };

	assert(n <= u->held.len);
	TRY(kv_run(u->options.store, upload_store_held_body, &s, NULL, err));
	u->touched_ns = clock_mono_ns();
	u->chunks += (n + REV_ATT_CHUNK_BYTES - 1) / REV_ATT_CHUNK_BYTES;
	buf_consume(&u->held, n);
	return STATUS_OK;
}

struct budget_part *
rev_upload_part(const struct rev_upload *u)
{
	return u->options.part;
}

enum status
rev_upload_touch(struct rev_upload *u, struct err *err)
{
	if (!u->chunks || clock_mono_ns() - u->touched_ns < REV_UPLOAD_TOUCH_MS * CLOCK_NS_PER_MS)
		return STATUS_OK;
	return upload_store_held(u, 0, err);
}

static enum status
upload_discard_body(struct kv_tx *tx, void *arg)
{
	struct rev_upload *u = arg;
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	bool staged;

	/* Without a record, a revision has taken the data over, or the sweep has removed them. */
	TRY(upload_has_record(u, tx, &key, &staged));
	if (!staged)
		return STATUS_OK;
	TRY(kv_clear(tx, buf_str(&key)));
	return rev_att_clear(tx, u->options.db, u->id, &key);
}

void
rev_upload_free(struct rev_upload *u, bool taken)
{
	if (!u)
		return;
	/* If this fails, the sweep removes the data later. */
	if (u->chunks && !taken)
		(void)!kv_run(u->options.store, upload_discard_body, u, NULL, NULL);
	if (u->deflating)
		(void)deflateEnd(&u->z);
	u->deflating = false;
	buf_release(&u->held);
	upload_count_memory(u);
	catalog_db_unref(u->options.db);
	mem_free(u);
}

/* ---- Bytes ---- */

static void
upload_hold_bytes(struct rev_upload *u, const void *bytes, size_t n)
{
	buf_append(&u->held, bytes, n);
	MD5_Update(&u->md5_stored, bytes, n);
	u->stored_bytes += n;
}

static void
upload_deflate_piece(void *arg)
{
	struct rev_upload *u = arg;
	Bytef out[OUT_BYTES];

	u->z.next_in = (const Bytef *)u->piece.ptr;
	u->z.avail_in = (uInt)u->piece.len;
	do {
		u->z.next_out = out;
		u->z.avail_out = sizeof(out);
		if (deflate(&u->z, u->flush) == Z_STREAM_ERROR)
			u->deflated = STATUS_NOMEM;
		upload_hold_bytes(u, out, sizeof(out) - u->z.avail_out);
	} while (u->z.avail_out == 0);
}

static enum status
upload_take_piece(struct rev_upload *u, struct str piece, int flush)
{
	MD5_Update(&u->md5_in, piece.ptr, piece.len);
	TRY(step_count((uint32_t)(piece.len / HASH_STEP_BYTES)));
	if (!u->deflating) {
		upload_hold_bytes(u, piece.ptr, piece.len);
		return buf_status(&u->held);
	}
	u->piece = piece;
	u->flush = flush;
	if (piece.len >= OFFLOAD_BYTES)
		wait_offload(upload_deflate_piece, u);
	else
		upload_deflate_piece(u);
	TRY(step_count(piece.len < OFFLOAD_BYTES ? (uint32_t)(piece.len / DEFLATE_STEP_BYTES) : 0));
	TRY(u->deflated);
	return buf_status(&u->held);
}

static enum status
upload_store_batches(struct rev_upload *u, struct err *err)
{
	while (u->held.len >= BATCH_BYTES)
		TRY(upload_store_held(u, BATCH_BYTES, err));
	return rev_upload_touch(u, err);
}

enum status
rev_upload_write(struct rev_upload *u, struct str data, struct err *err)
{
	if (u->options.max_bytes && data.len > u->options.max_bytes - u->in_bytes)
		return err_set(err, STATUS_LIMIT, "the attachment is larger than %llu bytes",
			       (unsigned long long)u->options.max_bytes);
	u->in_bytes += data.len;
	while (data.len) {
		size_t n = data.len < PIECE_BYTES ? data.len : PIECE_BYTES;
		enum status status = upload_take_piece(u, str_of(data.ptr, n), Z_NO_FLUSH);

		upload_count_memory(u);
		if (status != STATUS_OK)
			return err_set(err, STATUS_NOMEM, "out of memory");
		TRY(upload_store_batches(u, err));
		data = str_skip(data, n);
	}
	return STATUS_OK;
}

enum status
rev_upload_finish(struct rev_upload *u, struct rev_att_edit *ret,
		  uint8_t ret_md5[REV_ATT_DIGEST_BYTES], struct err *err)
{
	struct rev_att *att = &ret->att;

	if (u->deflating && upload_take_piece(u, STR(""), Z_FINISH) != STATUS_OK)
		return err_set(err, STATUS_NOMEM, "out of memory");
	/* zlib holds a quarter of a megabyte, which is freed as early as possible. */
	if (u->deflating)
		(void)deflateEnd(&u->z);
	u->deflating = false;
	upload_count_memory(u);
	TRY(upload_store_batches(u, err));
	if (u->held.len && (u->chunks || u->held.len > u->options.memory_bytes))
		TRY(upload_store_held(u, u->held.len, err));
	ret->source = u->chunks ? REV_ATT_STAGED : REV_ATT_DATA;
	ret->data = buf_str(&u->held);
	memcpy(att->id, u->id, sizeof(att->id));
	att->encoded_length = u->stored_bytes;
	att->length = u->options.gzip_level ? u->in_bytes : u->stored_bytes;
	att->encoding = u->options.gzip_level || u->options.stored_gzip ? REV_ATT_GZIP
									: REV_ATT_IDENTITY;
	MD5_Final(att->digest, &u->md5_stored);
	MD5_Final(ret_md5, &u->md5_in);
	return STATUS_OK;
}

/* ---- What uploads have left behind, as a chore ---- */

enum {
	UPLOAD_CHORE_PAUSE_MS = 10 * 1000,
};

static enum status
upload_chore_run(void *store, struct chore_turn *turn, struct err *err)
{
	return rev_uploads_sweep(store, REV_UPLOAD_AGE_MS, &turn->done, err);
}

void
rev_chores_add(struct chores *chores, struct kv_store *store)
{
	chores_add(chores, &(struct chore){
				   .name = REV_UPLOADS_CHORE,
				   .run = upload_chore_run,
				   .arg = store,
				   .leased = true,
				   .pause_ms = UPLOAD_CHORE_PAUSE_MS,
			   });
}
