#include "server/config.h"

#include <errno.h>
#include <ini.h>
#include <stdarg.h>
#include <stddef.h>

enum {
	CONFIG_ARENA_BYTES = 1024 * 1024,
};

enum value_kind {
	VALUE_TEXT,   /* const char * */
	VALUE_SIZE,   /* size_t, at least `least` */
	VALUE_U64,    /* likewise */
	VALUE_UINT,   /* unsigned, likewise */
	VALUE_PORT,   /* uint16_t, 0 for any free one */
	VALUE_LEVEL,  /* enum log_level */
	VALUE_BOOL,   /* "true" or "false" */
	VALUE_SECRET, /* struct str */
	VALUE_SCHEME, /* const char *: "packed" or "exploded" */
};

struct setting {
	const char *section;
	const char *name;
	enum value_kind kind;
	size_t offset; /* in struct config */
	uint64_t least;
	uint64_t most;
};

static const struct setting settings[] = {
	{ "chttpd", "bind_address", VALUE_TEXT, offsetof(struct config, host), 0, 0 },
	{ "chttpd", "port", VALUE_PORT, offsetof(struct config, port), 0, 65535 },
	{ "chttpd", "max_connections", VALUE_SIZE, offsetof(struct config, server.max_connections),
	  1, 1000000 },
	{ "chttpd", "max_http_request_size", VALUE_SIZE, offsetof(struct config, body_bytes), 1024,
	  UINT64_C(4) << 30 },
	{ "chttpd", "changes_timeout", VALUE_U64, offsetof(struct config, changes_timeout_ms), 1,
	  3600000 },
	{ "chttpd_auth", "secret", VALUE_SECRET, offsetof(struct config, secret), 0, 0 },
	{ "couchdb", "max_document_size", VALUE_SIZE, offsetof(struct config, doc_bytes), 1,
	  8000000 },
	{ "couchdb", "max_attachment_size", VALUE_U64, offsetof(struct config, att_bytes), 1,
	  UINT64_C(1) << 50 },
	{ "attachments", "compression_level", VALUE_UINT, offsetof(struct config, gzip_level), 0,
	  9 },
	{ "attachments", "compressible_types", VALUE_TEXT, offsetof(struct config, gzip_types), 0,
	  0 },
	{ "chttpd", "enable_cors", VALUE_BOOL, offsetof(struct config, cors.enabled), 0, 0 },
	{ "cors", "origins", VALUE_TEXT, offsetof(struct config, cors.origins), 0, 0 },
	{ "cors", "credentials", VALUE_BOOL, offsetof(struct config, cors.credentials), 0, 0 },
	{ "cors", "methods", VALUE_TEXT, offsetof(struct config, cors.methods), 0, 0 },
	{ "cors", "headers", VALUE_TEXT, offsetof(struct config, cors.headers), 0, 0 },
	{ "cors", "exposed_headers", VALUE_TEXT, offsetof(struct config, cors.exposed_headers), 0,
	  0 },
	{ "cors", "max_age", VALUE_U64, offsetof(struct config, cors.max_age_s), 1, 31536000 },
	{ "replicator", "enabled", VALUE_BOOL, offsetof(struct config, replicator.enabled), 0, 0 },
	{ "replicator", "max_jobs", VALUE_UINT, offsetof(struct config, replicator.max_jobs), 1,
	  10000 },
	{ "replicator", "max_churn", VALUE_UINT, offsetof(struct config, replicator.max_churn), 1,
	  10000 },
	{ "replicator", "max_history", VALUE_UINT, offsetof(struct config, replicator.max_history),
	  1, 100 },
	{ "replicator", "interval", VALUE_U64, offsetof(struct config, replicator.interval_ms), 100,
	  86400000 },
	{ "replicator", "backoff", VALUE_U64, offsetof(struct config, replicator.backoff_ms), 1,
	  86400000 },
	{ "replicator", "health_threshold", VALUE_UINT,
	  offsetof(struct config, replicator.health_s), 1, 86400 },
	{ "replicator", "worker_processes", VALUE_UINT,
	  offsetof(struct config, replicator.worker_processes), 1, 32 },
	{ "replicator", "worker_batch_size", VALUE_UINT,
	  offsetof(struct config, replicator.worker_batch_size), 1, 10000 },
	{ "replicator", "http_connections", VALUE_UINT,
	  offsetof(struct config, replicator.http_connections), 1, 1000 },
	{ "replicator", "connection_timeout", VALUE_U64,
	  offsetof(struct config, replicator.connection_timeout_ms), 100, 86400000 },
	{ "replicator", "retries_per_request", VALUE_UINT,
	  offsetof(struct config, replicator.retries_per_request), 0, 100 },
	{ "replicator", "use_checkpoints", VALUE_BOOL,
	  offsetof(struct config, replicator.use_checkpoints), 0, 0 },
	{ "replicator", "use_bulk_get", VALUE_BOOL,
	  offsetof(struct config, replicator.use_bulk_get), 0, 0 },
	{ "replicator", "checkpoint_interval", VALUE_U64,
	  offsetof(struct config, replicator.checkpoint_interval_ms), 100, 86400000 },
	{ "replicator", "valid_endpoint_protocols", VALUE_TEXT,
	  offsetof(struct config, replicator.endpoint_protocols), 0, 0 },
	{ "replicator", "verify_ssl_certificates", VALUE_BOOL,
	  offsetof(struct config, replicator.verify_certificates), 0, 0 },
	{ "replicator", "ssl_trusted_certificates_file", VALUE_TEXT,
	  offsetof(struct config, replicator.trusted_file), 0, 0 },
	{ "replicator", "cert_file", VALUE_TEXT, offsetof(struct config, replicator.cert_file), 0,
	  0 },
	{ "replicator", "key_file", VALUE_TEXT, offsetof(struct config, replicator.key_file), 0,
	  0 },
	{ "replicator", "password", VALUE_TEXT, offsetof(struct config, replicator.key_password), 0,
	  0 },
	{ "frond", "answer_gzip_level", VALUE_UINT, offsetof(struct config, answer_gzip_level), 0,
	  9 },
	{ "log", "level", VALUE_LEVEL, offsetof(struct config, log_level), 0, 0 },
	{ "frond", "scheme", VALUE_SCHEME, offsetof(struct config, scheme), 0, 0 },
	{ "frond", "store", VALUE_TEXT, offsetof(struct config, store), 0, 0 },
	{ "frond", "backup_dir", VALUE_TEXT, offsetof(struct config, backup_dir), 0, 0 },
	{ "frond", "utils_dir", VALUE_TEXT, offsetof(struct config, utils_dir), 0, 0 },
	{ "frond", "cache_bytes", VALUE_U64, offsetof(struct config, cache_bytes), 1 << 20,
	  UINT64_C(1) << 50 },
	{ "frond", "loops", VALUE_UINT, offsetof(struct config, server.loops), 1, 1024 },
	{ "frond", "pool_threads", VALUE_UINT, offsetof(struct config, server.pool_threads), 1,
	  1024 },
	{ "frond", "header_bytes", VALUE_SIZE, offsetof(struct config, server.header_bytes), 1024,
	  16 << 20 },
	{ "frond", "request_bytes", VALUE_SIZE, offsetof(struct config, server.request_bytes),
	  1 << 20, UINT64_C(64) << 30 },
	{ "frond", "memory_bytes", VALUE_SIZE, offsetof(struct config, server.memory_bytes),
	  8 << 20, UINT64_C(1) << 40 },
	{ "frond", "memory_timeout_ms", VALUE_U64,
	  offsetof(struct config, server.memory_timeout_ms), 1, 86400000 },
	{ "frond", "output_bytes", VALUE_SIZE, offsetof(struct config, server.output_bytes), 4096,
	  1 << 30 },
	{ "frond", "header_timeout_ms", VALUE_U64,
	  offsetof(struct config, server.header_timeout_ms), 1, 86400000 },
	{ "frond", "idle_timeout_ms", VALUE_U64, offsetof(struct config, server.idle_timeout_ms), 1,
	  86400000 },
	{ "frond", "body_timeout_ms", VALUE_U64, offsetof(struct config, server.body_timeout_ms), 1,
	  86400000 },
	{ "frond", "drain_timeout_ms", VALUE_U64, offsetof(struct config, server.drain_timeout_ms),
	  1, 86400000 },
};

