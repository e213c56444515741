/* Descriptions of databases in memory: counted, and immutable. */
#include <stdatomic.h>

#include "base/mem.h"
#include "catalog/catalog_int.h"
#include "catalog/tally_int.h"

struct counted_db {
	struct catalog_db db; /* first: what callers hold */
	atomic_uint refs;
	char bytes[]; /* the name, then the prefix */
};

struct catalog_db *
catalog_db_new(const struct catalog_db *from)
{
	AUTO(buf_release) struct buf prefix = BUF_INIT(16);
	struct counted_db *c;

	tuple_put_u64(&prefix, from->number);
	if (buf_status(&prefix) != STATUS_OK)
		return NULL;
	c = mem_alloc(sizeof(*c) + from->name.len + prefix.len);
	if (!c)
		return NULL;
	c->db = *from;
	c->db.tally = NULL;
	c->db.extension = NULL;
	c->db.by_version = false;
	atomic_init(&c->refs, 1);
	memcpy(c->bytes, from->name.ptr, from->name.len);
	memcpy(c->bytes + from->name.len, prefix.ptr, prefix.len);
	c->db.name = str_of(c->bytes, from->name.len);
	c->db.prefix = str_of(c->bytes + from->name.len, prefix.len);
	return &c->db;
}

struct catalog_db *
catalog_db_ref(struct catalog_db *db)
{
	atomic_fetch_add_explicit(&((struct counted_db *)db)->refs, 1, memory_order_relaxed);
	return db;
}

void
catalog_db_unref(struct catalog_db *db)
{
	struct counted_db *c = (struct counted_db *)db;

	if (!c || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1)
		return;
	catalog_tally_unref(c->db.tally);
	if (c->db.extension)
		c->db.kind->extension_free(c->db.extension);
	mem_free(c);
}

enum status
catalog_db_check_writable(const struct catalog_db *db, struct err *err)
{
	if (db->fence == CATALOG_FENCE_MOVING)
		return err_set(err, STATUS_UNAVAILABLE,
			       "The database is being moved to another store: until that is done "
			       "it can only be read.");
	if (db->fence == CATALOG_FENCE_KEPT)
		return err_set(err, STATUS_FORBIDDEN,
			       "The database has been moved to another store: what is left here "
			       "can only be read.");
	return STATUS_OK;
}
