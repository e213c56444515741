/* TRUNCATE: at once where nothing can bring the rows back, otherwise row by row. */
#include "frond_own.h"

#include "access/xact.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Within a transaction that may still abort: the rows are deleted one by one. */
static void
delete_all(const struct frond_table *t, Oid user)
{
	struct frows_value key[FROWS_KEY_COLUMNS];
	uint32 columns[FROWS_KEY_COLUMNS];
	struct frows_scan scan = { .of = frond_table_of(t),
				   .columns = columns,
				   .column_count = t->key_count };
	struct frows_value place = { NULL, 0 };
	MemoryContext memory = AllocSetContextCreate(CurrentMemoryContext, "keys of frond's rows",
						     ALLOCSET_DEFAULT_SIZES);
	bool more = true;

	for (int i = 0; i < t->key_count; i++)
		columns[i] = frond_key_column(t, i)->id;
	while (more) {
		struct frows *c = frond_link_inside(t->server, user, true);
		MemoryContext old = MemoryContextSwitchTo(memory);
		StringInfoData bytes;
		int count = 0;

		if (!frows_scan_page_at(c, &scan, place))
			frond_fail(c);
		initStringInfo(&bytes);
		while (frows_scan_row(c, key)) {
			for (int i = 0; i < t->key_count; i++) {
				appendBinaryStringInfo(&bytes, (char *)&key[i].len,
						       sizeof(key[i].len));
				appendBinaryStringInfo(&bytes, key[i].ptr, key[i].len);
			}
			count++;
		}
		more = frows_has_more(c);
		place = frond_value_copy(frows_scan_place(c));
		frows_write(c, &scan.of, NULL, 0);
		for (const char *at = bytes.data; count; count--) {
			for (int i = 0; i < t->key_count; i++) {
				memcpy(&key[i].len, at, sizeof(key[i].len));
				key[i].ptr = at + sizeof(key[i].len);
				at = (const char *)key[i].ptr + key[i].len;
			}
			frows_write_row(c, FROWS_DELETE_ANY, key, t->key_count, NULL);
		}
		if (!frows_write_run(c))
			frond_fail(c);
		MemoryContextSwitchTo(old);
	}
	MemoryContextDelete(memory);
}

void
frond_modify_truncate(List *rels, DropBehavior behavior, bool restart_seqs)
{
	ListCell *cell;

	foreach (cell, rels) {
		Oid relid = RelationGetRelid((Relation)lfirst(cell));
		const struct frond_table *t = frond_table_get(relid, GetUserId());
		struct frows *c;

		frond_modify_flush(relid, NULL);
		frond_scan_read_all(relid);
		frond_own_forget(relid);
		if (restart_seqs)
			frond_sequences_restart(relid);
		if (!frond_at_top_level || IsTransactionBlock() || IsSubTransaction() ||
		    list_length(rels) > 1) {
			delete_all(t, GetUserId());
			continue;
		}
		c = frond_link_for_schema(t->server, GetUserId());
		if (!frows_table_empty(c, t->schema, t->table))
			frond_fail(c);
	}
}
