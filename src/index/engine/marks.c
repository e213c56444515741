#include "index/engine/marks.h"

#include "catalog/keys.h"
#include "kv/tuple.h"

enum status
index_marks_open(struct index_marks *m, struct kv_tx *tx, const struct catalog_db *db,
		 const struct index_def *def, const struct index_stretch *stretch)
{
	const struct kv_range_options options = { .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	*m = (struct index_marks){ .tx = tx,
				   .db = db,
				   .def = def,
				   .exact = stretch->exact,
				   .last = CATALOG_KEY_INIT,
				   .from = CATALOG_KEY_INIT,
				   .key = CATALOG_KEY_INIT };
	index_key_mark(&m->key, db, def->number, STR(""));
	m->prefix = m->key.len;
	buf_append_buf(&end, &m->key);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&end));
	/* The mark of `after` is passed with the first that is asked for. */
	index_key_mark(&m->key, db, def->number, stretch->after);
	TRY(catalog_key_status(&m->key));
	buf_append_buf(&m->from, &m->key);
	if (stretch->after.len)
		buf_append_byte(&m->from, CATALOG_KEY_NEXT);
	TRY(buf_status(&m->from));
	TRY(kv_scan_init(&m->scan, tx, buf_str(&m->key), buf_str(&end), &options));
	m->open = true;
	return STATUS_OK;
}

static enum status
marks_next(struct index_marks *m, struct arena *arena)
{
	struct kv_pair pair;
	enum status status = kv_scan_next(&m->scan, &pair);
	struct tuple_reader r;
	struct str id;

	m->done = status != STATUS_OK;
	if (m->done)
		return status == STATUS_NOT_FOUND ? STATUS_OK : status;
	r = tuple_reader(str_skip(pair.key, m->prefix));
	TRY(catalog_next_text(&r, TUPLE_BYTES, arena, true, &id));
	m->has_last = true;
	buf_set(&m->last, id);
	return buf_status(&m->last);
}

/* Adds the conflict range that ends in front of the mark of `id`, or behind it. */
static enum status
marks_conflict(struct index_marks *m, struct str id, bool behind)
{
	index_key_mark(&m->key, m->db, m->def->number, id);
	if (behind)
		buf_append_byte(&m->key, CATALOG_KEY_NEXT);
	TRY(catalog_key_status(&m->key));
	if (str_cmp(buf_str(&m->from), buf_str(&m->key)) >= 0)
		return STATUS_OK;
	return kv_add_read_conflict_range(m->tx, buf_str(&m->from), buf_str(&m->key));
}

/* Passes the mark that was read last: the next range begins behind it. */
static enum status
marks_pass(struct index_marks *m)
{
	if (!m->has_last || m->exact)
		return STATUS_OK;
	m->has_last = false;
	TRY(marks_conflict(m, buf_str(&m->last), false));
	buf_append_byte(&m->key, CATALOG_KEY_NEXT);
	TRY(catalog_key_status(&m->key));
	if (str_cmp(buf_str(&m->from), buf_str(&m->key)) < 0)
		buf_set_buf(&m->from, &m->key);
	return buf_status(&m->from);
}

/* The place of the mark of this document alone. */
static enum status
marks_conflict_one(struct index_marks *m, struct str id)
{
	index_key_mark(&m->from, m->db, m->def->number, id);
	TRY(catalog_key_status(&m->from));
	return marks_conflict(m, id, true);
}

enum status
index_marks_have(struct index_marks *m, struct str id, struct arena *arena, bool *ret)
{
	while (!m->done && str_cmp(buf_str(&m->last), id) < 0) {
		TRY(marks_pass(m));
		TRY(marks_next(m, arena));
	}
	*ret = !m->done && str_eq(buf_str(&m->last), id);
	if (*ret)
		return marks_pass(m);
	return m->exact ? marks_conflict_one(m, id) : STATUS_OK;
}

enum status
index_marks_finish(struct index_marks *m, struct str last)
{
	return m->exact || !last.len ? STATUS_OK : marks_conflict(m, last, true);
}

void
index_marks_close(struct index_marks *m)
{
	if (m->open)
		kv_scan_release(&m->scan);
	buf_release(&m->last);
	buf_release(&m->from);
	buf_release(&m->key);
	m->open = false;
}
