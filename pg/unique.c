/*
 * Which columns have each value once. PostgreSQL's catalog has no index of a table in frond, so the
 * planner is told of its keys as it is told of indexes elsewhere: it then knows how many rows a
 * join has, leaves out one that adds nothing, and need not look for a second match. It never makes
 * a path of these, since only plan.c makes paths of foreign tables.
 */
#include "frond_pg.h"
#include "frond_push.h"

#include "access/stratnum.h"
#include "optimizer/plancat.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

static get_relation_info_hook_type next_hook;

/* Adds a column. False if PostgreSQL may take values for equal that frond tells apart. */
static bool
column_add(IndexOptInfo *index, const struct frond_table *t, Oid relid, AttrNumber attnum)
{
	int at = index->nkeycolumns;
	const TypeCacheEntry *class;
	Oid type, collation;
	int32 typmod;

	if (!attnum || attnum > t->natts)
		return false;
	get_atttypetypmodcoll(relid, attnum, &type, &typmod, &collation);
	/* GetDefaultOpClass() would read the catalog's table for each query. */
	class = lookup_type_cache(getBaseType(type), TYPECACHE_BTREE_OPFAMILY);
	if (!OidIsValid(class->btree_opf))
		return false;
	index->indexkeys[at] = attnum;
	index->indexcollations[at] = collation;
	index->opfamily[at] = class->btree_opf;
	index->opcintype[at] = class->btree_opintype;
	index->nkeycolumns = index->ncolumns = at + 1;
	return frond_push_equals(&t->columns[attnum - 1],
				 get_opfamily_member(index->opfamily[at], index->opcintype[at],
						     index->opcintype[at], BTEqualStrategyNumber),
				 collation);
}

/*
 * A key, or a unique index. `proves`: plans may rely on it. They cannot on an index, which others
 * than this PostgreSQL may drop without its hearing of it; estimates may be wrong.
 */
static void
unique_add(RelOptInfo *rel, const struct frond_table *t, Oid relid,
	   const struct frond_key_column *columns, int count, bool proves)
{
	IndexOptInfo *index = makeNode(IndexOptInfo);

	index->rel = rel;
	index->indexkeys = palloc0(count * sizeof(*index->indexkeys));
	index->indexcollations = palloc0(count * sizeof(*index->indexcollations));
	index->opfamily = palloc0(count * sizeof(*index->opfamily));
	index->opcintype = palloc0(count * sizeof(*index->opcintype));
	index->canreturn = palloc0(count * sizeof(*index->canreturn));
	index->unique = true;
	index->immediate = proves;
	index->hypothetical = true; /* there is nothing to open */
	for (int i = 0; i < count; i++)
		if (!column_add(index, t, relid, columns[i].attnum))
			return;
	rel->indexlist = lappend(rel->indexlist, index);
}

static void
unique_tell(PlannerInfo *root, Oid relid, bool is_parent, RelOptInfo *rel)
{
	if (next_hook)
		next_hook(root, relid, is_parent, rel);
	/* Its children may have the same values again. */
	if (is_parent || !frond_is_table(relid))
		return;

	const struct frond_table *t = frond_plan_table(root, rel);

	unique_add(rel, t, relid, t->key, t->key_count, true);
	for (int i = 0; i < t->index_count; i++) {
		const struct frond_index *index = &t->indexes[i];

		if (frond_index_tells_apart(index))
			unique_add(rel, t, relid, index->columns, index->count, false);
	}
}

void
frond_unique_init(void)
{
	next_hook = get_relation_info_hook;
	get_relation_info_hook = unique_tell;
}
