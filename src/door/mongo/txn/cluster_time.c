#include "door/mongo/txn/cluster_time.h"

#include "base/big_endian.h"
#include "base/clock.h"
#include "base/words.h"
#include "door/mongo/txn/client.h"
#include "door/mongo/txn/mongo_int.h"
#include "kv/log.h"

enum {
	SIGNATURE_BYTES = 20,
	AFTER_LOOK_MS = 20,
};

uint64_t
time_of_stamp(const uint8_t stamp[KV_VERSIONSTAMP_TX_BYTES])
{
	return big_endian_64(stamp);
}

void
time_note(struct call *c, uint64_t version)
{
	uint64_t known = atomic_load_explicit(&c->mongo->version, memory_order_relaxed);

	if (c->version < version)
		c->version = version;
	while (known < version &&
	       !atomic_compare_exchange_weak(&c->mongo->version, &known, version))
		;
}

static enum status
look_body(struct kv_tx *tx, void *arg)
{
	return kv_get_read_version(tx, arg);
}

/* Asks the store. */
static uint64_t
look(struct call *c)
{
	uint64_t version = 0;

	if (kv_run_read(c->mongo->config.store, look_body, &version, NULL) == STATUS_OK)
		time_note(c, version);
	return c->version;
}

uint64_t
time_now(struct call *c)
{
	uint64_t known = atomic_load_explicit(&c->mongo->version, memory_order_relaxed);

	if (c->version)
		return c->version;
	return known ? known : look(c);
}

void
time_put(struct call *c)
{
	static const char signature[SIGNATURE_BYTES];
	uint64_t known;

	if (!c->mongo->set)
		return;
	bson_put_timestamp(c->reply, STR("operationTime"), time_of_version(time_now(c)));
	known = atomic_load_explicit(&c->mongo->version, memory_order_relaxed);
	bson_begin_document(c->reply, STR("$clusterTime"));
	bson_put_timestamp(c->reply, STR("clusterTime"), time_of_version(known));
	bson_begin_document(c->reply, STR("signature"));
	bson_put_binary(c->reply, STR("hash"), 0, str_of(signature, sizeof(signature)));
	bson_put_int64(c->reply, STR("keyId"), 0);
	bson_end(c->reply);
	bson_end(c->reply);
}

/* ---- Read concerns ---- */

static enum status
check_level(struct call *c, const struct bson_value *level, bool *ret_snapshot)
{
	static const char *const levels[] = { "local", "majority", "linearizable", "available",
					      "snapshot" };

	*ret_snapshot = false;
	if (level->type != BSON_STRING)
		return call_type_mismatch(c, level, "type 'string'", "readConcern.level");
	*ret_snapshot = str_eq(bson_text(level), STR("snapshot"));
	if (WORDS_HAVE(levels, bson_text(level)))
		return STATUS_OK;
	return call_fail(c, MONGO_BAD_VALUE,
			 "Enumeration value '%.*s' for field 'readConcern.level' is not a valid "
			 "value.",
			 (int)(bson_text(level).len < 100 ? bson_text(level).len : 100),
			 bson_text(level).ptr);
}

/* What the client has written to the first, or read there, comes to a standby a little later. */
static enum status
await_version(struct call *c, uint64_t version)
{
	struct event *stops = net_stream_stopping_event(c->client->stream);
	uint64_t deadline_ns = clock_after_ms(MONGO_AFTER_TIME_MS);

	TRY(mongo_client_last(c->client, &c->err));
	while (look(c) < version) {
		TRY(mongo_client_check_waiting(c->client));
		if (clock_mono_ns() >= deadline_ns)
			return call_fail(c, MONGO_MAX_TIME_EXPIRED,
					 "this standby has not reached the afterClusterTime within "
					 "%d ms",
					 MONGO_AFTER_TIME_MS);
		event_wait_any(&stops, 1, clock_after_ms(AFTER_LOOK_MS));
	}
	return STATUS_OK;
}

/*
 * A read sees all that was committed before it began, so there is nothing to wait for, but in front
 * of a standby.
 */
static enum status
check_after(struct call *c, const struct bson_value *after)
{
	uint64_t version;

	if (after->type != BSON_TIMESTAMP)
		return call_type_mismatch(c, after, "type 'timestamp'",
					  "readConcern.afterClusterTime");
	version = time_to_version((uint64_t)bson_integer(after));
	if (version <= atomic_load_explicit(&c->mongo->version, memory_order_relaxed) ||
	    version <= look(c))
		return STATUS_OK;
	if (mongo_is_secondary(c->mongo))
		return await_version(c, version);
	return call_fail(c, MONGO_INVALID_OPTIONS,
			 "readConcern afterClusterTime value must not be greater than the current "
			 "clusterTime");
}

/* A member that is null is as if it were not there. */
static bool
find_given(struct str document, struct str name, struct bson_value *ret)
{
	return bson_find(document, name, ret) && ret->type != BSON_NULL &&
	       ret->type != BSON_UNDEFINED;
}

enum status
time_check_concern(struct call *c)
{
	struct bson_value concern, v;
	bool snapshot = false;

	if (!c->has_more || !find_given(c->body, STR("readConcern"), &concern))
		return STATUS_OK;
	if (concern.type != BSON_DOCUMENT)
		return call_type_mismatch(c, &concern, "type 'object'", "%s.readConcern",
					  c->command->name);
	if (c->in_transaction && !c->starts)
		return call_fail(c, MONGO_INVALID_OPTIONS,
				 "Only the first command in a transaction may specify a "
				 "readConcern");
	if (find_given(bson_text(&concern), STR("level"), &v)) {
		TRY(check_level(c, &v, &snapshot));
		c->linearizable = str_eq(bson_text(&v), STR("linearizable"));
		if (c->in_transaction && !snapshot && !str_eq(bson_text(&v), STR("local")) &&
		    !str_eq(bson_text(&v), STR("majority")))
			return call_fail(c, MONGO_INVALID_OPTIONS,
					 "The readConcern level of a transaction must be either "
					 "'local', 'majority' or 'snapshot'");
	}
	c->snapshot = snapshot && !c->in_transaction;
	if (c->snapshot && !(c->command->flags & COMMAND_SNAPSHOT))
		return call_fail(c, MONGO_INVALID_OPTIONS,
				 "Command %s does not support { readConcern: { level: "
				 "\"snapshot\" } }",
				 c->command->name);
	if (bson_find(bson_text(&concern), STR("afterClusterTime"), &v))
		TRY(check_after(c, &v));
	if (!bson_find(bson_text(&concern), STR("atClusterTime"), &v))
		return STATUS_OK;
	if (!snapshot)
		return call_fail(c, MONGO_INVALID_OPTIONS,
				 "readConcern.atClusterTime is only allowed with readConcern level "
				 "'snapshot'");
	if (v.type != BSON_TIMESTAMP)
		return call_type_mismatch(c, &v, "type 'timestamp'", "readConcern.atClusterTime");
	c->at_version = time_to_version((uint64_t)bson_integer(&v));
	if (c->at_version && !c->in_transaction)
		return STATUS_OK;
	return call_fail(c, MONGO_SNAPSHOT_TOO_OLD,
			 "Read timestamp is older than the oldest available timestamp: a "
			 "transaction reads the version of its first command");
}

bool
mongo_is_secondary(const struct mongo *mongo)
{
	return kv_follows(mongo->config.store);
}
