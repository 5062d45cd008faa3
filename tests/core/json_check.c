/* SPDX-License-Identifier: MIT
 *
 * json_check.c: see json_check.h. Each function gets the place where its part begins, and returns the one behind it;
 * NULL where it is not such a part.
 */
#include "json_check.h"

#include <stddef.h>
#include <string.h>

static const char *check_value(const char *at);

static const char *skip_blanks(const char *at) {
    while (at != NULL && (*at == ' ' || *at == '\n')) at++;
    return at;
}

static const char *check_escape(const char *at) {
    if (*at != 'u') return *at != '\0' && strchr("\"\\/bfnrt", *at) != NULL ? at + 1 : NULL;
    return strspn(at + 1, "0123456789abcdef") >= 4 ? at + 5 : NULL;
}

static const char *check_string(const char *at) {
    if (*at++ != '"') return NULL;
    while (at != NULL && *at != '"') {
        unsigned char byte = (unsigned char)*at;
        if (byte < 0x20 || byte > 0x7E) return NULL; /* ASCII is what the core promises */
        at = byte == '\\' ? check_escape(at + 1) : at + 1;
    }
    return at != NULL ? at + 1 : NULL;
}

static const char *check_digits(const char *at) {
    size_t count = strspn(at, "0123456789");
    return count > 0 ? at + count : NULL;
}

static const char *check_number(const char *at) {
    if (*at == '-') at++;
    if (*at == '0' && at[1] >= '0' && at[1] <= '9') return NULL;
    at = check_digits(at);
    if (at != NULL && *at == '.') at = check_digits(at + 1);
    if (at == NULL || *at != 'e') return at;
    at++;
    return check_digits(*at == '+' || *at == '-' ? at + 1 : at);
}

static const char *check_member(const char *at, int keyed) {
    if (keyed) {
        at = skip_blanks(check_string(at));
        if (at == NULL || *at++ != ':') return NULL;
    }
    return skip_blanks(check_value(skip_blanks(at)));
}

static const char *check_list(const char *at, char end) {
    at = skip_blanks(at + 1);
    if (*at == end) return at + 1;
    for (;;) {
        at = check_member(at, end == '}');
        if (at == NULL) return NULL;
        if (*at == end) return at + 1;
        if (*at != ',') return NULL;
        at = skip_blanks(at + 1);
    }
}

static const char *check_value(const char *at) {
    if (*at == '{') return check_list(at, '}');
    if (*at == '[') return check_list(at, ']');
    if (*at == '"') return check_string(at);
    if (strncmp(at, "true", 4) == 0 || strncmp(at, "null", 4) == 0) return at + 4;
    if (strncmp(at, "false", 5) == 0) return at + 5;
    return check_number(at);
}

int is_json(const char *text) {
    const char *end = skip_blanks(check_value(skip_blanks(text)));
    return end != NULL && *end == '\0';
}
