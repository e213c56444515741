/*
 * The records that the catalog stores: each is put and parsed in one file, which has its format
 * number. Parsing gives STATUS_NEWER, explained, for a record of a newer frond, and STATUS_CORRUPT,
 * not explained, for what is no such record at all.
 *
 * Values: what is parsed borrows from the value or lies in the arena given. Threading: none.
 */
#ifndef FROND_CATALOG_RECORDS_H
#define FROND_CATALOG_RECORDS_H

#include "base/arena.h"
#include "base/buf.h"
#include "catalog/catalog.h"
#include "catalog/events.h"

/* ---- Descriptions of databases (description.c) ---- */

void catalog_description_put(const struct catalog_db *db, struct buf *value);

/*
 * Everything but the name and the prefix. STATUS_NEWER, too, for a kind that this frond does not
 * have.
 */
MUST_USE enum status catalog_description_parse(struct str value, struct catalog_db *ret,
					       struct err *err);

/* ---- Events (event_record.c) ---- */

/* `kind`: of the database. The commit fills in the versionstamp at the offset that is returned. */
size_t catalog_event_record_put(enum catalog_event_kind event, uint8_t incarnation,
				const struct catalog_kind *kind, struct buf *value);

/* The event without its name. */
MUST_USE enum status catalog_event_record_parse(struct str value, struct catalog_event *ret,
						struct err *err);

/* ---- Deleted databases that are still to be cleared (drop_record.c) ---- */

struct catalog_drop {
	uint64_t kind;     /* its number */
	uint64_t until_ms; /* what the kind keeps stays until then; 0: nothing is kept */
};

/* Of a revisioned database the value is empty, as it was before there were other kinds. */
void catalog_drop_record_put(const struct catalog_drop *drop, struct buf *value);
MUST_USE enum status catalog_drop_record_parse(struct str value, struct catalog_drop *ret,
					       struct err *err);

/* ---- Settings of all servers (setting_record.c) ---- */

/* `text` with ptr NULL: the setting is unset. */
void catalog_setting_record_put(struct str text, struct buf *value);
/* The text is in the arena. */
MUST_USE enum status catalog_setting_record_parse(struct str value, struct arena *arena,
						  struct str *ret, struct err *err);

/* ---- Databases with work for builders of indexes and of views (work_record.c) ---- */

void catalog_work_record_put(const struct catalog_db *db, struct buf *value);
/* The name is in the arena. STATUS_NEWER, explained; STATUS_CORRUPT; STATUS_LIMIT. */
MUST_USE enum status catalog_work_record_parse(struct str value, struct arena *arena,
					       enum catalog_space *ret_space, struct str *ret_name,
					       struct err *err);

#endif
