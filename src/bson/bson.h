/*
 * BSON: documents as MongoDB's protocol writes them, read and built in place.
 *
 * A document is its bytes: a little-endian length, elements, a NUL. Nothing here makes a tree. A
 * value is a plain struct whose texts and containers are borrowed from the document that it was
 * read from, so a value is as cheap to copy as it is to read, and it is valid for as long as those
 * bytes are.
 *
 * Bytes from outside go through bson_check() once. All other functions may be given any bytes:
 * they never read behind the end, and treat a document that is damaged as one that ends there.
 *
 * order.h compares values and makes keys of them, decimal.h computes with Decimal128, json.h reads
 * and writes Extended JSON. Plain functions on the caller's memory: threads may use them at the
 * same time.
 */
#ifndef FROND_BSON_BSON_H
#define FROND_BSON_BSON_H

#include <assert.h>

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

enum {
	BSON_DEPTH = 200,               /* containers inside each other, the document among them */
	BSON_DOCUMENT_BYTES = 16 << 20, /* of a document that is stored */
	/* On the wire or between stages: a document that is stored, and what is around it. */
	BSON_MOST_BYTES = (16 << 20) + (16 << 10),
	BSON_EMPTY_BYTES = 5, /* of a document without elements */
	BSON_OBJECT_ID_BYTES = 12,
	BSON_DECIMAL_BYTES = 16,
};

/* The bytes that BSON has for types. */
enum bson_type {
	BSON_DOUBLE = 1,    /* d */
	BSON_STRING = 2,    /* text: UTF-8, which may have NULs inside */
	BSON_DOCUMENT = 3,  /* text: the bytes of the document, its length and NUL included */
	BSON_ARRAY = 4,     /* likewise; the names of its elements are "0", "1", … */
	BSON_BINARY = 5,    /* text: bytes; subtype. Of subtype 2 with their second length */
	BSON_UNDEFINED = 6, /* deprecated */
	BSON_OBJECT_ID = 7, /* text: 12 bytes */
	BSON_BOOL = 8,      /* truth */
	BSON_DATE = 9,      /* n: milliseconds since 1970 */
	BSON_NULL = 10,
	BSON_REGEX = 11,      /* text: pattern; more: options. UTF-8 without NUL */
	BSON_DB_POINTER = 12, /* text: name space; more: 12 bytes. Deprecated */
	BSON_CODE = 13,       /* text */
	BSON_SYMBOL = 14,     /* text. Deprecated */
	BSON_CODE_SCOPE = 15, /* text; more: the bytes of a document. Deprecated */
	BSON_INT32 = 16,      /* n */
	BSON_TIMESTAMP = 17,  /* n, taken as unsigned: seconds and increment, 32 bits each */
	BSON_INT64 = 18,      /* n */
	BSON_DECIMAL = 19,    /* decimal */
	BSON_MAX_KEY = 127,
	BSON_MIN_KEY = 255,
};

/* IEEE 754-2008's decimal128 in its binary integer encoding: the number that the 16 bytes are. */
struct bson_decimal {
	uint64_t low;
	uint64_t high;
};

/*
 * Read members by bson_text() and its kin alone, which assert that the type has them: the union
 * would give the bytes of one member as another, such as a Decimal128 as an address.
 */
struct bson_value {
	enum bson_type type;
	uint8_t subtype;
	union {
		bool as_truth;
		int64_t as_n;
		double as_d;
		struct bson_decimal as_decimal;
		struct {
			struct str as_text;
			struct str as_more;
		};
	};
};

/* Types that have the same member, as bits. */
enum {
	BSON_KINDS_TEXT = 1 << BSON_STRING | 1 << BSON_DOCUMENT | 1 << BSON_ARRAY |
			  1 << BSON_BINARY | 1 << BSON_OBJECT_ID | 1 << BSON_REGEX |
			  1 << BSON_DB_POINTER | 1 << BSON_CODE | 1 << BSON_SYMBOL |
			  1 << BSON_CODE_SCOPE,
	BSON_KINDS_MORE = 1 << BSON_REGEX | 1 << BSON_DB_POINTER | 1 << BSON_CODE_SCOPE,
	BSON_KINDS_INTEGER = 1 << BSON_DATE | 1 << BSON_INT32 | 1 << BSON_TIMESTAMP |
			     1 << BSON_INT64,
};

static inline bool
bson_is_of(const struct bson_value *v, unsigned kinds)
{
	return (unsigned)v->type < 32 && (kinds >> (unsigned)v->type & 1);
}

