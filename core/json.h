/* SPDX-License-Identifier: MIT
 *
 * json.h: floor 1, JSON (RFC 8259) written into a text, alike in every locale, in ASCII and on one line.
 *
 * Commas come by themselves: a value in an array, or a key in an object, puts one before it where it is not the first.
 */
#ifndef CT_JSON_H
#define CT_JSON_H

#include <stddef.h>
#include <stdint.h>

#include "format.h"

typedef struct ct__json {
    ct__text *text;
    int follows; /* something stands before that asks for a comma */
} ct__json;

void ct__json_start(ct__json *json, ct__text *text);

/* One of "{[" or "}]". */
void ct__json_open(ct__json *json, const char *bracket);
void ct__json_close(ct__json *json, const char *bracket);

/* "key": plain ASCII. The next value is its own. */
void ct__json_key(ct__json *json, const char *key);

/* Bytes as a string: what is not valid UTF-8 becomes \xNN as in a report, everything beyond ASCII \uNNNN. */
void ct__json_string(ct__json *json, const char *bytes, size_t count);

/* A string that ends in a NUL; null for NULL. */
void ct__json_text(ct__json *json, const char *string);
void ct__json_count(ct__json *json, uint64_t count);

/* With as few digits as read back to the same number; null for what is not finite. */
void ct__json_number(ct__json *json, double number);
void ct__json_bool(ct__json *json, int value);
void ct__json_null(ct__json *json);

/* The number alone, for other formats; "" for what is not finite. */
void ct__text_put_number(ct__text *text, double number);

/* Digits without separators. */
void ct__text_put_integer(ct__text *text, uint64_t count);

#endif
