/* Makes records of people out of documents of _users. */
#include "door/couch/admin/user_doc.h"

#include "access/person.h"
#include "access/scram_table.h"
#include "base/words.h"
#include "doc/json.h"
#include "doc/json_value.h"
#include "door/couch/admin/source.h"
#include "door/couch/admin/tx.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/reply.h"
#include "settings/rules.h"

bool
couch_in_users_db(const struct couch_req *r)
{
	return r->parts_count && str_eq(r->parts[0], STR(COUCH_USERS_DB));
}

struct str
couch_user_of_id(struct str id)
{
	if (!str_starts_with(id, STR(COUCH_USER_PREFIX)))
		return (struct str){ NULL, 0 };
	return str_skip(id, strlen(COUCH_USER_PREFIX));
}

bool
couch_is_user_doc(const struct catalog_db *db, struct str id)
{
	return db->kind->space == CATALOG_SPACE_COUCH && str_eq(db->name, STR(COUCH_USERS_DB)) &&
	       couch_user_of_id(id).ptr;
}

static const char *const password_members[] = {
	"password",      "password_scheme", "password_sha", "pbkdf2_prf",
	"preserve_salt", "derived_key",     "iterations",   "salt",
};

bool
couch_is_password_member(struct str name)
{
	return WORDS_HAVE(password_members, name);
}

/* ---- Reading a document ---- */

static struct str
member_string(const struct json_member *members, size_t count, const char *name)
{
	const struct json_value *value = json_value_find(members, count, name);

	return value && value->kind == JSON_STRING ? value->string : (struct str){ NULL, 0 };
}

static bool
verifier_take_texts(struct verifier *v, struct str salt, struct str hash)
{
	const EVP_MD *md = verifier_md(v->digest);

	if (salt.len > sizeof(v->salt))
		return false;
	if (salt.len)
		memcpy(v->salt, salt.ptr, salt.len);
	v->salt_len = salt.len;
	v->hash_len = (size_t)EVP_MD_get_size(md);
	return hash.len == 2 * v->hash_len && str_from_hex(hash, v->hash) && verifier_is_sound(v);
}

/* Reads the verifier in the document. False: it has none that this server can check. */
static bool
user_verifier(const struct json_member *members, size_t count, struct verifier *ret)
{
	const struct json_value *rounds = json_value_find(members, count, "iterations");
	struct str scheme = member_string(members, count, "password_scheme");
	struct str prf = member_string(members, count, "pbkdf2_prf");
	struct str salt = member_string(members, count, "salt");

	*ret = (struct verifier){ .digest = VERIFIER_SHA1, .rounds = 10000 }; /* CouchDB's */
	if (!scheme.ptr || str_eq(scheme, STR("simple"))) {
		ret->scheme = VERIFIER_SIMPLE;
		return verifier_take_texts(ret, salt,
					   member_string(members, count, "password_sha"));
	}
	if (str_eq(scheme, STR("pbkdf2")))
		ret->scheme = VERIFIER_PBKDF2;
	else if (str_eq(scheme, STR("simple+pbkdf2")))
		ret->scheme = VERIFIER_SIMPLE_PBKDF2;
	else
		return false;
	if (prf.ptr && !verifier_digest_find(prf, &ret->digest))
		return false;
	if (rounds && (rounds->kind != JSON_NUMBER || !str_to_u64(rounds->text, &ret->rounds)))
		return false;
	return verifier_take_texts(ret, salt, member_string(members, count, "derived_key"));
}

/*
 * True for roles that a document cannot give: the server's own, which begin with '_', except
 * _metrics.
 */
static bool
role_is_taken(struct str role)
{
	return !str_starts_with(role, STR("_")) || str_eq(role, STR("_metrics"));
}

static enum status
user_roles(const struct json_value *value, struct arena *arena, struct person *ret)
{
	struct json_value *items;
	size_t count;

	if (!value || value->kind != JSON_ARRAY_BEGIN)
		return STATUS_INVALID;
	TRY(json_value_items(value, arena, &items, &count, NULL));
	ret->roles = arena_alloc(arena, (count + 1) * sizeof(*ret->roles));
	if (!ret->roles)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++)
		if (items[i].kind == JSON_STRING && role_is_taken(items[i].string))
			ret->roles[ret->roles_count++] = items[i].string;
	return person_roles_fit(ret->roles, ret->roles_count) ? STATUS_OK : STATUS_INVALID;
}

