/* frond-rows: scans. */
#include "frond_rows_bytes.h"

enum {
	REQUEST_SCAN = 19,

	SCAN_REVERSE = 1,
	SCAN_SUMS = 2,
	SCAN_GROUPS = 4,
	SCAN_INDEX = 8,
};

static void
put_filter(struct bytes *b, const struct frows_filter *f)
{
	const struct frows_value none = { NULL, FROWS_NULL };

	put_int(b, f->column, 4);
	put_int(b, f->test, 1);
	put_int(b, f->from_kind, 1);
	put_value(b, f->from_kind ? f->from : none);
	put_int(b, f->to_kind, 1);
	put_value(b, f->to_kind ? f->to : none);
}

static void
put_scan(struct frows *c, const struct frows_scan *s, bool sums)
{
	struct bytes *b = &c->out;

	frows_put_of(b, &s->of);
	put_int(b,
		(s->reverse ? SCAN_REVERSE : 0) | (sums ? SCAN_SUMS : 0) |
			(s->groups ? SCAN_GROUPS : 0) | (s->index ? SCAN_INDEX : 0),
		1);
	if (s->groups)
		put_int(b, s->groups, 1);
	if (s->index)
		put_int(b, s->index, 4);
	put_int(b, s->column_count, 2);
	for (size_t i = 0; i < s->column_count; i++) {
		put_int(b, s->columns[i], 4);
		if (sums)
			put_int(b, s->sums[i], 1);
	}
	put_values(b, s->equal, s->equal_count);
	put_int(b, s->from.kind, 1);
	put_values(b, s->from.values, s->from.count);
	put_int(b, s->to.kind, 1);
	put_values(b, s->to.values, s->to.count);
	put_int(b, s->filter_count, 2);
	for (size_t i = 0; i < s->filter_count; i++)
		put_filter(b, &s->filters[i]);
	put_int(b, s->rows, 4);
	put_int(b, s->bytes, 4);
	put_int(b, s->sample, 4);
}

/* Keeps what stands behind the rows of a page: where the scan goes on. */
static bool
keep_place(struct frows *c, bool sums)
{
	struct reader rest = c->read;
	size_t values = (size_t)c->left * c->columns, len;
	const uint8_t *at;

	if (sums)
		(void)take_int(&rest, 8);
	for (size_t i = 0; i < (sums ? c->columns : values) && !rest.bad; i++)
		(void)take_value(&rest);
	c->more = take_int(&rest, 1);
	len = take_int(&rest, 4);
	at = take(&rest, len);
	c->place.len = 0;
	put(&c->place, at, at ? len : 0);
	c->read.bad |= rest.bad;
	if (!c->place.failed)
		return frows_taken(c);
	c->place.failed = false;
	return frows_fail_memory(c);
}

struct frows_value
frows_scan_place(const struct frows *c)
{
	return (struct frows_value){ c->place.ptr, (int32_t)c->place.len };
}

bool
frows_scan_page(struct frows *c, const struct frows_scan *scan, bool goes_on)
{
	return frows_scan_page_at(c, scan,
				  goes_on ? frows_scan_place(c) : (struct frows_value){ NULL, 0 });
}

bool
frows_scan_page_at(struct frows *c, const struct frows_scan *scan, struct frows_value place)
{
	bool sums = scan->sums || scan->only_count;

	frows_make_request(c, REQUEST_SCAN);
	put_scan(c, scan, sums);
	put_value(&c->out, place);
	c->more = false;
	if (!frows_run(c))
		return false;
	c->columns = scan->column_count + (scan->groups ? scan->groups + 1 : 0);
	sums = sums && !scan->groups;
	c->left = sums ? 0 : (uint32_t)take_int(&c->read, 4);
	return keep_place(c, sums);
}

bool
frows_scan_row(struct frows *c, struct frows_value *values)
{
	if (!c->left)
		return false;
	c->left--;
	for (size_t i = 0; i < c->columns; i++)
		values[i] = take_value(&c->read);
	return true;
}

uint64_t
frows_scan_sums(struct frows *c, struct frows_value *values)
{
	uint64_t rows = take_int(&c->read, 8);

	for (size_t i = 0; i < c->columns; i++)
		values[i] = take_value(&c->read);
	return rows;
}

bool
frows_has_more(const struct frows *c)
{
	return c->more;
}
