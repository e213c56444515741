#include "doc/doc.h"
#include "loop/step.h"

enum {
	LEAF_STEPS = 6, /* of writing one leaf */
};

/* The keys that begin with the prefix, and no others: the end of that range. */
static void
put_range_end(struct buf *end, struct str prefix)
{
	/* The prefix ends with a whole element, and no element starts with FF. */
	buf_append_str(end, prefix);
	buf_append_byte(end, 0xff);
}

enum status
doc_write(struct kv_tx *tx, struct str prefix, const struct kv_pair *leaves, size_t count)
{
	AUTO(buf_release) struct buf key = BUF_INIT(KV_LIMIT_KEY_BYTES);
	enum status status;

	if (!count)
		return STATUS_OK;
	/*
	 * A transaction is larger by each write conflict range. One over the document does what one
	 * for each leaf would do: a transaction that has read any of them, or has found that one is
	 * missing, cannot commit.
	 */
	put_range_end(&key, prefix);
	TRY(buf_status(&key));
	status = kv_add_write_conflict_range(tx, prefix, buf_str(&key));
	for (size_t i = 0; i < count && status == STATUS_OK; i++) {
		TRY(step_count(LEAF_STEPS));
		key.len = prefix.len;
		buf_append_str(&key, leaves[i].key);
		if (buf_status(&key) != STATUS_OK)
			status = key.failed == STATUS_LIMIT ? STATUS_KEY_TOO_LARGE : key.failed;
		else
			status = kv_set_no_conflict(tx, buf_str(&key), leaves[i].value);
	}
	return status;
}

enum status
doc_clear(struct kv_tx *tx, struct str prefix)
{
	struct buf end = BUF_INIT(KV_LIMIT_KEY_BYTES);
	enum status status;

	put_range_end(&end, prefix);
	status = buf_status(&end);
	if (status == STATUS_OK)
		status = kv_clear_range(tx, prefix, buf_str(&end));
	buf_release(&end);
	return status;
}