/* What config_set_live() may change, administrators aside. */
static const struct {
	const char *section;
	const char *name; /* NULL: all of the section */
} live[] = {
	{ "attachments", NULL },     { "chttpd", "changes_timeout" },
	{ "chttpd", "enable_cors" }, { "chttpd", "max_http_request_size" },
	{ "chttpd_auth", "secret" }, { "cors", NULL },
	{ "couchdb", NULL },         { "frond", "answer_gzip_level" },
	{ "frond", "scheme" },       { "log", "level" },
};

enum {
	SETTINGS_COUNT = sizeof(settings) / sizeof(settings[0])
};

static void
set_defaults(struct config *c)
{
	*c = (struct config){
		.store = CONFIG_STORE,
		.host = CONFIG_HOST,
		.port = CONFIG_PORT,
		.log_level = LOG_LEVEL_INFO,
		.gzip_level = CONFIG_GZIP_LEVEL,
		.answer_gzip_level = CONFIG_ANSWER_GZIP_LEVEL,
		.replicator = {
			.enabled = true,
			.max_jobs = 500,
			.max_churn = 20,
			.max_history = 20,
			.interval_ms = 60 * 1000,
			.backoff_ms = 30 * 1000,
			.health_s = 120,
			.worker_processes = 4,
			.worker_batch_size = 500,
			.http_connections = 20,
			.connection_timeout_ms = 30 * 1000,
			.retries_per_request = 5,
			.use_checkpoints = true,
			.use_bulk_get = true,
			.checkpoint_interval_ms = 30 * 1000,
			.endpoint_protocols = "http,https",
		},
	};
}

