/*
 * Writing one document, and the rules of ids that depend on the database: in a partitioned one they
 * have the form partition:id.
 *
 * For bodies of transactions: r->db is open. Threading: the request's fiber.
 */
#ifndef FROND_DOOR_COUCH_DOC_EDIT_H
#define FROND_DOOR_COUCH_DOC_EDIT_H

#include "door/couch/wire/request.h"
#include "model/revisioned/revisioned.h"

/* Refuses the id of a document to be written, if the database cannot have it. */
MUST_USE enum status couch_edit_check_id(struct couch_req *r, struct str id,
					 struct couch_fail *fail);

/*
 * Refuses the id of a document that is looked up, if a partitioned database cannot tell which
 * partition it would be in.
 */
MUST_USE enum status couch_look_up_check_id(struct couch_req *r, struct str id,
					    struct couch_fail *fail);

/*
 * Checks the edit's id, has validators see it (vet.h), and writes it. Returns what is wrong with
 * the edit alone, explained, or the transaction's failure.
 */
MUST_USE enum status couch_edit_write(struct couch_req *r, struct kv_tx *tx, struct rev_edit *edit,
				      struct rev_result *ret);

/* How large partitions may become, for an edit's `max_partition_bytes`. */
uint64_t couch_edit_partition_limit(const struct couch_req *r);

/* Explains STATUS_PARTITION_FULL, which is returned. */
enum status couch_edit_fail_partition(struct str id, struct couch_fail *fail);

#endif
