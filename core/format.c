/* SPDX-License-Identifier: MIT
 *
 * format.c: see format.h. Plain arithmetic; nothing here asks the locale or allocates.
 */
#include "format.h"

#include <math.h>
#include <string.h>

void ct__text_start(ct__text *text, char *buffer, size_t size) {
    text->buffer = buffer;
    text->size = size;
    text->length = 0;
    if (size > 0) buffer[0] = '\0';
}

void ct__text_put_bytes(ct__text *text, const char *bytes, size_t count) {
    if (text->length + 1 < text->size) {
        size_t room = text->size - 1 - text->length;
        size_t fits = count < room ? count : room;
        memcpy(text->buffer + text->length, bytes, fits);
        text->buffer[text->length + fits] = '\0';
    }
    text->length += count;
}

void ct__text_put(ct__text *text, const char *string) { ct__text_put_bytes(text, string, strlen(string)); }

void ct__text_put_count(ct__text *text, uint64_t count) {
    char digits[32]; /* 20 digits and 6 separators */
    size_t at = sizeof digits;
    int written = 0;
    do {
        if (written > 0 && written % 3 == 0) digits[--at] = ',';
        digits[--at] = (char)('0' + count % 10);
        count /= 10;
        written++;
    } while (count > 0);
    ct__text_put_bytes(text, digits + at, sizeof digits - at);
}

static const uint64_t powers_of_ten[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000};

static const double decimal_most = 1e19; /* a little below 2^64 */

/* The digits of "fraction" with leading zeros. */
static void put_fraction(ct__text *text, uint64_t fraction, int decimals) {
    char digits[10];
    for (int i = decimals - 1; i >= 0; i--) {
        digits[i] = (char)('0' + fraction % 10);
        fraction /= 10;
    }
    ct__text_put(text, ".");
    ct__text_put_bytes(text, digits, (size_t)decimals);
}

void ct__text_put_decimal(ct__text *text, double value, int decimals) {
    if (!isfinite(value) || value < 0 || decimals < 0 || decimals > 9) {
        ct__text_put(text, "?");
        return;
    }
    if (value > decimal_most) {
        ct__text_put(text, "> 10,000,000,000,000,000,000");
        return;
    }
    double whole_part = floor(value);
    uint64_t whole = (uint64_t)whole_part;
    uint64_t unit = powers_of_ten[decimals];
    uint64_t fraction = (uint64_t)floor((value - whole_part) * (double)unit + 0.5);
    if (fraction >= unit) {
        fraction -= unit;
        whole++;
    }
    ct__text_put_count(text, whole);
    if (decimals > 0) put_fraction(text, fraction, decimals);
}

void ct__text_put_percent(ct__text *text, double part, int decimals) {
    if (part > CT__PERCENT_MAX) {
        ct__text_put(text, "> 100,000,000 %");
        return;
    }
    ct__text_put_decimal(text, part * 100, decimals);
    ct__text_put(text, " %");
}

static const struct {
    const char *name, *ascii;
    double ns;
} units[] = {{" ns", " ns", 1}, {" \xc2\xb5s", " us", 1e3}, {" ms", " ms", 1e6}, {" s", " s", 1e9}};

void ct__text_put_in_unit(ct__text *text, double duration_ns, int unit, int ascii) {
    double value = duration_ns / units[unit].ns;
    int decimals = 3;
    for (double least = 1; value > 0 && value < least && decimals < 9; least /= 10) decimals++;
    ct__text_put_decimal(text, value, decimals);
    ct__text_put(text, ascii ? units[unit].ascii : units[unit].name);
}

void ct__text_put_duration(ct__text *text, double duration_ns, int ascii) {
    int unit = 0;
    /* 999.9995 would be rounded to 1000.000 */
    while (unit < 3 && duration_ns / units[unit].ns >= 999.9995) unit++;
    ct__text_put_decimal(text, duration_ns / units[unit].ns, 3);
    ct__text_put(text, ascii ? units[unit].ascii : units[unit].name);
}

size_t ct__text_decode(const unsigned char *bytes, size_t count, uint32_t *code) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned lead = bytes[0];
    size_t length = lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : lead >> 3 == 30 ? 4 : 0;
    if (length == 0 || length > count) return 0;
    if (length == 1) {
        *code = bytes[0];
        return 1;
    }
    *code = bytes[0] & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        if (bytes[i] >> 6 != 2) return 0;
        *code = *code << 6 | (bytes[i] & 0x3Fu);
    }
    int surrogate = *code >= 0xD800 && *code <= 0xDFFF;
    return *code < least[length] || *code > 0x10FFFF || surrogate ? 0 : length;
}

/* Characters that would break the line, move the cursor or reorder the text around them. */
static int must_escape(uint32_t code) {
    return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x2028 || code == 0x2029 ||
           (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069) || code == 0x200E || code == 0x200F;
}

static void put_hex(ct__text *text, const char *prefix, uint32_t value, int digits) {
    char hex[8];
    for (int i = digits - 1; i >= 0; i--) {
        hex[i] = "0123456789abcdef"[value & 15];
        value >>= 4;
    }
    ct__text_put(text, prefix);
    ct__text_put_bytes(text, hex, (size_t)digits);
}

static void put_escape(ct__text *text, uint32_t code) {
    if (code == '\n') {
        ct__text_put(text, "\\n");
    } else if (code == '\t') {
        ct__text_put(text, "\\t");
    } else if (code == '\r') {
        ct__text_put(text, "\\r");
    } else if (code < 0x100) {
        put_hex(text, "\\x", code, 2);
    } else {
        put_hex(text, "\\u", code, 4);
    }
}

void ct__text_put_escaped(ct__text *text, const char *bytes, size_t count) {
    const unsigned char *at = (const unsigned char *)bytes;
    while (count > 0) {
        uint32_t code = 0;
        size_t length = ct__text_decode(at, count, &code);
        if (length == 0) {
            put_escape(text, *at);
            length = 1;
        } else if (must_escape(code)) {
            put_escape(text, code);
        } else {
            ct__text_put_bytes(text, (const char *)at, length);
        }
        at += length;
        count -= length;
    }
}
