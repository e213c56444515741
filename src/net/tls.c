#include "net/tls.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "net/conn.h"
#include "net/tls_list.h"

/*
 * The default cipher suites, ciphers and groups, in order of preference. AES-128 comes first: it is
 * as strong as the key exchanges, and SHA-256 makes a cheaper handshake than SHA-384.
 */
#define TLS_SUITES  "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
#define TLS_CIPHERS "ECDHE+AESGCM:ECDHE+CHACHA20"
#define TLS_GROUPS  "X25519:P-256:P-384"

enum {
	TLS_SECURITY_LEVEL = 2, /* OpenSSL's: RSA keys of 2,048 bits and more, and the like */
	TLS_LIST_BYTES = 4096,
	TLS_KEY_NAME_BYTES = 16,
	TLS_KEY_BYTES = 32,
	/* The longest certificate chain that a client may send. */
	TLS_CLIENT_CHAIN_BYTES = 32 * 1024,
};

/* A key that encrypts and signs session tickets. */
struct tls_key {
	unsigned char name[TLS_KEY_NAME_BYTES];
	unsigned char cipher[TLS_KEY_BYTES];
	unsigned char mac[TLS_KEY_BYTES];
	uint64_t made_ns; /* 0: there is none */
};

struct net_tls {
	const struct tls_settings *settings;
	EVP_CIPHER *ticket_cipher; /* fetched once, because fetching is slow */

	pthread_mutex_t lock; /* guards what follows */
	SSL_CTX *ctx;         /* used by new connections */
	/* The present key, and earlier ones whose tickets are still valid. */
	struct tls_key keys[NET_TLS_SESSION_MS / NET_TLS_KEY_MS + 1];
};

/* The contexts of sni_cert_files. The context of cert_file owns it. */
struct tls_named {
	size_t count;
	SSL_CTX *ctxs[NET_TLS_CERTIFICATES];
};

SETTING_GROUP(tls_setting_group, tls_settings, TLS_SETTINGS);

/* ---- Errors ---- */

/* Explains with OpenSSL's first error why `what` cannot be used. */
static enum status
tls_fail(struct err *err, const char *what, const char *name)
{
	unsigned long code = ERR_peek_error();
	const char *reason = code ? ERR_reason_error_string(code) : NULL;

	if (ERR_SYSTEM_ERROR(code))
		reason = strerror(ERR_GET_REASON(code));
	ERR_clear_error();
	return err_set(err, STATUS_INVALID, "[ssl] %s: \"%s\": %s", what, name,
		       reason ? reason : "it cannot be used");
}

static enum status
tls_no_memory(struct err *err)
{
	ERR_clear_error();
	return err_set(err, STATUS_NOMEM, "out of memory for TLS");
}

/* ---- Tickets ---- */

/* Makes a new key if the present one is too old. Called with the lock held. */
static bool
tls_turn_keys(struct net_tls *t, uint64_t now_ns)
{
	size_t count = sizeof(t->keys) / sizeof(t->keys[0]);
	struct tls_key key = { .made_ns = now_ns };

	if (t->keys[0].made_ns && now_ns - t->keys[0].made_ns < NET_TLS_KEY_MS * CLOCK_NS_PER_MS)
		return true;
	if (RAND_bytes(key.name, sizeof(key.name)) != 1 ||
	    RAND_priv_bytes(key.cipher, sizeof(key.cipher)) != 1 ||
	    RAND_priv_bytes(key.mac, sizeof(key.mac)) != 1)
		return false;
	memmove(&t->keys[1], &t->keys[0], (count - 1) * sizeof(t->keys[0]));
	t->keys[0] = key;
	OPENSSL_cleanse(&key, sizeof(key));
	return true;
}

