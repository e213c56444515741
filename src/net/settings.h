/* The settings of TLS (base/setting.h): the section [ssl], with CouchDB's names. */
#ifndef FROND_NET_SETTINGS_H
#define FROND_NET_SETTINGS_H

#include "base/setting.h"

enum {
	TLS_PORT = 6984,
	TLS_DEPTH = 1,
	TLS_HANDSHAKE_TIMEOUT_MS = 10 * 1000,
};

/* clang-format off */
#define TLS_SETTINGS(S, NUMBER, FLAG, TEXT)                                                        \
	FLAG(S, enabled, "ssl", "enable", false, SETTING_AT_START,                                 \
	     "Whether there is HTTPS, at the bind_address of [chttpd] and the port below. The "    \
	     "option --https of frond serve says so, too, with an address of its own.")            \
	NUMBER(S, port, "ssl", "port", "", 0, 65535, TLS_PORT, SETTING_AT_START,                   \
	       "The port of HTTPS; 0: any free one.")                                              \
	TEXT(S, cert_file, "ssl", "cert_file", 1, NULL, NULL, SETTING_AT_START,                    \
	     "The server's certificate, in PEM, with those between it and its root behind it. "    \
	     "SIGHUP has all files of this section read again.")                                   \
	TEXT(S, key_file, "ssl", "key_file", 1, NULL, NULL, SETTING_AT_START,                      \
	     "The key of that certificate, in PEM. By default it is in cert_file, too.")           \
	TEXT(S, password, "ssl", "password", 1, NULL, NULL, SETTING_SECRET,                        \
	     "The password of the keys that have one.")                                            \
	TEXT(S, sni_cert_files, "ssl", "sni_cert_files", 1, NULL, NULL, SETTING_AT_START,          \
	     "More certificates, separated by commas, each in one file with its key. A client "    \
	     "that names a host gets the first one for that host; others get cert_file's.")        \
	TEXT(S, cacert_file, "ssl", "cacert_file", 1, NULL, NULL, SETTING_AT_START,                \
	     "The authorities whose certificates clients may show, in PEM.")                       \
	FLAG(S, verify_clients, "ssl", "verify_ssl_certificates", false, SETTING_AT_START,         \
	     "Whether clients are asked for a certificate. One that cacert_file does not vouch "   \
	     "for ends the connection.")                                                           \
	FLAG(S, require_clients, "ssl", "fail_if_no_peer_cert", false, SETTING_AT_START,           \
	     "Whether a client without a certificate is refused, where clients are asked for one.")\
	NUMBER(S, depth, "ssl", "ssl_certificate_max_depth", "", 0, 100, TLS_DEPTH,                \
	       SETTING_AT_START,                                                                   \
	       "How many certificates may be between a client's and one of cacert_file.")          \
	TEXT(S, versions, "ssl", "tls_versions", 1, NULL, "tlsv1.2, tlsv1.3", SETTING_AT_START,    \
	     "The versions of TLS, separated by commas: tlsv1.2, tlsv1.3.")                        \
	TEXT(S, ciphers, "ssl", "ciphers", 1, NULL, NULL, SETTING_AT_START,                        \
	     "Names of cipher suites as OpenSSL has them, the best first, separated by commas. "   \
	     "By default those with forward secrecy and authenticated encryption.")                \
	NUMBER(S, handshake_timeout_ms, "ssl", "handshake_timeout_ms", "ms", 1, 86400000,          \
	       TLS_HANDSHAKE_TIMEOUT_MS, SETTING_AT_START,                                         \
	       "Time from accepting a connection to the end of its handshake.")
/* clang-format on */

SETTING_STRUCT(tls_settings, TLS_SETTINGS);

extern const struct setting_group tls_setting_group;

#endif