enum status
config_init(struct config *c)
{
	set_defaults(c);
	c->arena = arena_new(CONFIG_ARENA_BYTES);
	return c->arena ? STATUS_OK : STATUS_NOMEM;
}

void
config_fini(struct config *c)
{
	arena_free(c->arena);
	*c = (struct config){ 0 };
}

/* ---- Single settings ---- */

static enum status
copy_text(struct config *c, struct str text, const char **ret, struct err *err)
{
	struct str copy = arena_dup(c->arena, text);

	if (!copy.ptr)
		return err_set(err, STATUS_NOMEM, "out of memory");
	*ret = copy.ptr;
	return STATUS_OK;
}

enum status
config_set_store(struct config *c, const char *url, struct err *err)
{
	return copy_text(c, str_from_cstr(url), &c->store, err);
}

enum status
config_set_listen(struct config *c, const char *host_port, struct err *err)
{
	const char *colon = strrchr(host_port, ':');
	struct str host;
	uint64_t port;

	if (!colon || colon == host_port || !str_to_u64(str_from_cstr(colon + 1), &port) ||
	    port > 65535)
		return err_set(err, STATUS_INVALID, "\"%s\" is not HOST:PORT", host_port);
	host = str_of(host_port, (size_t)(colon - host_port));
	if (host.len > 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']')
		host = str_of(host.ptr + 1, host.len - 2);
	else if (memchr(host.ptr, ':', host.len))
		return err_set(err, STATUS_INVALID,
			       "\"%s\": an IPv6 address needs brackets, as in [::1]:5984",
			       host_port);
	TRY(copy_text(c, host, &c->host, err));
	c->port = (uint16_t)port;
	return STATUS_OK;
}

enum status
config_set_admin(struct config *c, struct str name, struct str password, bool fixed,
		 struct err *err)
{
	struct config_admin *admin = NULL;
	struct str password_copy;
	struct str name_copy;

