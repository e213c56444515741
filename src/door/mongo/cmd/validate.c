#include "door/mongo/cmd/validate.h"

#include "base/log.h"
#include "base/quote.h"
#include "door/mongo/txn/client.h"
#include "mql/match/match.h"

enum {
	VALIDATE_BYTES = 128 * 1024 * 1024, /* of a validator and what it makes of one document */
	FAILURE_BYTES = 128 * 1024,         /* of what is told of a document */
	DETAILS_BYTES = 64 * 1024,          /* of why it was refused; more is left out */
};

struct validator {
	bool moderate; /* documents that do not match may stay so */
	bool warns;
	struct arena *arena;
	struct arena_mark compiled;
	struct mql mql;
	struct mql_match *match; /* NULL: all documents are taken */
	struct str filter;
};

static const char *const levels[] = { "off", "strict", "moderate" };
static const char *const actions[] = { "error", "warn" };

/* ---- Options ---- */

static enum status
read_choice(struct call *c, const struct bson_element *e, const char *const *choices, size_t count,
	    struct str *ret)
{
	if (e->value.type != BSON_STRING)
		return call_type_mismatch(c, &e->value, "type 'string'", "%s.%.*s",
					  c->command->name, STR_ARG(e->name));
	*ret = bson_text(&e->value);
	for (size_t i = 0; i < count; i++)
		if (str_eq(*ret, str_from_cstr(choices[i])))
			return STATUS_OK;
	return call_fail(c, MONGO_BAD_VALUE,
			 "Enumeration value '%.*s' for field '%s.%.*s' is not a valid value.",
			 (int)(ret->len < 100 ? ret->len : 100), ret->ptr, c->command->name,
			 STR_ARG(e->name));
}

/* {enabled: true or false} */
static enum status
read_images(struct call *c, const struct bson_element *e, struct validate_ask *ask)
{
	struct bson_value v;

	if (e->value.type != BSON_DOCUMENT)
		return call_type_mismatch(c, &e->value, "type 'object'", "%s.%.*s",
					  c->command->name, STR_ARG(e->name));
	if (!bson_find(bson_text(&e->value), STR("enabled"), &v))
		return call_fail(c, MONGO_FIELD_MISSING,
				 "BSON field '%s.%.*s.enabled' is missing but a required field",
				 c->command->name, STR_ARG(e->name));
	if (v.type != BSON_BOOL || bson_count(bson_text(&e->value)) > 1)
		return call_fail(c, MONGO_TYPE_MISMATCH,
				 "%.*s takes {enabled: true} or {enabled: false}",
				 STR_ARG(e->name));
	ask->has_images = true;
	ask->images = bson_truth(&v);
	return STATUS_OK;
}

enum status
validate_read(struct call *c, const struct bson_element *e, struct validate_ask *ask,
	      bool *ret_known)
{
	*ret_known = true;
	if (str_eq(e->name, STR("validationLevel")))
		return read_choice(c, e, levels, sizeof(levels) / sizeof(levels[0]), &ask->level);
	if (str_eq(e->name, STR("validationAction")))
		return read_choice(c, e, actions, sizeof(actions) / sizeof(actions[0]),
				   &ask->action);
	if (str_eq(e->name, STR("changeStreamPreAndPostImages")))
		return read_images(c, e, ask);
	*ret_known = str_eq(e->name, STR("validator"));
	if (!*ret_known)
		return STATUS_OK;
	if (e->value.type != BSON_DOCUMENT)
		return call_type_mismatch(c, &e->value, "type 'object'", "%s.validator",
					  c->command->name);
	ask->validator = e->value;
	ask->has_validator = true;
	return STATUS_OK;
}

