#include "mql/collation.h"

#include <assert.h>
#include <math.h>
#include <unicode/ucol.h>
#include <unicode/uloc.h>
#include <unicode/ustring.h>

#include "base/mem.h"
#include "bson/decimal.h"
#include "loop/wait.h"
#include "mql/mql_int.h"

enum {
	COLLATION_DOCUMENT_BYTES = 1024,
	COLLATION_COMPARE_BYTES = 16, /* of texts that are compared in one step */
	COLLATION_KEY_BYTES = 3,      /* of a key at first, for each byte of the text */
	COLLATION_LOCALE_WORD_BYTES = 64,
	COLLATION_WRONG_VERSION = 161,
	COLLATION_MISSING_FIELD = 40414,
	COLLATION_UNKNOWN_FIELD = 40415,
	COLLATION_UNSET = -2,
};

struct mql_collation {
	struct bson_texts texts;
	UCollator *collator;
	struct buf document;
};

/* ---- The document ---- */

struct choice {
	const char *name;
	int value;
};

static const struct choice case_firsts[] = {
	{ "upper", UCOL_UPPER_FIRST }, { "lower", UCOL_LOWER_FIRST }, { "off", UCOL_OFF }, { 0 }
};
static const struct choice alternates[] = { { "non-ignorable", UCOL_NON_IGNORABLE },
					    { "shifted", UCOL_SHIFTED },
					    { 0 } };
static const struct choice max_variables[] = { { "punct", UCOL_REORDER_CODE_PUNCTUATION },
					       { "space", UCOL_REORDER_CODE_SPACE },
					       { 0 } };

static const UCollationStrength strengths[] = { UCOL_PRIMARY, UCOL_SECONDARY, UCOL_TERTIARY,
						UCOL_QUATERNARY, UCOL_IDENTICAL };

enum field {
	FIELD_LOCALE,
	FIELD_CASE_LEVEL,
	FIELD_CASE_FIRST,
	FIELD_STRENGTH,
	FIELD_NUMERIC_ORDERING,
	FIELD_ALTERNATE,
	FIELD_MAX_VARIABLE,
	FIELD_NORMALIZATION,
	FIELD_BACKWARDS,
	FIELD_VERSION,
	FIELDS,
};

/* In the order in which MongoDB prints them. */
static const struct {
	const char *name;
	const struct choice *choices; /* of a string */
	UColAttribute attribute;
	bool truth;
} fields[FIELDS] = {
	[FIELD_LOCALE] = { .name = "locale" },
	[FIELD_CASE_LEVEL] = { "caseLevel", NULL, UCOL_CASE_LEVEL, true },
	[FIELD_CASE_FIRST] = { "caseFirst", case_firsts, UCOL_CASE_FIRST, false },
	[FIELD_STRENGTH] = { "strength", NULL, UCOL_STRENGTH, false },
	[FIELD_NUMERIC_ORDERING] = { "numericOrdering", NULL, UCOL_NUMERIC_COLLATION, true },
	[FIELD_ALTERNATE] = { "alternate", alternates, UCOL_ALTERNATE_HANDLING, false },
	[FIELD_MAX_VARIABLE] = { .name = "maxVariable", .choices = max_variables },
	[FIELD_NORMALIZATION] = { "normalization", NULL, UCOL_NORMALIZATION_MODE, true },
	[FIELD_BACKWARDS] = { "backwards", NULL, UCOL_FRENCH_COLLATION, true },
	[FIELD_VERSION] = { .name = "version" },
};

/* What a document asks for: ICU's values, COLLATION_UNSET where it says nothing. */
struct wish {
	char locale[MQL_COLLATION_LOCALE_BYTES + 1];
	int values[FIELDS];
};

static enum status
fail_type(struct mql *q, enum field f, const struct bson_value *v, const char *expected)
{
	return mql_fail(q, MQL_TYPE_MISMATCH,
			"BSON field 'collation.%s' is the wrong type '%s', expected %s",
			fields[f].name, mql_type_name(v), expected);
}