/* A mistake of the caller's, if not: a build for tests ends there, one to be installed goes on. */
static inline bool
bson_has(const struct bson_value *v, unsigned kinds)
{
#ifndef FROND_RELEASE
	assert(bson_is_of(v, kinds));
#endif
	return bson_is_of(v, kinds);
}

/*
 * What a value has. The caller has looked at its type, since a client may have sent any. If it has
 * not, a release takes what is empty, 0 or false; other builds end there.
 */
static inline struct str
bson_text(const struct bson_value *v)
{
	return bson_has(v, BSON_KINDS_TEXT) ? v->as_text : STR("");
}

static inline struct str
bson_more(const struct bson_value *v)
{
	return bson_has(v, BSON_KINDS_MORE) ? v->as_more : STR("");
}

static inline bool
bson_truth(const struct bson_value *v)
{
	return bson_has(v, 1 << BSON_BOOL) && v->as_truth;
}

static inline int64_t
bson_integer(const struct bson_value *v)
{
	return bson_has(v, BSON_KINDS_INTEGER) ? v->as_n : 0;
}

static inline double
bson_real(const struct bson_value *v)
{
	return bson_has(v, 1 << BSON_DOUBLE) ? v->as_d : 0;
}

static inline struct bson_decimal
bson_decimal(const struct bson_value *v)
{
	return bson_has(v, 1 << BSON_DECIMAL) ? v->as_decimal : (struct bson_decimal){ 0 };
}

/* An element of a document. */
struct bson_element {
	struct str name;
	struct bson_value value;
	struct str bytes; /* the whole element: type, name, NUL, value */
};

/* Values as literals. */
#define BSON_OF_INT32(number)   ((struct bson_value){ .type = BSON_INT32, .as_n = (number) })
#define BSON_OF_INT64(number)   ((struct bson_value){ .type = BSON_INT64, .as_n = (number) })
#define BSON_OF_DOUBLE(number)  ((struct bson_value){ .type = BSON_DOUBLE, .as_d = (number) })
#define BSON_OF_BOOL(value)     ((struct bson_value){ .type = BSON_BOOL, .as_truth = (value) })
#define BSON_OF_DATE(ms)        ((struct bson_value){ .type = BSON_DATE, .as_n = (ms) })
#define BSON_OF_STRING(string)  ((struct bson_value){ .type = BSON_STRING, .as_text = (string) })
#define BSON_OF_DOCUMENT(bytes) ((struct bson_value){ .type = BSON_DOCUMENT, .as_text = (bytes) })
#define BSON_OF_ARRAY(bytes)    ((struct bson_value){ .type = BSON_ARRAY, .as_text = (bytes) })
#define BSON_OF_NULL            ((struct bson_value){ .type = BSON_NULL })

/* A document without elements. */
#define BSON_EMPTY STR("\x05\0\0\0\0")

/* ---- Checking ---- */

/*
 * Checks that `bytes` are one whole document: lengths, terminators, types, UTF-8 in names and
 * strings, booleans of 0 and 1, at most BSON_DEPTH containers inside each other. STATUS_INVALID
 * says what is wrong, and where.
 */
MUST_USE enum status bson_check(struct str bytes, struct err *err);

/*
 * The length of the document that `bytes` begin with; 0 if its length is less than a document's
 * least or more than there are. Does not look inside.
 */
size_t bson_length(struct str bytes);

/* ---- Reading ---- */

/*
 * Goes through the elements of a document or an array:
 *
 *     for (bson_iter_begin(&i, doc); bson_iter_read(&i, &e);)
 */
struct bson_iter {
	const char *at;
	const char *end;
	bool damaged; /* bson_iter_read() found bytes that are no element, and gave up */
};

void bson_iter_begin(struct bson_iter *i, struct str document);
/* False at the end. */
bool bson_iter_read(struct bson_iter *i, struct bson_element *ret);

/* The first element of that name. `ret` may be NULL. */
bool bson_find(struct str document, struct str name, struct bson_value *ret);
/* That element's value if it is a document, else BSON_EMPTY. */
struct str bson_find_document(struct str document, struct str name);
/* True if there is that element, and bson_is_true() of its value. */
bool bson_find_true(struct str document, struct str name);

/*
 * The value at a path such as "a.b.0": names in documents, positions in arrays, and nothing else.
 * (A query's way through arrays is a query's business.)
 */
bool bson_find_path(struct str document, struct str path, struct bson_value *ret);

/*
 * The value at a path such as "a.b" through documents only, as the columns of an index that is not
 * multikey have it. Where there is none it is false, and `ret` is what the path ends at too early:
 * a value that is no document, or BSON_UNDEFINED for a name that its document lacks.
 */
bool bson_find_nested(struct str document, struct str path, struct bson_value *ret);