enum status
validate_check(struct call *c, const struct validate_ask *ask)
{
	struct mql_match *match;
	struct mql q;

	if (!ask->has_validator || bson_is_empty(bson_text(&ask->validator)))
		return STATUS_OK;
	if (str_eq(c->db, STR("admin")) || str_eq(c->db, STR("local")) ||
	    str_eq(c->db, STR("config")) || str_starts_with(c->collection, STR("system.")))
		return call_fail(c, MONGO_INVALID_OPTIONS,
				 "Document validators not allowed on collection %.*s.%.*s",
				 STR_ARG(c->db), STR_ARG(c->collection));
	data_mql(c, c->arena, NULL, &q);
	q.is_validator = true;
	return data_mql_status(c, &q, mql_match_compile(&q, bson_text(&ask->validator), &match));
}

static void
put_choice(struct bson_builder *b, struct str name, struct str wanted, struct str old,
	   struct str otherwise, bool has_validator)
{
	struct bson_value v;

	if (wanted.len)
		bson_put_string(b, name, wanted);
	else if (bson_find(old, name, &v))
		bson_put(b, name, &v);
	else if (has_validator)
		bson_put_string(b, name, otherwise);
}

enum status
validate_options(struct call *c, struct str options, const struct validate_ask *ask,
		 struct str *ret)
{
	struct buf AUTO(buf_release) made = BUF_INIT_OF(2 * BSON_MOST_BYTES, arena_part(c->arena));
	struct bson_value validator = ask->validator;
	struct bson_builder b;
	struct bson_element e;
	struct bson_iter i;
	bool has = ask->has_validator || bson_find(options, STR("validator"), &validator);

	has = has && !bson_is_empty(bson_text(&validator));
	bson_open(&b, &made);
	for (bson_iter_begin(&i, options); bson_iter_read(&i, &e);)
		if (!str_eq(e.name, STR("validator")) && !str_eq(e.name, STR("validationLevel")) &&
		    !str_eq(e.name, STR("validationAction")) &&
		    !(ask->has_images && str_eq(e.name, STR("changeStreamPreAndPostImages"))))
			bson_put_element(&b, &e);
	if (ask->images) {
		bson_begin_document(&b, STR("changeStreamPreAndPostImages"));
		bson_put_bool(&b, STR("enabled"), true);
		bson_end(&b);
	}
	if (has)
		bson_put(&b, STR("validator"), &validator);
	put_choice(&b, STR("validationLevel"), ask->level, options, STR("strict"), has);
	put_choice(&b, STR("validationAction"), ask->action, options, STR("error"), has);
	bson_end(&b);
	return buf_copy(&made, c->arena, ret);
}

/* ---- Documents ---- */

static bool
call_bypasses(const struct call *c)
{
	return bson_find_true(c->body, STR("bypassDocumentValidation"));
}

enum status
validate_check_bypass(struct call *c, struct str db)
{
	if (!call_bypasses(c) || rights_on(&c->client->rights, db) & (RIGHT_ADMIN | RIGHT_RESTORE))
		return STATUS_OK;
	return call_fail(c, MONGO_UNAUTHORIZED,
			 "not authorized on %.*s to bypass the validation of documents",
			 STR_ARG(db));
}

static bool
option_is(struct str options, struct str name, struct str wanted)
{
	struct bson_value v;

	return bson_find(options, name, &v) && v.type == BSON_STRING &&
	       str_eq(bson_text(&v), wanted);
}

static enum status
validator_new(struct data *d, struct validator **ret)
{
	struct str options = plain_options_of(d->db);
	struct arena *arena = arena_new(VALIDATE_BYTES);
	struct call *c = d->call;
	struct bson_value filter;
	struct validator *v;

	/* One that could not be made may have left an arena. */
	arena_free(d->validator_arena);
	d->validator_arena = arena;
	if (!arena)
		return STATUS_NOMEM;
	arena_set_part(arena, arena_part(c->arena));
	v = arena_zalloc(arena, sizeof(*v));
	if (!v)
		return STATUS_NOMEM;
	if (bson_find(options, STR("validator"), &filter) && filter.type == BSON_DOCUMENT &&
	    !option_is(options, STR("validationLevel"), STR("off")) && !call_bypasses(c)) {
		v->moderate = option_is(options, STR("validationLevel"), STR("moderate"));
		v->warns = option_is(options, STR("validationAction"), STR("warn"));
		v->arena = arena;
		v->filter = bson_text(&filter);
		data_mql(c, arena, NULL, &v->mql);
		TRY(data_mql_status(c, &v->mql, data_collation(d, &v->mql, &v->mql.texts)));
		TRY(data_mql_status(c, &v->mql,
				    mql_match_compile(&v->mql, bson_text(&filter), &v->match)));
		v->compiled = arena_mark(arena);
	}
	*ret = v;
	return STATUS_OK;
}

