"""Plausible calls of MongoDB's door, and the parts that they are put together from; for fuzz_mongo.py.

New commands and operators need no line here: they are called by their names, which the server lists and the
sources have. A line here has a command called with arguments that it takes."""

import struct

import mongo
from fuzz_doors import harvest
from mongo import Date, Int64, ObjectId, Raw, Timestamp

DB = "fuzz"


class Cursor:
    """The id of the cursor that was opened last."""

    def __repr__(self):
        return "<cursor>"


def code(kind, text):
    data = text.encode() + b"\0"
    data = struct.pack("<i", len(data)) + data
    return Raw(13, data) if kind == 13 else Raw(15, struct.pack("<i", len(data) + 9) + data + mongo.encode({}))


def decimal(text):
    """Decimal128 of a few digits."""
    special = {"NaN": 0x7C << 56, "inf": 0x78 << 56, "-inf": 0xF8 << 56}
    if text in special:
        return Raw(19, struct.pack("<QQ", 0, special[text]))
    digits, _, exponent = text.partition("e")
    number, power = int(digits), int(exponent or 0)
    return Raw(19, struct.pack("<QQ", abs(number) & (2**64 - 1),
                               (number < 0) << 63 | (6176 + power) << 49 | abs(number) >> 64))


def regex(pattern, options=""):
    return Raw(11, pattern.encode() + b"\0" + options.encode() + b"\0")


def binary(kind, data):
    return Raw(5, struct.pack("<iB", len(data), kind) + data)


WORDS = harvest("mql/**/*.[ch]", r'"(\$?[A-Za-z][A-Za-z0-9]{0,30})"') + harvest("door/mongo/**/*.c",
    r'"([a-z][A-Za-z0-9]{1,30})"')
EXPRESSIONS = harvest("mql/expr/*.c", r'"(\$[A-Za-z0-9]+)"')
MEMBERS = harvest("mql/expr/*.c", r'"([a-z][A-Za-z]{1,15})"')
FILTERS = harvest("mql/match/*.c", r'"(\$[A-Za-z0-9]+)"')
UPDATES = harvest("mql/update/*.c", r'"(\$[A-Za-z0-9]+)"')
STAGES = harvest("mql/stage/stages*", r'"(\$[A-Za-z0-9]+)"')
SUMS = harvest("mql/stage/accum*.c", r'"(\$[A-Za-z0-9]+)"') + harvest("mql/stage/window_*.c", r'"(\$[A-Za-z0-9]+)"')

PATHS = ["_id", "a", "b", "c", "a.b", "l", "l.0", "l.x", "t", "s", "d", "n", "k.b.c", "none", "geo"]
COLLECTIONS = ["c", "c", "c", "empty", "none", "view", "valid", "uniq", "system.views", "coll", "clus"]