	for (size_t i = 0; i < c->admins_count && !admin; i++)
		if (str_eq(c->admins[i].name, name))
			admin = &c->admins[i];
	if (!admin && c->admins_count == AUTH_ADMINS_LIMIT)
		return err_set(err, STATUS_LIMIT, "more than %d administrators", AUTH_ADMINS_LIMIT);
	name_copy = arena_dup(c->arena, name);
	password_copy = arena_dup(c->arena, password);
	if (!name_copy.ptr || !password_copy.ptr)
		return err_set(err, STATUS_NOMEM, "out of memory");
	if (!admin)
		admin = &c->admins[c->admins_count++];
	*admin = (struct config_admin){ name_copy, password_copy, fixed };
	return STATUS_OK;
}

bool
config_is_loopback(const struct config *c)
{
	return strncmp(c->host, "127.", 4) == 0 || strcmp(c->host, "::1") == 0 ||
	       strcmp(c->host, "localhost") == 0;
}

void
config_listen_text(const struct config *c, char *ret, size_t n)
{
	const char *host = strcmp(c->host, "localhost") == 0 ? "127.0.0.1" : c->host;

	snprintf(ret, n, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, (unsigned)c->port);
}

/* ---- The file ---- */

struct reading {
	struct config *config;
	FILE *file;
	const char *name;
	size_t line;
	struct err *err;
	enum status failed; /* of the first thing that was wrong */
};

static void fail(struct reading *r, enum status status, const char *fmt, ...) PRINTF(3, 4);

static void
fail(struct reading *r, enum status status, const char *fmt, ...)
{
	char text[ERR_TEXT_BYTES];
	va_list args;

	if (r->failed != STATUS_OK)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	r->failed = err_set(r->err, status, "%s:%zu: %s", r->name, r->line, text);
}

static const struct {
	const char *name; /* the first of a level is its own, the others are CouchDB's */
	enum log_level level;
} levels[] = {
	{ "debug", LOG_LEVEL_DEBUG },    { "info", LOG_LEVEL_INFO },
	{ "notice", LOG_LEVEL_INFO },    { "warn", LOG_LEVEL_WARN },
	{ "warning", LOG_LEVEL_WARN },   { "error", LOG_LEVEL_ERROR },
	{ "critical", LOG_LEVEL_ERROR }, { "none", LOG_LEVEL_ERROR },
};

enum {
	LEVELS_COUNT = sizeof(levels) / sizeof(levels[0])
};

static bool
parse_scheme(struct str text, const char **ret)
{
	static const char *const schemes[] = { "packed", "exploded" };

	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		if (str_eq(text, str_from_cstr(schemes[i]))) {
			*ret = schemes[i];
			return true;
		}
	}
	return false;
}

static bool
parse_level(struct str text, enum log_level *ret)
{
	for (size_t i = 0; i < LEVELS_COUNT; i++) {
		if (str_eq(text, str_from_cstr(levels[i].name))) {
			*ret = levels[i].level;
			return true;
		}
	}
	return false;
}

static const char *
level_name(enum log_level level)
{
	size_t i = 0;

	while (i + 1 < LEVELS_COUNT && levels[i].level != level)
		i++;
	return levels[i].name;
}

static enum status
set_number(struct config *c, const struct setting *s, struct str value, struct err *err)
{
	char *field = (char *)c + s->offset;
	uint64_t n;

	if (!str_to_u64(value, &n) || n < s->least || n > s->most)
		return err_set(err, STATUS_INVALID,
			       "[%s] %s: \"%.*s\" is not a whole number from %llu to %llu",
			       s->section, s->name, STR_ARG(value), (unsigned long long)s->least,
			       (unsigned long long)s->most);
	if (s->kind == VALUE_SIZE)
		*(size_t *)(void *)field = (size_t)n;
	else if (s->kind == VALUE_U64)
		*(uint64_t *)(void *)field = n;
	else if (s->kind == VALUE_UINT)
		*(unsigned *)(void *)field = (unsigned)n;
	else
		*(uint16_t *)(void *)field = (uint16_t)n;
	return STATUS_OK;
}

