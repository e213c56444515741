/* Users that a proxy has authenticated: it names them in headers. */
#include <openssl/crypto.h>
#include <openssl/hmac.h>

#include "access/auth_int.h"
#include "access/verifier.h"
#include "base/mem.h"

enum {
	TOKEN_DIGITS = 2 * EVP_MAX_MD_SIZE,
};

void
auth_proxy_fini(struct auth_proxy_rules *p)
{
	if (p->secret)
		OPENSSL_cleanse(p->secret, p->secret_len);
	mem_free(p->secret);
}

enum status
auth_set_proxy(struct auth *a, bool use_secret, struct str secret, struct str algorithms,
	       struct err *err)
{
	struct auth_proxy_rules *p = &a->proxy;

	auth_proxy_fini(p);
	*p = (struct auth_proxy_rules){ .use_secret = use_secret };
	if (secret.len) {
		p->secret = mem_alloc(secret.len);
		if (!p->secret)
			return err_set(err, STATUS_NOMEM, "out of memory");
		memcpy(p->secret, secret.ptr, secret.len);
		p->secret_len = secret.len;
	}
	while (algorithms.len) {
		struct str name = str_cut(&algorithms, ',');

		if (p->digests_count == AUTH_DIGESTS_LIMIT ||
		    !verifier_digest_find(str_trim(name), &p->digests[p->digests_count]))
			return err_set(err, STATUS_INVALID,
				       "[chttpd_auth] hash_algorithms: not a list of at most %d of "
				       "sha, sha224, sha256, sha384, sha512",
				       AUTH_DIGESTS_LIMIT);
		p->digests_count++;
	}
	return STATUS_OK;
}

/* STATUS_NOT_FOUND unless the token is the digits of an HMAC of the name, by an algorithm. */
static enum status
proxy_check_secret(const struct auth_proxy_rules *p, struct str name, struct str token,
		   struct err *err)
{
	for (size_t i = 0; i < p->digests_count && p->secret_len; i++) {
		AUTO(buf_release) struct buf digits = BUF_INIT(TOKEN_DIGITS);
		uint8_t digest[EVP_MAX_MD_SIZE];
		unsigned len = sizeof(digest);

		if (!HMAC(verifier_md(p->digests[i]), p->secret, (int)p->secret_len,
			  (const uint8_t *)name.ptr, name.len, digest, &len))
			return err_set(err, STATUS_NOMEM, "out of memory");
		buf_append_hex(&digits, str_of(digest, len));
		if (buf_status(&digits) != STATUS_OK)
			return err_set(err, STATUS_NOMEM, "out of memory");
		if (token.len == digits.len &&
		    CRYPTO_memcmp(token.ptr, digits.ptr, digits.len) == 0)
			return STATUS_OK;
	}
	return STATUS_NOT_FOUND;
}

static enum status
proxy_roles(struct str text, struct arena *arena, struct auth_user *ret)
{
	ret->roles = arena_alloc(arena, JWT_ROLES_LIMIT * sizeof(*ret->roles));
	if (!ret->roles)
		return STATUS_LIMIT;
	while (text.len) {
		struct str role = str_trim(str_cut(&text, ','));

		if (!role.len)
			continue;
		role = arena_dup(arena, role);
		if (!role.ptr || ret->roles_count == JWT_ROLES_LIMIT)
			return STATUS_LIMIT;
		ret->roles[ret->roles_count++] = role;
		ret->admin |= str_eq(role, STR("_admin"));
	}
	return STATUS_OK;
}

enum status
auth_proxy_check(const struct auth *a, const struct auth_client *client, struct arena *arena,
		 struct auth_user *ret, struct err *err)
{
	struct auth_user user = { .method = AUTH_METHOD_PROXY };
	struct str name = client ? client->proxy_name : (struct str){ 0 };

	if (!name.len || name.len > AUTH_NAME_BYTES)
		return STATUS_NOT_FOUND;
	if (a->proxy.use_secret)
		TRY(proxy_check_secret(&a->proxy, name, client->proxy_token, err));
	user.name = arena_dup(arena, name);
	if (!user.name.ptr || proxy_roles(client->proxy_roles, arena, &user) != STATUS_OK)
		return err_set(err, STATUS_LIMIT,
			       "A proxy sends more roles than %d, or than the request's memory has "
			       "room for.",
			       JWT_ROLES_LIMIT);
	*ret = user;
	return STATUS_OK;
}
