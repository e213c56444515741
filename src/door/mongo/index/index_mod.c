#include "door/mongo/index/index_mod.h"

#include "door/mongo/index/clustered.h"
#include "door/mongo/index/expire.h"
#include "door/mongo/txn/data.h"

enum {
	CLUSTERED_NOT_HIDDEN = 6011800, /* MongoDB's code, which has no name */
};

/* ---- What is asked for ---- */

static enum status
read_seconds(struct call *c, const struct bson_value *v, struct index_mod *ret)
{
	double seconds = bson_to_double(v);

	if (!bson_is_number(v))
		return call_type_mismatch(c, v, "types '[long, int, decimal, double]'",
					  "collMod.index.expireAfterSeconds");
	if (!(seconds >= 0) || seconds > EXPIRE_SECONDS)
		return call_fail(c, MONGO_INVALID_OPTIONS,
				 "TTL index 'expireAfterSeconds' option must be within an "
				 "acceptable range, from 0 to %d",
				 EXPIRE_SECONDS);
	ret->has_seconds = true;
	ret->seconds = (int64_t)seconds;
	return STATUS_OK;
}

static enum status
read_hidden(struct call *c, const struct bson_value *v, struct index_mod *ret)
{
	if (v->type != BSON_BOOL && !bson_is_number(v))
		return call_type_mismatch(c, v, "types '[bool, long, int, decimal, double]'",
					  "collMod.index.hidden");
	ret->has_hidden = true;
	ret->hidden = bson_is_true(v);
	return STATUS_OK;
}

static enum status
read_member(struct call *c, const struct bson_element *e, struct index_mod *ret)
{
	const struct bson_value *v = &e->value;

	if (str_eq(e->name, STR("expireAfterSeconds")))
		return read_seconds(c, v, ret);
	if (str_eq(e->name, STR("hidden")))
		return read_hidden(c, v, ret);
	if (str_eq(e->name, STR("name"))) {
		if (v->type != BSON_STRING)
			return call_type_mismatch(c, v, "type 'string'", "collMod.index.name");
		ret->name = bson_text(v);
		return STATUS_OK;
	}
	if (str_eq(e->name, STR("keyPattern"))) {
		if (v->type != BSON_DOCUMENT)
			return call_type_mismatch(c, v, "type 'object'",
						  "collMod.index.keyPattern");
		ret->key = bson_text(v);
		return STATUS_OK;
	}
	if (str_eq(e->name, STR("unique")) || str_eq(e->name, STR("prepareUnique")))
		return call_fail(c, MONGO_NOT_IMPLEMENTED, "collMod.index.%.*s is not there yet",
				 STR_ARG(e->name));
	return call_fail(c, MONGO_FIELD_UNKNOWN,
			 "BSON field 'collMod.index.%.*s' is an unknown field.",
			 (int)(e->name.len < 100 ? e->name.len : 100), e->name.ptr);
}

enum status
index_mod_read(struct call *c, const struct bson_value *v, struct index_mod *ret)
{
	struct bson_element e;
	struct bson_iter i;

	*ret = (struct index_mod){ .asked = true };
	if (v->type != BSON_DOCUMENT)
		return call_type_mismatch(c, v, "type 'object'", "collMod.index");
	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e);)
		TRY(read_member(c, &e, ret));
	if (!ret->name.ptr && !ret->key.ptr)
		return call_fail(c, MONGO_INVALID_OPTIONS,
				 "Must specify either index name or key pattern.");
	if (ret->name.ptr && ret->key.ptr)
		return call_fail(c, MONGO_INVALID_OPTIONS,
				 "Cannot specify both key pattern and name.");
	if (!ret->has_hidden && !ret->has_seconds)
		return call_fail(c, MONGO_INVALID_OPTIONS,
				 "no expireAfterSeconds, hidden, unique, or prepareUnique field");
	return STATUS_OK;
}

/* ---- The change ---- */

static enum status
refuse_id(struct call *c, const struct index_mod *mod)
{
	return mod->has_seconds ? call_fail(c, MONGO_INVALID_OPTIONS,
					    "the _id field does not support TTL indexes")
				: call_fail(c, MONGO_BAD_VALUE, "can't hide _id index");
}

