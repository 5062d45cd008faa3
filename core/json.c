/* SPDX-License-Identifier: MIT
 *
 * json.c: see json.h.
 */
#include "json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ct__json_start(ct__json *json, ct__text *text) {
    json->text = text;
    json->follows = 0;
}

static void put_comma(ct__json *json) {
    if (json->follows) ct__text_put(json->text, ", ");
    json->follows = 1;
}

void ct__json_open(ct__json *json, const char *bracket) {
    put_comma(json);
    ct__text_put(json->text, bracket);
    json->follows = 0;
}

void ct__json_close(ct__json *json, const char *bracket) {
    ct__text_put(json->text, bracket);
    json->follows = 1;
}

void ct__json_key(ct__json *json, const char *key) {
    put_comma(json);
    ct__text_put(json->text, "\"");
    ct__text_put(json->text, key);
    ct__text_put(json->text, "\": ");
    json->follows = 0;
}

/* ---- strings ---- */

static void put_hex(ct__text *text, const char *prefix, uint32_t value, int digits) {
    char hex[4];
    for (int i = digits - 1; i >= 0; i--) {
        hex[i] = "0123456789abcdef"[value & 15];
        value >>= 4;
    }
    ct__text_put(text, prefix);
    ct__text_put_bytes(text, hex, (size_t)digits);
}

static void put_character(ct__text *text, uint32_t code) {
    char plain = (char)code;
    if (code == '"' || code == '\\') {
        ct__text_put(text, "\\");
        ct__text_put_bytes(text, &plain, 1);
    } else if (code >= 0x20 && code < 0x7F) {
        ct__text_put_bytes(text, &plain, 1);
    } else if (code < 0x10000) {
        put_hex(text, "\\u", code, 4);
    } else { /* a surrogate pair */
        put_hex(text, "\\u", 0xD800 + ((code - 0x10000) >> 10), 4);
        put_hex(text, "\\u", 0xDC00 + ((code - 0x10000) & 0x3FF), 4);
    }
}

void ct__json_string(ct__json *json, const char *bytes, size_t count) {
    const unsigned char *at = (const unsigned char *)bytes;
    put_comma(json);
    ct__text_put(json->text, "\"");
    while (count > 0) {
        uint32_t code = 0;
        size_t length = ct__text_decode(at, count, &code);
        if (length > 0) {
            put_character(json->text, code);
        } else {
            put_hex(json->text, "\\\\x", *at, 2);
            length = 1;
        }
        at += length;
        count -= length;
    }
    ct__text_put(json->text, "\"");
}

void ct__json_text(ct__json *json, const char *string) {
    if (string == NULL) {
        ct__json_null(json);
    } else {
        ct__json_string(json, string, strlen(string));
    }
}

/* ---- numbers ---- */

void ct__text_put_integer(ct__text *text, uint64_t count) {
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + count % 10);
        count /= 10;
    } while (count > 0);
    ct__text_put_bytes(text, digits + at, sizeof digits - at);
}

typedef struct decimal {
    char digits[24]; /* the first stands before the point */
    int count, exponent;
} decimal;

/* Digits alone: the point that stands between them is the locale's. Trailing zeros are left out. */
static void take_apart(const char *written, decimal *parts) {
    const char *exponent = strchr(written, 'e');
    parts->count = 0;
    for (const char *at = written; at < exponent; at++)
        if (*at >= '0' && *at <= '9') parts->digits[parts->count++] = *at;
    while (parts->count > 1 && parts->digits[parts->count - 1] == '0') parts->count--;
    parts->exponent = (int)strtol(exponent + 1, NULL, 10);
}

/* 15 digits are always kept, 17 always suffice (IEEE 754 binary64). */
static void find_shortest(double number, decimal *parts) {
    char written[64];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(written, sizeof written, "%.*e", digits - 1, number);
        if (strtod(written, NULL) == number) break;
    }
    take_apart(written, parts);
}

static void put_zeros(ct__text *text, int count) {
    while (count-- > 0) ct__text_put(text, "0");
}

static void put_scientific(ct__text *text, const decimal *parts) {
    ct__text_put_bytes(text, parts->digits, 1);
    if (parts->count > 1) ct__text_put(text, ".");
    ct__text_put_bytes(text, parts->digits + 1, (size_t)parts->count - 1);
    ct__text_put(text, parts->exponent < 0 ? "e-" : "e+");
    ct__text_put_integer(text, (uint64_t)abs(parts->exponent));
}

static void put_plain(ct__text *text, const decimal *parts) {
    int before = parts->exponent + 1; /* digits before the point */
    if (before <= 0) {
        ct__text_put(text, "0.");
        put_zeros(text, -before);
        ct__text_put_bytes(text, parts->digits, (size_t)parts->count);
        return;
    }
    int whole = before < parts->count ? before : parts->count;
    ct__text_put_bytes(text, parts->digits, (size_t)whole);
    put_zeros(text, before - whole);
    ct__text_put(text, ".");
    if (whole == parts->count) ct__text_put(text, "0");
    ct__text_put_bytes(text, parts->digits + whole, (size_t)(parts->count - whole));
}

void ct__text_put_number(ct__text *text, double number) {
    decimal parts;
    if (!isfinite(number)) return;
    if (number < 0) ct__text_put(text, "-");
    find_shortest(fabs(number), &parts);
    if (parts.exponent < -5 || parts.exponent > 15) {
        put_scientific(text, &parts);
    } else {
        put_plain(text, &parts);
    }
}

void ct__json_count(ct__json *json, uint64_t count) {
    put_comma(json);
    ct__text_put_integer(json->text, count);
}

void ct__json_number(ct__json *json, double number) {
    put_comma(json);
    if (isfinite(number)) {
        ct__text_put_number(json->text, number);
    } else {
        ct__text_put(json->text, "null");
    }
}

void ct__json_bool(ct__json *json, int value) {
    put_comma(json);
    ct__text_put(json->text, value ? "true" : "false");
}

void ct__json_null(ct__json *json) {
    put_comma(json);
    ct__text_put(json->text, "null");
}