/*
 * Reads the person out of a document. STATUS_INVALID if it describes none: replication may bring
 * such a document, which is stored and gives no record.
 */
static enum status
user_read(struct str id, struct str text, struct arena *arena, struct person *ret)
{
	struct json_member *members;
	size_t count;

	*ret = (struct person){ .name = couch_user_of_id(id) };
	TRY(json_read_members(text, arena, &members, &count, NULL));
	if (!person_name_is_sound(ret->name) ||
	    !str_eq(member_string(members, count, "name"), ret->name))
		return STATUS_INVALID;
	TRY(user_roles(json_value_find(members, count, "roles"), arena, ret));
	ret->has_verifier = user_verifier(members, count, &ret->verifier);
	return STATUS_OK;
}

/* ---- The hook ---- */

static bool
verifier_eq(const struct verifier *a, const struct verifier *b)
{
	return a->scheme == b->scheme && a->digest == b->digest && a->rounds == b->rounds &&
	       str_eq(str_of(a->salt, a->salt_len), str_of(b->salt, b->salt_len)) &&
	       str_eq(str_of(a->hash, a->hash_len), str_of(b->hash, b->hash_len));
}

/*
 * The keys of SCRAM are not in the document. For a new password they wait in the table of
 * scram_table.h; for an unchanged one they are taken from the person's record.
 */
static enum status
user_find_scram(struct kv_tx *tx, struct arena *arena, struct person *person)
{
	struct person before;
	enum status status;

	if (!person->has_verifier)
		return STATUS_OK;
	person->has_scram = scram_table_find(&person->verifier, &person->scram);
	if (person->has_scram)
		return STATUS_OK;
	status = person_get(tx, person->name, arena, &before, NULL);
	if (status != STATUS_OK)
		return status == STATUS_NOT_FOUND || status == STATUS_CORRUPT ? STATUS_OK : status;
	if (before.has_scram && before.has_verifier &&
	    verifier_eq(&before.verifier, &person->verifier)) {
		person->has_scram = true;
		person->scram = before.scram;
	}
	return STATUS_OK;
}

enum status
couch_user_changed(struct kv_tx *tx, const struct catalog_db *db,
		   const struct rev_design_change *change, struct arena *arena)
{
	struct str name = couch_user_of_id(change->id);
	struct person person;
	enum status status;
	struct str text;

	(void)db;
	if (!person_name_is_sound(name))
		return STATUS_OK;
	if (!change->after)
		return person_clear(tx, name);
	TRY(couch_source_text(change->after, arena, &text));
	status = user_read(change->id, text, arena, &person);
	if (status == STATUS_INVALID || status == STATUS_JSON_SYNTAX || status == STATUS_JSON_DEPTH)
		return person_clear(tx, name);
	TRY(status);
	TRY(user_find_scram(tx, arena, &person));
	return person_put(tx, &person, NULL);
}

void
couch_user_doc_audit(struct couch_req *r, struct str id)
{
	struct str name = couch_user_of_id(id);

	if (couch_in_users_db(r) && name.ptr)
		couch_audit_changed(r, "person_changed", "person", name);
}

/* ---- Replacing the password ---- */

static void
verifier_write(const struct verifier *v, struct buf *out)
{
	static const char *const schemes[] = {
		[VERIFIER_SIMPLE] = "simple",
		[VERIFIER_PBKDF2] = "pbkdf2",
		[VERIFIER_SIMPLE_PBKDF2] = "simple+pbkdf2",
	};

	buf_printf(out, "\"password_scheme\":\"%s\"", schemes[v->scheme]);
	if (v->scheme != VERIFIER_SIMPLE)
		buf_printf(out, ",\"pbkdf2_prf\":\"%s\",\"iterations\":%llu",
			   verifier_digest_name(v->digest), (unsigned long long)v->rounds);
	buf_append_cstr(out, ",\"salt\":");
	json_write_str(out, str_of(v->salt, v->salt_len));
	buf_append_cstr(out, v->scheme == VERIFIER_SIMPLE ? ",\"password_sha\":\""
							  : ",\"derived_key\":\"");
	buf_append_hex(out, str_of(v->hash, v->hash_len));
	buf_append_byte(out, '"');
}

