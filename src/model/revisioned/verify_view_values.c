/*
 * Compares the partial results that sums of views store with those that come of what each sum
 * covers: of the rows, or of the sums of the level below. They are computed from the same texts in
 * the same order as when they were stored, so they have the same bytes. Functions of design
 * documents are called where somebody lends them (catalog/verify.h).
 */
#include "base/quote.h"
#include "index/versions.h"
#include "index/view/keys.h"
#include "index/view/sums.h"
#include "model/revisioned/list.h"
#include "model/revisioned/read.h"
#include "model/revisioned/verify_int.h"

enum {
	DESIGNS_PAGE = 50,
	DESIGNS_BYTES = 256 * 1024 * 1024, /* that finding a design document may take */
	DESIGN_TEXT_BYTES = 64 * 1024 * 1024,
	SUM_BYTES = 256 * 1024 * 1024, /* that computing one sum may take */
};

/* ---- The design document that has a group's views ---- */

/* True if `id` has the views of the group; then `values` has its maps and reduces. */
static enum status
values_try_design(struct verify_view_values *values, struct str id, struct rev_id rev, bool *ret)
{
	AUTO(buf_release) struct buf text = BUF_INIT(DESIGN_TEXT_BYTES);
	struct catalog_verify *v = values->v;
	struct rev_doc doc;
	struct str kept;

	*ret = false;
	TRY(rev_doc_read_head(v->tx, v->db, id, rev, false, values->design_arena, &doc));
	buf_append_byte(&text, '{');
	TRY(rev_body_write(&doc, false, &text));
	kept = buf_dup(&text, values->design_arena);
	if (!kept.ptr)
		return STATUS_LIMIT;
	TRY(view_design_parse(kept, values->group->partitioned, values->design_arena,
			      &values->design, NULL));
	*ret = memcmp(values->design.signature, values->group->signature,
		      sizeof(values->group->signature)) == 0 &&
	       values->design.map_count == values->group->map_count;
	values->text = kept;
	return STATUS_OK;
}

/* Groups of another collator's order are not compared: _top_N depends on it. */
static enum status
values_is_own_order(struct verify_view_values *values, bool *ret)
{
	struct catalog_verify *v = values->v;
	struct index_versions versions;
	struct tuple_reader r;
	struct kv_future *f;
	uint64_t number = 0;
	struct str value;

	index_versions_read(&versions);
	view_key_name(&v->key, v->db, values->group->signature, str_from_cstr(versions.collator));
	TRY(catalog_key_status(&v->key));
	TRY(catalog_verify_get(v, buf_str(&v->key), &f));
	if (kv_future_value(f, &value)) {
		r = tuple_reader(value);
		if (tuple_next_u64(&r, &number) != STATUS_OK)
			number = 0;
	}
	kv_future_free(f);
	*ret = number == values->group->number;
	return STATUS_OK;
}

/* A failure that says something of one design document: it is not the one, or is damaged. */
static bool
status_is_of_design(enum status status)
{
	return status == STATUS_INVALID || status == STATUS_LIMIT || status == STATUS_CORRUPT ||
	       status == STATUS_NEWER || status == STATUS_NOT_FOUND ||
	       status == STATUS_JSON_SYNTAX || status == STATUS_JSON_DEPTH ||
	       status == STATUS_JSON_UTF8;
}

static enum status
values_try_page(struct verify_view_values *values, struct name_range *range, bool *ret_more)
{
	struct catalog_verify *v = values->v;
	struct rev_entry_page page;
	enum status status;

	TRY(rev_all_docs_page(v->tx, v->db, range, values->design_arena, &page));
	for (size_t i = 0; i < page.count && !values->known; i++) {
		struct arena_mark mark = arena_mark(values->design_arena);

		status = values_try_design(values, page.entries[i].id, page.entries[i].rev,
					   &values->known);
		if (!status_is_of_design(status))
			TRY(status);
		if (values->known)
			values->id = page.entries[i].id;
		else
			arena_reset(values->design_arena, mark);
	}
	*ret_more = page.more && !values->known;
	range->begin = page.last;
	range->exclusive_begin = true;
	return STATUS_OK;
}

