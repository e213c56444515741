/* Trees to JSON texts. */
#include "jtree/jtree.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "doc/json.h"
#include "loop/step.h"

const struct jtree_layout jtree_dense = { .space = STR("") };

enum {
	DIGITS_MOST = 17, /* of a double's shortest text */
	/* Doubles between these powers of ten have no exponent in their text. */
	FIXED_LEAST = -5,
	FIXED_MOST = 16,
};

/* A double as 0.DIGITS times 10^point. */
struct decimal {
	char digits[DIGITS_MOST + 1];
	int count;
	int point;
};

/* Takes apart what json_write_double() writes of a number that is greater than 0. */
static void
decimal_of(double d, struct decimal *ret)
{
	char text[JTREE_NUMBER_BYTES + 1];
	struct buf b = { .ptr = text, .cap = JTREE_NUMBER_BYTES, .max_bytes = JTREE_NUMBER_BYTES };
	bool fraction = false;
	size_t i;

	*ret = (struct decimal){ .count = 0 };
	json_write_double(&b, d);
	assert(b.failed == STATUS_OK);
	text[b.len] = 0;
	for (i = 0; i < b.len && text[i] != 'e'; i++) {
		if (text[i] == '.') {
			fraction = true;
			continue;
		}
		if (!fraction && (ret->count || text[i] != '0'))
			ret->point++;
		else if (fraction && !ret->count && text[i] == '0')
			ret->point--;
		if ((ret->count || text[i] != '0') && ret->count < DIGITS_MOST)
			ret->digits[ret->count++] = text[i];
	}
	if (i < b.len)
		ret->point += (int)strtol(text + i + 1, NULL, 10);
	while (ret->count > 1 && ret->digits[ret->count - 1] == '0')
		ret->count--;
}

/* As RedisJSON writes doubles: the shortest digits, an exponent outside of 1e-5 to 1e16. */
static int
double_write(double d, char buf[static JTREE_NUMBER_BYTES])
{
	const char *sign = __builtin_signbit(d) ? "-" : "";
	struct decimal n;

	if (d == 0)
		return snprintf(buf, JTREE_NUMBER_BYTES, "%s0.0", sign);
	decimal_of(__builtin_fabs(d), &n);
	if (n.point > FIXED_MOST || n.point <= FIXED_LEAST)
		return snprintf(buf, JTREE_NUMBER_BYTES, "%s%c%s%.*se%d", sign, n.digits[0],
				n.count > 1 ? "." : "", n.count - 1, n.digits + 1, n.point - 1);
	if (n.point <= 0)
		return snprintf(buf, JTREE_NUMBER_BYTES, "%s0.%.*s%.*s", sign, -n.point, "00000",
				n.count, n.digits);
	if (n.point >= n.count)
		return snprintf(buf, JTREE_NUMBER_BYTES, "%s%.*s%.*s.0", sign, n.count, n.digits,
				n.point - n.count, "0000000000000000");
	return snprintf(buf, JTREE_NUMBER_BYTES, "%s%.*s.%.*s", sign, n.point, n.digits,
			n.count - n.point, n.digits + n.point);
}

struct str
jtree_write_number(const struct jtree_node *node, char buf[static JTREE_NUMBER_BYTES])
{
	int len;

	if (node->kind == JTREE_DOUBLE)
		len = double_write(node->d, buf);
	else if (node->kind == JTREE_INT)
		len = snprintf(buf, JTREE_NUMBER_BYTES, "%lld", (long long)node->i);
	else
		len = snprintf(buf, JTREE_NUMBER_BYTES, "%llu", (unsigned long long)node->u);
	assert(len > 0 && len < JTREE_NUMBER_BYTES);
	return str_of(buf, (size_t)len);
}

void
jtree_write_line(const struct jtree_layout *layout, unsigned level, struct buf *out)
{
	buf_append_str(out, layout->newline);
	for (unsigned i = 0; layout->indent.len && i < level; i++)
		buf_append_str(out, layout->indent);
}

static enum status
container_write(const struct jtree_node *node, const struct jtree_layout *layout, unsigned level,
		struct buf *out)
{
	const char *brackets = node->kind == JTREE_ARRAY ? "[]" : "{}";

	assert(node->whole);
	buf_append_byte(out, (uint8_t)brackets[0]);
	for (uint64_t i = 0; i < node->count; i++) {
		const struct jtree_node *child = node->children[i];

		if (i)
			buf_append_byte(out, ',');
		jtree_write_line(layout, level + 1, out);
		if (node->kind == JTREE_OBJECT) {
			json_write_str(out, child->name);
			buf_append_byte(out, ':');
			buf_append_str(out, layout->space);
		}
		TRY(jtree_write(child, layout, level + 1, out));
	}
	if (node->count)
		jtree_write_line(layout, level, out);
	buf_append_byte(out, (uint8_t)brackets[1]);
	return STATUS_OK;
}

enum status
jtree_write(const struct jtree_node *node, const struct jtree_layout *layout, unsigned level,
	    struct buf *out)
{
	char number[JTREE_NUMBER_BYTES];

	TRY(step_count(1));
	switch (node->kind) {
	case JTREE_NULL:
		buf_append_cstr(out, "null");
		return STATUS_OK;
	case JTREE_BOOL:
		buf_append_cstr(out, node->truth ? "true" : "false");
		return STATUS_OK;
	case JTREE_INT:
	case JTREE_UNSIGNED:
	case JTREE_DOUBLE:
		buf_append_str(out, jtree_write_number(node, number));
		return STATUS_OK;
	case JTREE_TEXT:
		json_write_str(out, node->text);
		return step_count_bytes(node->text.len);
	case JTREE_ARRAY:
	case JTREE_OBJECT:
		return container_write(node, layout, level, out);
	}
	return STATUS_OK;
}
