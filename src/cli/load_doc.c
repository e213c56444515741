#include "cli/load.h"

#include <stdio.h>

#include "base/rand.h"
#include "doc/json.h"

enum {
	ID_RANDOM_BYTES = 13,
	ID_COUNTER_BYTES = 3,
};

/* A new id, which sorts behind those made before: 26 digits are the same for a run, and 6 count. */
static enum status
load_make_id(struct arena *arena, struct str *ret)
{
	static uint8_t random_part[ID_RANDOM_BYTES];
	static uint32_t counter;
	char hex[2 * ID_RANDOM_BYTES + 1];

	if ((counter & ((1U << 8 * ID_COUNTER_BYTES) - 1)) == 0)
		rand_bytes(random_part, sizeof(random_part));
	for (size_t i = 0; i < ID_RANDOM_BYTES; i++)
		snprintf(hex + 2 * i, 3, "%02x", random_part[i]);
	*ret = arena_printf(arena, "%s%06x", hex, counter++ & ((1U << 8 * ID_COUNTER_BYTES) - 1));
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

struct found {
	struct str id;     /* the document's _id */
	struct str member; /* the value of the member that was asked for */
	bool has_members;
	size_t special_bytes;
};

/* Reads the value that `token` begins as an id. */
static enum status
load_take_id(struct json_reader *r, enum json_token token, const char *name, struct arena *arena,
	     struct str *ret, struct err *err)
{
	if (token != JSON_STRING && (token != JSON_NUMBER || strcmp(name, "_id") == 0))
		return err_set(err, STATUS_INVALID,
			       strcmp(name, "_id") == 0
				       ? "member \"%s\" must be a string"
				       : "member \"%s\" must be a string or a number to be the id",
			       name);
	*ret = arena_dup(arena, r->text);
	return ret->ptr ? STATUS_OK : err_set(err, STATUS_LIMIT, "out of memory");
}

static enum status
load_read_members(struct json_reader *r, const char *id_member, struct arena *arena,
		  struct found *found, struct err *err)
{
	enum json_token token = JSON_END;
	struct str value;

	TRY(json_next(r, &token));
	if (token != JSON_OBJECT_BEGIN)
		return err_set(err, STATUS_INVALID, "a document must be an object");
	for (;;) {
		bool is_special;
		bool is_member;
		const char *begin;
		bool is_id;

		TRY(json_next(r, &token));
		if (token == JSON_OBJECT_END)
			break;
		found->has_members = true;
		is_id = str_eq(r->text, STR("_id"));
		is_special = r->text.len && r->text.ptr[0] == '_';
		begin = r->token_begin;
		is_member = id_member && str_eq(r->text, str_from_cstr(id_member));
		TRY(json_next(r, &token));
		if (is_id)
			TRY(load_take_id(r, token, "_id", arena, &found->id, err));
		if (is_member)
			TRY(load_take_id(r, token, id_member, arena, &found->member, err));
		TRY(json_skip(r, token, &value));
		if (is_special)
			found->special_bytes += (size_t)(r->at - begin) + 1; /* and a comma */
	}
	return json_next(r, &token); /* the object must be all there is */
}

enum status
load_doc_read(struct str text, struct str id, const char *id_member, struct arena *arena,
	      struct load_doc *ret, struct err *err)
{
	struct found found = { 0 };
	struct json_reader r;
	struct err reason = { 0 };
	enum status status;

	json_reader_init(&r, text, &reason);
	status = load_read_members(&r, id_member, arena, &found, &reason);
	json_reader_release(&r);
	if (status == STATUS_JSON_SYNTAX || status == STATUS_JSON_UTF8 ||
	    status == STATUS_JSON_DEPTH)
		return err_set(err, status, "in this document, %s", reason.text);
	if (status != STATUS_OK)
		return err_set(err, status, "%s", reason.text);

	if (id_member && !found.member.ptr)
		return err_set(err, STATUS_INVALID, "it has no member \"%s\" to take the id from",
			       id_member);
	if (!id.ptr)
		id = found.member;
	else
		id = arena_dup(arena, id);
	if (id.ptr && found.id.ptr && !str_eq(id, found.id))
		return err_set(err, STATUS_INVALID,
			       "its _id \"%.*s\" is not the id \"%.*s\" that it is to get",
			       STR_ARG(found.id), STR_ARG(id));
	*ret = (struct load_doc){
		.text = text,
		.id = id.ptr ? id : found.id,
		.has_id = found.id.ptr != NULL,
		.has_members = found.has_members,
		.special_bytes = found.special_bytes,
	};
	if (!ret->id.ptr && load_make_id(arena, &ret->id) != STATUS_OK)
		return err_set(err, STATUS_LIMIT, "out of memory");
	return STATUS_OK;
}
