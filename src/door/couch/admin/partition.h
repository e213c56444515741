/*
 * Requests of one partition: /{db}/_partition/{partition}/….
 *
 * Such a request goes on as the one of its database, with r->partition set. Its handler asks
 * couch_partition_check_db() once r->db is open, and confines itself to rev_partition_range().
 * Threading: the request's fiber.
 */
#ifndef FROND_DOOR_COUCH_ADMIN_PARTITION_H
#define FROND_DOOR_COUCH_ADMIN_PARTITION_H

#include "door/couch/wire/request.h"

/*
 * Takes "_partition" and the partition out of the path, which has more behind them, and sets
 * r->partition. Refuses a name that no partition has, and a `partition` in the query that is
 * another one.
 */
MUST_USE enum status couch_partition_take(struct couch_req *r);

/* Refuses a name that no partition can have. */
MUST_USE enum status couch_partition_check_name(struct couch_req *r, struct str partition);

/* Refuses a request of a partition if r->db has none. */
MUST_USE enum status couch_partition_check_db(struct couch_req *r);

#endif
