/*
 * validate: the check that `frond verify` makes of a collection, at one version of it, and whether
 * its documents are as its validator wants them.
 */
#include "catalog/verify.h"
#include "door/mongo/cmd/commands.h"
#include "door/mongo/cmd/validate.h"
#include "door/mongo/index/index.h"
#include "door/mongo/plan/query.h"
#include "door/mongo/txn/client.h"
#include "door/mongo/txn/mongo_int.h"
#include "door/mongo/txn/run.h"
#include "index/engine/scan.h"

enum {
	VALIDATE_TRIES = 3,      /* of a check in slices, while others write */
	VALIDATE_FINDINGS = 100, /* that are told; of more their number */
	VALIDATE_TEXT_BYTES = 200,
	VALIDATE_UUID_SUBTYPE = 4,
};

#define ARGS_VALIDATE(ARG)                                                                         \
	ARG(VALIDATE_FULL, "full", ARG_BOOL)                                                       \
	ARG(VALIDATE_BACKGROUND, "background", ARG_BOOL)                                           \
	ARG(VALIDATE_CONFORMANCE, "checkBSONConformance", ARG_BOOL)                                \
	ARG(VALIDATE_REPAIR, "repair", ARG_BOOL)                                                   \
	ARG(VALIDATE_METADATA, "metadata", ARG_BOOL)                                               \
	ARG(VALIDATE_MULTIKEY, "fixMultikey", ARG_BOOL)                                            \
	ARG(VALIDATE_COUNT, "enforceFastCount", ARG_BOOL)
ARGS_DEFINE(args_validate, ARGS_VALIDATE);

/* The latest change of a collection's documents, and of what collections there are. */
struct mark {
	struct catalog_seq last;
	uint8_t metadata[KV_VERSIONSTAMP_TX_BYTES];
};

struct validation {
	struct call *call;
	struct str ns;
	struct data data;
	bool was_there;
	char uuid[16];
	struct str options;
	uint64_t count; /* of documents */
	struct {
		struct str name;
		uint64_t entries;
	} indexes[INDEX_LIST];
	size_t index_count;
	struct str findings[VALIDATE_FINDINGS];
	size_t finding_count; /* also those that are not kept */
	bool is_cut; /* no version was kept for as long as the check took, and others wrote */
	struct mark mark;
	uint64_t refused;
};

/* ---- What there is ---- */

static enum status
measure_body(struct kv_tx *tx, void *arg)
{
	struct validation *v = arg;
	struct arena *arena = v->call->arena;
	const struct index_def *def;
	uint64_t bytes;

	TRY(data_begin(&v->data, tx));
	v->was_there = v->data.is_there;
	if (!v->was_there)
		return STATUS_OK;
	memcpy(v->uuid, v->data.db->uuid, sizeof(v->uuid));
	TRY(arena_copy(arena, plain_options_of(v->data.db), &v->options));
	for (v->index_count = 0;
	     v->index_count < INDEX_LIST && (def = index_at(v->data.db, v->index_count)) != NULL;
	     v->index_count++) {
		TRY(arena_copy(arena, def->name, &v->indexes[v->index_count].name));
		TRY(index_measure(tx, v->data.db, def, &v->indexes[v->index_count].entries,
				  &bytes));
	}
	return plain_count(&v->data.plain, &v->count);
}

static enum status
measure(struct validation *v)
{
	enum status status;

	data_init(&v->data, v->call, v->ns, false);
	status = call_read(v->call, measure_body, v);
	data_fini(&v->data);
	TRY(status);
	if (!v->was_there)
		return call_fail(v->call, MONGO_NAMESPACE_NOT_FOUND,
				 "Collection '%.*s' does not exist to validate.", STR_ARG(v->ns));
	return STATUS_OK;
}

/* ---- The check ---- */

static void
take_finding(const struct catalog_finding *finding, void *arg)
{
	struct validation *v = arg;
	struct str text;

	if (v->finding_count++ >= VALIDATE_FINDINGS)
		return;
	text = arena_printf(v->call->arena, "%s: %.*s", finding->kind, VALIDATE_TEXT_BYTES,
			    finding->text);
	v->findings[v->finding_count - 1] = text.ptr ? text : str_from_cstr(finding->kind);
}

static enum status
mark_body(struct kv_tx *tx, void *arg)
{
	struct validation *v = arg;

	TRY(data_open(&v->data, tx));
	v->was_there = v->data.is_there;
	if (!v->was_there)
		return STATUS_OK;
	TRY(kv_get_metadata_version(tx, v->mark.metadata));
	return plain_log_last(&v->data.plain, &v->mark.last);
}

/* The whole check at several versions, which are one if nothing was written meanwhile. */
static enum status
check_slices_once(struct validation *v, bool *ret_same)
{
	struct catalog_verify_options options = { .found = take_finding, .arg = v };
	struct call *c = v->call;
	struct catalog_verify_sum sum;
	struct mark before;

	v->finding_count = 0;
	*ret_same = false;
	TRY(call_read(c, mark_body, v));
	if (!v->was_there)
		return STATUS_OK;
	before = v->mark;
	TRY(catalog_verify_still(c->mongo->config.store, v->data.db, &options, &sum, &c->err));
	TRY(call_read(c, mark_body, v));
	*ret_same = v->was_there && memcmp(&before, &v->mark, sizeof(before)) == 0;
	return STATUS_OK;
}

