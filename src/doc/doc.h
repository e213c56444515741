/*
 * A document's tree and its leaves (seed 0).
 *
 * A leaf is a key-value pair: the key is the document's prefix and then the path as tuple elements
 * (a member's name as a string, an array's position as an integer); the value is one tuple-encoded
 * element:
 *
 *     null, true, false, strings      as the tuple layer has them
 *     integers up to 255 bytes        a tuple integer
 *     other numbers                   a double where its shortest text is the text that came in,
 *                                     otherwise a nested (double, text): 1.10, 1e2, -0, 1e400
 *     []                              a nested ()
 *     {}                              a nested (()), so that both come back as they went in
 *     strings longer than a value     (path..., null, 0), (path..., null, 1)...: pieces in a row;
 *                                     null cannot be an element of a path
 *
 * The root is not a leaf: an empty document has none. Members come back in key order; of duplicate
 * members the last wins.
 */
#ifndef FROND_DOC_DOC_H
#define FROND_DOC_DOC_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"
#include "doc/json.h"
#include "kv/kv.h"

enum {
	DOC_LIMIT_DEFAULT_BYTES = 1000000, /* of a document's JSON text (seed 0) */
	DOC_LIMIT_MAX_BYTES = 8000000,     /* what the first can be configured up to */
	DOC_STRING_PIECE_BYTES = 100000, /* a piece of a split string, encoded; whole characters */
};

struct doc_limits {
	/* Of a document's JSON text as it came in, special members left out: attachments may come
	 * inline in one, and seed 0 does not count them. */
	size_t doc_bytes;
	size_t path_bytes; /* of a key: prefix and encoded path; KV_LIMIT_KEY_BYTES at most */
	/* A document whose packed text takes no more is packed, any other is taken apart; 0: all
	 * are. Less than KV_LIMIT_VALUE_BYTES. */
	size_t packed_bytes;
};

/*
 * A top-level member whose name starts with '_': never a leaf. But for `_access` and
 * `_replication_` with id, state, state_reason, state_time or stats, which are members as any.
 */
struct doc_special {
	struct str name; /* with the underscore, escapes undone */
	struct str text; /* the value's JSON text, checked; borrowed from the text read */
};

/*
 * A document taken apart, or packed. Everything in it lives in the arena it was made with, except
 * for the texts of special members, which may be large and stay where they were read.
 */
struct doc {
	/* The body as doc/packed.h has it; then there are no leaves. ptr NULL: it has leaves. */
	struct str packed;
	size_t unpackable; /* more than so many bytes would be packed; 0: nobody has tried */
	struct kv_pair
		*leaves; /* key: the encoded path alone, without prefix; in key order, distinct */
	size_t count;
	struct doc_special
		*specials; /* in the order they came, duplicates included (the last counts) */
	size_t specials_count;
	size_t json_bytes; /* of the text it was read from, special members left out */
	size_t path_bytes; /* of the longest path, encoded; those of dropped members included */
	/*
	 * The body in Erlang's external term format, as CouchDB's term_to_binary({[{K,V}...]},
	 * [{minor_version,1}]) has it without the leading version byte 131: members in the order
	 * they came, specials left out, of duplicates the last kept in its place. For revision
	 * hashes.
	 */
	struct str term;
};

/*
 * Room for taking documents apart, kept from one to the next by whoever does so often; one at a
 * time uses it. NULL when out of memory.
 */
struct doc_room;

struct doc_room *doc_room_new(void);
void doc_room_free(struct doc_room *room); /* NULL is fine */

/*
 * Reads the object that comes next in `r` (its first token has been read: JSON_OBJECT_BEGIN) and
 * takes it apart, or packs it, in one pass. `prefix_bytes` is the length of the key prefix that the
 * leaves will get, for the path limit, which holds for packed documents all the same. `room` may
 * be NULL.
 *
 * Errors: the reader's; STATUS_DOC_TOO_LARGE and STATUS_PATH_TOO_LONG, naming the path (as a JSON
 * Pointer, cut) and the limit; STATUS_LIMIT when the arena is full. After any of DOC_TOO_LARGE and
 * PATH_TOO_LONG the reader has gone on to the end of the object, so that a list of documents can be
 * read on.
 */
MUST_USE enum status doc_explode(struct json_reader *r, struct doc_room *room, struct arena *arena,
				 const struct doc_limits *limits, size_t prefix_bytes,
				 struct doc *ret, struct err *err);

/* The same for a text that is one object and nothing else; STATUS_INVALID for any other value. */
MUST_USE enum status doc_explode_text(struct str text, struct arena *arena,
				      const struct doc_limits *limits, size_t prefix_bytes,
				      struct doc *ret, struct err *err);

/*
 * The same for a text that is one array, which is no document: leaves' paths begin with a position,
 * no member is special, an empty array is one leaf with an empty path. The term is the array's.
 */
MUST_USE enum status doc_explode_array_text(struct str text, struct arena *arena,
					    const struct doc_limits *limits, struct doc *ret,
					    struct err *err);

