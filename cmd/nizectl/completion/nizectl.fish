# Completion of nizectl for fish.
#
# The words go to nizectl as they were typed and are never evaluated: to press
# Tab behind a (command) must not run it.
function __nizectl_complete
    set -l given (commandline -opc)
    set -l current (commandline -ct)
    set -l program $given[1]
    set -e given[1]
    if contains -- -- $given
        test "$given[1]" = servers; and __fish_complete_path $current # the server's own command
        return
    end
    string match -q -- '-*' $current; and set -a given $current
    for line in ($program $given --generate-shell-completion 2>/dev/null)
        if test "$line" = :files
            __fish_complete_path $current
        else # a colon of the name stands behind a backslash
            string replace -r -- '(?<!\\\\):' \t $line | string replace -a -- '\\:' ':'
        end
    end
end
complete -c nizectl -e
complete -c nizectl -f -a '(__nizectl_complete)'