static enum status
refuse_clustered(struct call *c, const struct index_mod *mod)
{
	if (mod->has_hidden)
		return call_fail(c, CLUSTERED_NOT_HIDDEN, "The clustered index cannot be hidden");
	return call_fail(c, MONGO_INVALID_OPTIONS,
			 "documents of a clustered collection expire by expireAfterSeconds of the "
			 "collection");
}

static enum status
find_index(struct data *d, const struct index_mod *mod, const struct index_def **ret)
{
	struct str clustered = clustered_of(d->db);
	struct call *c = d->call;
	struct bson_value own;

	/* By its key, MongoDB does not find the index of a clustered collection. */
	if (mod->key.ptr)
		return index_key_is_id(mod->key) && !clustered.len
			       ? refuse_id(c, mod)
			       : index_find_by_key(c, d->db, mod->key, ret);
	if (clustered.len && bson_find(clustered, STR("name"), &own) &&
	    str_eq(bson_text(&own), mod->name))
		return refuse_clustered(c, mod);
	if (!clustered.len && str_eq(mod->name, STR("_id_")))
		return refuse_id(c, mod);
	for (size_t i = 0; (*ret = index_at(d->db, i)) != NULL; i++)
		if (str_eq((*ret)->name, mod->name))
			return STATUS_OK;
	return call_fail(c, MONGO_INDEX_NOT_FOUND, "cannot find index %.*s for ns %.*s",
			 (int)(mod->name.len < 500 ? mod->name.len : 500), mod->name.ptr,
			 STR_ARG(d->ns));
}

/* The description with what has changed at its end. */
static enum status
write_spec(struct index_mod *mod, const struct index_def *def, struct buf *out)
{
	struct bson_element e;
	struct bson_builder b;
	struct bson_iter i;

	bson_open(&b, out);
	for (bson_iter_begin(&i, def->spec); bson_iter_read(&i, &e);)
		if (!(mod->has_hidden && str_eq(e.name, STR("hidden"))) &&
		    !(mod->has_seconds && str_eq(e.name, STR("expireAfterSeconds"))))
			bson_put_element(&b, &e);
	if (mod->has_hidden && mod->hidden)
		bson_put_bool(&b, STR("hidden"), true);
	if (mod->has_seconds)
		bson_put_int32(&b, STR("expireAfterSeconds"), (int32_t)mod->seconds);
	bson_end(&b);
	return buf_status(out);
}

enum status
index_mod_run(struct data *d, struct kv_tx *tx, struct index_mod *mod)
{
	AUTO(buf_release) struct buf spec = BUF_SHORT(2 * INDEX_SPEC_BYTES);
	const struct index_def *def;
	struct bson_value seconds;

	TRY(find_index(d, mod, &def));
	mod->changed_hidden = mod->has_hidden &&
			      mod->hidden != bson_find_true(def->spec, STR("hidden"));
	mod->had_seconds = bson_find(def->spec, STR("expireAfterSeconds"), &seconds) &&
			   bson_to_int64(&seconds, &mod->old_seconds);
	if (mod->has_seconds && (def->column_count != 1 || def->hashed))
		return call_fail(d->call, MONGO_INVALID_OPTIONS,
				 "TTL indexes are single-field indexes, compound indexes do not "
				 "support TTL");
	TRY(write_spec(mod, def, &spec));
	return index_spec_set(tx, d->db, def, buf_str(&spec), &d->call->err);
}

void
index_mod_put(const struct index_mod *mod, struct bson_builder *b)
{
	if (mod->has_seconds && mod->had_seconds)
		bson_put_int64(b, STR("expireAfterSeconds_old"), mod->old_seconds);
	if (mod->has_seconds)
		bson_put_int64(b, STR("expireAfterSeconds_new"), mod->seconds);
	if (mod->changed_hidden) {
		bson_put_bool(b, STR("hidden_old"), !mod->hidden);
		bson_put_bool(b, STR("hidden_new"), mod->hidden);
	}
}
