#include "door/couch/admin/purges.h"

#include "door/couch/admin/tx.h"
#include "model/revisioned/purges.h"

static enum status
purges_look(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	return rev_purges_over(tx, r->db, r->arena, arg);
}

static enum status
purges_clear(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	return rev_purges_trim(tx, r->db, r->arena, arg, &r->fail.err);
}

enum status
couch_purges_trim(struct couch_req *r)
{
	bool more = false;

	TRY(couch_db_read(r, COUCH_ACCESS_MEMBER, purges_look, &more));
	while (more)
		TRY(couch_db_write(r, COUCH_ACCESS_ADMIN, purges_clear, &more));
	return STATUS_OK;
}