/* Finds the key of that name, or the present key if `name` is NULL. */
static bool
tls_find_key(struct net_tls *t, const unsigned char *name, struct tls_key *ret)
{
	uint64_t now_ns = clock_mono_ns();
	bool found = false;

	pthread_mutex_lock(&t->lock);
	if (!name) {
		found = tls_turn_keys(t, now_ns);
		*ret = t->keys[0];
	}
	for (size_t i = 0; name && !found && i < sizeof(t->keys) / sizeof(t->keys[0]); i++) {
		const struct tls_key *key = &t->keys[i];
		uint64_t most_ms = NET_TLS_KEY_MS + NET_TLS_SESSION_MS;

		if (!key->made_ns || now_ns - key->made_ns > most_ms * CLOCK_NS_PER_MS ||
		    memcmp(key->name, name, sizeof(key->name)) != 0)
			continue;
		*ret = *key;
		found = true;
	}
	pthread_mutex_unlock(&t->lock);
	return found;
}

static bool
tls_set_ticket_mac(EVP_MAC_CTX *mac, struct tls_key *key)
{
	char digest[] = "SHA256";
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, key->mac, sizeof(key->mac)),
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
		OSSL_PARAM_construct_end(),
	};

	return EVP_MAC_CTX_set_params(mac, params) == 1;
}

/*
 * OpenSSL's callback: 1 if a ticket can be made or read, 2 if the client is to get another one, 0
 * if it is not to be used. In TLS 1.3 a client uses each ticket once.
 */
static int
tls_on_ticket(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
	      EVP_MAC_CTX *mac, int making)
{
	struct net_tls *t = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
	struct tls_key key;
	bool ok = tls_find_key(t, making ? NULL : name, &key);

	if (!ok)
		return making ? -1 : 0;
	if (making) {
		memcpy(name, key.name, sizeof(key.name));
		ok = RAND_bytes(iv, EVP_CIPHER_get_iv_length(t->ticket_cipher)) == 1;
	}
	ok = ok && EVP_CipherInit_ex(cipher, t->ticket_cipher, NULL, key.cipher, iv, making) == 1 &&
	     tls_set_ticket_mac(mac, &key);
	OPENSSL_cleanse(&key, sizeof(key));
	if (!ok)
		return -1;
	return !making && SSL_version(ssl) == TLS1_3_VERSION ? 2 : 1;
}

/* ---- Choices by the client's hello ---- */

static int
tls_on_alpn(SSL *ssl, const unsigned char **ret, unsigned char *ret_len, const unsigned char *in,
	    unsigned in_len, void *arg)
{
	const struct net_conn *c = SSL_get_app_data(ssl);
	const char *own = c->slot->protocol->alpn;

	(void)arg;
	if (!own)
		return SSL_TLSEXT_ERR_NOACK;
	/* Each name follows a byte with its length; OpenSSL has checked the lengths. */
	for (unsigned at = 0; at < in_len; at += 1U + in[at])
		if (in[at] == strlen(own) && memcmp(in + at + 1, own, in[at]) == 0) {
			*ret = in + at + 1;
			*ret_len = in[at];
			return SSL_TLSEXT_ERR_OK;
		}
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static bool
tls_is_for_host(SSL_CTX *ctx, const char *host)
{
	return X509_check_host(SSL_CTX_get0_certificate(ctx), host, strlen(host), 0, NULL) == 1;
}

static int
tls_on_server_name(SSL *ssl, int *alert, void *arg)
{
	const struct tls_named *named = arg;
	const char *host = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);

	(void)alert;
	if (!host || tls_is_for_host(SSL_get_SSL_CTX(ssl), host))
		return SSL_TLSEXT_ERR_OK;
	for (size_t i = 0; i < named->count; i++)
		if (tls_is_for_host(named->ctxs[i], host)) {
			if (!SSL_set_SSL_CTX(ssl, named->ctxs[i]))
				return SSL_TLSEXT_ERR_ALERT_FATAL;
			break;
		}
	return SSL_TLSEXT_ERR_OK;
}