/* Whether there are no elements, and how many there are. */
bool bson_is_empty(struct str document);
size_t bson_count(struct str document);

/* Reads a value of that type from the bytes it begins with; false if they are no such value. */
bool bson_value_read(enum bson_type type, struct str bytes, struct bson_value *ret,
		     size_t *ret_len);

static inline bool
bson_is_number(const struct bson_value *v)
{
	return v->type == BSON_INT32 || v->type == BSON_INT64 || v->type == BSON_DOUBLE ||
	       v->type == BSON_DECIMAL;
}

static inline bool
bson_is_container(const struct bson_value *v)
{
	return v->type == BSON_DOCUMENT || v->type == BSON_ARRAY;
}

/* What MongoDB takes for true: all but false, null, undefined and the zeros of all types. */
bool bson_is_true(const struct bson_value *v);

/* True if the value is a number, and an integer that an int64_t holds. */
bool bson_to_int64(const struct bson_value *v, int64_t *ret);
/* The nearest double of a number; a NaN for any other value. */
double bson_to_double(const struct bson_value *v);

/* MongoDB's name for a type, as in $type and in errors: "double", "objectId"…; NULL for none. */
const char *bson_type_name(enum bson_type type);
/* Also by "number", which is no type: `*ret` is then 0. */
bool bson_type_of_name(struct str name, enum bson_type *ret);

/* ---- Building ---- */

/*
 * Writes documents into a buffer, which remembers failures (base/buf.h): the caller asks
 * buf_status() at the end. More than BSON_DEPTH containers inside each other fail with
 * STATUS_LIMIT.
 *
 *     bson_open(&b, &out);
 *         bson_put_string(&b, STR("name"), text);
 *         bson_begin_array(&b, STR("tags"));
 *             bson_put(&b, STR(""), &value);           the builder counts the names of elements
 *         bson_end(&b);
 *     bson_end(&b);
 *
 * The document lies in the buffer from where its length was when it began. In an array, names are
 * given by the builder, and those that the caller passes are ignored. The caller may append other
 * bytes to the buffer between two documents, never inside one. Bytes in front of a document that
 * is being built must stay.
 */
struct bson_level {
	size_t begin; /* of the container, in the buffer */
	bool array;
	uint32_t count; /* elements so far, of an array */
};

struct bson_builder {
	struct buf *out;
	size_t depth;
	size_t too_deep; /* containers that began beyond the limit and have not ended */
	struct bson_level levels[BSON_DEPTH];
};

void bson_builder_init(struct bson_builder *b, struct buf *out);
/* bson_builder_init() and bson_begin(). */
void bson_open(struct bson_builder *b, struct buf *out);

void bson_begin(struct bson_builder *b);             /* an outermost document */
void bson_begin_outer_array(struct bson_builder *b); /* the bytes of an array's value, by itself */
void bson_begin_document(struct bson_builder *b, struct str name);
void bson_begin_array(struct bson_builder *b, struct str name);
void bson_end(struct bson_builder *b);

void bson_put(struct bson_builder *b, struct str name, const struct bson_value *v);
/* As it was in another document; in an array under the next name. */
void bson_put_element(struct bson_builder *b, const struct bson_element *e);
/* All elements of a document, as they are. */
void bson_put_elements(struct bson_builder *b, struct str document);

void bson_put_int32(struct bson_builder *b, struct str name, int32_t n);
void bson_put_int64(struct bson_builder *b, struct str name, int64_t n);
void bson_put_double(struct bson_builder *b, struct str name, double d);
void bson_put_bool(struct bson_builder *b, struct str name, bool truth);
void bson_put_null(struct bson_builder *b, struct str name);
void bson_put_string(struct bson_builder *b, struct str name, struct str text);
void bson_put_date(struct bson_builder *b, struct str name, int64_t ms);
void bson_put_timestamp(struct bson_builder *b, struct str name, uint64_t timestamp);
void bson_put_object_id(struct bson_builder *b, struct str name, struct str id);
void bson_put_binary(struct bson_builder *b, struct str name, uint8_t subtype, struct str bytes);
void bson_put_document(struct bson_builder *b, struct str name, struct str document);
void bson_put_array(struct bson_builder *b, struct str name, struct str array);

/* The bytes of a value alone, as they stand behind the name. */
void bson_value_write(struct buf *out, const struct bson_value *v);

/*
 * A new ObjectId: seconds, a random number of this process, a counter (base/rand.h, base/clock.h).
 * `seconds` are since 1970.
 */
void bson_object_id_new(uint32_t seconds, char ret[BSON_OBJECT_ID_BYTES]);

#endif
