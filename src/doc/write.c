#include "doc/doc.h"

enum status
doc_write(struct kv_tx *tx, struct str prefix, const struct kv_pair *leaves, size_t count)
{
	struct buf key = BUF_INIT(KV_LIMIT_KEY_BYTES);
	enum status status = STATUS_OK;

	if (!count)
		return STATUS_OK;
	buf_append_str(&key, prefix);
	for (size_t i = 0; i < count && status == STATUS_OK; i++) {
		key.len = prefix.len;
		buf_append_str(&key, leaves[i].key);
		if (buf_status(&key) != STATUS_OK)
			status = key.failed == STATUS_LIMIT ? STATUS_KEY_TOO_LARGE : key.failed;
		else
			status = kv_set(tx, buf_str(&key), leaves[i].value);
	}
	buf_release(&key);
	return status;
}

enum status
doc_clear(struct kv_tx *tx, struct str prefix)
{
	struct buf end = BUF_INIT(KV_LIMIT_KEY_BYTES);
	enum status status;

	/* The prefix ends with a whole element, and no element starts with FF. */
	buf_append_str(&end, prefix);
	buf_append_byte(&end, 0xff);
	status = buf_status(&end);
	if (status == STATUS_OK)
		status = kv_clear_range(tx, prefix, buf_str(&end));
	buf_release(&end);
	return status;
}
