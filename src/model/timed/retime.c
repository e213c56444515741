/*
 * Changing the default of a database: how long after its write expires what says nothing else.
 *
 * Reads compute the expiry of a cell from the default, so they need nothing. The sweep finds what
 * has expired by entries of EXPIRY, which were written by the former default. So a change leaves
 *
 *     (P, RETIME) → (format, b"a key of ROWS behind P"): cells before it have their entries
 *
 * and the sweep goes through the rows from there and writes the entries that the present default
 * asks for. Writers go by the present default from the transaction on that has changed it.
 */
#include "model/timed/timed_int.h"

enum status
timed_ttl_set(struct timed *t, uint64_t ttl_ms)
{
	if (!timed_kind_of(t->db)->defaults)
		return err_set(t->err, STATUS_INVALID,
			       "a database of this kind has no default for expiry");
	TRY(timed_write_begin(t));
	TRY(catalog_option_set(t->tx, t->db, TIMED_OPTION_TTL_MS, ttl_ms, t->err));
	return timed_walk_begin(t, TIMED_SPACE_RETIME, TIMED_SPACE_ROWS);
}

/* Writes the entry of a cell, if it expires by the default. */
static enum status
retime_cell(struct timed *t, const struct kv_pair *pair, void *arg)
{
	AUTO(buf_release) struct buf entry = CATALOG_KEY_INIT;
	struct timed_cell cell;
	uint64_t ms;

	(void)arg;
	if (timed_is_piece(pair->value))
		return STATUS_OK;
	TRY(timed_cell_parse(pair->value, &cell, t->err));
	ms = timed_cell_expires_ms(t->db, &cell);
	/* The entry of the former default stays until the sweep finds that it is not so. */
	if (!cell.by_default || !ms)
		return STATUS_OK;
	TRY(timed_key_expiry(t->db, pair->key, ms, &entry));
	return kv_set(t->tx, buf_str(&entry), STR(""));
}

enum status
timed_retime(struct timed *t, uint64_t *ret_done, bool *ret_more)
{
	static const struct timed_walk walk = {
		.record = TIMED_SPACE_RETIME,
		.space = TIMED_SPACE_ROWS,
		.look = retime_cell,
	};

	return timed_walk_turn(t, &walk, ret_done, ret_more);
}
