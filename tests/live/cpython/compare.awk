# compare.awk: what the box changes in the suite's results, against what was reviewed.
#
# Input: differences.txt, the bare side's lines, the box's (see driver.py). What fails bare too is
# no complaint, but for what then did not come to an end in the box.

# Whether differences.txt has the case; it is marked as used.
function reviewed(module, name,    i, n, pattern, parts) {
    n = split(patterns[module], parts, " ")
    for (i = 1; i <= n; i++) {
        pattern = parts[i]
        if (pattern == name || (name != "*" && sub(/\*$/, "", pattern) && pattern != "" &&
            index(name, pattern) == 1)) {
            used[module " " parts[i]] = 1
            return 1
        }
    }
    return 0
}

function alike(bare, box) {
    if (box == "lost" || box == "timeout" || box == "missing")
        return bare == box && bare == "timeout"
    return bare == box || bare == "failed"
}

function sums(of) {
    return sprintf("%d passed, %d skipped, %d failed", of["passed"], of["skipped"], of["failed"])
}

BEGIN { FS = "\t" }
FNR == 1 { file++ }
file == 1 && (/^#/ || !NF) { next }
file == 1 {
    split($0, word, " ")
    patterns[word[1]] = patterns[word[1]] " " word[2]
    listed[word[1] " " word[2]] = 1
    next
}
file == 2 {
    bare[$1, $2] = $3
    key[++n] = $1 SUBSEP $2
    ran[$1] = 1
    if ($2 == "*") modules++; else sum_bare[$3]++
    next
}
{
    box[$1, $2] = $3
    why[$1, $2] = $4
    if ($2 != "*") sum_box[$3]++
}
END {
    for (i = 1; i <= n; i++) {
        split(key[i], part, SUBSEP)
        module = part[1]
        name = part[2]
        b = bare[key[i]]
        x = key[i] in box ? box[key[i]] : "missing"
        if (name == "*" && x == "failed" && differs[module])
            continue # its cases have said so
        cases += name != "*"
        if (alike(b, x)) {
            same += name != "*"
            continue
        }
        differs[module] = 1
        if (reviewed(module, name)) {
            known++
            continue
        }
        bad++
        printf "%s %s: bare %s, in the box %s: %s\n", module, name, b, x, why[key[i]]
    }
    for (entry in listed) {
        split(entry, word, " ")
        if (ran[word[1]] && !used[entry]) {
            printf "%s: reviewed, but it does not differ\n", entry
            stale++
        }
    }
    printf "%d modules, %d cases: %d alike, ", modules, cases, same
    printf "%d differ as reviewed, %d differ, %d reviewed in vain\n", known, bad, stale
    printf "bare: %s; in the box: %s\n", sums(sum_bare), sums(sum_box)
    exit bad > 0 || n == 0 || (strict != "" && stale > 0)
}
