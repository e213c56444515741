/*
 * TLS 1.2 and 1.3, by OpenSSL: certificates and rules (tls.c), and streams of struct net_io that
 * stand on those of their loop (tls_stream.c). A service gets it by net_host_secure().
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
	NET_TLS_KEY_MS = 60 * 60 * 1000,         /* after which tickets are made with a new key */
	NET_TLS_SESSION_MS = 2 * 60 * 60 * 1000, /* how long a client may resume its session */
};

struct net_tls;
struct net_tls_loop;

/*
 * Reads the files that the settings name; `settings` and its texts are the caller's and outlive it.
 * STATUS_INVALID for what cannot be used, explained in `err`; STATUS_IO; STATUS_NOMEM.
 */
MUST_USE enum status net_tls_new(const struct tls_settings *settings, struct net_tls **ret,
				 struct err *err);
/* After every connection of it has ended; NULL is fine. */
void net_tls_free(struct net_tls *t);

/*
 * Reads the files again, for connections to come. If anything is wrong with them, nothing changes;
 * errors as above. Any thread.
 */
MUST_USE enum status net_tls_reload(struct net_tls *t, struct err *err);

/* When the certificate of cert_file ends, as "2027-01-31T12:00:00Z". Any thread. */
void net_tls_expiry(struct net_tls *t, char ret[32]);

/* ---- For streams ---- */

/* A new session of OpenSSL's for a connection; NULL when out of memory. Any thread. */
SSL *net_tls_session(struct net_tls *t, struct net_conn *c);

uint64_t net_tls_handshake_ms(const struct net_tls *t);

/* ---- For host.c ---- */

extern const struct net_io net_tls_io;

/* What the connections of a loop share; NULL when out of memory. */
struct net_tls_loop *net_tls_loop_new(void);
void net_tls_loop_free(struct net_tls_loop *l); /* NULL is fine */

#endif