static enum status
check_slices(struct validation *v)
{
	enum status status = STATUS_OK;
	bool same = false;

	data_init(&v->data, v->call, v->ns, false);
	for (unsigned i = 0; i < VALIDATE_TRIES && status == STATUS_OK && !same; i++) {
		status = mongo_client_check(v->call->client);
		if (status == STATUS_OK)
			status = check_slices_once(v, &same);
	}
	data_fini(&v->data);
	v->is_cut = !same;
	if (v->is_cut)
		v->finding_count = 0;
	return status;
}

/*
 * A cluster keeps a version for five seconds; a large collection's check takes longer, and is made
 * in slices.
 */
static enum status
check(struct validation *v)
{
	struct catalog_verify_options options = { .found = take_finding, .arg = v };
	struct call *c = v->call;
	struct catalog_verify_sum sum;
	struct kv_tx *tx;
	enum status status;

	TRY(kv_begin(c->mongo->config.store, KV_TX_READ_ONLY, &tx));
	status = catalog_verify_db(tx, CATALOG_SPACE_MONGO, v->ns, &options, &sum, &c->err);
	kv_tx_free(tx);
	if (status != STATUS_TX_TOO_OLD)
		return status;
	c->err = (struct err){ 0 };
	return check_slices(v);
}

/* Documents that the validator would refuse now: a query, which may see several versions. */
static enum status
check_documents(struct validation *v)
{
	const struct query_ask ask = { .filter = BSON_EMPTY };
	enum status status = STATUS_OK;
	struct query q = { 0 };
	bool fits = true;
	struct str doc;

	if (!v->is_cut && !bson_find(v->options, STR("validator"), NULL))
		return STATUS_OK;
	status = query_open(&q, v->call, v->ns, &ask);
	while (status == STATUS_OK) {
		v->refused += !fits;
		status = query_next(&q, &doc);
		if (status == STATUS_OK)
			status = validate_fits(&q.data, doc, &fits);
	}
	query_close(&q);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- The answer ---- */

static void
put_empty(struct bson_builder *b, struct str name)
{
	bson_begin_array(b, name);
	bson_end(b);
}

static void
put_indexes(const struct validation *v)
{
	struct bson_builder *b = v->call->reply;

	bson_put_int32(b, STR("nIndexes"), (int32_t)v->index_count + 1);
	bson_begin_document(b, STR("keysPerIndex"));
	bson_put_int64(b, STR("_id_"), (int64_t)v->count);
	for (size_t i = 0; i < v->index_count; i++)
		bson_put_int64(b, v->indexes[i].name, (int64_t)v->indexes[i].entries);
	bson_end(b);
	bson_begin_document(b, STR("indexDetails"));
	for (size_t i = 0; i <= v->index_count; i++) {
		bson_begin_document(b, i ? v->indexes[i - 1].name : STR("_id_"));
		bson_put_bool(b, STR("valid"), !v->finding_count);
		bson_end(b);
	}
	bson_end(b);
}

static void
put_warnings(const struct validation *v)
{
	struct bson_builder *b = v->call->reply;

	bson_begin_array(b, STR("warnings"));
	if (v->refused)
		bson_put_string(b, STR(""),
				STR("Detected one or more documents not compliant with the "
				    "collection's schema."));
	if (v->is_cut)
		bson_put_string(b, STR(""),
				STR("the store keeps no version for as long as the check takes, "
				    "and others have written meanwhile: the documents were read, "
				    "and nothing else"));
	bson_end(b);
}

static void
put_errors(const struct validation *v)
{
	struct bson_builder *b = v->call->reply;
	struct str more;

	bson_begin_array(b, STR("errors"));
	for (size_t i = 0; i < v->finding_count && i < VALIDATE_FINDINGS; i++)
		bson_put_string(b, STR(""), v->findings[i]);
	if (v->finding_count > VALIDATE_FINDINGS) {
		more = arena_printf(v->call->arena, "and %zu more",
				    v->finding_count - VALIDATE_FINDINGS);
		bson_put_string(b, STR(""), more.ptr ? more : STR("and more"));
	}
	bson_end(b);
}

static void
validation_put(const struct validation *v)
{
	struct bson_builder *b = v->call->reply;

	bson_put_string(b, STR("ns"), v->ns);
	bson_put_binary(b, STR("uuid"), VALIDATE_UUID_SUBTYPE, str_of(v->uuid, sizeof(v->uuid)));
	bson_put_int64(b, STR("nInvalidDocuments"), (int64_t)v->finding_count);
	bson_put_int64(b, STR("nNonCompliantDocuments"), (int64_t)v->refused);
	bson_put_int64(b, STR("nrecords"), (int64_t)v->count);
	put_indexes(v);
	bson_put_bool(b, STR("valid"), !v->finding_count);
	bson_put_bool(b, STR("repaired"), false);
	put_warnings(v);
	put_errors(v);
	put_empty(b, STR("extraIndexEntries"));
	put_empty(b, STR("missingIndexEntries"));
	put_empty(b, STR("corruptRecords"));
}

enum status
mongo_run_validate(struct call *c)
{
	struct validation *v = arena_zalloc(c->arena, sizeof(*v));

	if (!v)
		return STATUS_LIMIT;
	for (size_t i = VALIDATE_REPAIR; i <= VALIDATE_MULTIKEY; i++)
		if (call_bool(c, i, false))
			return call_fail(c, MONGO_NOT_IMPLEMENTED, "validate.%s is not there",
					 args_validate[i].name);
	v->call = c;
	TRY(data_ns(c, &v->ns));
	TRY(measure(v));
	TRY(check(v));
	TRY(check_documents(v));
	validation_put(v);
	return STATUS_OK;
}