FIND_FILTERS = [
    {}, {"a": 3}, {"a": {"$gt": 2, "$lte": 9}}, {"_id": {"$in": [1, 2, "x"]}}, {"$or": [{"a": 1}, {"b": "x"}]},
    {"l": {"$elemMatch": {"x": {"$gt": 1}}}}, {"l": {"$size": 2}}, {"s": regex("^a.*c$", "i")},
    {"s": {"$regex": "a", "$options": "x"}},
    {"$and": [{"a": {"$exists": True}}, {"$nor": [{"b": None}]}]}, {"a": {"$mod": [4, 1]}},
    {"a": {"$not": {"$type": ["int", 2]}}},
    {"n": {"$bitsAllSet": [0, 2]}}, {"n": {"$bitsAnyClear": 5}}, {"l": {"$all": [1, 2]}},
    {"$expr": {"$gt": ["$a", {"$strLenCP": "$s"}]}},
    {"$jsonSchema": {"bsonType": "object", "required": ["a"],
    "properties": {"a": {"minimum": 0, "multipleOf": 2}, "s": {"pattern": "a", "maxLength": 5},
    "l": {"items": {"type": "number"}, "uniqueItems": True}}}},
    {"$comment": "x", "a": {"$ne": 1}}, {"a": {"$eq": {"b": 1}}}, {"a": {"$nin": [regex("x"), None]}},
    {"$alwaysTrue": 1}, {"$sampleRate": 0.5},
    {"d": {"$lt": Date(10**12)}}, {"_id": ObjectId(b"123456789012")},
]
UPDATE_PARTS = [
    {"$set": {"a": 5, "k.b.c": "x", "l.0": 7}}, {"$inc": {"a": 1, "n": Int64(5)}}, {"$mul": {"a": 2.5}},
    {"$min": {"a": 1}, "$max": {"n": 9}},
    {"$unset": {"b": ""}}, {"$rename": {"b": "bb"}}, {"$push": {"l": {"$each": [3, 4], "$slice": -5,
    "$position": 1, "$sort": 1}}},
    {"$push": {"l": {"$each": [{"x": 1}], "$sort": {"x": -1}}}}, {"$addToSet": {"l": {"$each": [1, 2]}}},
    {"$pop": {"l": 1}}, {"$pull": {"l": {"$gt": 3}}},
    {"$pullAll": {"l": [1, 2]}}, {"$bit": {"n": {"and": 7, "or": Int64(8), "xor": 1}}},
    {"$currentDate": {"d": True, "e": {"$type": "timestamp"}}},
    {"$setOnInsert": {"z": 1}}, {"$set": {"l.$[e].x": 2, "l.$[]": 1}}, {"$set": {"l.$": 9}}, {"a": 9,
    "s": "replaced"},
    [{"$set": {"a": {"$add": ["$a", 1]}}}, {"$unset": ["b"]},
    {"$replaceWith": {"$mergeObjects": ["$$ROOT", {"x": 1}]}}],
]
STAGE_SPECS = [
    {"$match": {"a": {"$gt": 1}}}, {"$group": {"_id": "$b", "n": {"$sum": "$a"}, "l": {"$push": "$s"},
    "f": {"$firstN": {"input": "$a", "n": 2}}, "p": {"$percentile": {"input": "$a", "p": [0.5],
    "method": "approximate"}}}},
    {"$project": {"a": 1, "x": {"$concat": ["$s", "y"]}, "l": {"$slice": ["$l", 1]}}},
    {"$sort": {"a": -1, "b": 1}}, {"$limit": 5}, {"$skip": 1},
    {"$unwind": {"path": "$l", "includeArrayIndex": "i", "preserveNullAndEmptyArrays": True}},
    {"$bucket": {"groupBy": "$a", "boundaries": [0, 5, 10], "default": "other", "output": {"n": {"$sum": 1}}}},
    {"$bucketAuto": {"groupBy": "$a", "buckets": 3, "granularity": "R5"}},
    {"$facet": {"x": [{"$count": "n"}], "y": [{"$sortByCount": "$b"}]}},
    {"$lookup": {"from": "c", "localField": "a", "foreignField": "a", "as": "j"}},
    {"$lookup": {"from": "c", "let": {"v": "$a"}, "pipeline": [{"$match": {"$expr": {"$eq": ["$a", "$$v"]}}},
    {"$limit": 2}], "as": "j"}},
    {"$graphLookup": {"from": "c", "startWith": "$a", "connectFromField": "a", "connectToField": "n", "as": "g",
    "maxDepth": 2, "depthField": "d", "restrictSearchWithMatch": {"a": 1}}},
    {"$setWindowFields": {"partitionBy": "$b", "sortBy": {"a": 1},
    "output": {"m": {"$avg": "$a", "window": {"documents": [-1, "current"]}}, "r": {"$rank": {}},
    "s": {"$shift": {"output": "$a", "by": -1, "default": 0}},
    "i": {"$integral": {"input": "$a", "unit": "hour"}, "window": {"range": [-1, 1], "unit": "day"}},
    "e": {"$expMovingAvg": {"input": "$a", "N": 3}}}}},
    {"$densify": {"field": "a", "range": {"step": 2, "bounds": [0, 20]}, "partitionByFields": ["b"]}},
    {"$densify": {"field": "d", "range": {"step": 1, "unit": "month", "bounds": "full"}}},
    {"$fill": {"partitionByFields": ["b"], "sortBy": {"a": 1}, "output": {"n": {"method": "linear"},
    "s": {"value": "x"}}}}, {"$redact": {"$cond": [{"$gt": ["$a", 2]}, "$$KEEP", "$$PRUNE"]}},
    {"$replaceRoot": {"newRoot": {"a": "$$ROOT"}}}, {"$sample": {"size": 3}},
    {"$set": {"x": {"$map": {"input": "$l", "as": "e", "in": {"$add": ["$$e", 1]}}}}}, {"$unset": ["a", "b.c"]},
    {"$unionWith": {"coll": "c", "pipeline": [{"$limit": 1}]}}, {"$count": "n"}, {"$sortByCount": "$a"},
    {"$indexStats": {}}, {"$collStats": {"count": {}, "storageStats": {"scale": 1024},
    "latencyStats": {"histograms": True}}},
    {"$documents": [{"a": 1}, {"a": {"$add": [1, 2]}}]}, {"$out": "out"},
    {"$merge": {"into": "out", "on": "_id", "whenMatched": "merge", "whenNotMatched": "insert"}},
    {"$merge": {"into": {"db": DB, "coll": "out"}, "let": {"x": 1}, "whenMatched": [{"$set": {"v": "$$x"}}],
    "whenNotMatched": "discard"}},
    {"$changeStream": {"fullDocument": "updateLookup", "showExpandedEvents": True,
    "startAtOperationTime": Timestamp(5 << 32)}}, {"$changeStream": {"allChangesForCluster": False}},
    {"$currentOp": {"allUsers": True, "idleSessions": True}}, {"$listLocalSessions": {}},
]
EXPRESSION_SPECS = [
    {"$cond": {"if": {"$gt": ["$a", 1]}, "then": 1, "else": "$b"}},
    {"$switch": {"branches": [{"case": True, "then": 1}], "default": 2}},
    {"$let": {"vars": {"v": "$a"}, "in": {"$add": ["$$v", 1]}}},
    {"$dateFromString": {"dateString": "2020-02-30T01:02:03", "format": "%Y-%m-%dT%H:%M:%S",
    "timezone": "+02:00", "onError": None, "onNull": 1}},
    {"$dateToString": {"date": "$d", "format": "%G-%V %j %L %z", "timezone": "Europe/Berlin"}},
    {"$dateFromParts": {"year": 2020, "month": 13, "day": -5, "hour": 99, "minute": 7, "second": 1,
    "millisecond": 1001, "timezone": "UTC"}}, {"$dateFromParts": {"isoWeekYear": 2020, "isoWeek": 53,
    "isoDayOfWeek": 7}}, {"$dateToParts": {"date": "$d", "iso8601": True}},
    {"$dateAdd": {"startDate": "$d", "unit": "quarter", "amount": 5, "timezone": "America/New_York"}},
    {"$dateDiff": {"startDate": "$d", "endDate": Date(0), "unit": "week", "startOfWeek": "mon"}},
    {"$dateTrunc": {"date": "$d", "unit": "week", "binSize": 2, "startOfWeek": "friday"}},
    {"$filter": {"input": "$l", "as": "e", "cond": {"$gt": ["$$e", 1]}, "limit": 1}},
    {"$reduce": {"input": "$l", "initialValue": 0, "in": {"$add": ["$$value", "$$this"]}}},
    {"$map": {"input": {"$range": [0, 5, 2]}, "in": "$$this"}},
    {"$zip": {"inputs": ["$l", [1, 2]], "useLongestLength": True, "defaults": [0, 1]}},
    {"$slice": ["$l", -2, 1]}, {"$range": [0, 10, 3]}, {"$indexOfArray": ["$l", 2, 0, 5]},
    {"$indexOfCP": ["$s", "b", 0, 9]}, {"$substrBytes": ["$s", 0, 2]}, {"$substrCP": ["$s", 1, 2]},
    {"$split": ["$s", "b"]}, {"$trim": {"input": "$s", "chars": "a"}},
    {"$replaceAll": {"input": "$s", "find": "b", "replacement": "x"}},
    {"$regexFindAll": {"input": "$s", "regex": "(a)(b)?", "options": "si"}},
    {"$regexMatch": {"input": "$s", "regex": regex("a")}},
    {"$convert": {"input": "$s", "to": "decimal", "onError": 0, "onNull": None}},
    {"$convert": {"input": "$a", "to": {"type": "binData", "subtype": 4}, "format": "uuid"}}, {"$toDate": "$a"},
    {"$toLong": {"$toDecimal": "$n"}}, {"$toObjectId": "$s"}, {"$toUUID": "$s"},
    {"$round": ["$a", -2]}, {"$trunc": ["$a", 3]}, {"$pow": ["$a", 63]}, {"$log": ["$a", 2]},
    {"$mod": ["$n", -1]}, {"$divide": ["$a", 0.1]}, {"$multiply": ["$n", "$n", decimal("5")]},
    {"$subtract": ["$d", 1]}, {"$bitAnd": ["$n", 7]}, {"$bitNot": "$n"},
    {"$setField": {"field": "x", "input": "$$ROOT", "value": "$$REMOVE"}},
    {"$getField": {"field": "a", "input": "$$ROOT"}}, {"$objectToArray": "$k"},
    {"$arrayToObject": [[{"k": "a", "v": 1}]]}, {"$mergeObjects": ["$k", {"x": 1}]},
    {"$sortArray": {"input": "$l", "sortBy": {"x": 1}}}, {"$firstN": {"input": "$l", "n": 2}},
    {"$maxN": {"input": "$l", "n": 1}},
    {"$setUnion": ["$l", [1]]}, {"$setIsSubset": [[1], "$l"]}, {"$allElementsTrue": ["$l"]}, {"$in": [1, "$l"]},
    {"$arrayElemAt": ["$l", -1]}, {"$concatArrays": ["$l", [1]]}, {"$reverseArray": "$l"},
    {"$percentile": {"input": "$l", "p": [0, 0.5, 1], "method": "approximate"}},
    {"$median": {"input": [1, 2], "method": "approximate"}},
    {"$binarySize": "$s"}, {"$bsonSize": "$$ROOT"}, {"$type": "$a"}, {"$isNumber": "$a"},
    {"$literal": {"$x": 1}}, {"$rand": {}}, {"$toHashedIndexKey": "$a"}, {"$strcasecmp": ["$s", "B"]},
    {"$cmp": ["$a", "$b"]}, {"$tsSecond": Timestamp(5)}, {"$meta": "indexKey"}, {"$ifNull": ["$none", "$a", 1]},
    {"$function": {"body": "function (a) { return a; }", "args": ["$a"], "lang": "js"}},
]
SESSION = {"id": binary(4, b"0123456789abcdef")}
PLANS = [{"find": "c", "filter": {"a": 1}}, {"aggregate": "c", "pipeline": [{"$match": {"a": 1}}],
    "cursor": {}}, {"count": "c", "query": {"a": 1}}, {"distinct": "c", "key": "a"},
         {"update": "c", "updates": [{"q": {"a": 1}, "u": {"$set": {"b": 1}}}]}, {"delete": "c",
         "deletes": [{"q": {"a": 1}, "limit": 1}]}, {"findAndModify": "c", "query": {"a": 1},
         "update": {"$set": {"b": 1}}}]
