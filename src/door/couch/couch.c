/* The door: how it is made, and how each exchange comes in. */
#include "catalog/chores.h"
#include "catalog/shared.h"
#include "access/follow.h"
#include "access/settings.h"
#include "base/clear.h"
#include "base/err_clear.h"
#include "base/mem.h"
#include "base/metric.h"
#include "base/rand.h"
#include "door/couch/query/hook.h"
#include "door/couch/admin/access.h"
#include "door/couch/admin/endpoints.h"
#include "door/couch/admin/peruser.h"
#include "door/couch/admin/scrape.h"
#include "door/couch/admin/user_doc.h"
#include "door/couch/couch.h"
#include "door/couch/doc/validators.h"
#include "door/couch/route.h"
#include "door/couch/view/ahead.h"
#include "door/couch/view/known.h"
#include "door/couch/wire/cors.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/host.h"
#include "door/couch/wire/meter.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/request.h"
#include "kv/log.h"
#include "loop/wait.h"

static const char hex[] = "0123456789abcdef";

void
couch_follow_designs(void)
{
	rev_design_hook(query_design_changed);
	rev_follow(couch_is_user_doc, couch_user_changed);
}

struct couch *
couch_new(const struct couch_config *config)
{
	struct couch *c = mem_zalloc(sizeof(*c));
	uint8_t uuid[16];

	if (!c)
		return NULL;
	c->tallies = catalog_tallies_new();
	if (!c->tallies) {
		couch_free(c);
		return NULL;
	}
	catalog_tallies_share(c->tallies);
	couch_follow_designs();
	couch_users_upgrade_hashes();
	c->config = *config;
	rand_bytes(uuid, sizeof(uuid));
	for (size_t i = 0; i < sizeof(uuid); i++) {
		c->uuid[2 * i] = hex[uuid[i] >> 4];
		c->uuid[2 * i + 1] = hex[uuid[i] & 15];
	}
	return c;
}

enum status
couch_make_cookie(void *couch, struct str user, struct arena *arena, struct str *ret)
{
	const struct couch_config *config = &((struct couch *)couch)->config;
	const struct auth_client client = { .store = config->store };
	struct settings_held *held = settings_live_hold(config->live);
	enum status status = auth_make_known_cookie(people_of(held), user, &client, arena, ret);

	settings_held_unref(held);
	return status;
}

void
couch_free(struct couch *couch)
{
	if (!couch)
		return;
	if (couch->tallies == catalog_tallies_shared())
		catalog_tallies_share(NULL);
	catalog_tallies_free(couch->tallies);
	mem_free(couch);
}

enum status
couch_tend(struct couch *couch, bool *ret_more, struct err *err)
{
	return catalog_tallies_tend(couch->tallies, couch->config.store, false, ret_more, err);
}

/* ---- As a chore ---- */

enum {
	SETTINGS_PAUSE_MS = 5000,
	TEND_PAUSE_MS = 100, /* what is written counts against its range's size */
	TEND_MORE_MS = 20,
	TEND_FAILED_MS = 10 * 1000,
};

static enum status
tend_chore_run(void *couch, struct chore_turn *turn, struct err *err)
{
	return couch_tend(couch, &turn->more, err);
}

/*
 * Where other servers use the store, too: this one learns of changed settings by its requests, and
 * by this chore when there are none. The former secret of cookies holds from then on for a while.
 */
static enum status
settings_chore_run(void *arg, struct chore_turn *turn, struct err *err)
{
	struct couch *couch = arg;
	struct settings_held *cached = settings_live_hold(couch->config.live);
	struct settings_held *held = NULL;
	struct kv_tx *tx = NULL;
	enum status status;

	(void)turn;
	status = settings_live_take(couch->config.live, &cached, KV_TX_READ_ONLY, &held, &tx, err);
	kv_tx_free(tx);
	settings_held_unref(held);
	settings_held_unref(cached);
	return status;
}

