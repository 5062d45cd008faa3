/* SPDX-License-Identifier: MIT
 *
 * json_check.h: whether a text is JSON (RFC 8259), and nothing else but JSON. A blank line at the end is allowed.
 */
#ifndef JSON_CHECK_H
#define JSON_CHECK_H

int is_json(const char *text);

#endif