static enum status
set_text(struct config *c, const struct setting *s, struct str value, struct err *err)
{
	char *field = (char *)c + s->offset;
	const char *copy = NULL;

	if (value.len == 0)
		return err_set(err, STATUS_INVALID, "[%s] %s: must not be empty", s->section,
			       s->name);
	if (s->kind == VALUE_SECRET && value.len < AUTH_SECRET_MIN_BYTES)
		return err_set(err, STATUS_INVALID, "[%s] %s: must have at least %d characters",
			       s->section, s->name, AUTH_SECRET_MIN_BYTES);
	TRY(copy_text(c, value, &copy, err));
	if (s->kind == VALUE_TEXT)
		*(const char **)(void *)field = copy;
	else
		*(struct str *)(void *)field = str_of(copy, value.len);
	return STATUS_OK;
}

static enum status
set_bool(struct config *c, const struct setting *s, struct str value, struct err *err)
{
	bool *field = (bool *)((char *)c + s->offset);

	*field = str_eq(value, STR("true"));
	if (*field || str_eq(value, STR("false")))
		return STATUS_OK;
	return err_set(err, STATUS_INVALID, "[%s] %s: \"%.*s\" is neither true nor false",
		       s->section, s->name, STR_ARG(value));
}

static enum status
set_scheme(struct config *c, const struct setting *s, struct str value, struct err *err)
{
	if (parse_scheme(value, (const char **)(void *)((char *)c + s->offset)))
		return STATUS_OK;
	return err_set(err, STATUS_INVALID,
		       "[%s] %s: \"%.*s\" is neither \"packed\" nor \"exploded\"", s->section,
		       s->name, STR_ARG(value));
}

static enum status
set_value(struct config *c, const struct setting *s, struct str value, struct err *err)
{
	switch (s->kind) {
	case VALUE_SIZE:
	case VALUE_U64:
	case VALUE_UINT:
	case VALUE_PORT:
		return set_number(c, s, value, err);
	case VALUE_TEXT:
	case VALUE_SECRET:
		return set_text(c, s, value, err);
	case VALUE_BOOL:
		return set_bool(c, s, value, err);
	case VALUE_SCHEME:
		return set_scheme(c, s, value, err);
	case VALUE_LEVEL:
		break;
	}
	if (parse_level(value, (enum log_level *)(void *)((char *)c + s->offset)))
		return STATUS_OK;
	return err_set(err, STATUS_INVALID,
		       "[%s] %s: \"%.*s\" is none of debug, info, notice, warning, error, "
		       "critical, none",
		       s->section, s->name, STR_ARG(value));
}

static enum status
set_admin(struct config *c, struct str name, struct str password, struct err *err)
{
	struct err why = { 0 };
	enum status status;

	if (password.len == 0)
		return err_set(err, STATUS_INVALID, "[admins] %.*s: the password must not be empty",
			       STR_ARG(name));
	status = config_set_admin(c, name, password, false, &why);
	return status == STATUS_OK
		       ? STATUS_OK
		       : err_set(err, status, "[admins] %.*s: %s", STR_ARG(name), why.text);
}

struct str
config_section(struct str section)
{
	return str_eq(section, STR("httpd")) ? STR("chttpd") : section;
}

/* NULL: there is none. In *ret_section whether there is such a section. */
static const struct setting *
find_setting(struct str section, struct str name, bool *ret_section)
{
	*ret_section = false;
	section = config_section(section);
	for (size_t i = 0; i < SETTINGS_COUNT; i++) {
		if (!str_eq(str_from_cstr(settings[i].section), section))
			continue;
		*ret_section = true;
		if (str_eq(str_from_cstr(settings[i].name), name))
			return &settings[i];
	}
	return NULL;
}

static int
handle_setting(void *arg, const char *section, const char *name, const char *value)
{
	struct reading *r = arg;
	struct str text = str_from_cstr(value);
	struct err err = { 0 };
	enum status status = STATUS_OK;
	const struct setting *s;
	bool known_section;

	if (strcmp(section, "admins") == 0) {
		status = set_admin(r->config, str_from_cstr(name), text, &err);
	} else {
		s = find_setting(str_from_cstr(section), str_from_cstr(name), &known_section);
		if (s)
			status = set_value(r->config, s, text, &err);
		else if (*section == '\0')
			fail(r, STATUS_INVALID, "\"%s\" stands before the first [section]", name);
		else if (known_section)
			fail(r, STATUS_INVALID, "[%s] has no setting \"%s\"", section, name);
		else
			fail(r, STATUS_INVALID, "there is no section [%s] (with \"%s\" in it)",
			     section, name);
	}
	if (status != STATUS_OK)
		fail(r, status, "%s", err.text);
	return 1;
}