void
couch_chores_add(struct couch *couch, struct chores *chores)
{
	chores_add(chores, &(struct chore){
				   .name = "tend_tallies",
				   .run = tend_chore_run,
				   .arg = couch,
				   .thread = CHORE_QUICK,
				   .writes = true,
				   .pause_ms = TEND_PAUSE_MS,
				   .more_ms = TEND_MORE_MS,
				   .failed_ms = TEND_FAILED_MS,
			   });
	if (kv_is_shared(couch->config.store))
		chores_add(chores, &(struct chore){
					   .name = "follow_settings",
					   .run = settings_chore_run,
					   .arg = couch,
					   .thread = CHORE_QUICK,
					   .pause_ms = SETTINGS_PAUSE_MS,
				   });
	couch_view_chores_add(couch, chores);
	couch_peruser_chores_add(couch, chores);
	couch->config.chores = chores;
}

void *
couch_loop_new(void *arg)
{
	struct couch *couch = arg;
	struct couch_loop *loop = mem_zalloc(sizeof(*loop));

	if (!loop)
		return NULL;
	loop->held = settings_live_hold(couch->config.live);
	rand_bytes(&loop->noise.state, sizeof(loop->noise.state));
	loop->cache = catalog_cache_new();
	loop->scratch = doc_scratch_new();
	loop->views = couch_view_cache_new();
	if (!loop->cache || !loop->scratch || !loop->views) {
		couch_loop_free(loop);
		return NULL;
	}
	catalog_cache_share(loop->cache, couch->tallies);
	return loop;
}

void
couch_loop_free(void *context)
{
	struct couch_loop *loop = context;

	if (!loop)
		return;
	couch_kept_table_release(&loop->validators);
	couch_kept_table_release(&loop->indexes);
	couch_view_cache_free(loop->views);
	catalog_cache_free(loop->cache);
	doc_scratch_free(loop->scratch);
	settings_held_unref(loop->held);
	mem_free(loop);
}

/* A client that can only send GET and POST names the method it means in a header of a POST. */
static void
couch_find_method(struct couch_req *r)
{
	struct str name = http_method(r->x);
	struct str override = http_request_header(r->x, STR("X-HTTP-Method-Override"));

	if (str_eq(name, STR("POST")) && override.ptr) {
		if (str_eq(override, STR("HEAD")) ||
		    couch_method_of(override) != COUCH_OTHER_METHOD)
			name = override;
	}
	if (str_eq(name, STR("HEAD"))) {
		r->head = true;
		name = STR("GET");
	}
	r->method = couch_method_of(name);
}

static bool
couch_is_request_id(struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		    c != '-' && c != '_')
			return false;
	}
	return s.len > 0 && s.len <= COUCH_REQUEST_ID_BYTES;
}

/*
 * Sets an id by which a client and a log can name the same request: the client's own, or a new one.
 */
static void
couch_set_request_id(struct couch_req *r)
{
	struct str given = http_request_header(r->x, STR("X-Couch-Request-ID"));
	uint64_t noise = rand_seq_next(&r->loop->noise);
	char id[10];

	for (size_t i = 0; i < sizeof(id); i++)
		id[i] = hex[noise >> (4 * i) & 15];
	http_set_header(r->x, STR("X-Couch-Request-ID"),
			couch_is_request_id(given) ? given : str_of(id, sizeof(id)));
	http_set_header(r->x, STR("X-CouchDB-Body-Time"), STR("0"));
}

/* Whoever reads a standby is told how old what it reads may be. */
static void
couch_set_standby(struct couch_req *r)
{
	struct kv_log_behind behind;
	char text[64];

	if (!kv_follows(r->couch->config.store))
		return;
	behind = kv_log_behind(r->couch->config.store);
	(void)snprintf(text, sizeof(text), "behind=%llu; seconds=%.3f",
		       (unsigned long long)behind.versions, (double)behind.ns / 1e9);
	http_set_header(r->x, STR("X-Frond-Standby"), str_from_cstr(text));
}

static enum status
couch_hold_settings(struct couch_req *r)
{
	enum kv_tx_kind kind = r->method == COUCH_GET ? KV_TX_READ_ONLY : KV_TX_READ_WRITE;
	enum status status = settings_live_take(r->couch->config.live, &r->loop->held, kind,
						&r->held, &r->begun, &r->fail.err);

	if (r->begun)
		r->begun_ns = clock_mono_ns();

	r->settings = settings_of(r->held->settings, &couch_setting_group);
	return status;
}

