/* GET /{db}/_partition/{partition}: what is in a partition. */
#include "door/couch/admin/partition.h"

#include "doc/json.h"
#include "door/couch/admin/endpoints.h"
#include "door/couch/admin/tx.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/reply.h"
#include "model/revisioned/revisioned.h"

enum status
couch_partition_check_name(struct couch_req *r, struct str partition)
{
	const char *fault = rev_partition_name_fault(partition);

	return fault ? couch_fail_set(&r->fail, COUCH_ERROR_ILLEGAL_PARTITION, "%s", fault)
		     : STATUS_OK;
}

enum status
couch_partition_check_db(struct couch_req *r)
{
	if (!r->partition.ptr || rev_db_is_partitioned(r->db))
		return STATUS_OK;
	return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST, "database is not partitioned");
}

enum status
couch_partition_take(struct couch_req *r)
{
	struct str name = r->parts[2];
	struct str query;
	bool conflicts = couch_param(r, "partition", &query) && !str_eq(query, name);

	r->partition = name;
	if (conflicts || rev_partition_name_fault(name)) {
		/* Like CouchDB, this tells first of a database that has no partitions. */
		TRY(couch_db_ensure(r));
		TRY(couch_partition_check_db(r));
		TRY(couch_partition_check_name(r, name));
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "Conflicting value for `partition` in query string");
	}
	r->parts[2] = r->parts[0];
	r->parts += 2;
	r->parts_count -= 2;
	return STATUS_OK;
}

struct partition_call {
	struct rev_partition_info info;
};

static enum status
partition_info_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct partition_call *c = arg;

	TRY(couch_partition_check_db(r));
	return rev_partition_info(tx, r->db, r->partition, &c->info);
}

enum status
couch_partition_get(struct couch_req *r)
{
	struct buf AUTO(buf_release) out = couch_buf(r, COUCH_ANSWER_BYTES);
	struct partition_call c = { .info = { 0 } };

	TRY(couch_partition_check_name(r, r->parts[2]));
	r->partition = r->parts[2];
	TRY(couch_db_read(r, COUCH_ACCESS_MEMBER, partition_info_attempt, &c));
	buf_append_cstr(&out, "{\"db_name\":");
	json_write_str(&out, r->parts[0]);
	buf_printf(&out, ",\"sizes\":{\"active\":%llu,\"external\":%llu},\"partition\":",
		   (unsigned long long)c.info.sizes.active,
		   (unsigned long long)c.info.sizes.external);
	json_write_str(&out, r->partition);
	buf_printf(&out, ",\"doc_count\":%llu,\"doc_del_count\":%llu}",
		   (unsigned long long)c.info.doc_count, (unsigned long long)c.info.doc_del_count);
	return couch_reply(r, 200, &out);
}
