/* SPDX-License-Identifier: MIT
 *
 * format.h: text built into a caller's buffer, alike in every locale.
 *
 * printf writes the decimal point of the locale and no thousands separators; reports need neither surprise. A ct__text
 * counts the length that the whole text would have, as snprintf does, and never writes past its buffer; the buffer ends
 * in a NUL after every call if its size is not 0.
 */
#ifndef CT_FORMAT_H
#define CT_FORMAT_H

#include <stddef.h>
#include <stdint.h>

typedef struct ct__text {
    char *buffer;
    size_t size;
    size_t length; /* of the whole text, also where the buffer is too small */
} ct__text;

void ct__text_start(ct__text *text, char *buffer, size_t size);
void ct__text_put(ct__text *text, const char *string);
void ct__text_put_bytes(ct__text *text, const char *bytes, size_t count);

/* 1234567 -> "1,234,567" */
void ct__text_put_count(ct__text *text, uint64_t count);

/* A number >= 0 with 0 to 9 decimals, rounded half up, thousands separated: 1234.5 -> "1,234.500". What is above
 * 1e19 is written as just that; what is negative or no number as "?": callers never pass it. */
void ct__text_put_decimal(ct__text *text, double value, int decimals);

/* A part as a percentage: 0.0123 -> "1.2 %". Above a millionfold, CT__PERCENT_MAX, it says just that: "> ...". */
#define CT__PERCENT_MAX 1e6
void ct__text_put_percent(ct__text *text, double part, int decimals);

/* A duration in the unit (ns, us, ms, s) in which it is 1 to 999.999, three decimals: "123.457 ns". */
void ct__text_put_duration(ct__text *text, double duration_ns, int ascii);

/* The same in a given unit (0 to 3), with as many decimals, three at least, as show four digits: "0.000016 s". */
void ct__text_put_in_unit(ct__text *text, double duration_ns, int unit, int ascii);

/* Decodes one character of UTF-8 (RFC 3629: shortest form, no surrogates, at most U+10FFFF). Returns its length, 0 if
 * it is invalid. "count" is at least 1. */
size_t ct__text_decode(const unsigned char *bytes, size_t count, uint32_t *code);

/* A name as one line: control characters, bidirectional overrides and invalid UTF-8 become escapes such as \n, \x1b,
 * \u202e. */
void ct__text_put_escaped(ct__text *text, const char *bytes, size_t count);

#endif
