/*
 * Rows that the transaction has changed: a query for one of them by its key, such as the SELECT
 * behind an UPDATE, need not ask frond.
 *
 * A transaction of frond's reads one state of the store and its own writes. It moves on to a later
 * state only if nothing that it has read was changed up to there. So a row that it has read and
 * then written is what it was made, until the transaction writes it again. A row is noted when its
 * write is sent, since a query whose statement began before must not see it; any other write to the
 * table forgets its rows, and so does whatever brings back an earlier state.
 */
#include "frond_own.h"

enum {
	ROW_BYTES = 4096, /* of a row that is kept, with where its values are */
};

struct own {
	Oid relid, user; /* InvalidOid: no row */
	int key_count;
	/* The columns of the key, then those of the table, then the bytes of both. */
	union {
		struct frows_value values[ROW_BYTES / sizeof(struct frows_value)];
		char bytes[ROW_BYTES];
	} room;
};

static struct own rows[FROND_OWN_ROWS];
static int next;
static uint32 mark;
static bool any;

uint32
frond_own_mark(void)
{
	return mark;
}

void
frond_own_forget(Oid relid)
{
	mark++;
	if (!any)
		return;
	any = false;
	for (int i = 0; i < FROND_OWN_ROWS; i++) {
		if (!OidIsValid(relid) || rows[i].relid == relid)
			rows[i].relid = InvalidOid;
		any |= OidIsValid(rows[i].relid);
	}
}

/* Kinds of which equal values have the same bytes, whoever has written them. */
static bool
is_exact(enum frows_kind kind)
{
	switch (kind) {
	case FROWS_BOOL:
	case FROWS_INT2:
	case FROWS_INT4:
	case FROWS_INT8:
	case FROWS_TEXT:
	case FROWS_BYTES:
	case FROWS_DATE:
	case FROWS_TIME:
	case FROWS_TIMESTAMP:
	case FROWS_TIMESTAMPTZ:
	case FROWS_UUID:
		return true;
	default:
		return false;
	}
}

static bool
has_key(const struct own *o, const struct frows_value *key)
{
	for (int i = 0; i < o->key_count; i++) {
		const struct frows_value *v = &o->room.values[i];

		if (v->len != key[i].len || (v->len > 0 && memcmp(v->ptr, key[i].ptr, v->len) != 0))
			return false;
	}
	return true;
}

static struct own *
own_find(const struct frond_table *t, Oid user, const struct frows_value *key)
{
	for (int i = 0; any && i < FROND_OWN_ROWS; i++)
		if (rows[i].relid == t->relid && rows[i].user == user && has_key(&rows[i], key))
			return &rows[i];
	return NULL;
}

/* Copies values behind those that are there. False: there is no room. */
static bool
values_put(struct own *o, int at, const struct frows_value *from, int count, size_t *used)
{
	for (int i = 0; i < count; i++) {
		struct frows_value v = from[i];

		if (v.len > 0) {
			if (*used + v.len > ROW_BYTES)
				return false;
			v.ptr = memcpy(o->room.bytes + *used, v.ptr, v.len);
			*used += v.len;
		}
		o->room.values[at + i] = v;
	}
	return true;
}

void
frond_own_note(const struct frond_table *t, Oid user, const struct frows_value *key,
	       const struct frows_value *values)
{
	struct own *o = own_find(t, user, key);
	size_t used = ((size_t)t->key_count + t->natts) * sizeof(*values);

	mark++;
	for (int i = 0; i < t->key_count; i++)
		if (!t->key[i].attnum || !is_exact(frond_key_column(t, i)->kind))
			return;
	if (!o)
		o = &rows[next++ % FROND_OWN_ROWS];
	o->relid = InvalidOid;
	o->key_count = t->key_count;
	if (used > ROW_BYTES || !values_put(o, 0, key, t->key_count, &used) ||
	    !values_put(o, t->key_count, values, t->natts, &used))
		return;
	o->relid = t->relid;
	o->user = user;
	any = true;
}

const struct frows_value *
frond_own_find(const struct frond_table *t, Oid user, const struct frows_value *key)
{
	const struct own *o = own_find(t, user, key);

	return o ? o->room.values + o->key_count : NULL;
}
