CREATE FUNCTION frond_handler() RETURNS fdw_handler
	AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

CREATE FUNCTION frond_validator(text[], oid) RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

CREATE FOREIGN DATA WRAPPER frond HANDLER frond_handler VALIDATOR frond_validator;

-- The name that CREATE TABLE ... USING knows. No table has it: the library makes foreign tables of
-- such statements, and the handler refuses what is left.
CREATE FUNCTION frond_access_method(internal) RETURNS table_am_handler
	AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

CREATE ACCESS METHOD frond TYPE TABLE HANDLER frond_access_method;

-- Puts numbers of frond in the place of nextval(), where a column of a table there owns the sequence.
CREATE FUNCTION frond_nextval(regclass) RETURNS bigint
	AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

-- The triggers of FOREIGN KEY constraints: of a table that refers to another, and of that other one.
CREATE FUNCTION frond_reference() RETURNS trigger
	AS 'MODULE_PATHNAME' LANGUAGE C;

CREATE FUNCTION frond_referenced() RETURNS trigger
	AS 'MODULE_PATHNAME' LANGUAGE C;
