#include "index/plan/cover.h"

bool
cover_has(const struct cover *c, struct str field)
{
	for (size_t i = 0; i < c->count; i++)
		if (str_eq(c->columns[i], field))
			return true;
	return c->id.len && str_eq(c->id, field);
}

bool
cover_has_all(const struct cover *c, const struct str *fields, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!cover_has(c, fields[i]))
			return false;
	return true;
}
