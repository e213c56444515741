#include "bson/bson.h"

#include "bson/bson_int.h"

/* ---- Values ---- */

/* One more than the bytes of a value of each type, where all of them take as many; otherwise 0. */
static const uint8_t fixed_lengths[UINT8_MAX + 1] = {
	[BSON_UNDEFINED] = 1,
	[BSON_NULL] = 1,
	[BSON_MIN_KEY] = 1,
	[BSON_MAX_KEY] = 1,
	[BSON_BOOL] = 1 + 1,
	[BSON_INT32] = 1 + sizeof(int32_t),
	[BSON_DOUBLE] = 1 + sizeof(int64_t),
	[BSON_DATE] = 1 + sizeof(int64_t),
	[BSON_TIMESTAMP] = 1 + sizeof(int64_t),
	[BSON_INT64] = 1 + sizeof(int64_t),
	[BSON_OBJECT_ID] = 1 + BSON_OBJECT_ID_BYTES,
	[BSON_DECIMAL] = 1 + BSON_DECIMAL_BYTES,
};

static inline bool
fixed_bytes(enum bson_type type, size_t *ret)
{
	size_t length = fixed_lengths[(uint8_t)type];

	*ret = length - 1;
	return length > 0;
}

static void
value_read_fixed(const char *at, size_t len, struct bson_value *ret)
{
	switch ((int)ret->type) {
	case BSON_BOOL:
		ret->as_truth = *at != 0;
		return;
	case BSON_INT32:
		ret->as_n = (int32_t)little_endian_32(at);
		return;
	case BSON_DATE:
	case BSON_TIMESTAMP:
	case BSON_INT64:
		ret->as_n = (int64_t)little_endian_64(at);
		return;
	case BSON_DOUBLE: {
		uint64_t bits = little_endian_64(at);

		memcpy(&ret->as_d, &bits, sizeof(bits));
		return;
	}
	case BSON_OBJECT_ID:
		ret->as_text = str_of(at, len);
		return;
	case BSON_DECIMAL:
		ret->as_decimal = (struct bson_decimal){ little_endian_64(at),
							 little_endian_64(at + 8) };
		return;
	default:
		return;
	}
}

/* A string with its length in front and a NUL behind; returns how many bytes it takes, or 0. */
static size_t
read_string(struct str bytes, struct str *ret)
{
	uint32_t n;

	if (bytes.len < sizeof(n) + 1)
		return 0;
	n = little_endian_32(bytes.ptr);
	if (n < 1 || n > bytes.len - sizeof(n) || bytes.ptr[sizeof(n) + n - 1])
		return 0;
	*ret = str_of(bytes.ptr + sizeof(n), n - 1);
	return sizeof(n) + n;
}

/* A text that ends in a NUL, likewise. */
static size_t
read_cstring(struct str bytes, struct str *ret)
{
	const char *nul = bytes.len ? memchr(bytes.ptr, 0, bytes.len) : NULL;

	if (!nul)
		return 0;
	*ret = str_of(bytes.ptr, (size_t)(nul - bytes.ptr));
	return ret->len + 1;
}

static size_t
read_document(struct str bytes, struct str *ret)
{
	*ret = str_of(bytes.ptr, bson_length(bytes));
	return ret->len && !ret->ptr[ret->len - 1] ? ret->len : 0;
}

static size_t
read_binary(struct str bytes, struct bson_value *ret)
{
	const size_t head = sizeof(uint32_t) + 1;
	uint32_t n;

	if (bytes.len < head)
		return 0;
	n = little_endian_32(bytes.ptr);
	if (n > bytes.len - head)
		return 0;
	ret->subtype = (uint8_t)bytes.ptr[sizeof(n)];
	ret->as_text = str_of(bytes.ptr + head, n);
	return head + n;
}

static size_t
read_regex(struct str bytes, struct bson_value *ret)
{
	size_t pattern = read_cstring(bytes, &ret->as_text);
	size_t options = pattern ? read_cstring(str_skip(bytes, pattern), &ret->as_more) : 0;

	return options ? pattern + options : 0;
}

static size_t
read_db_pointer(struct str bytes, struct bson_value *ret)
{
	size_t n = read_string(bytes, &ret->as_text);

	if (!n || bytes.len - n < BSON_OBJECT_ID_BYTES)
		return 0;
	ret->as_more = str_of(bytes.ptr + n, BSON_OBJECT_ID_BYTES);
	return n + BSON_OBJECT_ID_BYTES;
}

/* A length of all, a string, a document. */
static size_t
read_code_scope(struct str bytes, struct bson_value *ret)
{
	size_t head = sizeof(uint32_t);
	size_t code, scope;

	if (bytes.len < head)
		return 0;
	code = read_string(str_skip(bytes, head), &ret->as_text);
	if (!code)
		return 0;
	scope = read_document(str_skip(bytes, head + code), &ret->as_more);
	if (!scope || little_endian_32(bytes.ptr) != head + code + scope)
		return 0;
	return head + code + scope;
}

bool
bson_value_read(enum bson_type type, struct str bytes, struct bson_value *ret, size_t *ret_len)
{
	size_t len;

	ret->type = type;
	ret->subtype = 0;
	if (fixed_bytes(type, &len)) {
		if (bytes.len < len)
			return false;
		value_read_fixed(bytes.ptr, len, ret);
		*ret_len = len;
		return true;
	}
	switch ((int)type) {
	case BSON_STRING:
	case BSON_CODE:
	case BSON_SYMBOL:
		len = read_string(bytes, &ret->as_text);
		break;
	case BSON_DOCUMENT:
	case BSON_ARRAY:
		len = read_document(bytes, &ret->as_text);
		break;
	case BSON_BINARY:
		len = read_binary(bytes, ret);
		break;
	case BSON_REGEX:
		len = read_regex(bytes, ret);
		break;
	case BSON_DB_POINTER:
		len = read_db_pointer(bytes, ret);
		break;
	case BSON_CODE_SCOPE:
		len = read_code_scope(bytes, ret);
		break;
	default:
		return false;
	}
	*ret_len = len;
	return len > 0;
}

