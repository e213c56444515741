/*
 * CREATE TABLE … (LIKE other INCLUDING …) of tables in frond, which PostgreSQL refuses for foreign
 * tables: the columns of the other table, and what else is to be included, take the place of LIKE
 * as if they had been written there.
 */
#include "frond_catalog.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/index.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_index.h"
#include "commands/comment.h"
#include "commands/sequence.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "parser/parser.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"
#include "utils/syscache.h"

Node *
frond_expression_parse(const char *text)
{
	const char *sql = psprintf("SELECT %s", text);
	RawStmt *raw = linitial_node(RawStmt, raw_parser(sql, RAW_PARSE_DEFAULT));

	return linitial_node(ResTarget, castNode(SelectStmt, raw->stmt)->targetList)->val;
}

static Node *
expression_of(Relation rel, const char *binary)
{
	List *context = deparse_context_for(RelationGetRelationName(rel), RelationGetRelid(rel));

	return frond_expression_parse(
		deparse_expression(stringToNode(binary), context, false, false));
}

static Relation
source_open(const TableLikeClause *like)
{
	Relation rel = relation_openrv(like->relation, AccessShareLock);
	char kind = rel->rd_rel->relkind;
	AclResult result;

	if (kind != RELKIND_RELATION && kind != RELKIND_VIEW && kind != RELKIND_MATVIEW &&
	    kind != RELKIND_COMPOSITE_TYPE && kind != RELKIND_FOREIGN_TABLE &&
	    kind != RELKIND_PARTITIONED_TABLE)
		ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE),
			errmsg("relation \"%s\" is invalid in LIKE clause",
			       RelationGetRelationName(rel)),
			errdetail_relkind_not_supported(kind));
	result = kind == RELKIND_COMPOSITE_TYPE
			 ? pg_type_aclcheck(rel->rd_rel->reltype, GetUserId(), ACL_USAGE)
			 : pg_class_aclcheck(RelationGetRelid(rel), GetUserId(), ACL_SELECT);
	if (result != ACLCHECK_OK)
		aclcheck_error(result, get_relkind_objtype(kind), RelationGetRelationName(rel));
	return rel;
}

/* ---- Columns and CHECKs ---- */

static Constraint *
constraint_new(ConstrType type, Node *expression)
{
	Constraint *c = makeNode(Constraint);

	c->contype = type;
	c->raw_expr = expression;
	c->location = -1;
	return c;
}

/* The binary text of a column's default. */
static const char *
default_of(Relation rel, AttrNumber attnum)
{
	const TupleConstr *all = RelationGetDescr(rel)->constr;

	for (int i = 0; all && i < all->num_defval; i++)
		if (all->defval[i].adnum == attnum)
			return all->defval[i].adbin;
	return NULL;
}

static ColumnDef *
column_like(Relation rel, Form_pg_attribute a, bits32 options)
{
	ColumnDef *column = makeColumnDef(NameStr(a->attname), a->atttypid, a->atttypmod,
					  a->attcollation);
	const char *value = a->atthasdef ? default_of(rel, a->attnum) : NULL;
	Constraint *c = NULL;

	column->is_not_null = a->attnotnull;
	if (value && a->attgenerated && (options & CREATE_TABLE_LIKE_GENERATED)) {
		c = constraint_new(CONSTR_GENERATED, expression_of(rel, value));
		c->generated_when = ATTRIBUTE_IDENTITY_ALWAYS;
	} else if (value && !a->attgenerated && (options & CREATE_TABLE_LIKE_DEFAULTS)) {
		c = constraint_new(CONSTR_DEFAULT, expression_of(rel, value));
	} else if (a->attidentity && (options & CREATE_TABLE_LIKE_IDENTITY)) {
		c = constraint_new(CONSTR_IDENTITY, NULL);
		c->generated_when = a->attidentity;
		c->options = sequence_options(
			getIdentitySequence(RelationGetRelid(rel), a->attnum, false));
	}
	if (c)
		column->constraints = list_make1(c);
	return column;
}

static List *
checks_like(Relation rel)
{
	const TupleConstr *all = RelationGetDescr(rel)->constr;
	List *ret = NIL;

	for (int i = 0; all && i < all->num_check; i++) {
		Constraint *c = constraint_new(CONSTR_CHECK,
					       expression_of(rel, all->check[i].ccbin));

		c->conname = pstrdup(all->check[i].ccname);
		c->is_no_inherit = all->check[i].ccnoinherit;
		c->initially_valid = true;
		ret = lappend(ret, c);
	}
	return ret;
}

/* ---- Keys and indexes ---- */