/* ---- Contexts ---- */

static int
tls_on_password(char *ret, int size, int writing, void *arg)
{
	const struct net_tls *t = arg;
	const char *password = t->settings->password;
	size_t n = password ? strlen(password) : 0;

	(void)writing;
	if (!n || n >= (size_t)size)
		return -1;
	memcpy(ret, password, n + 1);
	return (int)n;
}

static enum status
tls_set_versions(const struct net_tls *t, SSL_CTX *ctx, struct err *err)
{
	struct str rest = str_from_cstr(t->settings->versions);
	struct str name;
	bool has[2] = { false, false };

	while (tls_list_next(&rest, &name)) {
		if (str_eq(name, STR("tlsv1.2")))
			has[0] = true;
		else if (str_eq(name, STR("tlsv1.3")))
			has[1] = true;
		else
			return err_set(err, STATUS_INVALID,
				       "[ssl] tls_versions: \"%.*s\" is neither tlsv1.2 nor "
				       "tlsv1.3; older ones are not spoken",
				       STR_ARG(name));
	}
	if (!has[0] && !has[1])
		return err_set(err, STATUS_INVALID, "[ssl] tls_versions names none");
	SSL_CTX_set_min_proto_version(ctx, has[0] ? TLS1_2_VERSION : TLS1_3_VERSION);
	SSL_CTX_set_max_proto_version(ctx, has[1] ? TLS1_3_VERSION : TLS1_2_VERSION);
	return STATUS_OK;
}

/* Adds the name to the list of its kind. The context shows whether OpenSSL knows it. */
static enum status
tls_add_cipher(SSL_CTX *ctx, struct str name, struct buf *suites, struct buf *ciphers,
	       struct err *err)
{
	bool is_suite = str_starts_with(name, STR("TLS_"));
	struct buf *list = is_suite ? suites : ciphers;
	char text[64];

	(void)snprintf(text, sizeof(text), "%.*s", STR_ARG(name));
	if (name.len >= sizeof(text) ||
	    !(is_suite ? SSL_CTX_set_ciphersuites(ctx, text) : SSL_CTX_set_cipher_list(ctx, text)))
		return tls_fail(err, "ciphers", text);
	if (list->len)
		buf_append_byte(list, ':');
	buf_append_str(list, name);
	return STATUS_OK;
}

static enum status
tls_set_ciphers(const struct net_tls *t, SSL_CTX *ctx, struct err *err)
{
	struct buf AUTO(buf_release) suites = BUF_INIT(TLS_LIST_BYTES);
	struct buf AUTO(buf_release) ciphers = BUF_INIT(TLS_LIST_BYTES);
	const char *text = t->settings->ciphers;
	struct str rest = str_from_cstr(text ? text : "");
	struct str name;

	while (tls_list_next(&rest, &name))
		TRY(tls_add_cipher(ctx, name, &suites, &ciphers, err));
	if (!suites.len)
		buf_append_cstr(&suites, TLS_SUITES);
	if (!ciphers.len)
		buf_append_cstr(&ciphers, TLS_CIPHERS);
	buf_append_byte(&suites, '\0');
	buf_append_byte(&ciphers, '\0');
	if (buf_status(&suites) != STATUS_OK || buf_status(&ciphers) != STATUS_OK)
		return err_set(err, STATUS_INVALID, "[ssl] ciphers: the list is too long");
	if (!SSL_CTX_set_ciphersuites(ctx, suites.ptr) ||
	    !SSL_CTX_set_cipher_list(ctx, ciphers.ptr))
		return tls_fail(err, "ciphers", text ? text : TLS_CIPHERS);
	return STATUS_OK;
}

