/* Which indexes a query can use, and CouchDB's choice among them. */
#include "door/couch/query/plan_int.h"

/* ---- use_index ---- */

struct str
plan_named_design(const struct find_args *args)
{
	struct str ddoc = args->use_index[0];

	return str_starts_with(ddoc, STR("_design/")) ? str_skip(ddoc, strlen("_design/")) : ddoc;
}

static bool
plan_is_named(const struct find_args *args, const struct query_index *index)
{
	if (!args->use_index_count || !index->ddoc.ptr)
		return false;
	if (!str_eq(str_skip(index->ddoc, strlen("_design/")), plan_named_design(args)))
		return false;
	return args->use_index_count == 1 || str_eq(index->name, args->use_index[1]);
}

bool
plan_ignores_use_index(const struct find_args *args, const struct query_index *chosen)
{
	return args->use_index_count && !plan_is_named(args, chosen);
}

/* ---- Which indexes are usable ---- */

static bool
plan_sorts_by(const struct find_args *args, struct str column)
{
	for (size_t i = 0; i < args->sort.count; i++) {
		if (str_eq(args->sort.fields[i], column))
			return true;
	}
	return false;
}

bool
candidate_is_required(const struct find_args *args, const struct normal_node *n,
		      const struct query_index *index)
{
	for (size_t i = 0; i < index->columns.count; i++) {
		if (plan_sorts_by(args, index->columns.fields[i]) ||
		    normal_path_is(&index->paths[i], "_id") ||
		    normal_path_is(&index->paths[i], "_rev"))
			continue;
		if (!normal_requires(n, &index->paths[i]))
			return false;
	}
	return true;
}

/* True if the columns, but for leading ones of one value, begin with the fields of the sort. */
static bool
plan_has_order(const struct find_args *args, const struct query_index *index)
{
	size_t at = 0;

	if (!args->sort.count)
		return true;
	while (at < index->columns.count &&
	       !str_eq(index->columns.fields[at], args->sort.fields[0])) {
		if (!index->ddoc.ptr || !normal_is_constant(args->normal, &index->paths[at]))
			return false;
		at++;
	}
	if (args->sort.count > index->columns.count - at)
		return false;
	for (size_t i = 0; i < args->sort.count; i++) {
		if (!str_eq(index->columns.fields[at + i], args->sort.fields[i]))
			return false;
	}
	return true;
}

/* _all_docs sorts only where the selector says something about ids. */
static bool
plan_all_docs_has_required(const struct find_args *args, const struct plan *p)
{
	struct str name = STR("_id");
	const struct normal_path id = { .names = &name, .count = 1 };

	return !args->sort.count || field_ranges_find(&p->ranges, &id);
}

static bool
plan_shows_only_columns(const struct query_index *index, const struct str *fields, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		bool found = str_eq(fields[i], STR("_id"));

		for (size_t k = 0; k < index->columns.count && !found; k++)
			found = str_eq(index->columns.fields[k], fields[i]);
		if (!found)
			return false;
	}
	return true;
}

/* The number of leading columns that have a range. */
static size_t
plan_count_prefix(const struct plan *p, const struct query_index *index)
{
	size_t n = 0;

	while (n < index->columns.count && field_ranges_find(&p->ranges, &index->paths[n]))
		n++;
	return n;
}

void
candidate_judge(const struct find_args *args, const struct plan *p, struct plan_candidate *c)
{
	const struct query_index *index = c->index;

	c->required = index->ddoc.ptr ? candidate_is_required(args, args->normal, index)
				      : plan_all_docs_has_required(args, p);
	c->order = plan_has_order(args, index);
	c->named = plan_is_named(args, index);
	c->partial = index->filter.ptr != NULL;
	c->in_scope = !index->ddoc.ptr || index->partitioned == (args->partition.ptr != NULL);
	c->covers = index->ddoc.ptr && (args->shown || args->aggregate) &&
		    plan_shows_only_columns(index, args->fields, args->fields_count);
	c->prefix = plan_count_prefix(p, index);
	c->usable = (!c->partial || c->named) && c->in_scope && c->required && c->order;
	if (c->usable)
		return;
	if (c->partial)
		c->reason = "is_partial";
	else if (!c->in_scope)
		c->reason = "scope_mismatch";
	else
		c->reason = c->required ? "sort_order_mismatch" : "field_mismatch";
}

