/*
 * What requests go by: the settings that the server was started with, and over them those in the
 * store, which all servers of it share. A change makes new ones; requests under way keep theirs.
 */
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "door/couch/couch_int.h"

enum {
	SETTINGS_ARENA_BYTES = 4 << 20, /* all settings in the store, while they are read */
	SECRET_BYTES = 16,              /* of a new secret; twice as many digits */
};

void
couch_config_set(struct couch_config *ret, const struct config *config)
{
	ret->doc_bytes = config->doc_bytes;
	ret->body_bytes = config->body_bytes;
	ret->changes_timeout_ms = config->changes_timeout_ms;
	ret->att_bytes = config->att_bytes;
	ret->gzip_level = config->gzip_level ? (int)config->gzip_level : -1;
	ret->gzip_types = config->gzip_types;
	ret->backup_dir = config->backup_dir;
	/* The settings have let no other name in. */
	if (!config->scheme ||
	    rev_scheme_parse(str_from_cstr(config->scheme), &ret->scheme) != STATUS_OK)
		ret->scheme = REV_SCHEME_DEFAULT;
	ret->answer_gzip_level = (int)config->answer_gzip_level;
	ret->cors = (struct couch_cors_config){
		.enabled = config->cors.enabled,
		.credentials = config->cors.credentials,
		.origins = config->cors.origins,
		.methods = config->cors.methods,
		.headers = config->cors.headers,
		.exposed_headers = config->cors.exposed_headers,
		.max_age_s = config->cors.max_age_s,
	};
}

static void
fill_defaults(struct couch_config *c)
{
	if (!c->scheme)
		c->scheme = REV_SCHEME_DEFAULT;
	if (!c->doc_bytes)
		c->doc_bytes = DOC_LIMIT_DEFAULT_BYTES;
	if (!c->body_bytes)
		c->body_bytes = COUCH_BODY_BYTES;
	if (!c->changes_timeout_ms)
		c->changes_timeout_ms = COUCH_CHANGES_TIMEOUT_MS;
	if (!c->gzip_level)
		c->gzip_level = COUCH_GZIP_LEVEL;
	if (!c->gzip_types)
		c->gzip_types = COUCH_GZIP_TYPES;
	if (!c->cors.max_age_s)
		c->cors.max_age_s = COUCH_CORS_MAX_AGE_S;
}

/* ---- References ---- */

struct couch_settings *
couch_settings_ref(struct couch_settings *s)
{
	atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
	return s;
}

void
couch_settings_unref(struct couch_settings *s)
{
	if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
		return;
	if (!s->fixed) {
		auth_free(s->auth);
		config_fini(&s->config);
	}
	mem_free(s);
}

struct couch_settings *
couch_settings_fixed(const struct couch_config *config)
{
	struct couch_settings *s = mem_zalloc(sizeof(*s));

	if (!s)
		return NULL;
	atomic_init(&s->refs, 1);
	s->door = *config;
	s->auth = config->auth;
	s->fixed = true;
	fill_defaults(&s->door);
	return s;
}

enum status
couch_make_cookie(void *couch, struct str user, struct arena *arena, struct str *ret)
{
	struct couch *c = couch;
	struct couch_settings *s;
	enum status status;

	pthread_mutex_lock(&c->lock);
	s = couch_settings_ref(c->settings);
	pthread_mutex_unlock(&c->lock);
	status = auth_make_cookie(s->auth, user, arena, ret);
	couch_settings_unref(s);
	return status;
}

/* ---- Making them ---- */

/* Nobody may leave a server without administrators that more than this machine can reach. */
static enum status
check_in_charge(const struct config *config, struct err *err)
{
	if (config->admins_count || config_is_loopback(config))
		return STATUS_OK;
	return err_set(err, STATUS_INVALID,
		       "without an administrator everybody could do everything, and this server "
		       "listens on %s",
		       config->host);
}

/* Those of the store over those that the server was started with. */
static enum status
overlay(struct config *config, const struct rev_settings *stored, struct err *err)
{
	for (size_t i = 0; i < stored->count; i++) {
		const struct rev_setting *item = &stored->items[i];
		enum status status = config_set_live(config, item->section, item->name, item->text,
						     err);

		/* What only others know, and what this server's command line has fixed. */
		if (status != STATUS_NOT_FOUND && status != STATUS_FORBIDDEN)
			TRY(status);
	}
	return check_in_charge(config, err);
}

