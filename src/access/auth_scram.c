#include "access/auth_scram.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "access/auth_int.h"
#include "access/scram_table.h"
#include "base/base64.h"
#include "base/mem.h"
#include "base/rand.h"

enum {
	SERVER_NONCE_BYTES = 24,
	HEADER_BYTES = 1024,
	PROOF_TEXT_BYTES = 64,
};

/* With this text in it, the salt of an unknown name equals no other digest of the secret. */
static const char salt_purpose[] = "salt of SCRAM";

/* As the audit lines call this kind of login. */
static const char scram_method[] = "scram";

struct auth_scram {
	char name[AUTH_NAME_BYTES];
	size_t name_len;
	struct scram scram;
	struct buf header;      /* of GS2: the client sends it again at the end */
	struct buf nonce;       /* the client's, and the server's behind it */
	struct buf signed_text; /* AuthMessage of RFC 5802, as far as it is known */
};

static enum status
malformed(struct err *err)
{
	return err_set(err, STATUS_INVALID, "this is no message of SCRAM-SHA-256");
}

/* Cuts "k=value" off a list with commas. */
static bool
cut_attribute(struct str *rest, char key, struct str *ret)
{
	struct str one = str_cut(rest, ',');

	if (one.len < 2 || one.ptr[0] != key || one.ptr[1] != '=')
		return false;
	*ret = str_skip(one, 2);
	return true;
}

/* A name has =2C for a comma and =3D for an equals sign. */
static bool
scram_read_name(struct auth_scram *s, struct str text)
{
	while (text.len) {
		char c = text.ptr[0];
		size_t n = 1;

		if (c == '=') {
			if (str_starts_with(text, STR("=2C")))
				c = ',';
			else if (!str_starts_with(text, STR("=3D")))
				return false;
			n = 3;
		}
		if (s->name_len == sizeof(s->name))
			return false;
		s->name[s->name_len++] = c;
		text = str_skip(text, n);
	}
	return s->name_len > 0;
}

static bool
is_printable(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] < '!' || s.ptr[i] > '~')
			return false;
	return s.len > 0;
}

/* "n,,n=jan,r=nonce": takes it apart. */
static enum status
read_first(struct auth_scram *s, struct str message, struct err *err)
{
	struct str rest = message;
	struct str flag, identity, name, nonce, bare;

	if (message.len > AUTH_SCRAM_MESSAGE_BYTES)
		return malformed(err);
	flag = str_cut(&rest, ',');
	identity = str_cut(&rest, ',');
	if (str_starts_with(flag, STR("p=")))
		return err_set(err, STATUS_INVALID, "channel binding is not supported");
	if (!str_eq(flag, STR("n")) && !str_eq(flag, STR("y")))
		return malformed(err);
	if (identity.len)
		return err_set(err, STATUS_INVALID, "another identity is not supported");
	bare = rest;
	buf_append(&s->header, message.ptr, (size_t)(bare.ptr - message.ptr));
	if (!cut_attribute(&rest, 'n', &name) || !cut_attribute(&rest, 'r', &nonce) ||
	    !scram_read_name(s, name) || !is_printable(nonce) || nonce.len > AUTH_SCRAM_NONCE_BYTES)
		return malformed(err);
	buf_append_str(&s->nonce, nonce);
	buf_append_str(&s->signed_text, bare);
	buf_append_byte(&s->signed_text, ',');
	return STATUS_OK;
}

/* Keys that no password has, which look like those of somebody. */
static enum status
keys_of_nobody(const struct auth *a, struct str name, struct scram *ret)
{
	AUTO(buf_release) struct buf data = BUF_INIT(sizeof(salt_purpose) + AUTH_NAME_BYTES);
	uint8_t digest[AUTH_DIGEST_BYTES];

	buf_append(&data, salt_purpose, sizeof(salt_purpose));
	buf_append_str(&data, name);
	TRY(buf_status(&data));
	TRY(auth_keyed_digest(a->secret_key, sizeof(a->secret_key), buf_str(&data), digest));
	ret->rounds = a->rounds;
	ret->salt_len = sizeof(ret->salt);
	memcpy(ret->salt, digest, ret->salt_len);
	rand_bytes(ret->stored_key, sizeof(ret->stored_key));
	rand_bytes(ret->server_key, sizeof(ret->server_key));
	return STATUS_OK;
}