static enum status
read_choice(struct mql *q, enum field f, const struct bson_value *v, int *ret)
{
	if (v->type != BSON_STRING)
		return fail_type(q, f, v, "type 'string'");
	assert(fields[f].choices);
	for (const struct choice *c = fields[f].choices; c->name; c++) {
		if (mql_is(bson_text(v), c->name)) {
			*ret = c->value;
			return STATUS_OK;
		}
	}
	return mql_fail(q, MQL_BAD_VALUE,
			"Enumeration value '%.*s' for field 'collation.%s' is not a valid value.",
			STR_ARG(bson_text(v)), fields[f].name);
}

/* A double is truncated and a Decimal128 rounded; what is no integer then is far out of range. */
static int64_t
strength_number(const struct bson_value *v)
{
	int64_t n = 0;

	if (v->type == BSON_DOUBLE)
		return isnan(bson_real(v)) ? 0
		       : bson_real(v) > 6  ? 6
		       : bson_real(v) < 0  ? 0
					   : (int64_t)bson_real(v);
	if (v->type == BSON_DECIMAL)
		return bson_decimal_to_int64(
			       bson_decimal_round(bson_decimal(v), 0, BSON_DECIMAL_NEAREST, NULL),
			       &n)
			       ? n
			       : 0;
	return bson_integer(v);
}

static enum status
read_strength(struct mql *q, const struct bson_value *v, int *ret)
{
	int64_t n;

	if (!bson_is_number(v))
		return fail_type(q, FIELD_STRENGTH, v, "types '[long, int, decimal, double]'");
	n = strength_number(v);
	if (n < 1)
		return mql_fail(q, MQL_BAD_VALUE,
				"BSON field 'strength' value must be >= 1, actual value '%lld'",
				(long long)n);
	if (n > 5)
		return mql_fail(q, MQL_BAD_VALUE,
				"BSON field 'strength' value must be <= 5, actual value '%lld'",
				(long long)n);
	*ret = (int)strengths[n - 1];
	return STATUS_OK;
}

static bool
locale_is_listed(const char *name)
{
	for (int32_t i = 0; i < ucol_countAvailable(); i++) {
		if (!strcmp(ucol_getAvailable(i), name))
			return true;
	}
	for (int32_t i = 0; i < uloc_countAvailable(); i++) {
		if (!strcmp(uloc_getAvailable(i), name))
			return true;
	}
	return false;
}

/* A locale that ICU has, in ICU's spelling, with no other keyword than "collation". */
static bool
locale_is_valid(const char *name)
{
	char canonical[2 * MQL_COLLATION_LOCALE_BYTES], base[2 * MQL_COLLATION_LOCALE_BYTES];
	char keyword[COLLATION_LOCALE_WORD_BYTES];
	const char *keywords = strchr(name, '@');
	UErrorCode code = U_ZERO_ERROR;
	int32_t len = uloc_getName(name, canonical, sizeof(canonical), &code);

	if (U_FAILURE(code) || len <= 0 || (size_t)len >= sizeof(canonical) ||
	    strcmp(canonical, name))
		return false;
	/* A part of the name, so it has room. */
	(void)uloc_getBaseName(name, base, sizeof(base), &code);
	if (U_FAILURE(code) || !locale_is_listed(base))
		return false;
	if (!keywords)
		return true;
	len = uloc_getKeywordValue(name, "collation", keyword, sizeof(keyword), &code);
	return U_SUCCESS(code) && len > 0 &&
	       strlen(keywords) == strlen("@collation=") + (size_t)len;
}

static enum status
read_locale(struct mql *q, struct str document, const struct bson_value *v, struct wish *wish)
{
	const struct bson_value whole = BSON_OF_DOCUMENT(document);

	if (v->type != BSON_STRING)
		return fail_type(q, FIELD_LOCALE, v, "type 'string'");
	if (bson_text(v).len <= MQL_COLLATION_LOCALE_BYTES &&
	    !memchr(bson_text(v).ptr, 0, bson_text(v).len)) {
		memcpy(wish->locale, bson_text(v).ptr, bson_text(v).len);
		wish->locale[bson_text(v).len] = '\0';
		if (!strcmp(wish->locale, "simple") || locale_is_valid(wish->locale))
			return STATUS_OK;
	}
	return mql_fail(q, MQL_BAD_VALUE, "Field 'locale' is invalid in: %s",
			mql_text(q, STR(""), &whole));
}