static enum status
make(const struct couch *couch, const struct rev_settings *stored, struct couch_settings **ret,
     struct err *err)
{
	struct couch_settings *s = mem_zalloc(sizeof(*s));
	enum status status;

	if (!s)
		return err_set(err, STATUS_NOMEM, "out of memory");
	atomic_init(&s->refs, 1);
	status = config_copy(couch->config.started, &s->config);
	if (status == STATUS_OK)
		status = overlay(&s->config, stored, err);
	if (status == STATUS_OK)
		status = config_make_auth(&s->config, &s->auth, err);
	if (status != STATUS_OK) {
		couch_settings_unref(s);
		return status;
	}
	memcpy(s->version, stored->version, sizeof(s->version));
	s->door = couch->config;
	s->door.auth = s->auth;
	couch_config_set(&s->door, &s->config);
	fill_defaults(&s->door);
	*ret = s;
	return STATUS_OK;
}

/* ---- The newest ---- */

/* Puts them in place, unless newer ones are there already. Takes the reference. */
static void
publish(struct couch *couch, struct couch_settings *made)
{
	struct couch_settings *old = made;

	pthread_mutex_lock(&couch->lock);
	if (couch->settings->fixed ||
	    memcmp(made->version, couch->settings->version, sizeof(made->version)) >= 0) {
		old = couch->settings;
		made->generation = old->generation + 1;
		couch->settings = made;
		atomic_store_explicit(&couch->generation, made->generation, memory_order_release);
		log_set_level(made->config.log_level);
	}
	pthread_mutex_unlock(&couch->lock);
	couch_settings_unref(old);
}

struct reading {
	struct arena *arena;
	struct rev_settings stored;
};

static enum status
read_body(struct kv_tx *tx, void *arg)
{
	struct reading *r = arg;

	arena_clear(r->arena);
	return rev_settings_read(tx, r->arena, &r->stored);
}

enum status
couch_settings_reload(struct couch *couch, struct err *err)
{
	struct reading r = { .arena = arena_new(SETTINGS_ARENA_BYTES) };
	struct couch_settings *made;
	enum status status;

	if (!r.arena)
		return err_set(err, STATUS_NOMEM, "out of memory");
	status = kv_run_read(couch->config.store, read_body, &r, err);
	if (status == STATUS_OK)
		status = make(couch, &r.stored, &made, err);
	arena_free(r.arena);
	if (status == STATUS_OK)
		publish(couch, made);
	return status;
}

static struct couch_settings *
newest_of_loop(struct couch_req *r)
{
	struct couch_loop *loop = r->loop;
	struct couch *couch = r->couch;

	if (atomic_load_explicit(&couch->generation, memory_order_acquire) !=
	    loop->settings->generation) {
		couch_settings_unref(loop->settings);
		pthread_mutex_lock(&couch->lock);
		loop->settings = couch_settings_ref(couch->settings);
		pthread_mutex_unlock(&couch->lock);
	}
	return couch_settings_ref(loop->settings);
}

static enum status
version_body(struct kv_tx *tx, void *arg)
{
	return kv_get_metadata_version(tx, arg);
}

enum status
couch_settings_take(struct couch_req *r)
{
	uint8_t version[KV_VERSIONSTAMP_TX_BYTES];
	enum status status;

	r->settings = newest_of_loop(r);
	if (r->settings->fixed || !kv_is_shared(r->couch->config.store))
		return STATUS_OK;
	TRY(kv_run_read(r->couch->config.store, version_body, version, &r->fail.err));
	if (memcmp(version, r->settings->version, sizeof(version)) <= 0)
		return STATUS_OK;
	status = couch_settings_reload(r->couch, &r->fail.err);
	if (status != STATUS_OK)
		log_event(LOG_LEVEL_ERROR, "settings_refused", "reason=\"%s\"", r->fail.err.text);
	TRY(status);
	couch_settings_unref(r->settings);
	r->settings = newest_of_loop(r);
	return STATUS_OK;
}

/* ---- The start ---- */

/* A store's secret, unless there is one: cookies are then valid on all servers, and for longer. */
static enum status
secret_body(struct kv_tx *tx, void *arg)
{
	struct reading *r = arg;
	uint8_t noise[SECRET_BYTES];
	struct buf AUTO(buf_release) digits = BUF_INIT(2 * SECRET_BYTES);
	struct rev_setting secret = { STR("chttpd_auth"), STR("secret"), STR("") };

	TRY(read_body(tx, r));
	for (size_t i = 0; i < r->stored.count; i++)
		if (str_eq(r->stored.items[i].section, secret.section) &&
		    str_eq(r->stored.items[i].name, secret.name))
			return STATUS_OK;
	rand_bytes(noise, sizeof(noise));
	buf_append_hex(&digits, str_of(noise, sizeof(noise)));
	TRY(buf_status(&digits));
	secret.text = buf_str(&digits);
	return rev_setting_put(tx, &secret, NULL);
}

