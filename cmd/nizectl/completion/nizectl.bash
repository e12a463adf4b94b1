# Completion of nizectl for bash 3.2 and newer; needs nothing else.
#
# The words go to nizectl as they were typed and are never evaluated: to press
# Tab behind a $(command) must not run it.
_nizectl() {
	local current=${COMP_WORDS[COMP_CWORD]} line
	local given=("${COMP_WORDS[@]:1:COMP_CWORD-1}")
	case $current in -*) given+=("$current") ;; esac
	COMPREPLY=()
	while IFS= read -r line; do
		line=${line%%:*}
		case $line in
		'') ;;
		"$current"*) COMPREPLY+=("$line") ;;
		esac
	done < <("${COMP_WORDS[0]/#\~\//$HOME/}" "${given[@]}" --generate-shell-completion 2>/dev/null)
}
complete -o default -F _nizectl nizectl