/* ---- Elements ---- */

size_t
bson_length(struct str bytes)
{
	uint32_t n;

	if (bytes.len < BSON_EMPTY_BYTES)
		return 0;
	n = little_endian_32(bytes.ptr);
	return n >= BSON_EMPTY_BYTES && n <= bytes.len ? n : 0;
}

void
bson_iter_begin(struct bson_iter *i, struct str document)
{
	size_t len = bson_length(document);

	i->damaged = !len;
	i->at = len ? document.ptr + sizeof(uint32_t) : NULL;
	i->end = len ? document.ptr + len - 1 : NULL;
}

bool
bson_iter_read(struct bson_iter *i, struct bson_element *ret)
{
	const char *nul;
	uint64_t ignored;
	size_t len;

	if (i->at == i->end)
		return false;
	nul = bson_name_end(i->at + 1, i->end, &ignored);
	if (!nul || !bson_value_read((uint8_t)*i->at, str_of(nul + 1, (size_t)(i->end - nul - 1)),
				     &ret->value, &len)) {
		i->damaged = true;
		i->at = i->end;
		return false;
	}
	ret->name = str_of(i->at + 1, (size_t)(nul - i->at - 1));
	ret->bytes = str_of(i->at, (size_t)(nul + 1 + len - i->at));
	i->at = nul + 1 + len;
	return true;
}

/*
 * How many bytes a value takes, of which no more is looked at than its length. Values whose length
 * is not at their beginning are read. Inline: most members of a document are skipped.
 */
static inline __attribute__((always_inline)) bool
value_skip(enum bson_type type, struct str bytes, size_t *ret_len)
{
	struct bson_value ignored;
	uint32_t n;

	if (fixed_bytes(type, ret_len))
		return *ret_len <= bytes.len;
	if (bytes.len < sizeof(n))
		return false;
	n = little_endian_32(bytes.ptr);
	switch ((int)type) {
	case BSON_STRING:
	case BSON_CODE:
	case BSON_SYMBOL:
		*ret_len = sizeof(n) + (size_t)n;
		return n >= 1 && *ret_len <= bytes.len;
	case BSON_DOCUMENT:
	case BSON_ARRAY:
		*ret_len = n;
		return n >= BSON_EMPTY_BYTES && n <= bytes.len;
	default:
		return bson_value_read(type, bytes, &ignored, ret_len);
	}
}

/* Reads on to the first element of that name, which is in `ret` then, and is behind it. */
static inline __attribute__((always_inline)) bool
find_from(struct bson_iter *i, struct str name, struct bson_value *ret)
{
	uint64_t ignored;
	size_t len;

	for (; i->at != i->end; i->at += len) {
		enum bson_type type = (uint8_t)*i->at++;
		const char *nul = bson_name_end(i->at, i->end, &ignored);
		struct str here, rest;

		if (!nul)
			break;
		here = str_of(i->at, (size_t)(nul - i->at));
		i->at = nul + 1;
		rest = str_of(i->at, (size_t)(i->end - i->at));
		if (!str_eq(here, name)) {
			if (!value_skip(type, rest, &len))
				break;
			continue;
		}
		if (!bson_value_read(type, rest, ret, &len))
			break;
		i->at += len;
		return true;
	}
	i->at = i->end;
	return false;
}

bool
bson_find(struct str document, struct str name, struct bson_value *ret)
{
	struct bson_value found;
	struct bson_iter i;

	bson_iter_begin(&i, document);
	if (!find_from(&i, name, &found))
		return false;
	if (ret)
		*ret = found;
	return true;
}

bool
bson_find_path(struct str document, struct str path, struct bson_value *ret)
{
	struct bson_value v = BSON_OF_DOCUMENT(document);
	bool more;

	do {
		more = memchr(path.ptr, '.', path.len) != NULL;
		if (!bson_is_container(&v) || !bson_find(v.as_text, str_cut(&path, '.'), &v))
			return false;
	} while (more);
	*ret = v;
	return true;
}

bool
bson_find_nested(struct str document, struct str path, struct bson_value *ret)
{
	*ret = BSON_OF_DOCUMENT(document);
	while (path.len && ret->type == BSON_DOCUMENT) {
		if (!bson_find(ret->as_text, str_cut(&path, '.'), ret)) {
			ret->type = BSON_UNDEFINED;
			return false;
		}
	}
	return !path.len;
}

struct str
bson_find_document(struct str document, struct str name)
{
	struct bson_value v;

	return bson_find(document, name, &v) && v.type == BSON_DOCUMENT ? v.as_text : BSON_EMPTY;
}

bool
bson_find_true(struct str document, struct str name)
{
	struct bson_value v;

	return bson_find(document, name, &v) && bson_is_true(&v);
}

bool
bson_is_empty(struct str document)
{
	struct bson_iter i;
	struct bson_element e;

	bson_iter_begin(&i, document);
	return !bson_iter_read(&i, &e);
}

size_t
bson_count(struct str document)
{
	struct bson_iter i;
	struct bson_element e;
	size_t count = 0;

	for (bson_iter_begin(&i, document); bson_iter_read(&i, &e);)
		count++;
	return count;
}
