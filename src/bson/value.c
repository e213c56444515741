#include <assert.h>
#include <endian.h>
#include <math.h>
#include <pthread.h>

#include "base/rand.h"
#include "bson/bson.h"
#include "bson/decimal.h"

/* ---- Names of types ---- */

static const struct {
	const char *name;
	enum bson_type type;
} type_names[] = {
	{ "double", BSON_DOUBLE },
	{ "string", BSON_STRING },
	{ "object", BSON_DOCUMENT },
	{ "array", BSON_ARRAY },
	{ "binData", BSON_BINARY },
	{ "undefined", BSON_UNDEFINED },
	{ "objectId", BSON_OBJECT_ID },
	{ "bool", BSON_BOOL },
	{ "date", BSON_DATE },
	{ "null", BSON_NULL },
	{ "regex", BSON_REGEX },
	{ "dbPointer", BSON_DB_POINTER },
	{ "javascript", BSON_CODE },
	{ "symbol", BSON_SYMBOL },
	{ "javascriptWithScope", BSON_CODE_SCOPE },
	{ "int", BSON_INT32 },
	{ "timestamp", BSON_TIMESTAMP },
	{ "long", BSON_INT64 },
	{ "decimal", BSON_DECIMAL },
	{ "minKey", BSON_MIN_KEY },
	{ "maxKey", BSON_MAX_KEY },
};

enum {
	TYPES = sizeof(type_names) / sizeof(type_names[0]),
};

const char *
bson_type_name(enum bson_type type)
{
	if (type == BSON_MAX_KEY)
		return "maxKey";
	if (type == BSON_MIN_KEY)
		return "minKey";
	/* The others are numbered from 1, in this order. */
	if ((int)type < BSON_DOUBLE || (int)type > BSON_DECIMAL)
		return NULL;
	assert(type_names[(int)type - 1].type == type);
	return type_names[(int)type - 1].name;
}

bool
bson_type_of_name(struct str name, enum bson_type *ret)
{
	for (size_t i = 0; i < TYPES; i++)
		if (str_eq(name, str_from_cstr(type_names[i].name))) {
			*ret = type_names[i].type;
			return true;
		}
	*ret = 0;
	return str_eq(name, STR("number"));
}

/* ---- What values mean ---- */

bool
bson_is_true(const struct bson_value *v)
{
	switch ((int)v->type) {
	case BSON_BOOL:
		return bson_truth(v);
	case BSON_INT32:
	case BSON_INT64:
		return bson_integer(v) != 0;
	case BSON_DOUBLE:
		return bson_real(v) != 0; /* a NaN is true */
	case BSON_DECIMAL:
		return !bson_decimal_is_zero(bson_decimal(v));
	case BSON_NULL:
	case BSON_UNDEFINED:
		return false;
	default:
		return true;
	}
}

bool
bson_to_int64(const struct bson_value *v, int64_t *ret)
{
	switch ((int)v->type) {
	case BSON_INT32:
	case BSON_INT64:
		*ret = bson_integer(v);
		return true;
	case BSON_DOUBLE:
		/* -2^63 is a double, and so is 2^63, which is the first that does not fit. */
		if (!(bson_real(v) >= -0x1p63 && bson_real(v) < 0x1p63) ||
		    bson_real(v) != trunc(bson_real(v)))
			return false;
		*ret = (int64_t)bson_real(v);
		return true;
	case BSON_DECIMAL:
		return bson_decimal_to_int64(bson_decimal(v), ret);
	default:
		return false;
	}
}

double
bson_to_double(const struct bson_value *v)
{
	switch ((int)v->type) {
	case BSON_INT32:
	case BSON_INT64:
		return (double)bson_integer(v);
	case BSON_DOUBLE:
		return bson_real(v);
	case BSON_DECIMAL:
		return bson_decimal_to_double(bson_decimal(v));
	default:
		return (double)NAN;
	}
}

/* ---- ObjectIds ---- */

enum {
	PROCESS_BYTES = 5,
};

static pthread_once_t object_id_once = PTHREAD_ONCE_INIT;
static char object_id_process[PROCESS_BYTES];
static uint32_t object_id_counter;

static void
object_id_begin(void)
{
	rand_bytes(object_id_process, sizeof(object_id_process));
	rand_bytes(&object_id_counter, sizeof(object_id_counter));
}

void
bson_object_id_new(uint32_t seconds, char ret[BSON_OBJECT_ID_BYTES])
{
	uint32_t count;

	pthread_once(&object_id_once, object_id_begin);
	count = htobe32(__atomic_fetch_add(&object_id_counter, 1, __ATOMIC_RELAXED));
	seconds = htobe32(seconds);
	memcpy(ret, &seconds, sizeof(seconds));
	memcpy(ret + sizeof(seconds), object_id_process, PROCESS_BYTES);
	/* The lower three bytes of the counter. */
	memcpy(ret + sizeof(seconds) + PROCESS_BYTES, (const char *)&count + 1, 3);
}
