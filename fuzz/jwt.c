/*
 * Any bytes as a token: as they are, and as the claims of a token that the key has signed. What is
 * taken has a name and has not ended; bytes that nobody has signed are never taken.
 */
#include <openssl/hmac.h>
#include <stdlib.h>

#include "access/jwt.h"
#include "base/base64.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	NOW = 1700000000,
	TEXT_BYTES = 16384,
};

static struct jwt_rules *
rules_make(void)
{
	static const struct jwt_choices choices = { .required_claims = "iat",
						    .roles_path = "a.b\\.c" };
	const struct jwt_key_text key = { STR("hmac:_default"), STR("c2VjcmV0") };
	struct jwt_rules *rules;

	if (jwt_rules_new(&choices, &key, 1, &rules, NULL) != STATUS_OK)
		abort();
	return rules;
}

static void
check(const struct jwt_rules *rules, struct str token, bool is_signed)
{
	struct arena *arena = arena_new(1 << 20);
	struct jwt_claims claims;
	struct err err = { 0 };
	enum status status;

	if (!arena)
		return;
	status = jwt_check(rules, token, NOW, arena, &claims, &err);
	if (status == STATUS_OK) {
		if (!is_signed || !claims.name.len || claims.name.len > JWT_NAME_BYTES ||
		    claims.until_s <= NOW || claims.roles_count > JWT_ROLES_LIMIT)
			abort();
	} else if (!err.text[0]) {
		abort();
	}
	arena_free(arena);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct jwt_rules *rules;
	struct buf AUTO(buf_release) token = BUF_INIT(TEXT_BYTES);
	uint8_t digest[EVP_MAX_MD_SIZE];
	unsigned len = sizeof(digest);

	if (!rules)
		rules = rules_make();
	check(rules, str_of(data, size), false);
	base64_encode(&token, STR("{\"alg\":\"HS256\"}"), BASE64_URL);
	buf_append_byte(&token, '.');
	base64_encode(&token, str_of(data, size), BASE64_URL);
	if (buf_status(&token) != STATUS_OK ||
	    !HMAC(EVP_sha256(), "secret", 6, (const uint8_t *)token.ptr, token.len, digest, &len))
		return 0;
	buf_append_byte(&token, '.');
	base64_encode(&token, str_of(digest, len), BASE64_URL);
	check(rules, buf_str(&token), true);
	return 0;
}
