/* Certificates that a test makes for itself, as files in PEM. */
#ifndef FROND_TESTS_NET_CERTS_H
#define FROND_TESTS_NET_CERTS_H

#include <openssl/x509.h>
#include <stdbool.h>

enum cert_kind {
	CERT_P256,
	CERT_RSA,
};

struct cert {
	X509 *x509;
	EVP_PKEY *key;
};

/*
 * For these names, as in "DNS:localhost,IP:127.0.0.1"; NULL: an authority. Signed by `issuer`, or
 * by itself if that is NULL. Each has a serial number of its own.
 */
void cert_make(struct cert *ret, enum cert_kind kind, const char *names, const struct cert *issuer);
void cert_free(struct cert *c);

/* Writes what is asked for behind each other; the key encrypted if there is a password. */
void cert_write(const struct cert *c, const char *path, bool with_cert, bool with_key,
		const char *password);

#endif