/* Reads a file that is not unreasonably large for certificates. */
static enum status
tls_digest_file(EVP_MD_CTX *md, const char *path, struct err *err)
{
	FILE *f = fopen(path, "re");
	size_t left = NET_TLS_FILE_BYTES;
	char bytes[4096];
	size_t n;

	if (!f)
		return err_set(err, STATUS_IO, "cannot read \"%s\": %m", path);
	while ((n = fread(bytes, 1, sizeof(bytes), f)) > 0 && n <= left) {
		EVP_DigestUpdate(md, bytes, n);
		left -= n;
	}
	fclose(f);
	if (n > left)
		return err_set(err, STATUS_INVALID, "\"%s\" is too long", path);
	return STATUS_OK;
}

/*
 * A resumed session skips the check of the client's certificate. So a ticket must not be accepted
 * where other authorities are trusted: the session's id context is a digest of the trusted
 * authorities.
 */
static enum status
tls_bind_sessions(const struct net_tls *t, SSL_CTX *ctx, struct err *err)
{
	const struct tls_settings *s = t->settings;
	unsigned char id[EVP_MAX_MD_SIZE];
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	enum status status = STATUS_OK;
	unsigned len = 0;

	if (!md || EVP_DigestInit_ex(md, EVP_sha256(), NULL) != 1)
		status = tls_no_memory(err);
	if (status == STATUS_OK && s->verify_clients) {
		EVP_DigestUpdate(md, &s->depth, sizeof(s->depth));
		status = tls_digest_file(md, s->cacert_file, err);
	}
	if (status == STATUS_OK &&
	    (EVP_DigestFinal_ex(md, id, &len) != 1 || len > SSL_MAX_SID_CTX_LENGTH ||
	     SSL_CTX_set_session_id_context(ctx, id, len) != 1))
		status = tls_no_memory(err);
	EVP_MD_CTX_free(md);
	return status;
}

static enum status
tls_set_clients(const struct net_tls *t, SSL_CTX *ctx, struct err *err)
{
	const struct tls_settings *s = t->settings;
	int mode = SSL_VERIFY_PEER | (s->require_clients ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0);
	STACK_OF(X509_NAME) * names;

	if (!s->verify_clients) {
		if (s->require_clients)
			return err_set(err, STATUS_INVALID,
				       "[ssl] fail_if_no_peer_cert has no effect without "
				       "verify_ssl_certificates = true");
		return tls_bind_sessions(t, ctx, err);
	}
	if (!s->cacert_file)
		return err_set(err, STATUS_INVALID,
			       "[ssl] verify_ssl_certificates needs cacert_file, the authorities "
			       "of clients");
	TRY(tls_bind_sessions(t, ctx, err));
	names = SSL_load_client_CA_file(s->cacert_file);
	if (!names || SSL_CTX_load_verify_file(ctx, s->cacert_file) != 1) {
		sk_X509_NAME_pop_free(names, X509_NAME_free);
		return tls_fail(err, "cacert_file", s->cacert_file);
	}
	SSL_CTX_set_client_CA_list(ctx, names);
	SSL_CTX_set_verify_depth(ctx, (int)s->depth);
	SSL_CTX_set_verify(ctx, mode, NULL);
	return STATUS_OK;
}

static enum status
tls_set_certificate(SSL_CTX *ctx, const char *setting, const char *cert, const char *key_setting,
		    const char *key, struct err *err)
{
	if (SSL_CTX_use_certificate_chain_file(ctx, cert) != 1)
		return tls_fail(err, setting, cert);
	if (SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1 ||
	    SSL_CTX_check_private_key(ctx) != 1)
		return tls_fail(err, key_setting, key);
	return STATUS_OK;
}