static enum status
matches(struct call *c, struct validator *v, struct str doc, bool *ret)
{
	enum status status = data_mql_status(c, &v->mql,
					     mql_match_run(v->match, &v->mql, doc, ret, NULL));

	arena_reset(v->arena, v->compiled);
	return status;
}

/* Why a document is refused, as long as that is not too long. */
static enum status
put_details(struct call *c, struct validator *v, struct str doc, struct bson_builder *b)
{
	struct buf AUTO(buf_release) made = BUF_SHORT(DETAILS_BYTES);
	struct bson_builder details;
	enum status status;

	bson_open(&details, &made);
	status = mql_match_explain(&v->mql, v->filter, doc, &details);
	bson_end(&details);
	arena_reset(v->arena, v->compiled);
	if (status == STATUS_OK)
		status = buf_status(&made);
	if (status == STATUS_OK)
		bson_put_document(b, STR("details"), buf_str(&made));
	return status == STATUS_LIMIT ? STATUS_OK : data_mql_status(c, &v->mql, status);
}

/* Whoever asks is told which document it was. */
static enum status
validate_refuse(struct call *c, struct validator *v, struct str doc)
{
	struct buf AUTO(buf_release) made = BUF_SHORT(FAILURE_BYTES);
	struct bson_value id = BSON_OF_NULL;
	struct bson_builder b;

	(void)bson_find(doc, STR("_id"), &id);
	bson_open(&b, &made);
	bson_put(&b, STR("failingDocumentId"), &id);
	TRY(put_details(c, v, doc, &b));
	bson_end(&b);
	TRY(buf_copy(&made, c->arena, &c->err_info));
	return call_fail(c, MONGO_DOCUMENT_VALIDATION, "Document failed validation");
}

static void
warn(const struct data *d)
{
	static struct log_limit limit;
	uint64_t before;

	if (log_limit_pass(&limit, &before))
		log_event(LOG_LEVEL_WARN, "mongo_validation",
			  "collection=\"%s\" before=%llu reason=\"a document that its validator "
			  "does not take was written\"",
			  QUOTE_VALUE(d->ns), (unsigned long long)before);
}

enum status
validate_fits(struct data *d, struct str doc, bool *ret)
{
	*ret = true;
	if (!bson_find(plain_options_of(d->db), STR("validator"), NULL))
		return STATUS_OK;
	if (!d->validator)
		TRY(validator_new(d, &d->validator));
	return d->validator->match ? matches(d->call, d->validator, doc, ret) : STATUS_OK;
}

enum status
validate_document(struct data *d, struct str doc, struct str old)
{
	struct call *c = d->call;
	bool good;

	if (!bson_find(plain_options_of(d->db), STR("validator"), NULL))
		return STATUS_OK;
	if (!d->validator)
		TRY(validator_new(d, &d->validator));
	if (!d->validator->match)
		return STATUS_OK;
	TRY(matches(c, d->validator, doc, &good));
	if (!good && d->validator->moderate && old.len) {
		bool was_good;

		TRY(matches(c, d->validator, old, &was_good));
		good = !was_good;
	}
	if (good)
		return STATUS_OK;
	if (!d->validator->warns)
		return validate_refuse(c, d->validator, doc);
	warn(d);
	return STATUS_OK;
}
