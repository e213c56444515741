/* One document of a query: matched, skipped or written. */

#include "base/clock.h"
#include "base/metric.h"
#include "door/couch/doc/doc_out.h"
#include "door/couch/query/find.h"
#include "door/couch/wire/error.h"
#include "loop/sort.h"

/* ---- Limits ---- */

enum {
	FIND_CLOCK_DOCS = 64, /* documents between two looks at the clock */
};

static enum status
find_refuse_limit(struct find *f, const char *what, uint64_t limit, const char *unit)
{
	return couch_fail_set(&f->r->fail, COUCH_ERROR_NO_USABLE_INDEX,
			      "The query reads too many documents: the limit, [mango] %s, is %llu "
			      "%s. An index on the fields of the selector would read fewer.",
			      what, (unsigned long long)limit, unit);
}

enum status
find_check_limits(struct find *f)
{
	const struct couch_settings *s = f->r->settings;

	if (s->scan_docs && f->docs > s->scan_docs) {
		METRIC_REFUSED("scan_documents");
		return find_refuse_limit(f, "scan_documents", s->scan_docs, "documents");
	}
	if (s->scan_ms && f->docs % FIND_CLOCK_DOCS == 0 &&
	    clock_mono_ns() - f->began_ns > s->scan_ms * CLOCK_NS_PER_MS) {
		METRIC_REFUSED("scan_time");
		return find_refuse_limit(f, "scan_time", s->scan_ms, "ms");
	}
	return STATUS_OK;
}

/* ---- Which members count ---- */

/* Prepares the members of these names, which are in byte order, each once. */
static enum status
find_members_init(struct find *f, const struct str *names, size_t count, bool whole,
		  struct find_members *ret)
{
	*ret = (struct find_members){
		.whole = whole,
		.members = arena_alloc(f->r->arena, (count + 1) * sizeof(*ret->members)),
	};
	if (!ret->members)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		unsigned seen = couch_seen_member(names[i]);

		ret->seen |= seen;
		if (seen)
			continue;
		TRY(doc_member_init(names[i], f->r->arena, &ret->members[ret->count]));
		ret->count++;
	}
	return STATUS_OK;
}

enum status
find_members_of_paths(struct find *f, const struct normal_path *paths, size_t count,
		      struct find_members *ret)
{
	struct str *names = arena_alloc(f->r->arena, (count + 1) * sizeof(*names));
	size_t kept = 0;

	if (!names)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++)
		names[i] = paths[i].names[0];
	/* Members are looked for in the order of their names, each once. */
	TRY(sort_strs(names, count, f->r->arena));
	for (size_t i = 0; i < count; i++) {
		if (i == 0 || !str_eq(names[i], names[kept - 1]))
			names[kept++] = names[i];
	}
	return find_members_init(f, names, kept, false, ret);
}

static enum status
members_of_selector(struct find *f, const struct selector *selector, struct find_members *ret)
{
	struct str *names;
	size_t count;
	bool whole;

	TRY(selector_members(selector, f->r->arena, &names, &count, &whole));
	return find_members_init(f, names, count, whole, ret);
}

enum status
find_doc_init(struct find *f)
{
	struct str filter = f->plan.chosen->filter;
	struct selector *selector;
	struct str *names;
	size_t count;

	TRY(members_of_selector(f, f->args.selector, &f->matched));
	if (filter.ptr) {
		TRY(query_selector_compile(f->r, filter, &selector));
		TRY(members_of_selector(f, selector, &f->filtered));
		f->filter = selector;
	}
	if (!f->args.shown)
		return STATUS_OK;
	TRY(selector_fields_members(f->args.shown, f->r->arena, &names, &count));
	return find_members_init(f, names, count, false, &f->shown);
}

enum status
find_doc_see(struct find *f, const struct find_doc *d, const struct find_members *members,
	     struct couch_seen *seen, struct selector_doc *ret)
{
	const struct couch_doc_out out = { .id = d->id, .doc = d->doc, .tree = d->tree };
	struct kv_pair *leaves = d->doc->leaves;
	size_t count = d->doc->count;

	TRY(couch_seen_read(f->r, &out, members->seen, seen));
	if (d->doc->packed.ptr && members->whole)
		TRY(doc_unpack(d->doc->packed, f->r->arena, &leaves, &count));
	else if (d->doc->packed.ptr)
		TRY(doc_packed_leaves(d->doc->packed, members->members, members->count, f->r->arena,
				      &leaves, &count));
	*ret = (struct selector_doc){ leaves, count, seen->specials, seen->count };
	return STATUS_OK;
}

enum status
find_doc_value(const struct selector_doc *doc, const struct normal_path *path,
	       struct leaf_value *ret, bool *ret_found)
{
	struct leaf_value v = { doc->leaves, doc->count, 0 };
	size_t at = 0;

	*ret_found = true;
	for (size_t i = 0; i < doc->specials_count; i++) {
		if (str_eq(doc->specials[i].name, path->names[0])) {
			v = doc->specials[i].value;
			at = 1;
			break;
		}
	}
	for (; at < path->count && *ret_found; at++) {
		AUTO(buf_release) struct buf element = BUF_INIT(SIZE_MAX);
		enum leaf_kind kind;
		uint64_t position;

		TRY(leaf_kind(&v, &kind));
		if (kind == LEAF_OBJECT)
			tuple_put_str(&element, path->names[at]);
		else if (kind == LEAF_ARRAY && str_to_u64(path->names[at], &position))
			tuple_put_u64(&element, position);
		TRY(buf_status(&element));
		*ret_found = element.len && leaf_find(&v, buf_str(&element), &v);
	}
	*ret = v;
	return STATUS_OK;
}

enum status
find_doc_matches(struct find *f, const struct find_doc *d, bool *ret)
{
	struct index_work work = { .arena = f->r->arena };
	struct selector_doc doc;
	struct couch_seen seen;

	TRY(find_doc_see(f, d, &f->matched, &seen, &doc));
	TRY(selector_match(f->args.selector, &doc, &work, ret));
	/* An index has no entries of documents that its filter does not let through. */
	if (!*ret || !f->filter || d->is_entry)
		return STATUS_OK;
	TRY(find_doc_see(f, d, &f->filtered, &seen, &doc));
	return selector_match(f->filter, &doc, &work, ret);
}

/* ---- Writing ---- */

static enum status
find_doc_write(struct find *f, const struct find_doc *d, struct buf *out)
{
	static const struct couch_doc_opts conflicts = { .flags = COUCH_DOC_CONFLICTS };
	const struct couch_doc_out whole = {
		.id = d->id,
		.doc = d->doc,
		.tree = d->tree,
		.branch = d->tree ? &d->tree->branches[0] : NULL,
		.opts = d->tree ? &conflicts : NULL,
	};
	struct index_work work = { .arena = f->r->arena };
	struct selector_doc doc;
	struct couch_seen seen;

	if (!f->args.shown)
		return couch_doc_write(&whole, out);
	TRY(find_doc_see(f, d, &f->shown, &seen, &doc));
	return selector_fields_write(f->args.shown, &doc, &work, out);
}

enum status
find_doc_take(struct find *f, const struct find_doc *d)
{
	struct buf *out = &f->stream.out;

	if (f->skip) {
		f->skip--;
	} else {
		buf_append_cstr(out, f->any_row ? ",\r\n" : "\r\n");
		TRY(find_doc_write(f, d, out));
		TRY(buf_status(out));
		f->any_row = true;
		f->limit--;
		f->results++;
	}
	buf_set(&f->id, d->id);
	f->has_id = true;
	return buf_status(&f->id);
}
