#include "doc/patch_int.h"
#include "loop/step.h"

/* ---- Numbers ---- */

enum {
	EXPONENT_DIGITS = 18, /* of an exponent that can be calculated with */
	EQUAL_BYTES_A_STEP = 64,
};

/* 0.`digits` times 10^`point`. */
struct number_parts {
	bool negative;
	bool known;        /* false: the exponent is too long to calculate with */
	struct str digits; /* without zeros around them, perhaps with a point; empty for zero */
	int64_t point;
};

static bool
exponent_read(struct str text, int64_t *ret)
{
	bool negative;

	*ret = 0;
	if (!text.len)
		return true;
	text = str_skip(text, 1); /* the e */
	negative = text.ptr[0] == '-';
	if (negative || text.ptr[0] == '+')
		text = str_skip(text, 1);
	while (text.len && text.ptr[0] == '0')
		text = str_skip(text, 1);
	if (text.len > EXPONENT_DIGITS)
		return false;
	for (size_t i = 0; i < text.len; i++)
		*ret = *ret * 10 + (text.ptr[i] - '0');
	if (negative)
		*ret = -*ret;
	return true;
}

/* `text` is a JSON number. */
static struct number_parts
number_take_apart(struct str text)
{
	struct number_parts d = { .negative = text.ptr[0] == '-' };
	struct str digits = str_skip(text, d.negative);
	size_t whole = 0;
	size_t end;

	while (whole < digits.len && digits.ptr[whole] >= '0' && digits.ptr[whole] <= '9')
		whole++;
	for (end = whole; end < digits.len && (digits.ptr[end] | 0x20) != 'e';)
		end++;
	d.known = exponent_read(str_skip(digits, end), &d.point);
	d.point += (int64_t)whole;
	digits.len = end;
	for (; digits.len && (digits.ptr[0] == '0' || digits.ptr[0] == '.');
	     digits = str_skip(digits, 1))
		d.point -= digits.ptr[0] == '0';
	while (digits.len &&
	       (digits.ptr[digits.len - 1] == '0' || digits.ptr[digits.len - 1] == '.'))
		digits.len--;
	d.digits = digits;
	return d;
}

static bool
digits_equal(struct str a, struct str b)
{
	while (a.len && b.len) {
		if (a.ptr[0] == '.')
			a = str_skip(a, 1);
		if (b.ptr[0] == '.')
			b = str_skip(b, 1);
		if (a.ptr[0] != b.ptr[0])
			return false;
		a = str_skip(a, 1);
		b = str_skip(b, 1);
	}
	return a.len == b.len;
}

static bool
numbers_equal(struct str a, struct str b)
{
	struct number_parts da = number_take_apart(a);
	struct number_parts db = number_take_apart(b);

	if (!da.digits.len || !db.digits.len)
		return da.digits.len == db.digits.len;
	return da.known && db.known && da.negative == db.negative && da.point == db.point &&
	       digits_equal(da.digits, db.digits);
}

/* Appends the text of a leaf that is a number; nothing for any other value. */
static enum status
leaf_write_number(struct str value, struct buf *out)
{
	AUTO(buf_release) struct buf scratch = BUF_INIT(SIZE_MAX);
	struct doc_scalar s;

	TRY(doc_scalar_read(value, &scratch, &s));
	switch ((int)s.kind) {
	case DOC_INT64:
	case DOC_INTEGER:
	case DOC_DOUBLE:
	case DOC_NUMBER:
		return json_write_scalar(out, &s);
	default:
		return STATUS_OK;
	}
}

/* ---- Values ---- */

/* Leaves with different bytes have the same value if both are numbers and equal. */
static enum status
leaf_values_equal(struct str a, struct str b, bool *ret)
{
	AUTO(buf_release) struct buf text_a = BUF_INIT(SIZE_MAX);
	AUTO(buf_release) struct buf text_b = BUF_INIT(SIZE_MAX);

	*ret = str_eq(a, b);
	if (*ret)
		return STATUS_OK;
	TRY(leaf_write_number(a, &text_a));
	TRY(leaf_write_number(b, &text_b));
	*ret = text_a.len && text_b.len && numbers_equal(buf_str(&text_a), buf_str(&text_b));
	return STATUS_OK;
}

enum status
patch_equal(struct patch_tree *t, const struct patch_node *a, const struct patch_node *b, bool *ret)
{
	*ret = a->count == b->count;
	TRY(patch_work(t, *ret ? a->count : 1));
	for (size_t i = 0; *ret && i < a->count; i++) {
		TRY(step_count(1 + (uint32_t)(a->leaves[i].value.len / EQUAL_BYTES_A_STEP)));
		*ret = str_eq(str_skip(a->leaves[i].key, a->skip),
			      str_skip(b->leaves[i].key, b->skip));
		if (*ret)
			TRY(leaf_values_equal(a->leaves[i].value, b->leaves[i].value, ret));
	}
	return STATUS_OK;
}