/* ---- Which one is chosen ---- */

/*
 * True if `a` goes before `b`: it has more columns with ranges, or has fewer columns. Indexes come
 * in the order of their names, which decides where both are alike.
 */
static bool
plan_prefers(const struct plan_candidate *a, const struct plan_candidate *b)
{
	if (a->prefix != b->prefix)
		return a->prefix > b->prefix;
	return a->index->columns.count < b->index->columns.count;
}

/* True if the candidate is one of those that are compared with each other: of the favoured type. */
static bool
plan_competes(const struct plan_candidate *c, bool any_json)
{
	return c->considered && (c->index->ddoc.ptr != NULL) == any_json;
}

/* Ranks those that compete, and returns the best. */
static struct plan_candidate *
plan_rank(struct plan *p, bool any_json, uint64_t *ret_competing)
{
	struct plan_candidate *best = NULL;

	*ret_competing = 0;
	for (size_t i = 0; i < p->count; i++) {
		struct plan_candidate *c = &p->candidates[i];

		if (!plan_competes(c, any_json))
			continue;
		++*ret_competing;
		for (size_t k = 0; k < p->count; k++) {
			const struct plan_candidate *o = &p->candidates[k];

			if (o != c && plan_competes(o, any_json) &&
			    (plan_prefers(o, c) || (k < i && !plan_prefers(c, o))))
				c->ranking++;
		}
		if (!best || plan_prefers(c, best))
			best = c;
	}
	return best;
}

/* Says of each candidate why it was not chosen, and how far behind it is. */
static void
plan_explain(struct plan *p, const struct plan_candidate *best, bool any_json, uint64_t competing)
{
	bool unfavored = false;
	bool excluded = false;
	bool unusable = false;
	bool out_of_scope = false;
	uint64_t rank = competing ? competing : 1;

	for (size_t i = 0; i < p->count; i++) {
		const struct plan_candidate *c = &p->candidates[i];

		unfavored = unfavored || (c->considered && !plan_competes(c, any_json));
		excluded = excluded || (c->usable && !c->considered);
		out_of_scope = out_of_scope || (!c->in_scope && (!c->partial || c->named));
		unusable = unusable || (!c->usable && c->in_scope && (!c->partial || c->named));
	}
	for (size_t i = 0; i < p->count; i++) {
		struct plan_candidate *c = &p->candidates[i];

		if (c == best)
			continue;
		if (plan_competes(c, any_json)) {
			c->reason = p->ranges.count > c->prefix ? "less_overlap"
				    : c->index->columns.count > best->index->columns.count
					    ? "too_many_fields"
					    : "alphabetically_comes_after";
			continue;
		}
		c->ranking = rank;
		if (c->considered) {
			c->reason = "unfavored_type";
			continue;
		}
		c->ranking += unfavored;
		if (c->usable) {
			c->reason = "excluded_by_user";
			continue;
		}
		c->ranking += excluded + (c->partial || !c->in_scope ? unusable : 0) +
			      (c->partial ? out_of_scope : 0);
	}
}

void
candidates_rank(struct planner *m)
{
	uint64_t competing;

	m->best = plan_rank(m->p, m->any_json, &competing);
	plan_explain(m->p, m->best, m->any_json, competing);
}

void
candidates_promote(struct planner *m, struct plan_candidate *chosen)
{
	for (size_t i = 0; i < m->p->count; i++) {
		struct plan_candidate *c = &m->p->candidates[i];

		if (c->considered && c->ranking < chosen->ranking)
			c->ranking++;
	}
	if (m->best)
		m->best->reason = "more_rows";
	chosen->ranking = 0;
	chosen->considered = true;
	m->best = chosen;
}

/* True if each field that the selector names is a column. */
static bool
plan_names_only_columns(const struct query_index *index, const struct normal_node *n)
{
	if (n->kind == NORMAL_FIELD)
		return plan_shows_only_columns(index, &n->path.joined, 1);
	for (const struct normal_node *i = n->first; i; i = i->next) {
		if (!plan_names_only_columns(index, i))
			return false;
	}
	return true;
}

bool
candidate_covers_all(const struct plan_candidate *c, const struct normal_node *n)
{
	return c->covers && plan_names_only_columns(c->index, n);
}
