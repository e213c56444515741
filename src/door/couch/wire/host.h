/*
 * Which names a server without any administrator answers to.
 *
 * Everybody is an administrator of such a server, which listens on the loopback only. A web page
 * can reach it nevertheless: its own name can be given the address 127.0.0.1 after the browser has
 * loaded it (DNS rebinding), and a plain form can be sent to any address. The browser cannot hide
 * either: the Host header has the page's name, and the Origin header says where a form is from.
 */
#ifndef FROND_DOOR_COUCH_WIRE_HOST_H
#define FROND_DOOR_COUCH_WIRE_HOST_H

#include "door/couch/wire/request.h"

/*
 * Refuses with 403, as long as there is no administrator, a request whose Host header names
 * anything but the loopback, and one that may change something for a page of another origin that
 * the settings of CORS do not allow. A request of HTTP/1.0 may have no Host.
 */
MUST_USE enum status couch_check_host(struct couch_req *r);

#endif
