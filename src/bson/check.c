#include "base/utf8.h"
#include "bson/bson.h"
#include "bson/bson_int.h"

/* A checker stands in the innermost of the containers that have begun. */
struct checker {
	const char *begin; /* of all bytes */
	const char *at;
	size_t depth;
	const char *ends[BSON_DEPTH]; /* the NULs that end them */
	struct err *err;
};

static enum status
check_fail(const struct checker *c, const char *at, const char *what)
{
	return err_set(c->err, STATUS_INVALID, "the BSON is not valid at byte %zu: %s",
		       (size_t)(at - c->begin), what);
}

static enum status
check_text(const struct checker *c, struct str text, const char *what)
{
	size_t valid = utf8_valid_prefix(text);

	return valid == text.len ? STATUS_OK : check_fail(c, text.ptr + valid, what);
}

/* Goes into a container whose length and last NUL have been checked. */
static enum status
check_enter(struct checker *c, struct str container)
{
	if (c->depth == BSON_DEPTH)
		return err_set(c->err, STATUS_INVALID,
			       "the BSON has more than %d documents and arrays inside each other",
			       BSON_DEPTH);
	c->at = container.ptr + sizeof(uint32_t);
	c->ends[c->depth++] = container.ptr + container.len - 1;
	return STATUS_OK;
}

/* `at` is where the value begins. */
static enum status
check_value(struct checker *c, const struct bson_value *v, const char *at)
{
	switch ((int)v->type) {
	case BSON_BOOL:
		return (uint8_t)*at <= 1 ? STATUS_OK
					 : check_fail(c, at, "a boolean is neither 0 nor 1");
	case BSON_BINARY:
		return bson_binary_is_whole(v)
			       ? STATUS_OK
			       : check_fail(c, at, "binary data of subtype 2 has another length");
	case BSON_STRING:
	case BSON_CODE:
	case BSON_SYMBOL:
	case BSON_DB_POINTER:
		return check_text(c, bson_text(v), "a string is not UTF-8");
	case BSON_REGEX:
		TRY(check_text(c, bson_text(v), "a pattern is not UTF-8"));
		return check_text(c, bson_more(v), "options of a pattern are not UTF-8");
	case BSON_DOCUMENT:
	case BSON_ARRAY:
		return check_enter(c, bson_text(v));
	case BSON_CODE_SCOPE:
		TRY(check_text(c, bson_text(v), "code is not UTF-8"));
		return check_enter(c, bson_more(v));
	default:
		return STATUS_OK;
	}
}

static enum status
check_element(struct checker *c)
{
	const char *at = c->at;
	const char *end = c->ends[c->depth - 1];
	uint64_t high = 0;
	const char *nul = bson_name_end(at + 1, end, &high);
	struct bson_value v;
	size_t len;

	if (!nul)
		return check_fail(c, at, "an element has no end of its name");
	if (high)
		TRY(check_text(c, str_of(at + 1, (size_t)(nul - at - 1)), "a name is not UTF-8"));
	nul++;
	if (!bson_value_read((uint8_t)*at, str_of(nul, (size_t)(end - nul)), &v, &len)) {
		if (!bson_type_name((uint8_t)*at))
			return check_fail(c, at, "an element has a type that does not exist");
		return check_fail(c, nul, "a value's length does not fit what it is in");
	}
	/* A container's content comes next, and its end is the value's end. */
	c->at = nul + len;
	return check_value(c, &v, nul);
}

enum status
bson_check(struct str bytes, struct err *err)
{
	struct checker c = { .begin = bytes.ptr, .err = err };

	if (bson_length(bytes) != bytes.len || !bytes.len)
		return err_set(err, STATUS_INVALID,
			       "the BSON's length is not that of its %zu bytes", bytes.len);
	if (bytes.ptr[bytes.len - 1])
		return check_fail(&c, bytes.ptr + bytes.len - 1, "it does not end in a NUL");
	TRY(check_enter(&c, bytes));
	while (c.depth) {
		if (c.at == c.ends[c.depth - 1]) {
			c.at++;
			c.depth--;
		} else {
			TRY(check_element(&c));
		}
	}
	return STATUS_OK;
}