static void
tls_set_rules(struct net_tls *t, SSL_CTX *ctx)
{
	SSL_CTX_set_app_data(ctx, t);
	SSL_CTX_set_security_level(ctx, TLS_SECURITY_LEVEL);
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
					 SSL_OP_CIPHER_SERVER_PREFERENCE |
					 SSL_OP_PRIORITIZE_CHACHA);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_read_ahead(ctx, 1);
	SSL_CTX_set_max_cert_list(ctx, TLS_CLIENT_CHAIN_BYTES);
	/* The server stores no sessions; clients keep them in tickets. */
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_timeout(ctx, NET_TLS_SESSION_MS / 1000);
	SSL_CTX_set_num_tickets(ctx, 1);
	SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx, tls_on_ticket);
	SSL_CTX_set_alpn_select_cb(ctx, tls_on_alpn, NULL);
	SSL_CTX_set_default_passwd_cb(ctx, tls_on_password);
	SSL_CTX_set_default_passwd_cb_userdata(ctx, t);
}

static enum status
tls_make_context(struct net_tls *t, SSL_CTX **ret, struct err *err)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	char groups[] = TLS_GROUPS;
	enum status status;

	if (!ctx)
		return tls_no_memory(err);
	tls_set_rules(t, ctx);
	status = SSL_CTX_set1_groups_list(ctx, groups) == 1 ? STATUS_OK : tls_no_memory(err);
	if (status == STATUS_OK)
		status = tls_set_versions(t, ctx, err);
	if (status == STATUS_OK)
		status = tls_set_ciphers(t, ctx, err);
	if (status == STATUS_OK)
		status = tls_set_clients(t, ctx, err);
	if (status == STATUS_OK)
		*ret = ctx;
	else
		SSL_CTX_free(ctx);
	return status;
}

/* ---- Several certificates ---- */

static void
tls_free_named(void *parent, void *ptr, CRYPTO_EX_DATA *data, int index, long argl, void *argp)
{
	struct tls_named *named = ptr;

	(void)parent;
	(void)data;
	(void)index;
	(void)argl;
	(void)argp;
	for (size_t i = 0; named && i < named->count; i++)
		SSL_CTX_free(named->ctxs[i]);
	mem_free(named);
}

static int tls_named_index;

static void
tls_make_index(void)
{
	tls_named_index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, tls_free_named);
}

static enum status
tls_add_named(struct net_tls *t, struct tls_named *named, struct str file, struct err *err)
{
	char *path = mem_strdup(file);
	enum status status = path ? STATUS_OK : tls_no_memory(err);

	if (status == STATUS_OK && named->count == NET_TLS_CERTIFICATES)
		status = err_set(err, STATUS_LIMIT, "[ssl] sni_cert_files: more than %d files",
				 NET_TLS_CERTIFICATES);
	if (status == STATUS_OK)
		status = tls_make_context(t, &named->ctxs[named->count], err);
	if (status == STATUS_OK)
		status = tls_set_certificate(named->ctxs[named->count++], "sni_cert_files", path,
					     "sni_cert_files", path, err);
	mem_free(path);
	return status;
}

static enum status
tls_set_named(struct net_tls *t, SSL_CTX *ctx, struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const char *files = t->settings->sni_cert_files;
	struct str rest = str_from_cstr(files ? files : "");
	struct tls_named *named;
	struct str file;

	pthread_once(&once, tls_make_index);
	named = mem_zalloc(sizeof(*named));
	/* From here on the context owns it, also after a failure below. */
	if (tls_named_index < 0 || !named || !SSL_CTX_set_ex_data(ctx, tls_named_index, named)) {
		mem_free(named);
		return tls_no_memory(err);
	}
	while (tls_list_next(&rest, &file))
		TRY(tls_add_named(t, named, file, err));
	if (!named->count)
		return STATUS_OK;
	SSL_CTX_set_tlsext_servername_callback(ctx, tls_on_server_name);
	SSL_CTX_set_tlsext_servername_arg(ctx, named);
	return STATUS_OK;
}

