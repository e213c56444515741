/*
 * Attachments: what a revision says of them, reading their bytes, and uploads.
 *
 * Every function that takes a transaction leaves the commit to its caller, and may be called again
 * in the next attempt. What is returned lives in the arena given. Threading: that of the
 * transaction.
 */
#ifndef FROND_MODEL_ATT_H
#define FROND_MODEL_ATT_H

#include "base/arena.h"
#include "catalog/catalog.h"
#include "kv/kv.h"
#include "model/revisioned/revision.h"

enum {
	REV_ATT_ID_BYTES = 16,
	REV_ATT_DIGEST_BYTES = 16,            /* an MD5 */
	REV_ATT_CHUNK_BYTES = 90000,          /* stored: never change */
	REV_ATT_BATCH_CHUNKS = 11,            /* written by one transaction of an upload */
	REV_ATT_TYPE_BYTES = 1024,            /* a content type */
	REV_ATTS_MAX = 10000,                 /* of one revision */
	REV_UPLOAD_AGE_MS = 60 * 60 * 1000,   /* an upload that rests for so long is given up */
	REV_UPLOAD_TOUCH_MS = 10 * 60 * 1000, /* so often it has to give a sign of life */
};

enum rev_att_encoding {
	REV_ATT_IDENTITY = 0, /* stored: never renumber */
	REV_ATT_GZIP = 1,
};

/* One attachment of one revision. The data is immutable: another content is another id. */
struct rev_att {
	struct str name;
	struct str type;
	uint8_t id[REV_ATT_ID_BYTES];
	uint64_t length;         /* as its author knows it; encoded_length where nobody told */
	uint64_t encoded_length; /* of what is stored */
	enum rev_att_encoding encoding;
	uint8_t digest[REV_ATT_DIGEST_BYTES]; /* MD5 of what is stored */
	uint64_t revpos;                      /* the position of the revision that brought it */
};

enum rev_att_source {
	REV_ATT_STUB,   /* the one of that name in the revision that is extended */
	REV_ATT_DATA,   /* `data` holds what is to be stored; the transaction writes it */
	REV_ATT_STAGED, /* uploaded before (rev_upload_finish()) */
	REV_ATT_SHARED, /* another document's, read in the same transaction */
};

/* What an edit says about one attachment. */
struct rev_att_edit {
	enum rev_att_source source;
	/* STUB: the name, and with `has_revpos` the revpos that it has to have; otherwise all of
	 * it, but that an interactive edit sets the revpos of DATA and STAGED itself. */
	struct rev_att att;
	bool has_revpos;
	struct str data;
};

/*
 * One attachment of a head whose deleted flag is known. STATUS_DELETED if the head has no
 * attachment of that name, STATUS_NOT_FOUND if it is not there at all. One round trip, one or two
 * keys.
 */
MUST_USE enum status rev_att_read(struct kv_tx *tx, const struct catalog_db *db, struct str id,
				  struct rev_id rev, bool deleted, struct str name,
				  struct arena *arena, struct rev_att *ret);

/*
 * The bytes of an attachment, piece by piece, in bounded memory: one range of REV_ATT_READ_BYTES at
 * a time, or of what rev_att_reader_limit() sets. The transaction may be another one from call to
 * call, since the data never changes.
 */
enum {
	REV_ATT_READ_BYTES = 512 * 1024,
	REV_ATT_PIECE_BYTES = 32 * 1024,  /* of a decoded piece, unless it is the last one */
	REV_ATT_DECODE_BYTES = 80 * 1024, /* what a reader that decodes holds: zlib's and a piece */
};

struct rev_att_reader;

/*
 * `decode`: what a gzipped one stands for, instead of what is stored. [begin, end) is in stored
 * bytes and must be all of it when decoding. STATUS_NOMEM. Keeps its own reference to `db`.
 */
MUST_USE enum status rev_att_reader_new(struct catalog_db *db, const struct rev_att *att,
					bool decode, uint64_t begin, uint64_t end,
					struct rev_att_reader **ret);
/*
 * The next piece, valid until the next call; STATUS_NOT_FOUND at the end. STATUS_CORRUPT when it is
 * not there, or not gzip. After any other failure the same piece can be asked for again. A decoded
 * piece is short only at the end, so one that is given and short has been checked to its end.
 */