static enum status
read_version(struct mql *q, struct str document, const struct bson_value *v)
{
	const struct bson_value whole = BSON_OF_DOCUMENT(document);

	if (v->type != BSON_STRING)
		return fail_type(q, FIELD_VERSION, v, "type 'string'");
	if (mql_is(bson_text(v), MQL_COLLATION_VERSION))
		return STATUS_OK;
	return mql_fail(q, COLLATION_WRONG_VERSION,
			"Requested collation version, %.*s, but the only available collator "
			"version was " MQL_COLLATION_VERSION ". Requested collation spec: %s",
			STR_ARG(bson_text(v)), mql_text(q, STR(""), &whole));
}

static enum status
read_field(struct mql *q, struct str document, enum field f, const struct bson_value *v,
	   struct wish *wish)
{
	bool needed = f == FIELD_LOCALE || f == FIELD_BACKWARDS;

	if (v->type == BSON_NULL && !needed)
		return STATUS_OK;
	if (f == FIELD_LOCALE)
		return read_locale(q, document, v, wish);
	if (f == FIELD_VERSION)
		return read_version(q, document, v);
	if (f == FIELD_STRENGTH)
		return read_strength(q, v, &wish->values[f]);
	if (!fields[f].truth)
		return read_choice(q, f, v, &wish->values[f]);
	if (v->type != BSON_BOOL)
		return fail_type(q, f, v, "type 'bool'");
	wish->values[f] = bson_truth(v) ? UCOL_ON : UCOL_OFF;
	return STATUS_OK;
}

static enum status
read_document(struct mql *q, struct str document, struct wish *wish)
{
	struct bson_iter i;
	struct bson_element e;

	for (int f = 0; f < FIELDS; f++)
		wish->values[f] = COLLATION_UNSET;
	for (bson_iter_begin(&i, document); bson_iter_read(&i, &e);) {
		int f = 0;

		TRY(step_count(1));
		while (f < FIELDS && !mql_is(e.name, fields[f].name))
			f++;
		if (f == FIELDS)
			return mql_fail(q, COLLATION_UNKNOWN_FIELD,
					"BSON field 'collation.%.*s' is an unknown field.",
					STR_ARG(e.name));
		TRY(read_field(q, document, (enum field)f, &e.value, wish));
	}
	if (!wish->locale[0])
		return mql_fail(q, COLLATION_MISSING_FIELD,
				"BSON field 'collation.locale' is missing but a required field");
	return STATUS_OK;
}

/* ---- ICU ---- */

/* ICU counts bytes in an int32_t. No document has a longer string. */
static int32_t
icu_length(struct str s)
{
	return s.len > INT32_MAX ? INT32_MAX : (int32_t)s.len;
}

struct compare_call {
	const UCollator *collator;
	struct str a, b;
	int result;
};

static void
compare_by_icu(void *arg)
{
	struct compare_call *c = arg;
	UErrorCode code = U_ZERO_ERROR;
	UCollationResult result = ucol_strcollUTF8(c->collator, c->a.ptr, icu_length(c->a),
						   c->b.ptr, icu_length(c->b), &code);

	/* ICU fails only where the system has no memory: then the bytes have an order, too. */
	c->result = U_FAILURE(code)       ? str_cmp(c->a, c->b)
		    : result == UCOL_LESS ? -1
					  : result == UCOL_GREATER;
}

static int
collation_compare(void *of, struct str a, struct str b)
{
	const struct mql_collation *collation = of;
	struct compare_call call = { .collator = collation->collator, .a = a, .b = b };
	size_t shorter = a.len < b.len ? a.len : b.len;

	if (str_eq(a, b))
		return 0;
	step_pause(1 + (uint32_t)(shorter / COLLATION_COMPARE_BYTES));
	if (shorter > MQL_COLLATION_OFFLOAD_BYTES)
		wait_offload(compare_by_icu, &call);
	else
		compare_by_icu(&call);
	return call.result;
}

