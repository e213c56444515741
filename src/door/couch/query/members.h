/*
 * The members of a query's body, checked as CouchDB checks them: by one table of names, each with
 * its check, in the order in which CouchDB reports mistakes; then a member with another name is
 * refused.
 */
#ifndef FROND_DOOR_COUCH_QUERY_MEMBERS_H
#define FROND_DOOR_COUCH_QUERY_MEMBERS_H

#include "doc/json_value.h"
#include "door/couch/wire/request.h"
#include "index/selector/selector.h"

/*
 * One member that a body may have. `take` gets the value, and the place behind the beginning of
 * what the body is read into where it puts it; with `at` 0 it may be for the whole.
 */
struct query_member {
	const char *name;
	bool required;
	enum status (*take)(struct couch_req *r, const struct json_value *value, void *into);
	size_t at;
};

/*
 * Reads the body as a JSON object of at most `max_bytes`, and hands each member of the table that
 * it has to its `take`. Of several members of one name the last one counts.
 */
MUST_USE enum status query_members_read(struct couch_req *r, size_t max_bytes,
					const struct query_member *table, size_t count, void *into);

/* The same for the members of a value inside of the body, which must be an object. */
MUST_USE enum status query_members_check(struct couch_req *r, const struct json_member *members,
					 size_t members_count, const struct query_member *table,
					 size_t count, void *into);

/*
 * For `take`: values of one kind; anything else is refused in CouchDB's words. They put a `const
 * struct json_value *`, a bool, a uint64_t twice, and a string that is not empty as a `struct str`.
 */
MUST_USE enum status query_take_value(struct couch_req *r, const struct json_value *v, void *ret);
MUST_USE enum status query_take_bool(struct couch_req *r, const struct json_value *v, void *ret);
MUST_USE enum status query_take_count(struct couch_req *r, const struct json_value *v, void *ret);
MUST_USE enum status query_take_positive(struct couch_req *r, const struct json_value *v,
					 void *ret);
MUST_USE enum status query_take_name(struct couch_req *r, const struct json_value *v, void *ret);

/*
 * Compiles a selector. What is wrong with one is answered by the error that CouchDB has for it; a
 * limit that it passes is the client's mistake, too.
 */
MUST_USE enum status query_selector_compile(struct couch_req *r, struct str text,
					    struct selector **ret);

/* The answer to what selector_compile() or selector_fields_compile() has refused. */
enum status query_refuse_selector(struct couch_req *r, enum status status,
				  enum selector_error error);

/* One field of a sort or of an index, and the whole list. */
struct query_sort {
	struct str *fields;
	size_t count;
	bool descending;
};

/* For `take`: reads ["a", {"b":"asc"}] into one. All fields have one direction, as in CouchDB. */
MUST_USE enum status query_take_sort(struct couch_req *r, const struct json_value *v, void *into);

#endif