/*
 * inih's fgets(): counts lines, refuses what inih would cut, and takes indentation off, which inih
 * would take for the continuation of the value before.
 */
static char *
read_line(char *ret, int n, void *arg)
{
	struct reading *r = arg;
	char *text = ret;
	size_t len;

	if (r->failed != STATUS_OK || !fgets(ret, n, r->file))
		return NULL;
	r->line++;
	len = strlen(ret);
	if (len > CONFIG_LINE_BYTES || (len && ret[len - 1] != '\n' && !feof(r->file))) {
		fail(r, STATUS_INVALID, "the line is longer than %d bytes", CONFIG_LINE_BYTES);
		return NULL;
	}
	text += strspn(text, " \t");
	memmove(ret, text, strlen(text) + 1);
	/* inih says neither which line it did not understand nor why; so ask first. */
	if (*ret && !strchr(";#[\r\n", *ret) && !strpbrk(ret, "=:"))
		fail(r, STATUS_INVALID, "this is neither \"name = value\" nor a [section]");
	if (*ret == '[' && !strchr(ret, ']'))
		fail(r, STATUS_INVALID, "the section's name has no ]");
	return ret;
}

enum status
config_read(struct config *c, FILE *file, const char *name, struct err *err)
{
	struct reading r = { .config = c, .file = file, .name = name, .err = err };
	int line = ini_parse_stream(read_line, &r, handle_setting, &r);

	TRY(r.failed);
	if (ferror(file))
		return err_set(err, STATUS_IO, "%s: cannot read: %s", name, strerror(errno));
	if (line != 0)
		return err_set(err, STATUS_INVALID, "%s:%d: cannot make sense of this line", name,
			       line);
	return STATUS_OK;
}

enum status
config_read_file(struct config *c, const char *path, struct err *err)
{
	FILE *file = fopen(path, "re");
	enum status status;

	if (!file)
		return err_set(err, errno == ENOENT ? STATUS_NOT_FOUND : STATUS_IO, "%s: %s", path,
			       strerror(errno));
	status = config_read(c, file, path, err);
	fclose(file);
	return status;
}

/* ---- Credentials ---- */

enum status
config_hash_passwords(struct config *c, struct err *err)
{
	for (size_t i = 0; i < c->admins_count; i++) {
		struct config_admin *admin = &c->admins[i];

		if (!auth_is_hashed(admin->password))
			TRY(auth_hash_password(admin->name, admin->password, c->arena,
					       &admin->password, err));
	}
	return STATUS_OK;
}

enum status
config_make_auth(const struct config *c, struct auth **ret, struct err *err)
{
	struct auth *auth = auth_new();
	enum status status = auth ? STATUS_OK : err_set(err, STATUS_NOMEM, "out of memory");

	for (size_t i = 0; i < c->admins_count && status == STATUS_OK; i++) {
		const struct config_admin *admin = &c->admins[i];

		status = auth_is_hashed(admin->password)
				 ? auth_add_admin_hashed(auth, admin->name, admin->password, err)
				 : auth_add_admin(auth, admin->name, admin->password, err);
	}
	if (status == STATUS_OK && c->secret.len)
		status = auth_set_secret(auth, c->secret, err);
	if (status != STATUS_OK) {
		auth_free(auth);
		return status;
	}
	*ret = auth;
	return STATUS_OK;
}

/* ---- While a server runs ---- */

enum status
config_copy(const struct config *from, struct config *ret)
{
	*ret = *from;
	ret->arena = arena_new(CONFIG_ARENA_BYTES);
	return ret->arena ? STATUS_OK : STATUS_NOMEM;
}

