/*
 * A document's tree and its leaves: taking JSON text apart into leaves, putting leaves together as
 * JSON text, reading parts of a stored document by JSON Pointers.
 *
 * A leaf is a key-value pair. Its key is the document's prefix and then the path as tuple elements:
 * a member's name as a string, an array's position as an integer. Its value is one element:
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
 * The root is not a leaf: an empty document has none. Members come back in key order. Of members
 * with the same name the last one wins.
 *
 * What these functions return lives in the caller's arena. Functions of different arenas, buffers
 * and transactions may run on different threads at the same time. Functions whose work grows with a
 * document count steps (loop/step.h): other fibers may run meanwhile, and the failures of
 * step_count() are returned.
 */
#ifndef FROND_DOC_DOC_H
#define FROND_DOC_DOC_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"
#include "doc/json.h"
#include "doc/reader.h"
#include "kv/kv.h"

enum {
	DOC_LIMIT_DEFAULT_BYTES = 8000000, /* of a document's JSON text, without configuration */
	DOC_LIMIT_MAX_BYTES = 8000000,     /* the largest limit that can be configured */
	DOC_STRING_PIECE_BYTES = 100000, /* a piece of a split string, encoded; whole characters */
};

struct doc_limits {
	/*
	 * Of a document's JSON text as it came in. Special members do not count: one of them may
	 * hold attachments.
	 */
	size_t doc_bytes;
	size_t path_bytes; /* of a key: prefix and encoded path; KV_LIMIT_KEY_BYTES at most */
	/*
	 * A document whose packed text is not longer is packed; any other becomes leaves. 0: every
	 * document becomes leaves. Less than KV_LIMIT_VALUE_BYTES.
	 */
	size_t packed_bytes;
	/* Of leaves, with their keys: a document that would take more is packed, however long its
	 * text is; 0: no such limit. */
	size_t leaves_bytes;
};

/*
 * A top-level member whose name starts with '_', which is never a leaf. The exceptions are
 * `_access` and `_replication_` with id, state, state_reason, state_time or stats: CouchDB treats
 * those as members of the body.
 */
struct doc_special {
	struct str name; /* with the underscore, escapes undone */
	struct str text; /* the value's JSON text, checked; borrowed from the text read */
};

/*
 * A document in leaves, or packed. Everything in it lives in the arena that it was made with,
 * except for the texts of special members. Those may be large and stay in the text that was read.
 */
struct doc {
	/*
	 * The body as doc/packed.h has it, longer than limits.packed_bytes only where leaves would
	 * have passed limits.leaves_bytes; then there are no leaves. ptr NULL: it has leaves.
	 */
	struct str packed;
	size_t unpackable; /* the packed text would be longer than this; 0: not known */
	struct kv_pair
		*leaves; /* key: the encoded path alone, without prefix; in key order, distinct */
	size_t count;
	struct doc_special
		*specials; /* in the order they came, duplicates included (the last counts) */
	size_t specials_count;
	size_t json_bytes; /* of the text it was read from, special members left out */
	size_t path_bytes; /* of the longest path, encoded; those of dropped members included */
	/*
	 * The body in Erlang's external term format, for revision hashes: what CouchDB's
	 * term_to_binary({[{K,V}...]}, [{minor_version,1}]) makes of it, without the leading
	 * version byte 131. Members are in the order in which they came, without the special ones;
	 * of members with the same name the last one is kept, in its own place.
	 */
	struct str term;
};

/*
 * Buffers for taking documents apart, which a caller that does so often keeps from one document to
 * the next. The fibers of one thread may share them: if another fiber is in the middle of a
 * document with them, doc_explode() makes buffers of its own. doc_scratch_new() returns NULL when
 * out of memory.
 */
struct doc_scratch;

struct doc_scratch *doc_scratch_new(void);
void doc_scratch_free(struct doc_scratch *scratch); /* NULL is fine */

/*
 * Reads the object that comes next in `r`, whose first token JSON_OBJECT_BEGIN the caller has read,
 * and takes it apart or packs it, in one pass. `prefix_bytes` is the length of the key prefix that
 * the leaves will get; it counts for the limit of paths, which holds for packed documents, too.
 * `scratch` may be NULL.
 *
 * Errors: the reader's; STATUS_DOC_TOO_LARGE and STATUS_PATH_TOO_LONG, which name the limit and the
 * path (as a JSON Pointer, shortened); STATUS_LIMIT when the arena is full. After DOC_TOO_LARGE and
 * PATH_TOO_LONG the reader stands behind the object, so that the caller can go on with the next
 * document of a list.
 */
MUST_USE enum status doc_explode(struct json_reader *r, struct doc_scratch *scratch,
				 struct arena *arena, const struct doc_limits *limits,
				 size_t prefix_bytes, struct doc *ret, struct err *err);

/* The same for a text that is one object and nothing else; STATUS_INVALID for any other value. */
MUST_USE enum status doc_explode_text(struct str text, struct arena *arena,
				      const struct doc_limits *limits, size_t prefix_bytes,
				      struct doc *ret, struct err *err);

