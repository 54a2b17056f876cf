/*
 * page.h: text for people: wrapped to the terminal, at most 100 columns; bold on a terminal only, and never with NO_COLOR.
 */
#ifndef MAYFLY_LAB_PAGE_H
#define MAYFLY_LAB_PAGE_H

#include <stdio.h>

#include "base/defs.h"

struct page {
    FILE *out;
    unsigned width;   /* of what is wrapped */
    unsigned columns; /* of the terminal; 0: there is none, and no line is cut */
    bool bold;
};

void page_init(struct page *p, FILE *out);
/* Columns that a terminal gives the text: one for each character. */
size_t page_columns(const char *text, size_t len);
void page_title(const struct page *p, const char *text);   /* the first line */
void page_heading(const struct page *p, const char *text); /* after an empty line */
/* One paragraph, its first line after `lead` and the rest indented by as much. */
void page_wrap(const struct page *p, const char *lead, const char *text);
/* The rest of a line of which `used` columns are written; what a terminal has no room for is left out. */
void page_cut(const struct page *p, size_t used, const char *text);
/* A page as it is kept: paragraphs between empty lines, "- " begins a point of a list, two spaces what stays as it is. */
void page_text(const struct page *p, const char *indent, const char *text, size_t len);
/* One beside the other. */
void page_pair(const struct page *p, const char *indent, const char *left, const char *right);

#endif