struct key_call {
	const UCollator *collator;
	struct str text;
	struct buf *key;
	enum status status;
};

/*
 * The text as UTF-16, then its key behind the buffer's bytes. A key that has no room there is cut:
 * keys that are kept are far shorter.
 */
static enum status
put_key_by_icu(struct key_call *c, struct buf *units)
{
	size_t room = c->key->max_bytes - c->key->len;
	size_t try = c->text.len * COLLATION_KEY_BYTES + 16;
	UErrorCode code = U_ZERO_ERROR;
	int32_t count = 0, wanted;

	if (!buf_reserve(units, (c->text.len + 1) * sizeof(UChar)))
		return buf_status(units);
	u_strFromUTF8((UChar *)(void *)units->ptr, (int32_t)c->text.len + 1, &count, c->text.ptr,
		      icu_length(c->text), &code);
	if (U_FAILURE(code))
		return STATUS_CORRUPT;
	for (;;) {
		try = try < room ?
		try : room
			;
		if (!buf_reserve(c->key, try))
			return buf_status(c->key);
		wanted = ucol_getSortKey(c->collator, (const UChar *)(void *)units->ptr, count,
					 (uint8_t *)c->key->ptr + c->key->len, (int32_t)try);
		if (wanted <= 0)
			return STATUS_NOMEM;
		if ((size_t)wanted <= try || try == room)
			break;
		try = (size_t)wanted;
	}
	/* A whole key ends with a NUL, which is no part of it. */
	c->key->len += (size_t)wanted <= try ? (size_t)wanted - 1 : try;
	return STATUS_OK;
}

static void
put_key(void *arg)
{
	struct key_call *c = arg;
	struct buf units = BUF_INIT_OF((BSON_MOST_BYTES + 1) * sizeof(UChar), c->key->part);

	c->status = put_key_by_icu(c, &units);
	buf_release(&units);
}

static enum status
collation_put_key(void *of, struct str text, struct buf *key)
{
	const struct mql_collation *collation = of;
	struct key_call call = { .collator = collation->collator, .text = text, .key = key };

	TRY(step_count_bytes(text.len * (STEP_COPIED_BYTES / COLLATION_COMPARE_BYTES)));
	if (text.len > MQL_COLLATION_OFFLOAD_BYTES)
		wait_offload(put_key, &call);
	else
		put_key(&call);
	return call.status;
}

/* ---- The whole ---- */

struct open_call {
	struct wish *wish;
	UCollator *collator;
	UErrorCode code;
};

/* Opens the collator, and takes from it what the document does not say. */
static void
open_collator(void *arg)
{
	struct open_call *c = arg;
	int *values = c->wish->values;

	c->collator = ucol_open(c->wish->locale, &c->code);
	for (int f = 0; f < FIELDS && U_SUCCESS(c->code); f++) {
		if (f == FIELD_LOCALE || f == FIELD_VERSION || f == FIELD_MAX_VARIABLE)
			continue;
		if (values[f] == COLLATION_UNSET)
			values[f] = ucol_getAttribute(c->collator, fields[f].attribute, &c->code);
		else
			ucol_setAttribute(c->collator, fields[f].attribute,
					  (UColAttributeValue)values[f], &c->code);
	}
	if (U_FAILURE(c->code))
		return;
	if (values[FIELD_MAX_VARIABLE] == COLLATION_UNSET)
		values[FIELD_MAX_VARIABLE] = ucol_getMaxVariable(c->collator);
	else
		ucol_setMaxVariable(c->collator, (UColReorderCode)values[FIELD_MAX_VARIABLE],
				    &c->code);
}

