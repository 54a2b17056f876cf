# Where each control is in the source: {"net", "src/control/net.c", LINE of its plan, LINE of its verify}. Made when
# mayfly is built, so that what `mayfly lab explain` says of it is true of that build.
match($0, /^static (int|void) [a-z0-9_]+\(/) {
    name = substr($0, RSTART, RLENGTH - 1)
    sub(/^static (int|void) /, "", name)
    line[FILENAME, name] = FNR
}
/^const struct control control_[a-z]+ = \{/ {
    control = $4
    sub(/^control_/, "", control)
    plan = verify = 0
}
control && /^    \.plan = / { plan = function_line($3) }
control && /^    \.verify = / { verify = function_line($3) }
control && /^\};/ {
    printf "{\"%s\", \"%s\", %d, %d},\n", control, FILENAME, plan, verify
    control = ""
}
function function_line(word) {
    sub(/,$/, "", word)
    return line[FILENAME, word]
}