enum status
couch_start(struct couch *couch, struct err *err)
{
	struct reading r = { 0 };
	enum status status = STATUS_OK;

	if (!couch->config.started)
		return STATUS_OK;
	if (!couch->config.started->secret.len) {
		r.arena = arena_new(SETTINGS_ARENA_BYTES);
		if (!r.arena)
			return err_set(err, STATUS_NOMEM, "out of memory");
		status = kv_run(couch->config.store, secret_body, &r, NULL, err);
		arena_free(r.arena);
	}
	return status == STATUS_OK ? couch_settings_reload(couch, err) : status;
}

/* ---- Showing and checking them ---- */

struct listing {
	struct arena *arena;
	struct rev_setting *items;
	size_t count;
	size_t cap;
};

static enum status
add(void *arg, struct str section, struct str name, struct str text)
{
	struct listing *l = arg;
	struct rev_setting *grown = arena_grow(l->arena, l->items, l->count, &l->cap,
					       sizeof(*l->items));
	struct rev_setting item = { arena_dup(l->arena, section), arena_dup(l->arena, name),
				    arena_dup(l->arena, text) };

	if (!grown || !item.section.ptr || !item.name.ptr || !item.text.ptr)
		return STATUS_LIMIT;
	l->items = grown;
	l->items[l->count++] = item;
	return STATUS_OK;
}

static int
compare(const void *a, const void *b)
{
	const struct rev_setting *x = a;
	const struct rev_setting *y = b;
	int order = str_cmp(x->section, y->section);

	return order ? order : str_cmp(x->name, y->name);
}

/* The settings of this server as they are in the transaction, to be given back by config_fini(). */
static enum status
config_in(struct couch_req *r, struct kv_tx *tx, struct rev_settings *ret_stored,
	  struct config *ret)
{
	enum status status;

	if (!r->couch->config.started)
		return couch_fail_set(&r->fail, COUCH_ERROR_NOT_IMPLEMENTED,
				      "This server's settings are fixed.");
	TRY(rev_settings_read(tx, r->arena, ret_stored));
	TRY(config_copy(r->couch->config.started, ret));
	status = overlay(ret, ret_stored, &r->fail.err);
	if (status != STATUS_OK)
		config_fini(ret);
	return status;
}

static enum status
list(struct config *config, const struct rev_settings *stored, struct listing *l)
{
	TRY(config_each(config, add, l));
	for (size_t i = 0; i < stored->count; i++) {
		const struct rev_setting *item = &stored->items[i];

		if (item->text.ptr && config_set_live(config, item->section, item->name, item->text,
						      NULL) == STATUS_NOT_FOUND)
			TRY(add(l, item->section, item->name, item->text));
	}
	if (l->count)
		qsort(l->items, l->count, sizeof(*l->items), compare);
	return STATUS_OK;
}

enum status
couch_settings_list(struct couch_req *r, struct kv_tx *tx, struct rev_setting **ret_items,
		    size_t *ret_count)
{
	struct listing l = { .arena = r->arena };
	struct rev_settings stored;
	struct config config;
	enum status status;

	TRY(config_in(r, tx, &stored, &config));
	status = list(&config, &stored, &l);
	config_fini(&config);
	*ret_items = l.items;
	*ret_count = l.count;
	return status;
}

enum status
couch_settings_check(struct couch_req *r, struct kv_tx *tx, const struct rev_setting *change)
{
	struct auth *auth = NULL;
	struct rev_settings stored;
	struct config config;
	enum status status;

	TRY(config_in(r, tx, &stored, &config));
	status = config_set_live(&config, change->section, change->name, change->text,
				 &r->fail.err);
	if (status == STATUS_NOT_FOUND)
		status = STATUS_OK;
	if (status == STATUS_OK)
		status = check_in_charge(&config, &r->fail.err);
	if (status == STATUS_OK)
		status = config_make_auth(&config, &auth, &r->fail.err);
	auth_free(auth);
	config_fini(&config);
	return status;
}
