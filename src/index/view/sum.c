#include "index/view/sum.h"

#include <math.h>

#include "doc/doc_int.h"
#include "doc/json_value.h"
#include "loop/sort.h"

enum {
	INT_DIGITS = 37, /* of an integer that surely fits */
	INT_TEXT_BYTES = 48,
};

/* ---- Numbers ---- */

static struct sum_number
number_of_double(double d)
{
	if (!(fabs(d) <= __DBL_MAX__))
		d = d < 0 ? -__DBL_MAX__ : __DBL_MAX__;
	return (struct sum_number){ .is_double = true, .d = d };
}

struct sum_number
sum_number_read(struct str text, bool is_integer)
{
	struct sum_number ret = { 0 };
	size_t at = text.len && text.ptr[0] == '-';

	if (!is_integer || text.len > INT_DIGITS)
		return number_of_double(doc_number_double(text));
	for (size_t i = at; i < text.len; i++)
		ret.i = 10 * ret.i + (text.ptr[i] - '0');
	if (at)
		ret.i = -ret.i;
	return ret;
}

static double
number_double(struct sum_number n)
{
	return n.is_double ? n.d : (double)n.i;
}

struct sum_number
sum_number_add(struct sum_number a, struct sum_number b)
{
	struct sum_number ret = { 0 };

	if (!a.is_double && !b.is_double && !__builtin_add_overflow(a.i, b.i, &ret.i))
		return ret;
	return number_of_double(number_double(a) + number_double(b));
}

struct sum_number
sum_number_multiply(struct sum_number a, struct sum_number b)
{
	struct sum_number ret = { 0 };

	if (!a.is_double && !b.is_double && !__builtin_mul_overflow(a.i, b.i, &ret.i))
		return ret;
	return number_of_double(number_double(a) * number_double(b));
}

int
sum_number_cmp(struct sum_number a, struct sum_number b)
{
	double x, y;

	if (!a.is_double && !b.is_double)
		return a.i < b.i ? -1 : a.i > b.i;
	x = number_double(a);
	y = number_double(b);
	return x < y ? -1 : x > y;
}

void
sum_number_write(struct sum_number n, struct buf *out)
{
	char text[INT_TEXT_BYTES];
	size_t at = sizeof(text);
	unsigned __int128 rest = n.i < 0 ? -(unsigned __int128)n.i : (unsigned __int128)n.i;

	if (n.is_double) {
		json_write_double(out, n.d);
		return;
	}
	do {
		text[--at] = (char)('0' + (int)(rest % 10));
		rest /= 10;
	} while (rest);
	if (n.i < 0)
		text[--at] = '-';
	buf_append(out, text + at, sizeof(text) - at);
}

/* ---- Reading and writing ---- */

static enum status value_of_json(const struct json_value *json, unsigned depth, struct arena *arena,
				 struct sum_value *ret);

static enum status
value_of_array(const struct json_value *json, unsigned depth, struct arena *arena,
	       struct sum_value *ret)
{
	struct json_value *items;

	TRY(json_value_items(json, arena, &items, &ret->count, NULL));
	ret->items = arena_zalloc(arena, (ret->count + 1) * sizeof(*ret->items));
	if (!ret->items)
		return STATUS_LIMIT;
	for (size_t i = 0; i < ret->count; i++)
		TRY(value_of_json(&items[i], depth + 1, arena, &ret->items[i]));
	ret->kind = SUM_ARRAY;
	return STATUS_OK;
}

static enum status
member_cmp(const void *arg, const void *a, const void *b, int *ret)
{
	(void)arg;
	return sort_compare_strs(((const struct json_member *)a)->name,
				 ((const struct json_member *)b)->name, ret);
}

static enum status
value_of_object(const struct json_value *json, unsigned depth, struct arena *arena,
		struct sum_value *ret)
{
	struct json_member *members;
	size_t count;

	TRY(json_value_members(json, arena, &members, &count, NULL));
	/* Of members of one name, which keep their order, the last counts. */
	TRY(sort_items(members, count, sizeof(*members), member_cmp, NULL, arena));
	ret->items = arena_zalloc(arena, (count + 1) * sizeof(*ret->items));
	ret->names = arena_zalloc(arena, (count + 1) * sizeof(*ret->names));
	if (!ret->items || !ret->names)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		if (i + 1 < count && str_eq(members[i].name, members[i + 1].name))
			continue;
		ret->names[ret->count] = members[i].name;
		TRY(value_of_json(&members[i].value, depth + 1, arena, &ret->items[ret->count]));
		ret->count++;
	}
	ret->kind = SUM_OBJECT;
	return STATUS_OK;
}

static enum status
value_of_json(const struct json_value *json, unsigned depth, struct arena *arena,
	      struct sum_value *ret)
{
	*ret = (struct sum_value){ .kind = SUM_OTHER, .text = json->text };
	if (json->kind == JSON_NUMBER) {
		ret->kind = SUM_NUMBER;
		ret->number = sum_number_read(json->text, json->is_integer);
	} else if (json->kind == JSON_ARRAY_BEGIN && depth < SUM_DEPTH) {
		return value_of_array(json, depth, arena, ret);
	} else if (json->kind == JSON_OBJECT_BEGIN && depth < SUM_DEPTH) {
		return value_of_object(json, depth, arena, ret);
	}
	return STATUS_OK;
}

enum status
sum_value_read(struct str text, struct arena *arena, struct sum_value *ret)
{
	struct json_value json;
	bool is_integer;

	/* Nearly all values are numbers. */
	if (text.len && text.len == json_number_len(text, &is_integer)) {
		*ret = (struct sum_value){ .kind = SUM_NUMBER, .text = text };
		ret->number = sum_number_read(text, is_integer);
		return STATUS_OK;
	}
	TRY(json_value_read(text, arena, &json, NULL));
	return value_of_json(&json, 0, arena, ret);
}