static enum status
values_find_design(struct verify_view_values *values)
{
	struct name_range range = {
		.begin = STR("_design/"),
		.end = STR("_design0"),
		.has_begin = true,
		.has_end = true,
		.exclusive_end = true,
		.limit = DESIGNS_PAGE,
	};
	unsigned failures = 0;
	bool more = true;

	TRY(values_is_own_order(values, &more));
	while (more) {
		enum status status = values_try_page(values, &range, &more);

		if (status != STATUS_OK)
			TRY(catalog_verify_again(values->v, &failures, status));
	}
	return STATUS_OK;
}

/* ---- Functions ---- */

static uint64_t
values_count_functions(const struct verify_view_values *values)
{
	uint64_t n = 0;

	for (size_t i = 0; i < values->design.map_count; i++)
		for (size_t k = 0; k < values->design.maps[i].reduce_count; k++)
			n += values->design.maps[i].reduces[k].kind == VIEW_REDUCE_FUNCTION;
	return n;
}

/* Functions that nobody lends are counted, and not compared. */
static void
values_borrow(struct verify_view_values *values)
{
	const struct catalog_verify_lender *lender = values->v->options->lender;
	uint64_t functions = values_count_functions(values);

	if (lender && functions)
		values->lent = lender->lend(lender->arg, values->v->db, values->id, values->text);
	if (!values->lent)
		values->v->sum.functions += functions;
}

static void
values_give_back(struct verify_view_values *values)
{
	if (values->lent)
		values->v->options->lender->functions->release(values->lent);
	values->lent = NULL;
}

static void
values_release_sum(struct verify_view_values *values)
{
	for (size_t i = 0; values->map && i < values->map->reduce_count; i++)
		reduce_acc_release(&values->accs[i]);
	values->map = NULL;
}

/*
 * Calls the functions for the sum. If one cannot be called, which says nothing of what is stored,
 * those of this design document are not compared from here on.
 */
static enum status
values_call_functions(struct verify_view_values *values)
{
	struct view_error error = { 0 };
	struct err err = { 0 };
	enum status status;

	if (!values->lent)
		return STATUS_OK;
	status = reduce_run(
		&(struct reduce_run){ .design = &values->design,
				      .functions = values->v->options->lender->functions,
				      .arg = values->lent,
				      .w = &values->w,
				      .error = &error,
				      .err = &err },
		values->accs, values->map->reduce_count);
	if (status == STATUS_OK || status == STATUS_LIMIT || status == STATUS_NOMEM)
		return status;
	values_give_back(values);
	values->v->sum.functions += values_count_functions(values);
	return STATUS_OK;
}

enum status
verify_view_values_open(struct catalog_verify *v, const struct view_group *group,
			struct verify_view_values *values)
{
	*values = (struct verify_view_values){ .v = v,
					       .group = group,
					       .arena = arena_new(SUM_BYTES),
					       .design_arena = arena_new(DESIGNS_BYTES) };
	if (!values->arena || !values->design_arena)
		return STATUS_NOMEM;
	values->w.arena = values->arena;
	TRY(values_find_design(values));
	if (values->known)
		values_borrow(values);
	return STATUS_OK;
}

void
verify_view_values_close(struct verify_view_values *values)
{
	values_release_sum(values);
	values_give_back(values);
	arena_free(values->arena);
	arena_free(values->design_arena);
}

/* ---- One sum ---- */

static bool
is_computed(const struct verify_view_values *values, const struct view_reduce *reduce)
{
	return reduce->kind != VIEW_REDUCE_FUNCTION || values->lent;
}

void
verify_view_values_begin(struct verify_view_values *values, size_t map)
{
	values_release_sum(values);
	values->map = values->known ? &values->design.maps[map] : NULL;
	values->broken = !values->known;
	if (!values->known)
		return;
	arena_clear(values->arena);
	for (size_t i = 0; i < values->map->reduce_count; i++)
		reduce_acc_init(&values->accs[i], &values->map->reduces[i], &values->w);
}

