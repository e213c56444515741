#include "catalog/draw.h"
#include "doc/json.h"
#include "index/engine/entry.h"
#include "index/json/form.h"

enum {
	DRAW_PARTITION_BYTES = 1024 * 1024,
};

/* The texts of the columns, each a string in the record and JSON as it is. */
static bool
draw_entry_texts(struct tuple_reader *r, struct buf *ret)
{
	struct tuple_elem e;
	enum status status;

	while ((status = tuple_next(r, &e)) == STATUS_OK) {
		if (e.kind == TUPLE_STRING) {
			buf_append_cstr(ret, ", ");
			buf_append_str(ret, e.raw);
		} else if (e.kind == TUPLE_NULL) {
			buf_append_cstr(ret, ", missing");
		} else {
			return false;
		}
	}
	return status == STATUS_NOT_FOUND;
}

bool
index_json_draw_entry(struct str value, struct buf *ret)
{
	struct tuple_reader r = tuple_reader(value);
	size_t at = ret->len;
	uint64_t format, flags;
	struct tuple_elem id;

	if (tuple_next_u64(&r, &format) != STATUS_OK || format != INDEX_ENTRY_FORMAT ||
	    tuple_next_u64(&r, &flags) != STATUS_OK || flags & ~(uint64_t)INDEX_ENTRY_FLAGS)
		return false;
	if (flags & INDEX_ENTRY_LONG_ID &&
	    (tuple_next(&r, &id) != STATUS_OK || id.kind != TUPLE_STRING))
		return false;
	buf_printf(ret, "(%d%s", INDEX_ENTRY_FORMAT, flags & INDEX_ENTRY_CUT ? ", cut" : "");
	if (!draw_entry_texts(&r, ret)) {
		ret->len = at;
		return false;
	}
	if (flags & INDEX_ENTRY_LONG_ID) {
		buf_append_cstr(ret, ", of ");
		json_write_str(ret, id.raw);
	}
	buf_append_byte(ret, ')');
	return true;
}

/* Draws a partition as text; in the key it is stored as bytes. */
static void
draw_partition(const struct tuple_elem *e, struct buf *ret)
{
	AUTO(buf_release) struct buf text = BUF_INIT(DRAW_PARTITION_BYTES);

	tuple_unescape(e, &text);
	json_write_str(ret, buf_str(&text));
}

/*
 * Reads the columns' texts, which an entry has in its value if its key ends in the document's id.
 * False: the value has no texts.
 */
static bool
entry_read_texts(struct str value, struct str texts[INDEX_COLUMNS], size_t *ret_count)
{
	struct tuple_reader r = tuple_reader(value);
	uint64_t format, flags;
	struct tuple_elem e;

	*ret_count = 0;
	if (tuple_next_u64(&r, &format) != STATUS_OK || format != INDEX_ENTRY_FORMAT ||
	    tuple_next_u64(&r, &flags) != STATUS_OK || flags != INDEX_ENTRY_TEXTS)
		return false;
	while (tuple_next(&r, &e) == STATUS_OK) {
		if (*ret_count == INDEX_COLUMNS || (e.kind != TUPLE_STRING && e.kind != TUPLE_NULL))
			return false;
		texts[(*ret_count)++] = e.kind == TUPLE_STRING ? e.raw : STR("missing");
	}
	return *ret_count > 0;
}

bool
index_json_draw_entry_key(struct str tail, struct str value, struct buf *ret)
{
	struct str texts[INDEX_COLUMNS];
	struct tuple_elem elements[INDEX_COLUMNS + 2]; /* a partition, components, the id */
	struct tuple_reader r = tuple_reader(tail);
	size_t count, found = 0, partitions;
	uint64_t number;

	if (!entry_read_texts(value, texts, &count) || tuple_next_u64(&r, &number) != STATUS_OK)
		return false;
	while (found < count + 2 && tuple_next(&r, &elements[found]) == STATUS_OK)
		found++;
	if (r.rest.len || found <= count || elements[found - 1].kind != TUPLE_STRING)
		return false;
	partitions = found - count - 1;
	buf_printf(ret, "(%llu", (unsigned long long)number);
	if (partitions) {
		buf_append_cstr(ret, ", ");
		draw_partition(&elements[0], ret);
	}
	for (size_t i = 0; i < count; i++) {
		buf_append_cstr(ret, ", ");
		buf_append_str(ret, texts[i]);
	}
	buf_append_cstr(ret, ", ");
	catalog_draw_string(&elements[found - 1], ret);
	buf_append_byte(ret, ')');
	return true;
}
