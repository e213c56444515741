/*
 * Comparisons that follow from a condition which is none itself: `LIKE 'ab%'` says that a text is
 * 'ab' at least and less than 'ac'. PostgreSQL's own functions for its planner tell the comparisons
 * of LIKE, ILIKE, regular expressions, starts_with() and networks; what they tell of a btree with
 * the collation "C" holds for frond, whose texts lie in the order of their bytes whatever the
 * collation of their column is.
 */
#include "frond_pg.h"
#include "frond_push.h"

#include "access/stratnum.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/supportnodes.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

enum {
	CHARACTER_LAST = 0x10ffff,
	SURROGATES = 0xd800, /* no characters, and 0x800 of them */
	SURROGATES_END = 0xe000,
};

/* ---- Where the values that begin alike end ---- */

/*
 * The least text behind all that begin with this one: false if there is none. PostgreSQL's bound
 * may be a greater one, and then the interval has texts that begin otherwise.
 */
static bool
text_end(unsigned char *text, int *len)
{
	while (*len) {
		int at = *len - 1;
		pg_wchar last;

		while (at && (text[at] & 0xc0) == 0x80)
			at--;
		last = utf8_to_unicode(text + at);
		*len = at;
		if (last >= CHARACTER_LAST)
			continue;
		last = last + 1 == SURROGATES ? SURROGATES_END : last + 1;
		(void)unicode_to_utf8(last, text + at);
		*len += pg_utf_mblen(text + at);
		return true;
	}
	return false;
}

static bool
bytes_end(unsigned char *bytes, int *len)
{
	while (*len && bytes[*len - 1] == 0xff)
		--*len;
	if (*len)
		bytes[*len - 1]++;
	return *len > 0;
}

/* The same as a constant; NULL: there is none. */
static Const *
prefix_end(Const *prefix)
{
	struct varlena *from = PG_DETOAST_DATUM_PACKED(prefix->constvalue);
	int len = (int)VARSIZE_ANY_EXHDR(from);
	/* The last character may become a longer one. */
	unsigned char *bytes = palloc(len + MAX_MULTIBYTE_CHAR_LEN);
	Const *end;

	memcpy(bytes, VARDATA_ANY(from), len);
	if (!(prefix->consttype == BYTEAOID ? bytes_end(bytes, &len) : text_end(bytes, &len)))
		return NULL;
	end = copyObject(prefix);
	end->constvalue = PointerGetDatum(cstring_to_text_with_len((char *)bytes, len));
	return end;
}

/* ---- What PostgreSQL tells ---- */

/* Those functions of its own for which no plan, and no index of its own, has to be there. */
static bool
is_known(Oid support)
{
	return support == F_TEXTLIKE_SUPPORT || support == F_TEXTICLIKE_SUPPORT ||
	       support == F_TEXTREGEXEQ_SUPPORT || support == F_TEXTICREGEXEQ_SUPPORT ||
	       support == F_TEXT_STARTS_WITH_SUPPORT || support == F_NETWORK_SUBSET_SUPPORT;
}

static List *
ask(Node *clause, Oid function, Oid type)
{
	Oid support = get_func_support(function);
	SupportRequestIndexCondition request = {
		.type = T_SupportRequestIndexCondition,
		.funcid = function,
		.node = clause,
		.opfamily = lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY)->btree_opf,
		.indexcollation = C_COLLATION_OID,
		.lossy = true,
	};
	Node *told;

	if (!is_known(support))
		return NIL;
	told = (Node *)DatumGetPointer(OidFunctionCall1(support, PointerGetDatum(&request)));
	return told && IsA(told, List) ? (List *)told : NIL;
}

/* Whether LIKE asks for nothing but how a value begins, or what it is. */
static bool
is_prefix_alone(const Const *pattern)
{
	struct varlena *v = PG_DETOAST_DATUM_PACKED(pattern->constvalue);
	const char *at = VARDATA_ANY(v);
	int len = (int)VARSIZE_ANY_EXHDR(v);

	for (int i = 0; i < len; i++) {
		if (at[i] == '_')
			return false;
		if (at[i] == '%')
			return i == len - 1;
		if (at[i] == '\\' && ++i == len)
			return false;
	}
	return true;
}

static bool
is_exact(Oid function, const Const *pattern)
{
	if (function == F_STARTS_WITH)
		return true;
	return (function == F_TEXTLIKE || function == F_LIKE_TEXT_TEXT || function == F_BYTEALIKE ||
		function == F_LIKE_BYTEA_BYTEA) &&
	       is_prefix_alone(pattern);
}

/* Whether an operator of the type is the one of this strategy. */
static bool
op_is(const OpExpr *e, Oid type, int strategy)
{
	return get_op_opfamily_strategy(
		       e->opno, lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY)->btree_opf) ==
	       strategy;
}

/* An interval of what begins alike, as frond orders it, in the place of PostgreSQL's. */
static List *
interval_of(const OpExpr *least, Oid type)
{
	Oid family = lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY)->btree_opf;
	Const *end = prefix_end(lsecond(least->args));

	if (!end)
		return list_make1((void *)least);
	return list_make2((void *)least, make_opclause(get_opfamily_member(family, type, type,
									   BTLessStrategyNumber),
						       BOOLOID, false, linitial(least->args),
						       (Expr *)end, InvalidOid, C_COLLATION_OID));
}

List *
frond_implied(Expr *clause, bool *ret_exact)
{
	Oid function, type;
	OpExpr *first;
	List *args, *told;

	*ret_exact = false;
	if (IsA(clause, OpExpr)) {
		set_opfuncid((OpExpr *)clause);
		function = ((OpExpr *)clause)->opfuncid;
		args = ((OpExpr *)clause)->args;
	} else {
		function = ((FuncExpr *)clause)->funcid;
		args = ((FuncExpr *)clause)->args;
	}
	if (list_length(args) != 2)
		return NIL;
	type = exprType(linitial(args));
	/* Characters of other encodings lie in another order than frond's, UTF-8. */
	if ((type == TEXTOID || type == BPCHAROID) && GetDatabaseEncoding() != PG_UTF8)
		return NIL;
	told = ask((Node *)clause, function, type);
	if (told == NIL || (type != TEXTOID && type != BYTEAOID))
		return told;
	first = linitial_node(OpExpr, told);
	*ret_exact = is_exact(function, lsecond_node(Const, args));
	return op_is(first, type, BTGreaterEqualStrategyNumber) ? interval_of(first, type) : told;
}
