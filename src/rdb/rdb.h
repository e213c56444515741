/*
 * RDB, the format of Redis's files and of what DUMP answers: reading values piece by piece, reading
 * whole files, and writing. README.md has what is known of it. Nothing here knows a store.
 *
 * What is read is borrowed: from the bytes that are given, or, where these are compressed or
 * numbers, from an arena. It is valid until the next part is read. Any bytes may be given; what is
 * no RDB is STATUS_INVALID, explained in `err`. Long work counts steps. Threading: none.
 */
#ifndef FROND_RDB_RDB_H
#define FROND_RDB_RDB_H

#include "base/arena.h"
#include "base/buf.h"
#include "rdb/pack.h"

enum {
	RDB_VERSION = 10,        /* that is written: Redis 7.0's */
	RDB_VERSION_FIELDS = 12, /* that has fields of hashes that expire: Redis 7.4's */
	RDB_FOOTER_BYTES = 10,   /* of a payload: a version, a checksum */
	RDB_FUNCTION = 0xf5, /* before a library's code, in files and FUNCTION DUMP's payloads */
};

/* Bytes that are read from their beginning on. */
struct rdb_input {
	struct str rest;
	struct arena *arena; /* for what is not there as it is */
	struct err *err;
};

/* STATUS_INVALID, with what is wrong. */
#define rdb_invalid(in, what) err_set((in)->err, STATUS_INVALID, "%s", (what))

/* Parts that all of the format is made of. */
MUST_USE enum status rdb_read_length(struct rdb_input *in, uint64_t *ret);
MUST_USE enum status rdb_read_string(struct rdb_input *in, struct str *ret);
/* Numbers of so many bytes, the least one first. */
MUST_USE enum status rdb_read_number(struct rdb_input *in, unsigned bytes, uint64_t *ret);
MUST_USE enum status rdb_read_double(struct rdb_input *in, double *ret);

/* ---- Values (value.c, stream.c) ---- */

enum rdb_type {
	RDB_STRING,
	RDB_LIST,
	RDB_SET,
	RDB_HASH,
	RDB_ZSET,
	RDB_STREAM,
	RDB_MODULE, /* of one of Redis's modules: it has no parts */
	RDB_TYPES,
};

struct rdb_id {
	uint64_t ms;
	uint64_t seq;
};

enum rdb_part_kind {
	RDB_PART_ELEMENT,  /* a string; an element; a member with its value or score */
	RDB_PART_ENTRY,    /* of a stream */
	RDB_PART_STREAM,   /* what a stream says of itself */
	RDB_PART_GROUP,    /* of consumers */
	RDB_PART_CONSUMER, /* of the group that came last */
	RDB_PART_PENDING,  /* for the consumer that came last */
};

struct rdb_part {
	enum rdb_part_kind kind;
	struct str name; /* ELEMENT; CONSUMER and PENDING: of the consumer; GROUP: of the group */
	struct str value;
	double score;
	uint64_t expires_ms; /* of a field, since 1970; 0: with its hash */

	struct rdb_id id;   /* ENTRY, PENDING; STREAM and GROUP: the last one */
	struct str *fields; /* ENTRY: a field, its value, … */
	size_t count;       /* of both */

	struct rdb_id deleted; /* STREAM: the greatest that was deleted */
	uint64_t added;        /* STREAM: entries that there ever were */

	struct str group; /* CONSUMER, PENDING */
	int64_t read;     /* GROUP: entries; -1: nobody knows */
	uint64_t ms;      /* CONSUMER: when it was seen; PENDING: delivered */
	uint64_t times;   /* PENDING: how often */
};

struct rdb_pending {
	struct rdb_id id;
	uint64_t ms;
	uint64_t times;
	bool owned;
};

