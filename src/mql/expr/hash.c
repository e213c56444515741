/*
 * $toHashedIndexKey: the numbers that MongoDB's hashed indexes have for values. (The entries of
 * hashed indexes here have other numbers, which no client sees.)
 *
 * MD5 goes over a seed of zero and the value, and its first 8 bytes are the number. A value is the
 * number of its type's place in the order of types, and its bytes as BSON has them; numbers of all
 * types are 64-bit integers. Elements of documents and arrays have their names behind the type, and
 * a zero stands behind the last one. All integers are little-endian.
 */
#define OPENSSL_SUPPRESS_DEPRECATED /* as model/revisioned/rev.c, where the reason is */
#include <endian.h>
#include <math.h>
#include <openssl/md5.h>

#include "bson/decimal.h"
#include "loop/step.h"
#include "mql/expr/expr_int.h"

enum {
	HASH_BYTES_A_STEP = 64,
	HASH_PIECE_BYTES = 16 * 1024, /* hashed without counting steps */
};

/* MongoDB's numbers for the places of types in their order. */
static int32_t
hash_type(enum bson_type type)
{
	switch (type) {
	case BSON_MIN_KEY:
		return -1;
	case BSON_MAX_KEY:
		return 127;
	case BSON_UNDEFINED:
		return 0;
	case BSON_NULL:
		return 5;
	case BSON_INT32:
	case BSON_INT64:
	case BSON_DOUBLE:
	case BSON_DECIMAL:
		return 10;
	case BSON_STRING:
	case BSON_SYMBOL:
		return 15;
	case BSON_DOCUMENT:
		return 20;
	case BSON_ARRAY:
		return 25;
	case BSON_BINARY:
		return 30;
	case BSON_OBJECT_ID:
		return 35;
	case BSON_BOOL:
		return 40;
	case BSON_DATE:
		return 45;
	case BSON_TIMESTAMP:
		return 47;
	case BSON_REGEX:
		return 50;
	case BSON_DB_POINTER:
		return 55;
	case BSON_CODE:
		return 60;
	case BSON_CODE_SCOPE:
		return 65;
	}
	return 0;
}

static int64_t
hash_int64_of_double(double d)
{
	if (isnan(d))
		return 0;
	/* What processors made of 2^63 when the first such index was stored. */
	if (d == -(double)INT64_MIN || d < (double)INT64_MIN)
		return INT64_MIN;
	return d > -(double)INT64_MIN ? INT64_MAX : (int64_t)d;
}

static int64_t
hash_int64_of_decimal(struct bson_decimal d)
{
	int64_t n;

	if (bson_decimal_is_nan(d))
		return 0;
	if (!bson_decimal_is_infinite(d) &&
	    bson_decimal_to_int64(bson_decimal_round(d, 0, BSON_DECIMAL_NEAREST, NULL), &n))
		return n;
	return bson_decimal_is_negative(d) ? INT64_MIN : INT64_MAX;
}

static void
hash_number(MD5_CTX *md5, const struct bson_value *v)
{
	uint64_t bytes;
	int64_t n = v->type == BSON_DOUBLE    ? hash_int64_of_double(bson_real(v))
		    : v->type == BSON_DECIMAL ? hash_int64_of_decimal(bson_decimal(v))
					      : bson_integer(v);
	bytes = htole64((uint64_t)n);
	MD5_Update(md5, &bytes, sizeof(bytes));
}

static void
hash_int32(MD5_CTX *md5, int32_t n)
{
	uint32_t bytes = htole32((uint32_t)n);

	MD5_Update(md5, &bytes, sizeof(bytes));
}

/* A large value takes milliseconds, so other fibers run between its pieces. */
static enum status
hash_bytes(MD5_CTX *md5, struct str bytes)
{
	while (bytes.len) {
		size_t n = bytes.len < HASH_PIECE_BYTES ? bytes.len : HASH_PIECE_BYTES;

		TRY(step_count(1 + (uint32_t)n / HASH_BYTES_A_STEP));
		MD5_Update(md5, bytes.ptr, n);
		bytes = str_skip(bytes, n);
	}
	return STATUS_OK;
}

/* What is hashed of an element in front of its elements, if it has any: `*ret` has those. */
static enum status
hash_element(MD5_CTX *md5, const struct bson_element *e, bool named, struct bson_iter *ret,
	     bool *ret_inside)
{
	const struct bson_value *v = &e->value;
	/* The name and its NUL follow the type. */
	struct str name = str_of(e->bytes.ptr + 1, e->name.len + 1);

	TRY(step_count(1));
	hash_int32(md5, hash_type(v->type));
	if (named)
		TRY(hash_bytes(md5, name));
	*ret_inside = bson_is_container(v) || v->type == BSON_CODE_SCOPE;
	if (bson_is_container(v)) {
		bson_iter_begin(ret, bson_text(v));
		return STATUS_OK;
	}
	if (v->type == BSON_CODE_SCOPE) {
		bson_iter_begin(ret, bson_more(v));
		TRY(hash_bytes(md5, bson_text(v)));
		MD5_Update(md5, "", 1);
		return STATUS_OK;
	}
	if (!bson_is_number(v))
		return hash_bytes(md5, str_skip(e->bytes, 1 + name.len));
	hash_number(md5, v);
	return STATUS_OK;
}

static enum status
hash_all(MD5_CTX *md5, const struct bson_element *first)
{
	struct bson_iter inside[BSON_DEPTH];
	struct bson_element e = *first;
	size_t depth = 0;
	bool more = true;

	do {
		if (more) {
			bool deeper;

			if (depth == BSON_DEPTH)
				return STATUS_LIMIT;
			TRY(hash_element(md5, &e, depth > 0, &inside[depth], &deeper));
			depth += deeper;
		} else {
			hash_int32(md5, 0);
			depth--;
		}
		more = depth && bson_iter_read(&inside[depth - 1], &e);
	} while (depth);
	return STATUS_OK;
}

static enum status
run_hash(const struct mql_expr *e, struct mql *q, const struct mql_env *env, struct bson_value *ret)
{
	struct bson_value v, document;
	uint8_t digest[MD5_DIGEST_LENGTH];
	struct bson_element element;
	struct bson_iter i;
	uint64_t number;
	MD5_CTX md5;

	TRY(mql_expr_run(e->args[0], q, env, &v));
	if (mql_is_missing(&v))
		v = BSON_OF_NULL;
	TRY(mql_expr_document(q, &STR(""), &v, 1, &document));
	bson_iter_begin(&i, bson_text(&document));
	if (!bson_iter_read(&i, &element))
		return STATUS_CORRUPT;
	MD5_Init(&md5);
	hash_int32(&md5, 0);
	TRY(hash_all(&md5, &element));
	MD5_Final(digest, &md5);
	memcpy(&number, digest, sizeof(number));
	*ret = BSON_OF_INT64((int64_t)le64toh(number));
	return STATUS_OK;
}

/* An array is the value that is hashed, no list of arguments. */
static enum status
compile_hash(struct mql *q, const struct mql_expr_op *op, const struct bson_value *arg,
	     const struct mql_scope *scope, struct mql_expr **ret)
{
	TRY(mql_expr_new(q, op, run_hash, 1, ret));
	TRY(mql_expr_compile(q, arg, scope, &(*ret)->args[0]));
	return mql_expr_fold(q, *ret);
}

const struct mql_expr_op mql_expr_hash_ops[] = {
	{ .name = "$toHashedIndexKey", .compile = compile_hash },
	{ 0 },
};
