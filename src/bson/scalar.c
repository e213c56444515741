#include "bson/scalar.h"

#include <assert.h>

/* Which kind of scalar a type of BSON is. DOC_BYTES is binary data of subtype 0, too. */
static const struct {
	enum bson_type type;
	enum doc_kind kind;
} kinds[] = {
	{ BSON_INT32, DOC_INT32 },
	{ BSON_INT64, DOC_INT64 },
	{ BSON_DATE, DOC_DATE },
	{ BSON_TIMESTAMP, DOC_TIMESTAMP },
	{ BSON_STRING, DOC_TEXT },
	{ BSON_CODE, DOC_CODE },
	{ BSON_SYMBOL, DOC_SYMBOL },
	{ BSON_OBJECT_ID, DOC_OBJECT_ID },
	{ BSON_REGEX, DOC_REGEX },
	{ BSON_DB_POINTER, DOC_DB_POINTER },
	{ BSON_CODE_SCOPE, DOC_CODE_SCOPE },
	{ BSON_UNDEFINED, DOC_UNDEFINED },
	{ BSON_NULL, DOC_NULL },
	{ BSON_MIN_KEY, DOC_MIN_KEY },
	{ BSON_MAX_KEY, DOC_MAX_KEY },
	{ BSON_DOUBLE, DOC_DOUBLE },
	{ BSON_BOOL, DOC_BOOL },
	{ BSON_DECIMAL, DOC_DECIMAL128 },
	{ BSON_BINARY, DOC_BINARY },
	{ BSON_DOCUMENT, DOC_EMPTY_OBJECT },
	{ BSON_ARRAY, DOC_EMPTY_ARRAY },
};

enum {
	KINDS = sizeof(kinds) / sizeof(kinds[0]),
};

static enum doc_kind
kind_of(enum bson_type type)
{
	for (size_t i = 0; i < KINDS; i++)
		if (kinds[i].type == type)
			return kinds[i].kind;
	assert(false && "a type of BSON");
	return DOC_NULL;
}

void
bson_to_scalar(const struct bson_value *v, struct doc_scalar *ret)
{
	*ret = (struct doc_scalar){ .kind = kind_of(v->type) };
	switch ((int)ret->kind) {
	case DOC_INT32:
	case DOC_INT64:
	case DOC_DATE:
	case DOC_TIMESTAMP:
		ret->n = bson_integer(v);
		return;
	case DOC_DOUBLE:
		ret->d = bson_real(v);
		return;
	case DOC_BOOL:
		ret->truth = bson_truth(v);
		return;
	case DOC_DECIMAL128:
		ret->high = bson_decimal(v).high;
		ret->low = bson_decimal(v).low;
		return;
	case DOC_BINARY:
		if (!v->subtype)
			ret->kind = DOC_BYTES;
		ret->n = v->subtype;
		ret->text = bson_text(v);
		return;
	case DOC_REGEX:
	case DOC_DB_POINTER:
	case DOC_CODE_SCOPE:
		ret->more = bson_more(v);
		ret->text = bson_text(v);
		return;
	case DOC_TEXT:
	case DOC_CODE:
	case DOC_SYMBOL:
	case DOC_OBJECT_ID:
		ret->text = bson_text(v);
		return;
	default:
		return;
	}
}

static enum status
type_of(enum doc_kind kind, enum bson_type *ret)
{
	if (kind == DOC_BYTES) {
		*ret = BSON_BINARY;
		return STATUS_OK;
	}
	for (size_t i = 0; i < KINDS; i++)
		if (kinds[i].kind == kind) {
			*ret = kinds[i].type;
			return STATUS_OK;
		}
	return STATUS_CORRUPT;
}

enum status
bson_of_scalar(const struct doc_scalar *s, struct bson_value *ret)
{
	enum bson_type type;

	TRY(type_of(s->kind, &type));
	*ret = (struct bson_value){ .type = type };
	switch ((int)type) {
	case BSON_INT32:
	case BSON_INT64:
	case BSON_DATE:
	case BSON_TIMESTAMP:
		ret->as_n = s->n;
		return STATUS_OK;
	case BSON_DOUBLE:
		ret->as_d = s->d;
		return STATUS_OK;
	case BSON_BOOL:
		ret->as_truth = s->truth;
		return STATUS_OK;
	case BSON_DECIMAL:
		ret->as_decimal = (struct bson_decimal){ .low = s->low, .high = s->high };
		return STATUS_OK;
	case BSON_BINARY:
		ret->subtype = s->kind == DOC_BINARY ? (uint8_t)s->n : 0;
		ret->as_text = s->text;
		return STATUS_OK;
	case BSON_DOCUMENT:
	case BSON_ARRAY:
		ret->as_text = BSON_EMPTY;
		return STATUS_OK;
	case BSON_REGEX:
	case BSON_DB_POINTER:
	case BSON_CODE_SCOPE:
		ret->as_text = s->text;
		ret->as_more = s->more;
		return STATUS_OK;
	case BSON_STRING:
	case BSON_CODE:
	case BSON_SYMBOL:
	case BSON_OBJECT_ID:
		ret->as_text = s->text;
		return STATUS_OK;
	default:
		return STATUS_OK;
	}
}
