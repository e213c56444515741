/* frond-rows: rows by their keys, and writes. */
#include "frond_rows_bytes.h"

enum {
	REQUEST_GET = 20,
	REQUEST_WRITE = 21,
};

static void
many_begin(struct frows *c, unsigned code, const struct frows_of *of, const uint32_t *columns,
	   size_t count)
{
	frows_make_request(c, code);
	frows_put_of(&c->out, of);
	put_int(&c->out, 0, 1);
	put_int(&c->out, count, 2);
	for (size_t i = 0; i < count; i++)
		put_int(&c->out, columns[i], 4);
	c->columns = count;
	c->count_at = c->out.len;
	c->count = 0;
	put_int(&c->out, 0, 4);
}

static bool
many_run(struct frows *c)
{
	set_u32(&c->out, c->count_at, c->count);
	if (!frows_run(c))
		return false;
	c->left = (uint32_t)take_int(&c->read, 4);
	if (c->left != c->count)
		c->read.bad = true;
	return frows_taken(c);
}

void
frows_get(struct frows *c, const struct frows_of *of, const uint32_t *columns, size_t count)
{
	many_begin(c, REQUEST_GET, of, columns, count);
}

void
frows_get_key(struct frows *c, const struct frows_value *key, size_t count)
{
	put_values(&c->out, key, count);
	c->count++;
}

bool
frows_get_run(struct frows *c)
{
	return many_run(c);
}

bool
frows_get_row(struct frows *c, bool *ret_found, struct frows_value *values)
{
	if (!c->left)
		return false;
	c->left--;
	*ret_found = take_int(&c->read, 1);
	for (size_t i = 0; *ret_found && i < c->columns; i++)
		values[i] = take_value(&c->read);
	return frows_taken(c);
}

void
frows_write(struct frows *c, const struct frows_of *of, const uint32_t *columns, size_t count)
{
	many_begin(c, REQUEST_WRITE, of, columns, count);
}

void
frows_write_row(struct frows *c, enum frows_op op, const struct frows_value *key, size_t key_count,
		const struct frows_value *values)
{
	put_int(&c->out, op, 1);
	put_values(&c->out, key, key_count);
	for (size_t i = 0; op < FROWS_DELETE && i < c->columns; i++)
		put_value(&c->out, values[i]);
	c->count++;
}

size_t
frows_request_bytes(const struct frows *c)
{
	return c->out.len > HEADER_BYTES ? c->out.len - HEADER_BYTES : 0;
}

size_t
frows_request_most(const struct frows *c)
{
	return c->most;
}

bool
frows_write_run(struct frows *c)
{
	return many_run(c);
}

bool
frows_write_later(struct frows *c)
{
	if (c->front.len + c->out.len > FROWS_FRONT_BYTES || c->out.failed)
		return many_run(c);
	set_u32(&c->out, c->count_at, c->count);
	c->left = 0;
	return frows_front_put(c, REQUEST_WRITE, c->out.ptr + HEADER_BYTES,
			       c->out.len - HEADER_BYTES);
}

bool
frows_write_send(struct frows *c)
{
	uint16_t sent;

	set_u32(&c->out, c->count_at, c->count);
	return frows_owed_send(c, &sent) && frows_owed_take(c, sent);
}

bool
frows_write_wait(struct frows *c)
{
	return frows_owed_take(c, 0);
}

bool
frows_write_done(struct frows *c, bool *ret_done)
{
	if (!c->left)
		return false;
	c->left--;
	*ret_done = take_int(&c->read, 1);
	return frows_taken(c);
}
