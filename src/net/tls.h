/*
 * TLS 1.2 and 1.3 with OpenSSL. tls.c has certificates and rules; tls_stream.c has an
 * implementation of struct net_io on top of the loop's streams. A service gets it by
 * net_host_secure().
 *
 * A struct net_tls is thread-safe. Its files are read when it is made and by net_tls_reload();
 * connections keep what they began with.
 */
#ifndef FROND_NET_TLS_H
#define FROND_NET_TLS_H

#include <openssl/types.h>

#include "base/status.h"
#include "net/io.h"
#include "net/settings.h"

enum {
	NET_TLS_CERTIFICATES = 256, /* of sni_cert_files */
	NET_TLS_FILE_BYTES = 1024 * 1024,
	NET_TLS_KEY_MS = 60 * 60 * 1000,         /* new tickets get a new key after this time */
	NET_TLS_SESSION_MS = 2 * 60 * 60 * 1000, /* how long a client may resume its session */
};

struct net_tls;
struct net_tls_loop;

/*
 * Reads the files that the settings name. `settings` and its texts stay the caller's and must
 * outlive the result. STATUS_INVALID for what cannot be used, explained in `err`; STATUS_IO;
 * STATUS_NOMEM.
 */
MUST_USE enum status net_tls_new(const struct tls_settings *settings, struct net_tls **ret,
				 struct err *err);
/* Must be called after all of its connections have ended; NULL is fine. */
void net_tls_free(struct net_tls *t);

/*
 * Reads the files again, for new connections. If any file cannot be used, nothing changes; errors
 * as above. Any thread.
 */
MUST_USE enum status net_tls_reload(struct net_tls *t, struct err *err);

/*
 * When the first of its certificates expires, those of sni_cert_files among them, in seconds since
 * 1970; -1 if no time can be read out of them. Any thread.
 */
int64_t net_tls_expires_s(struct net_tls *t);

/* ---- For streams ---- */

/* A new session of OpenSSL's for a connection; NULL when out of memory. Any thread. */
SSL *net_tls_session(struct net_tls *t, struct net_conn *c);

uint64_t net_tls_handshake_ms(const struct net_tls *t);

/* ---- For host.c ---- */

extern const struct net_io net_tls_io;

/* Makes the state that the connections of a loop share; NULL when out of memory. */
struct net_tls_loop *net_tls_loop_new(void);
void net_tls_loop_free(struct net_tls_loop *l); /* NULL is fine */

#endif