static enum status
set_admin_live(struct config *c, struct str name, struct str password, struct err *err)
{
	for (size_t i = 0; i < c->admins_count; i++) {
		if (!str_eq(c->admins[i].name, name))
			continue;
		if (c->admins[i].fixed)
			return err_set(err, STATUS_FORBIDDEN,
				       "[admins] %.*s: given where the server was started",
				       STR_ARG(name));
		if (!password.ptr)
			c->admins[i] = c->admins[--c->admins_count];
		break;
	}
	return password.ptr ? set_admin(c, name, password, err) : STATUS_OK;
}

static size_t
field_bytes(enum value_kind kind)
{
	switch (kind) {
	case VALUE_TEXT:
	case VALUE_SCHEME:
		return sizeof(const char *);
	case VALUE_SIZE:
		return sizeof(size_t);
	case VALUE_U64:
		return sizeof(uint64_t);
	case VALUE_UINT:
		return sizeof(unsigned);
	case VALUE_PORT:
		return sizeof(uint16_t);
	case VALUE_LEVEL:
		return sizeof(enum log_level);
	case VALUE_BOOL:
		return sizeof(bool);
	case VALUE_SECRET:
		break;
	}
	return sizeof(struct str);
}

static bool
is_live(const struct setting *s)
{
	for (size_t i = 0; i < sizeof(live) / sizeof(live[0]); i++)
		if (strcmp(live[i].section, s->section) == 0 &&
		    (!live[i].name || strcmp(live[i].name, s->name) == 0))
			return true;
	return false;
}

enum status
config_set_live(struct config *c, struct str section, struct str name, struct str text,
		struct err *err)
{
	struct config defaults;
	const struct setting *s;
	bool known_section;

	if (str_eq(section, STR("admins")))
		return set_admin_live(c, name, text, err);
	s = find_setting(section, name, &known_section);
	if (!s)
		return err_set(err, STATUS_NOT_FOUND, "[%.*s] has no setting \"%.*s\"",
			       STR_ARG(section), STR_ARG(name));
	if (!is_live(s))
		return err_set(err, STATUS_FORBIDDEN, "[%s] %s: fixed when the server starts",
			       s->section, s->name);
	if (text.ptr)
		return set_value(c, s, text, err);
	set_defaults(&defaults);
	memcpy((char *)c + s->offset, (char *)&defaults + s->offset, field_bytes(s->kind));
	return STATUS_OK;
}

/* The value as a file would have it, in `room`. Ptr NULL: it is not set. */
static struct str
show_value(const struct config *c, const struct setting *s, char *room, size_t n)
{
	const char *field = (const char *)c + s->offset;
	const char *text = NULL;
	uint64_t number = 0;

	switch (s->kind) {
	case VALUE_TEXT:
	case VALUE_SCHEME:
		text = *(const char *const *)(const void *)field;
		return text ? str_from_cstr(text) : (struct str){ 0 };
	case VALUE_SECRET:
		return *(const struct str *)(const void *)field;
	case VALUE_BOOL:
		return *(const bool *)(const void *)field ? STR("true") : STR("false");
	case VALUE_LEVEL:
		return str_from_cstr(level_name(*(const enum log_level *)(const void *)field));
	case VALUE_SIZE:
		number = *(const size_t *)(const void *)field;
		break;
	case VALUE_U64:
		number = *(const uint64_t *)(const void *)field;
		break;
	case VALUE_UINT:
		number = *(const unsigned *)(const void *)field;
		break;
	case VALUE_PORT:
		number = *(const uint16_t *)(const void *)field;
		break;
	}
	if (number < s->least) /* 0, by which others know to use their defaults */
		return (struct str){ 0 };
	return str_of(room, (size_t)snprintf(room, n, "%llu", (unsigned long long)number));
}

enum status
config_each(const struct config *c, config_visit *visit, void *arg)
{
	char room[32];

	for (size_t i = 0; i < SETTINGS_COUNT; i++) {
		const struct setting *s = &settings[i];
		struct str text = show_value(c, s, room, sizeof(room));

		if (text.ptr)
			TRY(visit(arg, str_from_cstr(s->section), str_from_cstr(s->name), text));
	}
	for (size_t i = 0; i < c->admins_count; i++)
		TRY(visit(arg, STR("admins"), c->admins[i].name, c->admins[i].password));
	return STATUS_OK;
}
