/*
 * Which columns have each value once. PostgreSQL's catalog has no index of a table in frond, so the
 * planner is told of its keys as it is told of indexes elsewhere: it then knows how many rows a
 * join has, leaves out one that adds nothing, and need not look for a second match. It never makes
 * a path of these, since only plan.c makes paths of foreign tables. What it is told is worked out
 * once, when the table is loaded, and stays as long as that.
 */
#include "frond_pg.h"
#include "frond_push.h"

#include "access/stratnum.h"
#include "optimizer/plancat.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

static get_relation_info_hook_type next_hook;

/* A key, or a unique index, as an IndexOptInfo has it. Plans do not change these arrays. */
struct frond_unique {
	bool proves; /* plans may rely on it */
	int count;
	int *attnums;
	Oid *collations, *opfamilies, *opcintypes;
	bool *canreturn; /* false for all: nothing is read here */
};

/* ---- With the table ---- */

/* Adds a column. False if PostgreSQL may take values for equal that frond tells apart. */
static bool
column_add(struct frond_unique *u, const struct frond_table *t, AttrNumber attnum)
{
	int at = u->count;
	const TypeCacheEntry *class;
	Oid type, collation;
	int32 typmod;

	if (!attnum || attnum > t->natts)
		return false;
	get_atttypetypmodcoll(t->relid, attnum, &type, &typmod, &collation);
	/* GetDefaultOpClass() would read the catalog's table. */
	class = lookup_type_cache(getBaseType(type), TYPECACHE_BTREE_OPFAMILY);
	if (!OidIsValid(class->btree_opf))
		return false;
	u->attnums[at] = attnum;
	u->collations[at] = collation;
	u->opfamilies[at] = class->btree_opf;
	u->opcintypes[at] = class->btree_opintype;
	u->count = at + 1;
	return frond_push_equals(&t->columns[attnum - 1],
				 get_opfamily_member(class->btree_opf, class->btree_opintype,
						     class->btree_opintype, BTEqualStrategyNumber),
				 collation);
}

/*
 * A key, or a unique index. `proves`: plans may rely on it. They cannot on an index, which others
 * than this PostgreSQL may drop without its hearing of it; estimates may be wrong.
 */
static void
unique_load(struct frond_table *t, const struct frond_key_column *columns, int count, bool proves)
{
	struct frond_unique *u = palloc0(sizeof(*u));

	u->proves = proves;
	u->attnums = palloc0(count * sizeof(*u->attnums));
	u->collations = palloc0(count * sizeof(*u->collations));
	u->opfamilies = palloc0(count * sizeof(*u->opfamilies));
	u->opcintypes = palloc0(count * sizeof(*u->opcintypes));
	u->canreturn = palloc0(count * sizeof(*u->canreturn));
	for (int i = 0; i < count; i++)
		if (!column_add(u, t, columns[i].attnum))
			return;
	t->uniques = lappend(t->uniques, u);
}

void
frond_uniques_load(struct frond_table *t)
{
	unique_load(t, t->key, t->key_count, true);
	for (int i = 0; i < t->index_count; i++) {
		const struct frond_index *index = &t->indexes[i];

		if (frond_index_tells_apart(index))
			unique_load(t, index->columns, index->count, false);
	}
}

/* ---- For a plan ---- */

static IndexOptInfo *
index_make(RelOptInfo *rel, const struct frond_unique *u)
{
	IndexOptInfo *index = makeNode(IndexOptInfo);

	index->rel = rel;
	index->indexkeys = u->attnums;
	index->indexcollations = u->collations;
	index->opfamily = u->opfamilies;
	index->opcintype = u->opcintypes;
	index->canreturn = u->canreturn;
	index->nkeycolumns = index->ncolumns = u->count;
	index->unique = true;
	index->immediate = u->proves;
	index->hypothetical = true; /* there is nothing to open */
	return index;
}

static void
unique_tell(PlannerInfo *root, Oid relid, bool is_parent, RelOptInfo *rel)
{
	ListCell *cell;

	if (next_hook)
		next_hook(root, relid, is_parent, rel);
	/* Its children may have the same values again. */
	if (is_parent || !frond_is_table(relid))
		return;
	foreach (cell, frond_plan_table(root, rel)->uniques)
		rel->indexlist = lappend(rel->indexlist, index_make(rel, lfirst(cell)));
}

void
frond_unique_init(void)
{
	next_hook = get_relation_info_hook;
	get_relation_info_hook = unique_tell;
}