/* The primary key as a constraint; NULL: there is none. */
static Constraint *
key_like(Relation rel, const Form_pg_index primary, struct frond_likes *ret)
{
	Constraint *c = constraint_new(CONSTR_PRIMARY, NULL);
	struct frond_key_spec key;

	if (frond_is_table(RelationGetRelid(rel))) {
		frond_remake_key(frond_table_get(RelationGetRelid(rel), GetUserId()), &key);
		c->keys = key.columns;
		ret->hash = key.hash;
		ret->descending = key.descending;
		ret->has_key = key.columns != NIL;
		return key.columns ? c : NULL;
	}
	for (int i = 0; primary && i < primary->indnkeyatts; i++)
		c->keys = lappend(c->keys,
				  makeString(get_attname(RelationGetRelid(rel),
							 primary->indkey.values[i], false)));
	return primary ? c : NULL;
}

IndexStmt *
frond_index_statement(Oid oid)
{
	Datum definition = DirectFunctionCall1(pg_get_indexdef, ObjectIdGetDatum(oid));
	RawStmt *raw = linitial_node(
		RawStmt, raw_parser(TextDatumGetCString(definition), RAW_PARSE_DEFAULT));
	IndexStmt *s = castNode(IndexStmt, raw->stmt);
	Oid constraint = get_index_constraint(oid);
	HeapTuple tuple = OidIsValid(constraint)
				  ? SearchSysCache1(CONSTROID, ObjectIdGetDatum(constraint))
				  : NULL;

	s->isconstraint = OidIsValid(constraint);
	if (HeapTupleIsValid(tuple)) {
		s->deferrable = ((Form_pg_constraint)GETSTRUCT(tuple))->condeferrable;
		s->initdeferred = ((Form_pg_constraint)GETSTRUCT(tuple))->condeferred;
		ReleaseSysCache(tuple);
	}
	return s;
}

static List *
indexes_like(Relation rel, struct frond_likes *ret)
{
	Constraint *key = NULL;
	ListCell *cell;
	bool is_there = false;

	foreach (cell, frond_catalog_index_oids(RelationGetRelid(rel))) {
		HeapTuple tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(lfirst_oid(cell)));
		Form_pg_index index = (Form_pg_index)GETSTRUCT(tuple);

		if (index->indisprimary) {
			key = key_like(rel, index, ret);
			is_there = true;
		} else {
			IndexStmt *s = frond_index_statement(lfirst_oid(cell));

			/* It is chosen anew. */
			s->idxname = NULL;
			ret->indexes = lappend(ret->indexes, s);
		}
		ReleaseSysCache(tuple);
	}
	/* One of an earlier frond's is not in the catalog. */
	if (!is_there)
		key = key_like(rel, NULL, ret);
	return key ? list_make1(key) : NIL;
}

/* ---- The clause ---- */

static List *
like_expand(const TableLikeClause *like, struct frond_likes *ret)
{
	Relation rel = source_open(like);
	TupleDesc all = RelationGetDescr(rel);
	List *elements = NIL;

	for (int i = 0; i < all->natts; i++) {
		Form_pg_attribute a = TupleDescAttr(all, i);
		const char *comment;

		if (a->attisdropped)
			continue;
		elements = lappend(elements, column_like(rel, a, like->options));
		comment = like->options & CREATE_TABLE_LIKE_COMMENTS
				  ? GetComment(RelationGetRelid(rel), RelationRelationId, a->attnum)
				  : NULL;
		if (comment)
			ret->comments = lappend(ret->comments,
						list_make2(makeString(pstrdup(NameStr(a->attname))),
							   makeString(pstrdup(comment))));
	}
	if (like->options & CREATE_TABLE_LIKE_CONSTRAINTS)
		elements = list_concat(elements, checks_like(rel));
	if (like->options & CREATE_TABLE_LIKE_INDEXES)
		elements = list_concat(elements, indexes_like(rel, ret));
	relation_close(rel, NoLock);
	return elements;
}

List *
frond_likes_expand(List *elements, struct frond_likes *ret)
{
	List *expanded = NIL;
	ListCell *cell;

	*ret = (struct frond_likes){ NIL };
	foreach (cell, elements) {
		Node *element = lfirst(cell);

		expanded = IsA(element, TableLikeClause)
				   ? list_concat(expanded,
						 like_expand((TableLikeClause *)element, ret))
				   : lappend(expanded, element);
	}
	return expanded;
}

void
frond_likes_finish(Oid relid, const struct frond_likes *likes)
{
	ListCell *cell;

	foreach (cell, likes->indexes)
		frond_index_create(relid, lfirst(cell));
	foreach (cell, likes->comments) {
		const List *one = lfirst(cell);

		CreateComments(relid, RelationRelationId, get_attnum(relid, strVal(linitial(one))),
			       strVal(lsecond(one)));
	}
}