/*
 * The same for a text that is one array, which is not a document: the paths of leaves begin with a
 * position, no member is special, and an empty array is one leaf with an empty path. The term is
 * the array's.
 */
MUST_USE enum status doc_explode_array_text(struct str text, struct arena *arena,
					    const struct doc_limits *limits, struct doc *ret,
					    struct err *err);

/*
 * The same for a text that is any one value, as it lies in a document: no member is special, a
 * scalar is one leaf with an empty path, and an empty object has no leaf.
 */
MUST_USE enum status doc_explode_value_text(struct str text, struct arena *arena,
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
 * doc_assemble_init_object() is for a whole document. It writes no opening brace: the caller has
 * written `{`, and perhaps members (`has_members`). doc_assemble_end() writes the closing brace.
 * doc_assemble_init() is for the value at a path; an empty path is then the value itself. Call
 * doc_assemble_release() in any case: it frees the path of the last leaf.
 *
 * STATUS_CORRUPT for leaves that no document can have: out of order, arrays with gaps, a leaf below
 * a leaf, scalars that JSON does not have, invalid UTF-8. `out` then holds the beginning of a
 * value. When `out` is full, its own status.
 */
struct doc_assembler {
	struct doc_reader reader;
	struct buf *out;
	bool brace_is_written; /* by the caller, and not yet begun */
	bool comma;            /* one comes before the next name or element */
};

void doc_assemble_init(struct doc_assembler *a, struct buf *out);
void doc_assemble_init_object(struct doc_assembler *a, struct buf *out, bool has_members);
MUST_USE enum status doc_assemble_leaf(struct doc_assembler *a, struct str path, struct str value);
/* STATUS_NOT_FOUND if a value (not a whole document) got no leaf at all. */
MUST_USE enum status doc_assemble_end(struct doc_assembler *a);
void doc_assemble_release(struct doc_assembler *a);

/*
 * JSON Pointers (RFC 6901). A token that is a number may mean an array's position or a member's
 * name; only the stored document knows. So a pointer has several encodings, at most
 * DOC_POINTER_WAYS that are tried at once. At most one of them has leaves in a given document.
 */
enum {
	DOC_POINTER_NUMBERS = 4, /* numeric tokens that are tried both ways at once */
	DOC_POINTER_WAYS = 16,
};

struct doc_pointer {
	const struct str *tokens; /* unescaped */
	size_t count;
};

/* Errors: STATUS_INVALID (not a pointer), STATUS_LIMIT. The tokens live in the arena. */
MUST_USE enum status doc_pointer_parse(struct str text, struct arena *arena,
				       struct doc_pointer *ret, struct err *err);

/* Where a document lies. */
struct doc_place {
	struct str key;   /* of its root; its leaves lie below it */
	struct str texts; /* the prefix of the texts in chunks (doc/chunks.h) of all documents */
};

/*
 * Reads the value at `pointer` in the document at `place`, and appends its JSON text to `ret`. The
 * root value, which may have the packed body, and one range for each way are read in one wave: one
 * round trip, in which only the root and the leaves of the value are read. Where the pointer has
 * more than DOC_POINTER_NUMBERS numeric tokens, the leading ones are resolved first, each by
 * reading one key. A text in chunks is read as far as the value, in more round trips and in bounded
 * memory.
 *
 * The empty pointer is the whole body; the document exists if its root key does. STATUS_NOT_FOUND
 * if there is nothing at that path; STATUS_LIMIT if the value exceeds the maximum of `ret`.
 */
MUST_USE enum status doc_read_pointer(struct kv_tx *tx, struct doc_place place,
				      const struct doc_pointer *pointer, enum kv_read mode,
				      struct arena *arena, struct buf *ret, struct err *err);

/* What doc_read_pointers() found at a pointer. */
struct doc_pointer_value {
	bool found;
	struct str text; /* JSON, in the arena; or nothing */
};

/*
 * Reads the values at several pointers in one wave: one round trip, however many there are. Where
 * pointers have more than DOC_POINTER_NUMBERS numeric tokens, there is one more round trip for each
 * leading token that is resolved, for all pointers together. `ret_values` has `count` elements.
 * Never STATUS_NOT_FOUND; STATUS_LIMIT when the values exceed the arena or `max_bytes`. Otherwise
 * as doc_read_pointer().
 */
MUST_USE enum status doc_read_pointers(struct kv_tx *tx, struct doc_place place,
				       const struct doc_pointer *pointers, size_t count,
				       enum kv_read mode, size_t max_bytes, struct arena *arena,
				       struct doc_pointer_value *ret_values, struct err *err);

/*
 * Writes leaves under `prefix`. The caller sets the root key, and clears what was there before by
 * doc_clear().
 */
MUST_USE enum status doc_write(struct kv_tx *tx, struct str prefix, const struct kv_pair *leaves,
			       size_t count);

/* Clears the root key and every leaf under it: one range clear. */
MUST_USE enum status doc_clear(struct kv_tx *tx, struct str prefix);

#endif