static enum status
check_wish(struct mql *q, struct str document, const struct wish *wish)
{
	const struct bson_value whole = BSON_OF_DOCUMENT(document);
	int strength = wish->values[FIELD_STRENGTH];

	if (wish->values[FIELD_BACKWARDS] == UCOL_ON && strength == UCOL_PRIMARY)
		return mql_fail(q, MQL_BAD_VALUE,
				"'backwards' is invalid with 'strength' of 1 in: %s",
				mql_text(q, STR(""), &whole));
	if (wish->values[FIELD_CASE_FIRST] != UCOL_OFF &&
	    wish->values[FIELD_CASE_LEVEL] != UCOL_ON &&
	    (strength == UCOL_PRIMARY || strength == UCOL_SECONDARY))
		return mql_fail(q, MQL_BAD_VALUE,
				"'caseFirst' is invalid unless 'caseLevel' is on or 'strength' is "
				"greater than 2 in: %s",
				mql_text(q, STR(""), &whole));
	return STATUS_OK;
}

static const char *
choice_name(const struct choice *choices, int value)
{
	while (choices[1].name && choices->value != value)
		choices++;
	return choices->name;
}

static void
write_document(struct buf *out, const struct wish *wish)
{
	struct bson_builder b;

	bson_builder_init(&b, out);
	bson_begin(&b);
	for (int f = 0; f < FIELDS; f++) {
		struct str name = str_from_cstr(fields[f].name);
		int value = wish->values[f], strength = 0;

		if (f == FIELD_LOCALE) {
			bson_put_string(&b, name, str_from_cstr(wish->locale));
		} else if (f == FIELD_VERSION) {
			bson_put_string(&b, name, STR(MQL_COLLATION_VERSION));
		} else if (f == FIELD_STRENGTH) {
			while (strength < 4 && (int)strengths[strength] != value)
				strength++;
			bson_put_int32(&b, name, strength + 1);
		} else if (fields[f].truth) {
			bson_put_bool(&b, name, value == UCOL_ON);
		} else {
			bson_put_string(&b, name,
					str_from_cstr(choice_name(fields[f].choices, value)));
		}
	}
	bson_end(&b);
}

static enum status
collation_open(struct mql *q, struct str document, struct wish *wish, struct mql_collation *c)
{
	struct open_call call = { .wish = wish, .code = U_ZERO_ERROR };

	/* A locale's rules may have to be read, and those of Chinese and Japanese are long. */
	wait_offload(open_collator, &call);
	c->collator = call.collator;
	if (U_FAILURE(call.code))
		return call.code == U_MEMORY_ALLOCATION_ERROR
			       ? STATUS_NOMEM
			       : err_set(q->err, STATUS_UNAVAILABLE,
					 "ICU has no collation of that locale: %s",
					 u_errorName(call.code));
	TRY(check_wish(q, document, wish));
	write_document(&c->document, wish);
	return buf_status(&c->document);
}

enum status
mql_collation_new(struct mql *q, struct str document, struct mql_collation **ret)
{
	struct wish wish = { 0 };
	struct mql_collation *c;
	enum status status;

	TRY(read_document(q, document, &wish));
	if (!strcmp(wish.locale, "simple")) {
		*ret = NULL;
		return STATUS_OK;
	}
	c = mem_zalloc(sizeof(*c));
	if (!c)
		return STATUS_NOMEM;
	c->document = BUF_SHORT(COLLATION_DOCUMENT_BYTES);
	c->texts = (struct bson_texts){ collation_compare, collation_put_key, c };
	status = collation_open(q, document, &wish, c);
	if (status == STATUS_OK)
		*ret = c;
	else
		mql_collation_free(c);
	return status;
}

void
mql_collation_free(struct mql_collation *c)
{
	if (!c)
		return;
	if (c->collator)
		ucol_close(c->collator);
	buf_release(&c->document);
	mem_free(c);
}

const struct bson_texts *
mql_collation_texts(const struct mql_collation *c)
{
	return c ? &c->texts : NULL;
}

struct str
mql_collation_document(const struct mql_collation *c)
{
	return c ? buf_str(&c->document) : STR("");
}

struct str
mql_collation_document_of(const struct bson_texts *texts)
{
	return mql_collation_document(texts ? texts->of : NULL);
}