/* The keys of somebody. False: there are none. */
static bool
keys_of(const struct auth_who *who, struct scram *ret)
{
	if (who->admin)
		return scram_admins_find(who->verifier, ret);
	if (who->is_person && who->person.has_scram)
		*ret = who->person.scram;
	return who->is_person && who->person.has_scram;
}

/* Finds the name, and the keys that it has now. */
static enum status
find_keys(const struct auth *a, struct str name, const struct auth_client *client,
	  struct arena *arena, struct auth_who *ret_who, struct scram *ret, struct err *err)
{
	enum status status = auth_find(a, name, client, arena, ret_who, err);
	struct lockout_key key;

	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		return status;
	if (auth_lockout_key(a, name, client, ret_who, &key))
		TRY(auth_lockout_check(a, &key, ret_who, err));
	if (status == STATUS_OK && keys_of(ret_who, ret))
		return STATUS_OK;
	return keys_of_nobody(a, name, ret);
}

/* "r=nonce,s=salt,i=rounds" */
static enum status
write_first(struct auth_scram *s, struct arena *arena, struct str *ret)
{
	AUTO(buf_release) struct buf answer = BUF_INIT(2 * AUTH_SCRAM_MESSAGE_BYTES);
	uint8_t noise[SERVER_NONCE_BYTES];

	rand_bytes(noise, sizeof(noise));
	base64_encode(&s->nonce, str_of(noise, sizeof(noise)), BASE64_STANDARD);
	TRY(buf_status(&s->nonce));
	buf_append_cstr(&answer, "r=");
	buf_append_buf(&answer, &s->nonce);
	buf_append_cstr(&answer, ",s=");
	base64_encode(&answer, str_of(s->scram.salt, s->scram.salt_len), BASE64_STANDARD);
	buf_append_cstr(&answer, ",i=");
	buf_append_u64(&answer, s->scram.rounds);
	TRY(buf_status(&answer));
	buf_append_buf(&s->signed_text, &answer);
	buf_append_byte(&s->signed_text, ',');
	TRY(buf_status(&s->signed_text));
	*ret = buf_dup(&answer, arena);
	return ret->ptr ? STATUS_OK : STATUS_NOMEM;
}

enum status
auth_scram_begin(struct auth *a, struct str message, const struct auth_client *client,
		 struct arena *arena, struct auth_scram **ret, struct str *ret_answer,
		 struct err *err)
{
	struct auth_scram *s = mem_zalloc(sizeof(*s));
	struct auth_who who = { 0 };
	enum status status;

	if (!s)
		return err_set(err, STATUS_NOMEM, "out of memory");
	buf_init(&s->header, HEADER_BYTES);
	buf_init(&s->nonce, 2 * AUTH_SCRAM_NONCE_BYTES);
	buf_init(&s->signed_text, 4 * AUTH_SCRAM_MESSAGE_BYTES);
	status = read_first(s, message, err);
	if (status == STATUS_OK)
		status = find_keys(a, str_of(s->name, s->name_len), client, arena, &who, &s->scram,
				   err);
	if (status == STATUS_OK)
		status = write_first(s, arena, ret_answer);
	if (status != STATUS_OK) {
		auth_tell_login(client, str_of(s->name, s->name_len), scram_method, status,
				who.failing);
		auth_scram_free(s);
		return status;
	}
	*ret = s;
	return STATUS_OK;
}

void
auth_scram_free(struct auth_scram *s)
{
	if (!s)
		return;
	buf_release(&s->header);
	buf_release(&s->nonce);
	buf_release(&s->signed_text);
	OPENSSL_cleanse(s, sizeof(*s));
	mem_free(s);
}

/* ---- The second message ---- */

/* "c=biws,r=nonce,p=proof": the proof, if the rest is what it has to be. */
static enum status
read_final(struct auth_scram *s, struct str message, uint8_t ret_proof[SCRAM_KEY_BYTES],
	   struct err *err)
{
	AUTO(buf_release) struct buf header = BUF_INIT(HEADER_BYTES);
	AUTO(buf_release) struct buf proof = BUF_INIT(PROOF_TEXT_BYTES);
	struct str rest = message;
	struct str binding, nonce, text;
	const char *end;