static enum status
tls_load(struct net_tls *t, SSL_CTX **ret, struct err *err)
{
	const struct tls_settings *s = t->settings;
	const char *key = s->key_file ? s->key_file : s->cert_file;
	SSL_CTX *ctx;
	enum status status;

	if (!s->cert_file)
		return err_set(err, STATUS_INVALID,
			       "TLS needs a certificate: [ssl] cert_file and key_file in the "
			       "file of --config");
	TRY(tls_make_context(t, &ctx, err));
	status = tls_set_certificate(ctx, "cert_file", s->cert_file,
				     s->key_file ? "key_file" : "cert_file", key, err);
	if (status == STATUS_OK)
		status = tls_set_named(t, ctx, err);
	if (status == STATUS_OK)
		*ret = ctx;
	else
		SSL_CTX_free(ctx);
	return status;
}

/* ---- Life ---- */

enum status
net_tls_new(const struct tls_settings *settings, struct net_tls **ret, struct err *err)
{
	struct net_tls *t = mem_zalloc(sizeof(*t));
	enum status status;

	if (!t)
		return tls_no_memory(err);
	pthread_mutex_init(&t->lock, NULL);
	t->settings = settings;
	t->ticket_cipher = EVP_CIPHER_fetch(NULL, "AES-256-CBC", NULL);
	status = t->ticket_cipher ? tls_load(t, &t->ctx, err) : tls_no_memory(err);
	if (status == STATUS_OK)
		*ret = t;
	else
		net_tls_free(t);
	return status;
}

void
net_tls_free(struct net_tls *t)
{
	if (!t)
		return;
	SSL_CTX_free(t->ctx);
	EVP_CIPHER_free(t->ticket_cipher);
	OPENSSL_cleanse(t->keys, sizeof(t->keys));
	pthread_mutex_destroy(&t->lock);
	mem_free(t);
}

enum status
net_tls_reload(struct net_tls *t, struct err *err)
{
	SSL_CTX *before;
	SSL_CTX *ctx;

	TRY(tls_load(t, &ctx, err));
	pthread_mutex_lock(&t->lock);
	before = t->ctx;
	t->ctx = ctx;
	pthread_mutex_unlock(&t->lock);
	/* Connections that use the old context hold references of their own. */
	SSL_CTX_free(before);
	return STATUS_OK;
}

static SSL_CTX *
tls_hold_context(struct net_tls *t)
{
	SSL_CTX *ctx;

	pthread_mutex_lock(&t->lock);
	ctx = t->ctx;
	SSL_CTX_up_ref(ctx);
	pthread_mutex_unlock(&t->lock);
	return ctx;
}

/* When the certificate of a context expires, in seconds since 1970; -1 if nobody knows. */
static int64_t
tls_context_expires_s(SSL_CTX *ctx)
{
	struct tm at = { 0 };

	if (ASN1_TIME_to_tm(X509_get0_notAfter(SSL_CTX_get0_certificate(ctx)), &at) != 1)
		return -1;
	return timegm(&at);
}

int64_t
net_tls_expires_s(struct net_tls *t)
{
	SSL_CTX *ctx = tls_hold_context(t);
	const struct tls_named *named = SSL_CTX_get_ex_data(ctx, tls_named_index);
	int64_t first_s = tls_context_expires_s(ctx);

	for (size_t i = 0; i < named->count; i++) {
		int64_t at_s = tls_context_expires_s(named->ctxs[i]);

		if (at_s >= 0 && (first_s < 0 || at_s < first_s))
			first_s = at_s;
	}
	SSL_CTX_free(ctx);
	return first_s;
}

SSL *
net_tls_session(struct net_tls *t, struct net_conn *c)
{
	SSL_CTX *ctx = tls_hold_context(t);
	SSL *ssl = SSL_new(ctx);

	SSL_CTX_free(ctx);
	if (!ssl)
		return NULL;
	SSL_set_app_data(ssl, c);
	SSL_set_accept_state(ssl);
	return ssl;
}

uint64_t
net_tls_handshake_ms(const struct net_tls *t)
{
	return t->settings->handshake_timeout_ms;
}