/* Where a stream is read. All fields are private. */
struct rdb_stream_reader {
	unsigned version;     /* 1 to 3 */
	bool said;            /* its nodes have been read */
	struct rdb_id master; /* of the node */
	struct str *fields;
	size_t count;
	struct rdb_id first; /* of the first entry */
	struct rdb_id last;  /* of the entry before; then of the stream */
	uint64_t added;
	uint64_t groups;
	struct str group;
	struct rdb_pending *pending; /* of the group */
	uint64_t pending_count;
	uint64_t owned;
	uint64_t consumers;
	struct str consumer;
	uint64_t ids; /* of the consumer, that are left */
};

struct rdb_value {
	enum rdb_type type;

	/* Private. */
	struct rdb_input *in;
	unsigned code;
	uint64_t left; /* elements, or containers */
	uint64_t least_ms;
	struct rdb_pack pack;
	struct arena_mark base; /* of what is used for the value, and for its container */
	struct arena_mark mark;
	struct rdb_stream_reader stream;
};

/*
 * Begins to read a value, whose type's code has been read. The arena of the input is used from its
 * end on, and reset to that; nobody else uses it meanwhile.
 */
MUST_USE enum status rdb_value_begin(struct rdb_input *in, unsigned code, struct rdb_value *ret);
/* STATUS_NOT_FOUND: that was all of it. A collection without any part is empty. */
MUST_USE enum status rdb_value_next(struct rdb_value *v, struct rdb_part *ret);

/* Reads all that is left of a value, and counts its parts. */
MUST_USE enum status rdb_value_skip(struct rdb_value *v, uint64_t *ret_parts);

/* ---- Payloads of DUMP (payload.c) ---- */

/*
 * True if the payload ends in its checksum, and in a version that is known. `*ret` is what comes
 * before these.
 */
bool rdb_payload_is_sound(struct str payload, struct str *ret);
/* Appends what a payload ends in, behind a code and a value that begin at `from`. */
void rdb_put_footer(struct buf *out, size_t from, unsigned version);

/* ---- Files (file.c) ---- */

enum rdb_file_kind {
	RDB_FILE_KEY,      /* read its value by rdb_value_begin() to its end */
	RDB_FILE_FUNCTION, /* a library of functions */
	RDB_FILE_MODULE,   /* what a module has beside its keys, which is not given */
};

struct rdb_file {
	struct rdb_input in;
	uint64_t db;
	unsigned version;
};

struct rdb_file_entry {
	enum rdb_file_kind kind;
	uint64_t db;
	struct str key;
	uint64_t expires_ms; /* since 1970; 0: never */
	unsigned code;
	struct str function; /* FUNCTION: the library's code */
};

/* Checks what the file begins and ends with. STATUS_INVALID, STATUS_CORRUPT, STATUS_NEWER. */
MUST_USE enum status rdb_file_begin(struct str file, struct arena *arena, struct err *err,
				    struct rdb_file *ret);
/* STATUS_NOT_FOUND: the file is over. */
MUST_USE enum status rdb_file_next(struct rdb_file *f, struct rdb_file_entry *ret);

/* ---- Writing (write.c) ---- */

/* Codes of types that are written. */
enum rdb_code {
	RDB_CODE_STRING = 0,
	RDB_CODE_LIST = 1,
	RDB_CODE_SET = 2,
	RDB_CODE_HASH = 4,
	RDB_CODE_ZSET = 5,
	RDB_CODE_STREAM = 19,
	RDB_CODE_HASH_FIELDS = 24, /* with fields that expire */
};

/* They append; a failure stays in the buffer. */
void rdb_put_length(struct buf *out, uint64_t n);
void rdb_put_string(struct buf *out, struct str s);
void rdb_put_number(struct buf *out, unsigned bytes, uint64_t n);
void rdb_put_double(struct buf *out, double d);
/* An id as keys of a stream's nodes have it. */
void rdb_put_id(struct buf *out, struct rdb_id id);

/* A listpack that is written into a buffer of its own. */
void rdb_listpack_begin(struct buf *out);
void rdb_listpack_number(struct buf *out, int64_t n);
void rdb_listpack_text(struct buf *out, struct str s);
/* `count`: of all entries. */
void rdb_listpack_end(struct buf *out, size_t count);

#endif