/* The last special member of that name; NULL if there is none. */
const struct doc_special *doc_find_special(const struct doc *doc, struct str name);

/*
 * Puts leaves together again as JSON text. Feed it the leaves of one value in key order.
 *
 *     doc_assemble_init(&a, &out);
 *     doc_assemble_leaf(&a, path, value);   // path: the encoded path below the value's own
 *     doc_assemble_end(&a);
 *
 * For a whole document: doc_assemble_init_object() writes no opening brace, for a caller that has
 * already written `{` and perhaps members (`has_members`), and doc_assemble_end() writes the
 * closing brace. For the value at a path: doc_assemble_init(); an empty path is then the value
 * itself. Neither holds memory beyond `out`, except for the path of the last leaf: release it.
 *
 * Leaves that no document can have (out of order, arrays with gaps, a leaf below a leaf, values of
 * other kinds, invalid UTF-8) are STATUS_CORRUPT, after which `out` holds the beginning of
 * something; a full `out` is its own status.
 */
struct doc_level {
	uint32_t index; /* an array's position */
	uint16_t at;    /* where the element starts in the path */
	bool object;
};

struct doc_assembler {
	struct buf *out;
	struct buf last;     /* the encoded path of the last leaf, and its elements: */
	size_t open;         /* how many, which is also how many containers are open */
	uint64_t next_piece; /* of a split string */
	bool root_object;
	bool has_members;
	bool started;
	bool in_string; /* the last leaf was a piece of a split string */
	struct doc_level levels[JSON_DEPTH_LIMIT];
};

void doc_assemble_init(struct doc_assembler *a, struct buf *out);
void doc_assemble_init_object(struct doc_assembler *a, struct buf *out, bool has_members);
MUST_USE enum status doc_assemble_leaf(struct doc_assembler *a, struct str path, struct str value);
/* STATUS_NOT_FOUND if a value (not a whole document) got no leaf at all. */
MUST_USE enum status doc_assemble_end(struct doc_assembler *a);
void doc_assemble_release(struct doc_assembler *a);

/*
 * JSON Pointers (RFC 6901). A token that is a number may be an array's position or a member's name,
 * which only the document knows: the encodings that may be meant, at most DOC_POINTER_WAYS of them;
 * at most one of them has leaves in a given document.
 */
enum {
	DOC_POINTER_NUMBERS = 4, /* numeric tokens that are tried both ways at once */
	DOC_POINTER_WAYS = 16,
};

struct doc_pointer {
	struct str *tokens; /* unescaped */
	size_t count;
};

/* Errors: STATUS_INVALID (not a pointer), STATUS_LIMIT. The tokens live in the arena. */
MUST_USE enum status doc_pointer_parse(struct str text, struct arena *arena,
				       struct doc_pointer *ret, struct err *err);

/*
 * Reads the value at `pointer` in the document whose root key is `prefix` and appends its JSON
 * text: the root value, which may have the body (doc/packed.h), and one range per way in one wave,
 * so that it costs one round trip and reads the root and exactly the leaves it returns. (More than
 * DOC_POINTER_NUMBERS numeric tokens: the leading ones are resolved first, with one key read each.)
 * The empty pointer is the whole body, which needs `prefix` to exist. STATUS_NOT_FOUND if there is
 * nothing at that path. The value is bounded by `ret`'s maximum.
 */
MUST_USE enum status doc_read_pointer(struct kv_tx *tx, struct str prefix,
				      const struct doc_pointer *pointer, enum kv_read mode,
				      struct arena *arena, struct buf *ret, struct err *err);

/* What doc_read_pointers() found at a pointer. */
struct doc_pointer_value {
	bool found;
	struct str text; /* JSON, in the arena; or nothing */
};

/*
 * Reads the values at several pointers, all of them in one wave: one round trip, however many they
 * are. (Where some have more than DOC_POINTER_NUMBERS numeric tokens, one more for each of the
 * leading ones, whose reads go out together.) `ret_values` has room for `count`. Never
 * STATUS_NOT_FOUND; STATUS_LIMIT when a value, or all of them together, exceed the arena or
 * `max_bytes`. Otherwise as doc_read_pointer().
 */
MUST_USE enum status doc_read_pointers(struct kv_tx *tx, struct str prefix,
				       const struct doc_pointer *pointers, size_t count,
				       enum kv_read mode, size_t max_bytes, struct arena *arena,
				       struct doc_pointer_value *ret_values, struct err *err);

/*
 * Writes leaves under `prefix`; the root key is the caller's to set. The caller clears what was
 * there before with doc_clear().
 */
MUST_USE enum status doc_write(struct kv_tx *tx, struct str prefix, const struct kv_pair *leaves,
			       size_t count);

/* Clears the root key and every leaf under it: one range clear. */
MUST_USE enum status doc_clear(struct kv_tx *tx, struct str prefix);

#endif