void
couch_user_doc_write(const struct verifier *v, const struct json_member *members, size_t count,
		     struct buf *out)
{
	buf_append_byte(out, '{');
	verifier_write(v, out);
	for (size_t i = 0; i < count; i++) {
		if (couch_is_password_member(members[i].name))
			continue;
		buf_append_byte(out, ',');
		json_write_str(out, members[i].name);
		buf_append_byte(out, ':');
		buf_append_str(out, members[i].value.text);
	}
	buf_append_byte(out, '}');
}

static enum status
user_text_with(struct couch_req *r, const struct verifier *v, const struct json_member *members,
	       size_t count, struct str *ret)
{
	struct buf AUTO(buf_release) out = couch_buf(r, COUCH_ANSWER_BYTES);

	couch_user_doc_write(v, members, count, &out);
	return buf_copy(&out, r->arena, ret);
}

/* Refuses a password that does not match the operator's expressions, in CouchDB's words. */
static enum status
user_check_password(const struct access_settings *access, struct str password,
		    struct couch_fail *fail)
{
	struct rule broken;
	bool kept;

	if (!access->password_rules)
		return STATUS_OK;
	TRY(rules_apply(str_from_cstr(access->password_rules), password, &broken, &kept,
			&fail->err));
	if (kept)
		return STATUS_OK;
	return couch_fail_set(fail, COUCH_ERROR_BAD_REQUEST,
			      "Password does not conform to requirements.%s%s",
			      broken.reason[0] ? " " : "", broken.reason);
}

enum status
couch_user_hash(struct str password, const struct access_settings *access, struct auth_hashing how,
		struct verifier *ret, struct couch_fail *fail)
{
	struct scram scram;
	enum status status;

	*ret = (struct verifier){ .salt_len = 0 };
	how.rounds = access->iterations;
	TRY(user_check_password(access, password, fail));
	status = auth_make_verifiers(password, &how, ret, &scram, &fail->err);
	if (status == STATUS_INVALID)
		return couch_fail_set(fail, COUCH_ERROR_BAD_REQUEST,
				      "A password has at most %d bytes.", AUTH_PASSWORD_BYTES);
	TRY(status);
	scram_table_add(ret, &scram);
	return STATUS_OK;
}

static enum status
user_hash(struct couch_req *r, struct str password, struct verifier *ret, struct couch_fail *fail)
{
	const struct auth_client client = couch_auth_client(r);
	const struct auth_hashing how = { .client = &client,
					  .limits = people_hash_limits(r->held->settings) };

	return couch_user_hash(password, settings_of(r->held->settings, &access_setting_group), how,
			       ret, fail);
}

struct person_call {
	struct str name;
	struct person person;
	bool found;
};

static enum status
person_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct person_call *c = arg;
	enum status status = person_get(tx, c->name, r->arena, &c->person, &r->fail.err);

	c->found = status == STATUS_OK;
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static bool
user_has_member(const struct json_member *members, size_t count, bool (*is)(struct str))
{
	for (size_t i = 0; i < count; i++)
		if (is(members[i].name))
			return true;
	return false;
}

/* Adds the stored hash to a document that its owner writes back without it. */
static enum status
user_keep_hash(struct couch_req *r, struct str id, const struct json_member *members, size_t count,
	       struct str *ret)
{
	struct person_call c = { .name = couch_user_of_id(id) };

	if (r->user.admin || !r->user.name.len || !str_eq(c.name, r->user.name) ||
	    user_has_member(members, count, couch_is_password_member))
		return STATUS_OK;
	TRY(couch_store_read(r, person_attempt, &c));
	if (!c.found || !c.person.has_verifier)
		return STATUS_OK;
	return user_text_with(r, &c.person.verifier, members, count, ret);
}

enum status
couch_user_doc_text(struct couch_req *r, struct str id, struct str text, struct str *ret,
		    struct couch_fail *fail)
{
	const struct json_value *password;
	struct json_member *members;
	struct json_value value;
	struct verifier v;
	size_t count;

	*ret = (struct str){ NULL, 0 };
	TRY(json_value_read(text, r->arena, &value, &fail->err));
	TRY(json_value_members(&value, r->arena, &members, &count, &fail->err));
	password = json_value_find(members, count, "password");
	if (!password || password->kind == JSON_NULL)
		return user_keep_hash(r, id, members, count, ret);
	if (password->kind != JSON_STRING)
		return couch_fail_set(fail, COUCH_ERROR_FORBIDDEN,
				      "The value of a password is a string.");
	TRY(user_hash(r, password->string, &v, fail));
	return user_text_with(r, &v, members, count, ret);
}
