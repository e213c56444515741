/* The door: made once, entered by every exchange. */
#include "base/mem.h"
#include "base/rand.h"
#include "door/couch/couch_int.h"

static const char hex[] = "0123456789abcdef";

struct couch *
couch_new(const struct couch_config *config)
{
	struct couch *c = mem_zalloc(sizeof(*c));
	uint8_t uuid[16];

	if (!c)
		return NULL;
	c->tallies = rev_tallies_new();
	if (!c->tallies) {
		mem_free(c);
		return NULL;
	}
	c->config = *config;
	c->settings = couch_settings_fixed(config);
	if (!c->settings) {
		rev_tallies_free(c->tallies);
		mem_free(c);
		return NULL;
	}
	pthread_mutex_init(&c->lock, NULL);
	rand_bytes(uuid, sizeof(uuid));
	for (size_t i = 0; i < sizeof(uuid); i++) {
		c->uuid[2 * i] = hex[uuid[i] >> 4];
		c->uuid[2 * i + 1] = hex[uuid[i] & 15];
	}
	return c;
}

void
couch_free(struct couch *couch)
{
	if (!couch)
		return;
	couch_settings_unref(couch->settings);
	pthread_mutex_destroy(&couch->lock);
	rev_tallies_free(couch->tallies);
	mem_free(couch);
}

enum status
couch_tend(struct couch *couch, bool *ret_more, struct err *err)
{
	return rev_tallies_tend(couch->tallies, couch->config.store, false, ret_more, err);
}

void *
couch_loop_new(void *arg)
{
	struct couch *couch = arg;
	struct couch_loop *loop = mem_zalloc(sizeof(*loop));

	if (!loop)
		return NULL;
	pthread_mutex_lock(&couch->lock);
	loop->settings = couch_settings_ref(couch->settings);
	pthread_mutex_unlock(&couch->lock);
	rand_bytes(&loop->noise.state, sizeof(loop->noise.state));
	loop->cache = rev_cache_new();
	loop->room = doc_room_new();
	if (!loop->cache || !loop->room) {
		couch_loop_free(loop);
		return NULL;
	}
	rev_cache_share(loop->cache, couch->tallies);
	return loop;
}

void
couch_loop_free(void *context)
{
	struct couch_loop *loop = context;

	if (!loop)
		return;
	rev_cache_free(loop->cache);
	doc_room_free(loop->room);
	couch_settings_unref(loop->settings);
	mem_free(loop);
}

static enum couch_method
method_of(struct str name)
{
	static const char *const names[COUCH_METHOD_COUNT] = {
		[COUCH_GET] = "GET",       [COUCH_PUT] = "PUT",   [COUCH_POST] = "POST",
		[COUCH_DELETE] = "DELETE", [COUCH_COPY] = "COPY", [COUCH_PATCH] = "PATCH",
	};

	for (size_t i = 0; i < COUCH_METHOD_COUNT; i++) {
		if (str_eq(name, str_from_cstr(names[i])))
			return (enum couch_method)i;
	}
	return COUCH_OTHER_METHOD;
}

/* Clients that know only GET and POST may say what they mean in a header of a POST. */
static void
find_method(struct couch_req *r)
{
	struct str name = http_method(r->x);
	struct str override = http_request_header(r->x, STR("X-HTTP-Method-Override"));

	if (str_eq(name, STR("POST")) && override.ptr) {
		if (str_eq(override, STR("HEAD")) || method_of(override) != COUCH_OTHER_METHOD)
			name = override;
	}
	if (str_eq(name, STR("HEAD"))) {
		r->head = true;
		name = STR("GET");
	}
	r->method = method_of(name);
}

static bool
is_token(struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		    c != '-' && c != '_')
			return false;
	}
	return s.len > 0 && s.len <= COUCH_REQUEST_ID_BYTES;
}

/* By which a client and a log may speak of the same request: the client's own, or a new one. */
static void
set_request_id(struct couch_req *r)
{
	struct str given = http_request_header(r->x, STR("X-Couch-Request-ID"));
	uint64_t noise = rand_seq_next(&r->loop->noise);
	char id[10];

	for (size_t i = 0; i < sizeof(id); i++)
		id[i] = hex[noise >> (4 * i) & 15];
	http_set_header(r->x, STR("X-Couch-Request-ID"),
			is_token(given) ? given : str_of(id, sizeof(id)));
	http_set_header(r->x, STR("X-CouchDB-Body-Time"), STR("0"));
}

static enum status
serve(struct couch_req *r)
{
	bool answered;

	if (!r->loop)
		return STATUS_NOMEM;
	find_method(r);
	set_request_id(r);
	TRY(couch_settings_take(r));
	TRY(couch_cors(r, &answered));
	if (answered)
		return STATUS_OK;
	TRY(couch_req_parse(r));
	TRY(auth_check(r->settings->auth, http_request_header(r->x, STR("Authorization")),
		       http_request_header(r->x, STR("Cookie")), r->arena, &r->user, &r->fail.err));
	TRY(couch_session_renew(r));
	return couch_route(r);
}

/* What fails for the lack of memory that others have now is worth trying again. */
static enum status
explain_memory(struct couch_req *r, enum status status)
{
	const struct budget_part *memory = http_memory(r->x);

	if (status != STATUS_LIMIT && status != STATUS_NOMEM)
		return status;
	if (memory->exceeded)
		return couch_fail_set(&r->fail, COUCH_ERROR_TOO_LARGE,
				      "the request needs more memory than this server has for all");
	if (!memory->refused)
		return status;
	http_set_header(r->x, STR("Retry-After"), STR(COUCH_RETRY_AFTER_S));
	return couch_fail_set(&r->fail, COUCH_ERROR_UNAVAILABLE,
			      "The memory for requests is in use by others: try again later.");
}

void
couch_handle(struct http_exchange *x, void *couch)
{
	struct couch_req r = {
		.x = x,
		.couch = couch,
		.loop = http_loop_context(x),
		.arena = http_arena(x),
	};
	enum status status = serve(&r);

	rev_db_unref(r.db);
	if (status != STATUS_OK && (http_started(x) || event_is_set(http_closed_event(x))))
		http_abort(x);
	else if (status != STATUS_OK)
		couch_reply_fail(&r, explain_memory(&r, status));
	couch_settings_unref(r.settings);
}
