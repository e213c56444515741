/* Whether a database can have given out a Sequence. */
#include "model/revisioned/database.h"
#include "model/revisioned/revision.h"

struct reach_check {
	const struct catalog_db *db;
	const struct catalog_seq *seq;
	bool reached;
};

/* True if a database with this Incarnation can have given out `seq` by `version`. */
static bool
seq_is_reached(const struct catalog_seq *seq, uint8_t incarnation, uint64_t version)
{
	if (seq->bytes[0] != incarnation)
		return seq->bytes[0] < incarnation;
	return catalog_seq_version(seq) <= version;
}

/* The same question to a transaction that has just begun. */
static enum status
check_newest_version(struct kv_tx *tx, void *arg)
{
	struct reach_check *c = arg;
	struct catalog_db *now;
	uint8_t incarnation;
	uint64_t version;

	/* The database may have got a higher Incarnation since `db` was read. */
	TRY(rev_db_open(tx, NULL, c->db->name, &now, NULL));
	incarnation = now->incarnation;
	catalog_db_unref(now);
	TRY(kv_get_read_version(tx, &version));
	c->reached = seq_is_reached(c->seq, incarnation, version);
	return STATUS_OK;
}

enum status
rev_seq_check_reached(struct kv_tx *tx, const struct catalog_db *db, const struct catalog_seq *seq,
		      struct err *err)
{
	struct reach_check c = { .db = db, .seq = seq };
	uint64_t version;

	TRY(kv_get_read_version(tx, &version));
	if (seq_is_reached(seq, db->incarnation, version))
		return STATUS_OK;
	TRY(kv_run_read(kv_tx_store(tx), check_newest_version, &c, err));
	if (c.reached)
		return STATUS_OK;
	return err_set(err, STATUS_INVALID,
		       "The sequence in 'since' lies beyond every change of this database.");
}