MUST_USE enum status rev_att_reader_next(struct rev_att_reader *reader, struct kv_tx *tx,
					 struct str *ret);
/* True after STATUS_CORRUPT if the bytes are there as they were uploaded, and are not gzip. */
bool rev_att_reader_is_invalid(const struct rev_att_reader *reader);
/*
 * Whether a revision has the attachment still, as the transaction sees it. If none has, its data is
 * gone, and STATUS_CORRUPT of a read in the same transaction tells of no damage. One key.
 */
MUST_USE enum status rev_att_reader_is_kept(struct rev_att_reader *reader, struct kv_tx *tx,
					    bool *ret);

/*
 * From the next read on a range has about `read_bytes`, at least one chunk, and a piece that is not
 * decoded has `piece_bytes` at most.
 */
void rev_att_reader_limit(struct rev_att_reader *reader, size_t read_bytes, size_t piece_bytes);
/*
 * Frees what the reader can read again, so that its transaction may end. The last piece is gone,
 * unless the reader decodes: then the piece stays valid until the next call. Reading goes on behind
 * the last piece.
 */
void rev_att_reader_rest(struct rev_att_reader *reader);
/*
 * After rev_att_reader_rest() of a reader that does not decode: the last `n` bytes of the last
 * piece are read again.
 */
void rev_att_reader_back(struct rev_att_reader *reader, size_t n);
void rev_att_reader_free(struct rev_att_reader *reader); /* NULL is fine; before its transaction */

/*
 * Uploads: the bytes of one attachment on their way into the store, whatever their number. What
 * fits a transaction beside a document stays in memory; more goes ahead under a new id, a batch of
 * chunks a transaction, until a revision's transaction makes it its own (REV_ATT_STAGED) or
 * rev_upload_free() takes it back. What a crash leaves is swept.
 */
struct rev_upload;

struct rev_upload_options {
	struct kv_store *store;
	struct catalog_db *db; /* referenced while it takes */
	int gzip_level;        /* 1 to 9: compress with zlib; 0: store as it comes */
	uint64_t max_bytes;    /* of what comes in; 0: no limit */
	size_t memory_bytes;   /* kept in memory at most before it is staged */
	bool stored_gzip;      /* what comes is gzipped already */
	/* What counts the memory that the upload takes, and outlives it; NULL: nothing does. */
	struct budget_part *part;
};

MUST_USE enum status rev_upload_new(const struct rev_upload_options *options,
				    struct rev_upload **ret);
/* STATUS_LIMIT past max_bytes; STATUS_NOT_FOUND if the database has gone; the store's failures. */
MUST_USE enum status rev_upload_write(struct rev_upload *u, struct str data, struct err *err);
/*
 * The end: fills in source, id, lengths, encoding, digest and data (which is the upload's), and
 * nothing else. `ret_md5`: of the bytes that came in.
 */
MUST_USE enum status rev_upload_finish(struct rev_upload *u, struct rev_att_edit *ret,
				       uint8_t ret_md5[REV_ATT_DIGEST_BYTES], struct err *err);
/* The budget part that the upload's options name. */
struct budget_part *rev_upload_part(const struct rev_upload *u);
/* While others of the same request take their time: a sign of life, if one is due. */
MUST_USE enum status rev_upload_touch(struct rev_upload *u, struct err *err);
/*
 * Takes back what was staged, unless a revision has it by now; `taken`: one certainly has, or it is
 * going to be used without this. NULL is fine.
 */
void rev_upload_free(struct rev_upload *u, bool taken);

#define REV_UPLOADS_CHORE "sweep_uploads"

/*
 * Removes what uploads left behind that have rested for `age_ms` or longer, in any database: a
 * bounded number of them. `ret_removed` (or NULL): how many.
 */
MUST_USE enum status rev_uploads_sweep(struct kv_store *store, uint64_t age_ms,
				       uint64_t *ret_removed, struct err *err);

/* The chore that does so for the store, which outlives the registry. */
struct chores;
void rev_chores_add(struct chores *chores, struct kv_store *store);

#endif
