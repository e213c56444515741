/*
 * Ids that the server makes: of documents that come without one, and for GET /_uuids. How they are
 * made is a setting, [uuids] algorithm, with the choices that CouchDB has.
 *
 * Threading: any thread.
 */
#ifndef FROND_DOOR_COUCH_WIRE_UUID_H
#define FROND_DOOR_COUCH_WIRE_UUID_H

#include "base/arena.h"
#include "base/str.h"
#include "door/couch/wire/settings.h"

/* A new id, as the settings say. In the arena; ptr NULL: no memory. */
struct str couch_docid_new(const struct couch_settings *settings, struct arena *arena);

/*
 * The time, then random digits: 32 digits, each id greater than all before it. What documents get
 * unless the settings say otherwise, and what separates parts of multipart bodies.
 */
struct str couch_uuid_new(struct arena *arena);

#endif
