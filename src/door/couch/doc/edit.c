/* Writing one document, and the ids that a partitioned database can have. */
#include "door/couch/doc/edit.h"

#include "base/metric.h"
#include "base/quote.h"
#include "door/couch/doc/att_in.h"
#include "door/couch/doc/vet.h"
#include "door/couch/wire/error.h"

static enum status
edit_fail_id(struct str id, const char *fault, struct couch_fail *fail)
{
	struct str partition;
	bool in_partition = rev_partition_of(id, &partition);

	if (in_partition && rev_partition_name_fault(partition) == fault)
		return couch_fail_set(fail, COUCH_ERROR_ILLEGAL_PARTITION, "%s", fault);
	return couch_fail_set(fail, COUCH_ERROR_ILLEGAL_DOCID, "%s", fault);
}

enum status
couch_edit_check_id(struct couch_req *r, struct str id, struct couch_fail *fail)
{
	const char *fault = rev_db_is_partitioned(r->db) ? rev_partition_id_fault(id) : NULL;

	return fault ? edit_fail_id(id, fault, fail) : STATUS_OK;
}

enum status
couch_look_up_check_id(struct couch_req *r, struct str id, struct couch_fail *fail)
{
	struct str partition;

	if (!rev_db_is_partitioned(r->db) || rev_partition_of(id, &partition))
		return STATUS_OK;
	return couch_edit_check_id(r, id, fail);
}

uint64_t
couch_edit_partition_limit(const struct couch_req *r)
{
	return r->settings->partition_bytes;
}

enum status
couch_edit_fail_partition(struct str id, struct couch_fail *fail)
{
	METRIC_REFUSED("max_partition_size");
	return couch_fail_set(fail, COUCH_ERROR_PARTITION_OVERFLOW,
			      "Partition limit exceeded due to update on '%s'", QUOTE_SHOW(id));
}

enum status
couch_edit_write(struct couch_req *r, struct kv_tx *tx, struct rev_edit *edit,
		 struct rev_result *ret)
{
	TRY(couch_edit_check_id(r, edit->id, &r->fail));
	edit->max_partition_bytes = couch_edit_partition_limit(r);
	TRY(couch_vet_edit(r, tx, edit));
	TRY(rev_write(tx, r->db, edit, 1, 0, r->arena, ret, &r->fail.err));
	if (ret->status == STATUS_ATT_MISSING)
		return couch_missing_stub(edit->id, ret->att, &r->fail);
	if (ret->status == STATUS_PARTITION_FULL)
		return couch_edit_fail_partition(edit->id, &r->fail);
	return ret->status;
}