	if (message.len > AUTH_SCRAM_MESSAGE_BYTES || !cut_attribute(&rest, 'c', &binding) ||
	    !cut_attribute(&rest, 'r', &nonce))
		return malformed(err);
	end = rest.ptr - 1; /* the comma before the proof */
	if (!cut_attribute(&rest, 'p', &text) || rest.len)
		return malformed(err);
	if (base64_decode(&header, binding, BASE64_STANDARD) == STATUS_NOMEM ||
	    base64_decode(&proof, text, BASE64_STANDARD) == STATUS_NOMEM)
		return err_set(err, STATUS_NOMEM, "out of memory");
	/* What could not be decoded has left its buffer empty. */
	if (!str_eq(buf_str(&header), buf_str(&s->header)) || !str_eq(nonce, buf_str(&s->nonce)) ||
	    proof.len != SCRAM_KEY_BYTES)
		return malformed(err);
	memcpy(ret_proof, proof.ptr, SCRAM_KEY_BYTES);
	buf_append(&s->signed_text, message.ptr, (size_t)(end - message.ptr));
	return buf_status(&s->signed_text);
}

static bool
sign(const uint8_t key[SCRAM_KEY_BYTES], struct str text, uint8_t ret[SCRAM_KEY_BYTES])
{
	unsigned len = SCRAM_KEY_BYTES;

	return HMAC(EVP_sha256(), key, SCRAM_KEY_BYTES, (const uint8_t *)text.ptr, text.len, ret,
		    &len) != NULL;
}

/* True if the proof was made of the password that the keys were made of. */
static bool
proof_is_right(const struct auth_scram *s, const uint8_t proof[SCRAM_KEY_BYTES])
{
	uint8_t key[SCRAM_KEY_BYTES];
	uint8_t stored[SCRAM_KEY_BYTES];
	bool right;

	if (!sign(s->scram.stored_key, buf_str(&s->signed_text), key))
		return false;
	for (size_t i = 0; i < sizeof(key); i++)
		key[i] ^= proof[i];
	right = EVP_Digest(key, sizeof(key), stored, NULL, EVP_sha256(), NULL) == 1 &&
		CRYPTO_memcmp(stored, s->scram.stored_key, sizeof(stored)) == 0;
	OPENSSL_cleanse(key, sizeof(key));
	return right;
}

static enum status
write_final(const struct auth_scram *s, struct arena *arena, struct str *ret)
{
	AUTO(buf_release) struct buf answer = BUF_INIT(AUTH_SCRAM_MESSAGE_BYTES);
	uint8_t signature[SCRAM_KEY_BYTES];

	if (!sign(s->scram.server_key, buf_str(&s->signed_text), signature))
		return STATUS_NOMEM;
	buf_append_cstr(&answer, "v=");
	base64_encode(&answer, str_of(signature, sizeof(signature)), BASE64_STANDARD);
	TRY(buf_status(&answer));
	*ret = buf_dup(&answer, arena);
	return ret->ptr ? STATUS_OK : STATUS_NOMEM;
}

/* Checks the second message. STATUS_OK: the client knows the password of `*ret_who`. */
static enum status
scram_prove(struct auth_scram *s, struct auth *a, struct str message,
	    const struct auth_client *client, struct arena *arena, struct auth_who *ret_who,
	    struct err *err)
{
	struct str name = str_of(s->name, s->name_len);
	uint8_t proof[SCRAM_KEY_BYTES];
	struct lockout_key key;
	struct scram now;

	TRY(read_final(s, message, proof, err));
	TRY(find_keys(a, name, client, arena, ret_who, &now, err));
	/* The keys may have changed since the first message: then the password may have, too. */
	if (CRYPTO_memcmp(now.stored_key, s->scram.stored_key, sizeof(now.stored_key)) != 0 ||
	    !proof_is_right(s, proof)) {
		if (auth_lockout_key(a, name, client, ret_who, &key))
			lockout_count(&a->lockout, &key);
		return auth_password_is_wrong(err);
	}
	auth_password_is_right();
	return STATUS_OK;
}

enum status
auth_scram_end(struct auth_scram *s, struct auth *a, struct str message,
	       const struct auth_client *client, struct arena *arena, struct str *ret_answer,
	       struct auth_user *ret_user, struct err *err)
{
	struct auth_who who = { 0 };
	enum status status = scram_prove(s, a, message, client, arena, &who, err);

	auth_tell_login(client, str_of(s->name, s->name_len), scram_method, status, who.failing);
	TRY(status);
	TRY(write_final(s, arena, ret_answer));
	if (auth_become(&who, arena, AUTH_METHOD_BASIC, ret_user) != STATUS_OK)
		return err_set(err, STATUS_LIMIT, "out of the request's memory");
	return STATUS_OK;
}