/* Refuses requests without a valid login if the settings demand one. */
static enum status
couch_require_valid_user(struct couch_req *r)
{
	bool required = r->settings->valid_user || r->settings->valid_user_but_up;

	if (r->user.name.len || !required)
		return STATUS_OK;
	if (r->parts_count == 1 && str_eq(r->parts[0], STR("_up")) &&
	    r->settings->valid_user_but_up)
		return STATUS_OK;
	/* Logging in itself needs no login. */
	if (r->parts_count == 1 && str_eq(r->parts[0], STR("_session")) && r->method == COUCH_POST)
		return STATUS_OK;
	return couch_fail_set(&r->fail, COUCH_ERROR_UNAUTHORIZED, "Authentication required.");
}

static void
couch_take_proxy_headers(struct couch_req *r, struct auth_client *client)
{
	const struct access_settings *access = settings_of(r->held->settings,
							   &access_setting_group);

	client->proxy_name = http_request_header(r->x, str_from_cstr(access->proxy_name));
	client->proxy_roles = http_request_header(r->x, str_from_cstr(access->proxy_roles));
	client->proxy_token = http_request_header(r->x, str_from_cstr(access->proxy_token));
}

/* Finds out who the request is from. */
static enum status
couch_check_user(struct couch_req *r)
{
	struct auth_client client = couch_auth_client(r);
	enum status status;

	client.ahead = couch_security_ahead;
	client.ahead_arg = r;
	if (auth_has_handler(people_of(r->held), AUTH_METHOD_PROXY))
		couch_take_proxy_headers(r, &client);
	status = auth_check(people_of(r->held), http_request_header(r->x, STR("Authorization")),
			    http_request_header(r->x, STR("Cookie")), &client, r->arena, &r->user,
			    &r->fail.err);
	r->audited = status != STATUS_OK || r->user.fresh;
	if (r->user.lacks_roles) {
		const struct err why = r->fail.err;

		return couch_fail_set(&r->fail, COUCH_ERROR_NOT_FOUND, "%s", why.text);
	}
	return status;
}

static enum status
couch_serve(struct couch_req *r)
{
	bool answered;

	if (!r->loop)
		return STATUS_NOMEM;
	/* There is no memory for another request, be it ever so small. */
	if (http_memory(r->x)->refused)
		return STATUS_LIMIT;
	couch_find_method(r);
	couch_set_request_id(r);
	couch_set_standby(r);
	TRY(couch_hold_settings(r));
	TRY(couch_check_host(r)); /* before a preflight is granted */
	TRY(couch_cors(r, &answered));
	if (answered)
		return STATUS_OK;
	/* A page may read why it is refused, since CORS comes first. */
	TRY(r->admitted);
	TRY(couch_req_parse(r));
	TRY(couch_check_user(r));
	if (r->user.name.len)
		TRY(ops_set_user(&r->op, r->user.name, !r->user.admin, &r->fail.err));
	if (r->method != COUCH_GET) {
		couch_security_keep(r);
		/* It would be held while the body comes, and be too old by then. */
		if (!http_body_has_come(r->x))
			couch_drop_begun(r);
	}
	TRY(couch_require_valid_user(r));
	TRY(couch_session_renew(r));
	return couch_route(r);
}

/*
 * Explains a failure for lack of memory, for which nobody has given a reason. What the request
 * alone needs too much of is a 413 that names the limit, since trying again would not help. Memory
 * that others have is a 503.
 */
