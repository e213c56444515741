/* CouchDB's AuthSession cookie: base64url(name:hex time:HMAC). */
#include <openssl/crypto.h>

#include "access/auth_int.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/steady.h"

enum {
	/* "name:ffffffffffffffff:" and the digest. */
	COOKIE_BYTES = AUTH_NAME_BYTES + 1 + 16 + 1 + AUTH_DIGEST_BYTES,
	COOKIE_TEXT_BYTES = (COOKIE_BYTES + 2) / 3 * 4,
};

/*
 * `known`: only for somebody who could have logged in, or STATUS_NOT_FOUND. While there is no
 * administrator, nobody has to log in.
 */
static enum status
cookie_make(struct auth *a, struct str name, const struct auth_client *client, bool known,
	    uint64_t now_s, struct arena *arena, struct str *ret)
{
	AUTO(buf_release) struct buf plain = BUF_INIT(COOKIE_BYTES);
	AUTO(buf_release) struct buf text = BUF_INIT(COOKIE_TEXT_BYTES);
	uint8_t digest[AUTH_DIGEST_BYTES];
	struct auth_who who;
	enum status status;

	status = auth_find(a, name, client, arena, &who, NULL);
	/* A cookie for a name that nobody has is signed with a key that no check uses. */
	if (known && auth_has_admins(a) &&
	    (status == STATUS_NOT_FOUND || (status == STATUS_OK && !who.verifier)))
		return STATUS_NOT_FOUND;
	if (status == STATUS_NOT_FOUND)
		TRY(auth_keyed_digest(a->memory_key, AUTH_SECRET_BYTES, name, who.cookie_key));
	else
		TRY(status);
	buf_append_str(&plain, name);
	buf_printf(&plain, ":%llX", (unsigned long long)now_s);
	TRY(buf_status(&plain));
	TRY(auth_keyed_digest(who.cookie_key, AUTH_DIGEST_BYTES, buf_str(&plain), digest));
	buf_append_byte(&plain, ':');
	buf_append(&plain, digest, sizeof(digest));
	TRY(buf_status(&plain));
	base64_encode(&text, buf_str(&plain), BASE64_URL);
	TRY(buf_status(&text));
	*ret = buf_dup(&text, arena);
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

enum status
auth_make_cookie_at(struct auth *a, struct str name, const struct auth_client *client,
		    uint64_t now_s, struct arena *arena, struct str *ret)
{
	return cookie_make(a, name, client, false, now_s, arena, ret);
}

enum status
auth_make_cookie(struct auth *a, struct str name, const struct auth_client *client,
		 struct arena *arena, struct str *ret)
{
	return cookie_make(a, name, client, false, steady_ms() / 1000, arena, ret);
}

enum status
auth_make_known_cookie(struct auth *a, struct str name, const struct auth_client *client,
		       struct arena *arena, struct str *ret)
{
	return cookie_make(a, name, client, true, steady_ms() / 1000, arena, ret);
}

/* The value of AuthSession in a Cookie header; ptr NULL if there is none, or an empty one. */
static struct str
cookie_find(struct str header)
{
	while (header.len) {
		struct str pair = str_cut(&header, ';');
		struct str name;

		if (!auth_cut_at(&pair, '=', &name) || !str_eq(str_trim(name), STR("AuthSession")))
			continue;
		pair = str_trim(pair);
		if (pair.len >= 2 && pair.ptr[0] == '"' && pair.ptr[pair.len - 1] == '"')
			pair = str_of(pair.ptr + 1, pair.len - 2);
		if (pair.len)
			return pair;
	}
	return (struct str){ NULL, 0 };
}

static bool
hex_to_u64(struct str s, uint64_t *ret)
{
	uint64_t n = 0;

	if (s.len == 0 || s.len > 16)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		int value = str_hex_digit(s.ptr[i]);

		if (value < 0)
			return false;
		n = n << 4 | (uint64_t)value;
	}
	*ret = n;
	return true;
}

static bool
cookie_is_signed(const uint8_t key[AUTH_DIGEST_BYTES], struct str signed_part, const void *digest)
{
	uint8_t right[AUTH_DIGEST_BYTES];

	return auth_keyed_digest(key, AUTH_DIGEST_BYTES, signed_part, right) == STATUS_OK &&
	       CRYPTO_memcmp(right, digest, sizeof(right)) == 0;
}

/* True for a cookie of the secret that was changed lately, if it was made before that. */
static bool
cookie_is_of_former_secret(const struct auth *a, const struct auth_who *who, uint64_t made_s,
			   struct str signed_part, const void *digest)
{
	const struct auth_former *former = &a->former;
	uint8_t key[AUTH_DIGEST_BYTES];

	return former->exists && made_s <= former->since_s &&
	       clock_mono_ns() - former->since_ns < a->overlap_s * 1000 * CLOCK_NS_PER_MS &&
	       auth_cookie_key(former->key, who, key) == STATUS_OK &&
	       cookie_is_signed(key, signed_part, digest);
}

enum status
auth_cookie_check(struct auth *a, struct str header, const struct auth_client *client,
		  struct arena *arena, struct auth_who *ret, uint64_t *ret_age_s, struct err *err)
{
	AUTO(buf_release) struct buf plain = BUF_INIT(COOKIE_BYTES);
	uint64_t now_s = steady_ms() / 1000;
	struct str text = cookie_find(header);
	struct str signed_part, rest, name;
	const void *digest;
	enum status status;
	uint64_t made_s;

	if (!text.ptr || text.len > COOKIE_TEXT_BYTES)
		return STATUS_NOT_FOUND;
	status = base64_decode(&plain, text, BASE64_URL);
	if (status != STATUS_OK)
		return status == STATUS_NOMEM ? status : STATUS_NOT_FOUND;
	if (plain.len < AUTH_DIGEST_BYTES + 1 ||
	    plain.ptr[plain.len - AUTH_DIGEST_BYTES - 1] != ':')
		return STATUS_NOT_FOUND;
	signed_part = str_of(plain.ptr, plain.len - AUTH_DIGEST_BYTES - 1);
	rest = signed_part;
	if (!auth_cut_at(&rest, ':', &name) || !hex_to_u64(rest, &made_s))
		return STATUS_NOT_FOUND;
	if (made_s > now_s || now_s - made_s >= a->session_s)
		return STATUS_NOT_FOUND;
	TRY(auth_find(a, name, client, arena, ret, err));
	digest = plain.ptr + signed_part.len + 1;
	*ret_age_s = now_s - made_s;
	if (!cookie_is_signed(ret->cookie_key, signed_part, digest)) {
		if (!cookie_is_of_former_secret(a, ret, made_s, signed_part, digest))
			return STATUS_NOT_FOUND;
		*ret_age_s = a->session_s; /* it is renewed under the secret of now */
	}
	/* A person without a password cannot have logged in with one. */
	if (!ret->verifier)
		return STATUS_NOT_FOUND;
	return STATUS_OK;
}
