#include "certs.h"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum {
	CERT_RSA_BITS = 2048,
	CERT_SECONDS = 24 * 60 * 60,
};

static void
cert_extend(X509 *x509, int nid, const char *value)
{
	X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, nid, value);

	assert_non_null(e);
	assert_int_equal(X509_add_ext(x509, e, -1), 1);
	X509_EXTENSION_free(e);
}

void
cert_make(struct cert *ret, enum cert_kind kind, const char *names, const struct cert *issuer)
{
	static long serial;
	unsigned char text[32];
	X509 *x = X509_new();
	EVP_PKEY *key = kind == CERT_RSA ? EVP_RSA_gen(CERT_RSA_BITS) : EVP_EC_gen("P-256");
	X509_NAME *name = X509_get_subject_name(x);

	assert_non_null(key);
	assert_int_equal(X509_set_version(x, X509_VERSION_3), 1);
	ASN1_INTEGER_set(X509_get_serialNumber(x), ++serial);
	X509_gmtime_adj(X509_getm_notBefore(x), -60);
	X509_gmtime_adj(X509_getm_notAfter(x), CERT_SECONDS);
	(void)snprintf((char *)text, sizeof(text), "frond test %ld", serial);
	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, text, -1, -1, 0);
	X509_set_issuer_name(x, issuer ? X509_get_subject_name(issuer->x509) : name);
	X509_set_pubkey(x, key);
	cert_extend(x, NID_basic_constraints, names ? "CA:FALSE" : "critical,CA:TRUE");
	if (names)
		cert_extend(x, NID_subject_alt_name, names);
	assert_true(X509_sign(x, issuer ? issuer->key : key, EVP_sha256()) > 0);
	*ret = (struct cert){ .x509 = x, .key = key };
}

void
cert_free(struct cert *c)
{
	X509_free(c->x509);
	EVP_PKEY_free(c->key);
}

void
cert_write(const struct cert *c, const char *path, bool with_cert, bool with_key,
	   const char *password)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	if (with_cert)
		assert_int_equal(PEM_write_X509(f, c->x509), 1);
	if (with_key)
		assert_int_equal(PEM_write_PKCS8PrivateKey(
					 f, c->key, password ? EVP_aes_256_cbc() : NULL, password,
					 password ? (int)strlen(password) : 0, NULL, NULL),
				 1);
	assert_int_equal(fclose(f), 0);
}
