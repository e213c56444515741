"""What a selector matches, by a filter in Python that shares no code with the server."""

from order import rank

NO_MEMBER, BAD_PATH = object(), object()


def look_up(value, path):
    for name in path:
        if isinstance(value, dict):
            if name not in value:
                return NO_MEMBER
            value = value[name]
        elif isinstance(value, list) and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            return BAD_PATH
    return value


def type_of(value):
    return {type(None): "null", bool: "boolean", int: "number", float: "number", str: "string",
            list: "array", dict: "object"}[type(value)]


def holds(op, arg, value):
    key = rank(value)
    if op in ("$in", "$nin"):
        items = value if isinstance(value, list) else [value]
        found = any(rank(item) == rank(one) for item in items for one in arg)
        return found if op == "$in" else not found
    return {
        "$eq": lambda: key == rank(arg), "$ne": lambda: key != rank(arg),
        "$lt": lambda: key < rank(arg), "$lte": lambda: key <= rank(arg),
        "$gt": lambda: key > rank(arg), "$gte": lambda: key >= rank(arg),
        "$type": lambda: type_of(value) == arg,
        "$size": lambda: isinstance(value, list) and len(value) == arg,
        "$beginsWith": lambda: isinstance(value, str) and value.startswith(arg),
        "$elemMatch": lambda: isinstance(value, list) and any(
            all(holds(inner, with_, item) for inner, with_ in arg.items()) for item in value),
    }[op]()


def matches(selector, doc, path=(), negated=False):
    """CouchDB's meaning: negations are pushed down, and what is not there matches nothing."""
    if not isinstance(selector, dict) or not selector:
        selector = {"$eq": selector}
    results = []
    for name, arg in selector.items():
        if name in ("$and", "$or", "$nor"):
            inner = negated != (name == "$nor")
            each = [matches(one, doc, path, inner) for one in arg]
            every = (name == "$and") != negated if name != "$nor" else not negated
            results.append(not each or (all(each) if every else any(each)))
        elif name == "$not":
            results.append(matches(arg, doc, path, not negated))
        elif name.startswith("$"):
            value = look_up(doc, path)
            if name == "$exists":
                wanted = arg != negated
                results.append(wanted if value not in (NO_MEMBER, BAD_PATH)
                               else value is NO_MEMBER and not wanted)
            elif value is NO_MEMBER or value is BAD_PATH:
                results.append(False)
            else:
                results.append(holds(name, arg, value) != negated)
        else:
            results.append(matches(arg, doc, (*path, *name.split(".")), negated))
    return any(results) if negated else all(results)