void
sum_value_write(const struct sum_value *value, struct buf *out)
{
	switch (value->kind) {
	case SUM_NOTHING:
		buf_append_byte(out, '0');
		return;
	case SUM_NUMBER:
		sum_number_write(value->number, out);
		return;
	case SUM_OTHER:
		buf_append_str(out, value->text);
		return;
	case SUM_ARRAY:
	case SUM_OBJECT:
		break;
	}
	buf_append_byte(out, value->kind == SUM_ARRAY ? '[' : '{');
	for (size_t i = 0; i < value->count; i++) {
		if (i)
			buf_append_byte(out, ',');
		if (value->kind == SUM_OBJECT) {
			json_write_str(out, value->names[i]);
			buf_append_byte(out, ':');
		}
		sum_value_write(&value->items[i], out);
	}
	buf_append_byte(out, value->kind == SUM_ARRAY ? ']' : '}');
}

struct sum_value *
sum_value_member(const struct sum_value *object, const char *name)
{
	for (size_t i = 0; object->kind == SUM_OBJECT && i < object->count; i++)
		if (str_eq(object->names[i], str_from_cstr(name)))
			return &object->items[i];
	return NULL;
}

/* ---- Adding ---- */

/* Elements that both have are numbers; those that one has alone are taken as they are. */
static enum status
add_arrays(struct sum_value *acc, const struct sum_value *value, struct arena *arena,
	   const struct sum_value **ret_cause)
{
	size_t both = acc->count < value->count ? acc->count : value->count;

	for (size_t i = 0; i < both; i++) {
		if (acc->items[i].kind != SUM_NUMBER || value->items[i].kind != SUM_NUMBER) {
			*ret_cause = value;
			return STATUS_OK;
		}
		acc->items[i].number = sum_number_add(acc->items[i].number, value->items[i].number);
	}
	if (value->count > acc->count) {
		struct sum_value *items = arena_alloc(arena, value->count * sizeof(*items));

		if (!items)
			return STATUS_LIMIT;
		memcpy(items, acc->items, acc->count * sizeof(*items));
		memcpy(items + acc->count, value->items + acc->count,
		       (value->count - acc->count) * sizeof(*items));
		acc->items = items;
		acc->count = value->count;
	}
	return STATUS_OK;
}

/* Puts the members of both side by side, and adds those that both have. */
static enum status
add_objects(struct sum_value *acc, const struct sum_value *value, struct arena *arena,
	    const struct sum_value **ret_cause)
{
	size_t a = 0, b = 0, count = 0, most = acc->count + value->count + 1;
	struct sum_value *items = arena_zalloc(arena, most * sizeof(*items));
	struct str *names = arena_zalloc(arena, most * sizeof(*names));

	if (!items || !names)
		return STATUS_LIMIT;
	while (a < acc->count || b < value->count) {
		int order = a == acc->count     ? 1
			    : b == value->count ? -1
						: str_cmp(acc->names[a], value->names[b]);

		if (order > 0) {
			names[count] = value->names[b];
			items[count++] = value->items[b++];
			continue;
		}
		names[count] = acc->names[a];
		items[count] = acc->items[a++];
		if (order == 0)
			TRY(sum_value_add(&items[count], &value->items[b++], arena, ret_cause));
		if (*ret_cause)
			return STATUS_OK;
		count++;
	}
	acc->items = items;
	acc->names = names;
	acc->count = count;
	return STATUS_OK;
}

static void
value_wrap(struct sum_value *value, struct sum_value *item)
{
	*item = *value;
	*value = (struct sum_value){ .kind = SUM_ARRAY, .items = item, .count = 1 };
}

enum status
sum_value_add(struct sum_value *acc, const struct sum_value *value, struct arena *arena,
	      const struct sum_value **ret_cause)
{
	struct sum_value *item;
	struct sum_value one = *value;

	*ret_cause = NULL;
	if (value->kind == SUM_OTHER || value->kind == SUM_NOTHING) {
		*ret_cause = value;
		return STATUS_OK;
	}
	/* As in CouchDB a sum begins with 0, so that the first element of an array is a number. */
	if (acc->kind == SUM_NOTHING && value->kind == SUM_ARRAY)
		*acc = (struct sum_value){ .kind = SUM_NUMBER };
	if (acc->kind == SUM_NOTHING) {
		*acc = *value;
		return STATUS_OK;
	}
	if (acc->kind == SUM_NUMBER && value->kind == SUM_NUMBER) {
		acc->number = sum_number_add(acc->number, value->number);
		return STATUS_OK;
	}
	if (acc->kind == SUM_OBJECT && value->kind == SUM_OBJECT)
		return add_objects(acc, value, arena, ret_cause);
	if (acc->kind == SUM_OBJECT || value->kind == SUM_OBJECT || acc->kind == SUM_OTHER) {
		*ret_cause = value;
		return STATUS_OK;
	}
	/* A number is an array of one where the other is an array. */
	if (acc->kind == SUM_NUMBER || value->kind == SUM_NUMBER) {
		item = arena_alloc(arena, sizeof(*item));
		if (!item)
			return STATUS_LIMIT;
		value_wrap(acc->kind == SUM_NUMBER ? acc : &one, item);
	}
	TRY(add_arrays(acc, &one, arena, ret_cause));
	if (*ret_cause)
		*ret_cause = value; /* what the caller has, and not `one`, which ends here */
	return STATUS_OK;
}