CALLS = [
    {"find": "c", "filter": {"a": {"$gt": 1}}, "sort": {"a": 1, "b": -1}, "projection": {"a": 1,
    "l": {"$slice": [1, 2]}, "x": {"$add": ["$a", 1]}}, "skip": 1, "limit": 7, "batchSize": 2,
    "singleBatch": False, "noCursorTimeout": False, "hint": {"a": 1}, "let": {"v": 1},
    "collation": {"locale": "de", "strength": 2, "caseLevel": True, "numericOrdering": True}},
    {"find": "c", "filter": {}, "projection": {"l": {"$elemMatch": {"x": 1}}, "s": 0}}, {"find": "c",
    "min": {"a": 1}, "max": {"a": 5}, "hint": "a_1", "returnKey": True, "showRecordId": True}, {"find": "c",
    "batchSize": 1, "tailable": False, "awaitData": False, "allowPartialResults": True, "allowDiskUse": True,
    "oplogReplay": False},
    {"find": "c", "filter": {"l": 1}, "projection": {"l.$": 1}}, {"getMore": Cursor(), "collection": "c",
    "batchSize": 2}, {"killCursors": "c", "cursors": [Cursor(), Int64(5)]},
    {"insert": "c", "documents": [{"_id": 99, "a": 1}, {"a": 2, "l": [1, {"x": 2}]}], "ordered": False,
    "bypassDocumentValidation": True}, {"insert": "valid", "documents": [{"a": 1}]},
    {"delete": "c", "deletes": [{"q": {"a": 1}, "limit": 1, "hint": "a_1", "collation": {"locale": "simple"}},
    {"q": {"b": "none"}, "limit": 0}], "ordered": True, "let": {"x": 1}},
    {"count": "c", "query": {"a": 1}, "limit": 5, "skip": 1, "hint": "a_1", "collation": {"locale": "en"}},
    {"distinct": "c", "key": "l.x", "query": {"a": {"$gt": 0}}, "hint": {"a": 1}},
    {"create": "coll", "collation": {"locale": "en"}, "validator": {"a": {"$gt": 0}},
    "validationLevel": "strict", "validationAction": "error", "clusteredIndex": {"key": {"_id": 1},
    "unique": True, "name": "x"}, "expireAfterSeconds": 1000}, {"create": "view2", "viewOn": "c",
    "pipeline": [{"$match": {"a": 1}}]},
    {"create": "capped", "capped": True, "size": 4096, "max": 10}, {"create": "ts",
    "timeseries": {"timeField": "t", "metaField": "m", "granularity": "hours", "bucketMaxSpanSeconds": 3600}},
    {"drop": "out"}, {"drop": "coll"},
    {"collMod": "valid", "validator": {"a": {"$lt": 100}}, "validationLevel": "moderate",
    "validationAction": "warn"}, {"collMod": "c", "index": {"name": "ttl", "keyPattern": {"d": 1},
    "expireAfterSeconds": 5000, "hidden": True, "unique": True, "prepareUnique": True}}, {"collMod": "view",
    "viewOn": "c", "pipeline": []}, {"collMod": "clus", "expireAfterSeconds": 100,
    "changeStreamPreAndPostImages": {"enabled": True}},
    {"createIndexes": "c", "indexes": [{"key": {"x": 1, "y.z": -1}, "name": "x", "unique": True, "sparse": True,
    "partialFilterExpression": {"x": {"$gt": 5}, "$and": [{"y": 1}]}, "expireAfterSeconds": 10,
    "collation": {"locale": "fr"}, "hidden": False, "v": 2, "background": True}], "commitQuorum": 1},
    {"createIndexes": "coll", "indexes": [{"key": {"w.$**": 1}, "name": "w", "wildcardProjection": {"a": 1}}]},
    {"createIndexes": "c", "indexes": [{"key": {"h": "hashed"}, "name": "h"}, {"key": {"t": "text"},
    "name": "t", "weights": {"t": 3}, "default_language": "en"}, {"key": {"g": "2dsphere"}, "name": "g"}]},
    {"createIndexes": "c", "indexes": [{"key": {"p": 1}, "name": "p",
    "partialFilterExpression": {"$or": [{"a": {"$exists": True}}, {"b": {"$type": "string"}}]}}]},
    {"dropIndexes": "c", "index": "x"}, {"dropIndexes": "c", "index": ["x", "h"]}, {"dropIndexes": "c",
    "index": {"x": 1}}, {"dropIndexes": "coll", "index": "*"}, {"listIndexes": "c", "cursor": {"batchSize": 1}},
    {"listCollections": 1, "filter": {"name": "c"}, "nameOnly": True, "authorizedCollections": True,
    "cursor": {"batchSize": 1}},
    {"dropDatabase": 1, "$db": "other"}, {"collStats": "c", "scale": 1024}, {"dbStats": 1, "scale": 1,
    "freeStorage": 1}, {"dataSize": DB + ".c", "keyPattern": {"a": 1}, "min": {"a": 1}, "max": {"a": 5},
    "estimate": False, "maxSize": 100}, {"dbHash": 1, "collections": ["c"]}, {"validate": "c", "full": True,
    "repair": False, "metadata": False},
    {"renameCollection": DB + ".coll", "to": DB + ".renamed", "dropTarget": True, "$db": "admin"},
    {"listDatabases": 1, "filter": {"name": "x"}, "nameOnly": False, "authorizedDatabases": True,
    "$db": "admin"}, {"planCacheClear": "c", "query": {"a": 1}, "sort": {"a": 1}, "projection": {}},
    {"planCacheListFilters": "c"},
    {"bulkWrite": 1, "ops": [{"insert": 0, "document": {"a": 1}}, {"update": 0, "filter": {"a": 1},
    "updateMods": {"$set": {"b": 2}}, "multi": True, "upsert": True, "arrayFilters": [], "hint": "a_1"},
    {"delete": 1, "filter": {"a": 1}, "multi": False}], "nsInfo": [{"ns": DB + ".c"}, {"ns": DB + ".empty"}],
    "ordered": False, "errorsOnly": False, "cursor": {"batchSize": 1}, "let": {"x": 1}, "$db": "admin"},
    {"createUser": "eve", "pwd": "secret", "roles": ["read", {"role": "readWrite", "db": DB}],
    "customData": {"x": 1}, "mechanisms": ["SCRAM-SHA-256"],
    "authenticationRestrictions": [{"clientSource": ["10.0.0.0/8"]}], "digestPassword": True},
    {"updateUser": "eve", "pwd": "other", "roles": []}, {"grantRolesToUser": "eve", "roles": ["read"]},
    {"revokeRolesFromUser": "eve", "roles": [{"role": "read", "db": DB}]}, {"dropUser": "eve"},
    {"dropAllUsersFromDatabase": 1},
    {"usersInfo": {"user": "eve", "db": DB}, "showCredentials": True, "showPrivileges": True,
    "filter": {"user": "x"}}, {"usersInfo": ["eve", {"forAllDBs": True}]},
    {"rolesInfo": {"role": "read", "db": DB}, "showPrivileges": True, "showBuiltinRoles": True},
    {"connectionStatus": 1, "showPrivileges": True}, {"saslStart": 1, "mechanism": "SCRAM-SHA-256",
    "payload": b"n,,n=eve,r=abcdefghijkl", "autoAuthorize": 1, "options": {"skipEmptyExchange": True}},
    {"saslContinue": 1, "conversationId": 1, "payload": b"c=biws,r=abc,p=AAAA"},
    {"currentOp": 1, "$all": True, "$ownOps": False, "$db": "admin"}, {"killOp": 1, "op": 5, "$db": "admin"},
    {"getLog": "startupWarnings", "$db": "admin"}, {"getParameter": 1, "transactionLifetimeLimitSeconds": 1,
    "allParameters": True, "$db": "admin"}, {"getParameter": {"showDetails": True}, "$db": "admin"},
    {"setParameter": 1, "transactionLifetimeLimitSeconds": 60, "$db": "admin"}, {"profile": 0, "slowms": 100,
    "sampleRate": 0.5, "filter": {"a": 1}},
    {"startSession": 1}, {"refreshSessions": [SESSION]}, {"endSessions": [SESSION]},
    {"killSessions": [SESSION]}, {"killAllSessions": [{"user": "eve", "db": DB}]},
    {"killAllSessionsByPattern": [{"lsid": SESSION, "uid": binary(0, b"x" * 32),
    "users": [{"user": "eve", "db": DB}]}]},
    {"hello": 1, "client": {"driver": {"name": "x", "version": "1"}, "os": {"type": "x"},
    "application": {"name": "y"}}, "compression": ["zlib"], "saslSupportedMechs": DB + ".eve",
    "speculativeAuthenticate": {"saslStart": 1, "mechanism": "SCRAM-SHA-256",
    "payload": b"n,,n=eve,r=abcdefghijkl", "db": "admin"}, "hostInfo": "x", "helloOk": True,
    "loadBalanced": False}, {"hello": 1, "topologyVersion": {"processId": ObjectId(b"123456789012"),
    "counter": Int64(0)}, "maxAwaitTimeMS": Int64(10)},
    {"configureFailPoint": "failCommand", "mode": "off", "data": {"failCommands": ["none"], "errorCode": 2},
    "$db": "admin"}, {"setFeatureCompatibilityVersion": "7.0", "confirm": True, "$db": "admin"},
    {"setDefaultRWConcern": 1, "defaultReadConcern": {"level": "local"}, "defaultWriteConcern": {"w": 1},
    "$db": "admin"}, {"getDefaultRWConcern": 1, "inMemory": True, "$db": "admin"}, {"fsync": 1, "lock": False,
    "$db": "admin"}, {"top": 1, "$db": "admin"}, {"serverStatus": 1, "metrics": 0, "repl": {"x": 1}},
    {"replSetGetStatus": 1, "initialSync": 1, "$db": "admin"}, {"buildInfo": 1}, {"createRole": "r",
    "privileges": [], "roles": []}, {"createSearchIndexes": "c", "indexes": []},
    {"commitTransaction": 1, "lsid": SESSION, "txnNumber": Int64(1), "autocommit": False, "$db": "admin"},
    {"abortTransaction": 1, "lsid": SESSION, "txnNumber": Int64(1), "autocommit": False, "$db": "admin"},
    {"insert": "c", "documents": [{"x": 1}], "lsid": SESSION, "txnNumber": Int64(1), "startTransaction": True,
    "autocommit": False}, {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"a": 1}}}],
    "lsid": SESSION, "txnNumber": Int64(1), "autocommit": False, "stmtId": 1}, {"insert": "c",
    "documents": [{"x": 1}], "lsid": SESSION, "txnNumber": Int64(2), "stmtIds": [0]},
]
COMMON = [
    ("lsid", SESSION), ("txnNumber", Int64(1)), ("autocommit", False), ("startTransaction", True),
    ("stmtId", 0),
    ("readConcern", {"level": "snapshot", "atClusterTime": Timestamp(5 << 32), "afterClusterTime": Timestamp(5 << 32)}),
    ("writeConcern", {"w": "majority", "j": True, "wtimeout": 100}), ("maxTimeMS", 1000),
    ("comment", {"x": 1}),
    ("$readPreference", {"mode": "secondary", "tags": [{"x": "y"}], "maxStalenessSeconds": 100}),
    ("$clusterTime", {"clusterTime": Timestamp(5 << 32), "signature": {"hash": b"x" * 20, "keyId": Int64(1)}}),
    ("apiVersion", "1"), ("apiStrict", True), ("apiDeprecationErrors", False), ("collation", {"locale": "de"}),
    ("hint", "a_1"), ("let", {"v": 1}), ("cursor", {"batchSize": 1}), ("$audit", {}), ("maxAwaitTimeMS", 10),
    ("arrayFilters", [{"e.x": 1}]), ("sort", {"a": 1}), ("rawData", True),
]

# What has failed once: each is called in every run.
FIXED = [
    {"createIndexes": "c", "indexes": [{"key": {"x": 1}, "name": "x",
                                        "partialFilterExpression": {"$and": decimal("15e-1")}}]},
    {"delete": "c", "deletes": [{"q": {"a": 1}, "limit": 1, "hint": 0.0}]},
    {"explain": {"count": "c", "query": {"a": 1}, "hint": True}},
    {"grantRolesToUser": "0" * 10000, "roles": ["read"]},
    {"createUser": "0" * 10000, "pwd": "x", "roles": []},
    {"aggregate": "c", "pipeline": [{"$facet": {"x": [{"$count": "n"}]}}] * 1000, "cursor": {}},
]