static enum status
couch_explain_memory(struct couch_req *r, enum status status)
{
	const struct budget_part *memory = http_memory(r->x);

	if (status != STATUS_LIMIT && status != STATUS_NOMEM)
		return status;
	/* Code below this takes a failed allocation for a limit. */
	if (status == STATUS_NOMEM || (mem_shortages() != r->shortages && !arena_is_full(r->arena)))
		return couch_fail_set(&r->fail, COUCH_ERROR_BUSY, "out of memory");
	if (couch_fail_explains(&r->fail, STATUS_LIMIT) && !memory->refused)
		return status; /* it has been explained */
	if (arena_is_full(r->arena)) {
		METRIC_REFUSED("request_bytes");
		return couch_fail_set(
			&r->fail, COUCH_ERROR_TOO_LARGE,
			"the request needs too much memory: the limit, request_bytes, "
			"is %zu bytes",
			arena_limit_bytes(r->arena));
	}
	if (memory->exceeded) {
		METRIC_REFUSED("memory_bytes");
		return couch_fail_set(&r->fail, COUCH_ERROR_TOO_LARGE,
				      "the request needs more memory than this server has for all "
				      "requests: the limit, memory_bytes, is %zu bytes",
				      memory->budget->limit_bytes);
	}
	if (memory->refused) {
		METRIC_REFUSED("memory_bytes");
		return couch_fail_set(&r->fail, COUCH_ERROR_BUSY,
				      "The memory for requests, memory_bytes of %zu bytes, is in "
				      "use by others: try again later.",
				      memory->budget->limit_bytes);
	}
	METRIC_REFUSED("request_bytes");
	return couch_fail_set(&r->fail, COUCH_ERROR_TOO_LARGE,
			      "the request needs too much memory: the limits are %zu bytes for its "
			      "own, request_bytes, and %d bytes for a row of its answer",
			      arena_limit_bytes(r->arena), COUCH_ROW_BYTES);
}

void
couch_handle_metrics(struct http_exchange *x, void *arg)
{
	(void)arg;
	if (couch_scrape_apart(x) != STATUS_OK)
		http_abort(x);
}

/*
 * The operation ends before a failure is answered: whoever reads the answer finds its line in the
 * log. There is none where an earlier one of the request tells why it is refused.
 */
static void
couch_end_op(struct couch_req *r, enum status status)
{
	int code = status == STATUS_OK ? 0 : couch_fail_answer(status, &r->fail).code;
	struct ops_refusal refusal;

	if (r->audited || (code != 401 && code != 403)) {
		ops_end(&r->op, NULL);
		return;
	}
	refusal = (struct ops_refusal){ .by = couch_audit_by(r),
					.on = http_path(r->x),
					.status = code == 401 ? "401" : "403" };
	ops_end(&r->op, &refusal);
}

/* True if an exchange that has failed cannot be answered. */
static bool
couch_is_to_be_cut(struct http_exchange *x)
{
	if (http_started(x))
		return true;
	return event_is_set(http_closed_event(x)) && !http_is_interrupted(x);
}

/* What a request begins with. Bytes behind the end of the text of its failure are not set. */
static void
couch_req_init(struct couch_req *r, struct http_exchange *x, struct couch *couch)
{
	CLEAR_BEFORE(r, fail);
	r->x = x;
	r->couch = couch;
	r->loop = http_loop_context(x);
	r->arena = http_arena(x);
	r->rights_seen = people_news_count(couch->config.news);
	r->fail.error = 0;
	err_clear(&r->fail.err);
	r->fail.reason = (struct str){ 0 };
	r->audited = false;
	r->shortages = mem_shortages();
}

void
couch_handle(struct http_exchange *x, void *couch)
{
	enum status status;
	struct couch_req r;

	couch_req_init(&r, x, couch);
	couch_meter_begin(&r);
	status = couch_serve(&r);
	couch_end_op(&r, status);
	couch_drop_begun(&r);
	catalog_db_unref(r.db);
	couch_validators_unref(r.validators);
	couch_kept_unref(r.indexes);
	if (status != STATUS_OK && couch_is_to_be_cut(x)) {
		/* If the client has gone, nothing is wrong here, and nobody is told. */
		if (status != STATUS_CANCELLED && !event_is_set(http_closed_event(x)))
			couch_fail_log_cut(status, &r.fail);
		http_abort(x);
	} else if (status != STATUS_OK && http_is_interrupted(x)) {
		couch_reply_fail(&r, couch_fail_set(&r.fail, COUCH_ERROR_UNAVAILABLE,
						    "An administrator has ended the request."));
	} else if (status != STATUS_OK) {
		couch_reply_fail(&r, couch_explain_memory(&r, status));
	}
	couch_meter_end(&r);
	settings_held_unref(r.held);
}
