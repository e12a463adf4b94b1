# Completion of nizectl for fish.
#
# The words go to nizectl as they were typed and are never evaluated: to press
# Tab behind a (command) must not run it.
function __nizectl_complete
    set -l given (commandline -opc)
    set -l current (commandline -ct)
    set -l program $given[1]
    set -e given[1]
    string match -q -- '-*' $current; and set -a given $current
    set -l found ($program $given --generate-shell-completion 2>/dev/null)
    if test (count $found) -eq 0
        __fish_complete_path $current
        return
    end
    for line in $found
        string replace -r -- ':' \t $line
    end
end
complete -c nizectl -e
complete -c nizectl -f -a '(__nizectl_complete)'