static enum status
values_take_row(struct verify_view_values *values, size_t map, struct str place, struct str value)
{
	struct catalog_verify *v = values->v;
	struct err err = { 0 };
	const struct sums s = { v->tx, v->db, values->group, map, &values->w, &err };
	struct view_row_value row;
	struct view_place parts;
	unsigned failures = 0;
	enum status status;

	while ((status = sums_row_texts(&s, place, value, &row)) != STATUS_OK)
		TRY(catalog_verify_again(v, &failures, status));
	TRY(view_place_parse(place, values->group->partitioned, values->arena, &parts));
	for (size_t i = 0; i < values->map->reduce_count; i++)
		if (is_computed(values, values->accs[i].reduce))
			TRY(reduce_acc_row(&values->accs[i], row.key, parts.id, row.value));
	return STATUS_OK;
}

static enum status
values_take_sum(struct verify_view_values *values, struct str value)
{
	struct err err = { 0 };
	struct view_sum sum;

	TRY(view_sum_parse(value, values->arena, &sum, &err));
	if (sum.count != values->map->reduce_count)
		return STATUS_CORRUPT;
	for (size_t i = 0; sum.rows && i < sum.count; i++)
		if (is_computed(values, values->accs[i].reduce))
			TRY(reduce_acc_partial(&values->accs[i], sum.partials[i]));
	return STATUS_OK;
}

/* What cannot be read is told where it is; the sums over it cannot be computed. */
static enum status
values_give_up(struct verify_view_values *values, enum status status)
{
	values->broken = values->broken || status != STATUS_OK;
	return status == STATUS_OK || status_is_of_design(status) ? STATUS_OK : status;
}

enum status
verify_view_values_take(struct verify_view_values *values, size_t map, unsigned level,
			struct str place, struct str value)
{
	if (values->broken || values->map->reduce_count == 0)
		return STATUS_OK;
	if (level == 1)
		return values_give_up(values, values_take_row(values, map, place, value));
	return values_give_up(values, values_take_sum(values, value));
}

/* Results that were too long together have all been replaced by this (sums.c). */
static bool
is_overflow(struct str partial)
{
	return str_eq(partial, STR(REDUCE_OVERFLOW));
}

/* Errors of functions, unlike their results, depend on settings: on reduce_limit. */
static bool
is_error(struct str stored, struct str computed)
{
	return stored.len == 0 || computed.len == 0 || stored.ptr[0] == 'e' ||
	       computed.ptr[0] == 'e';
}

static enum status
values_compare(struct verify_view_values *values, struct str key, struct str value)
{
	struct err err = { 0 };
	struct view_sum sum;
	struct str partial;

	TRY(view_sum_parse(value, values->arena, &sum, &err));
	if (sum.count != values->map->reduce_count) {
		catalog_verify_found(values->v, REV_FINDING_VIEW, key,
				     "a sum has %zu results, of %zu reduces", sum.count,
				     values->map->reduce_count);
		return STATUS_OK;
	}
	TRY(values_call_functions(values));
	for (size_t i = 0; i < sum.count; i++) {
		const struct view_reduce *reduce = values->accs[i].reduce;

		if (!is_computed(values, reduce) || is_overflow(sum.partials[i]))
			continue;
		TRY(reduce_acc_result(&values->accs[i], &partial));
		if (str_eq(partial, sum.partials[i]) ||
		    (reduce->kind == VIEW_REDUCE_FUNCTION && is_error(sum.partials[i], partial)))
			continue;
		catalog_verify_found(values->v, REV_FINDING_VIEW, key,
				     "a sum says %s where %s makes %s", QUOTE_SHOW(sum.partials[i]),
				     reduce->kind == VIEW_REDUCE_FUNCTION
					     ? "the reduce of the design document"
					     : "what it covers",
				     QUOTE_SHOW(partial));
	}
	return STATUS_OK;
}

enum status
verify_view_values_compare(struct verify_view_values *values, struct str key, struct str value)
{
	if (values->broken || values->map->reduce_count == 0)
		return STATUS_OK;
	return values_give_up(values, values_compare(values, key, value));
}
