#!/bin/bash
# The functions of test_browser.c: the lab's page in headless Chromium, driven by playwright-core, with axe-core.

of=$PWD/build/lab-browser

# What became of a check; the first that is asked about has all of them made
page() { # CHECK
    [ -e "$of/done" ] || skip browser "what drives it is not installed (scripts/npm-tree.sh tests/lab/browser $of)"
    command -v chromium >/dev/null || skip browser "chromium is not installed"
    if [ ! -e "$RESULTS/page.html" ]; then
        tests/lab/browser/sample.py >"$RESULTS/sample.json"
        "$B/mayfly" lab --from "$RESULTS/sample.json" --html "$RESULTS/page.html" >"$RESULTS/text"
        cp tests/lab/browser/page.mjs "$of/"
        node "$of/page.mjs" "$RESULTS" 2>"$RESULTS/log" || cat "$RESULTS/log"
    fi
    [ -e "$RESULTS/$1" ] || fail "it was not come to"
    same "$(cat "$RESULTS/$1")" ""
}

axe_finds_nothing() { page "${FUNCNAME[0]}"; }
no_text_of_a_probe_is_markup_and_nothing_leaves() { page "${FUNCNAME[0]}"; }
a_cell_opens_by_click_and_by_key() { page "${FUNCNAME[0]}"; }
filters_filter_and_sorts_sort() { page "${FUNCNAME[0]}"; }
in_print_all_is_there() { page "${FUNCNAME[0]}"; }
a_phone_does_not_scroll_sideways() { page "${FUNCNAME[0]}"; }
without_scripts_it_can_be_read() { page "${FUNCNAME[0]}"; }
