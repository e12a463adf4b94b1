#compdef nizectl
# Completion of nizectl for zsh: to be sourced, or put into a directory of $fpath
# as _nizectl.
#
# The words go to nizectl as they were typed and are never evaluated: to press
# Tab behind a $(command) must not run it.
_nizectl() {
	local program=${(Q)words[1]}
	local -a given found
	given=("${(@Q)words[2,CURRENT-1]}")
	if (( ${given[(Ie)--]} )); then
		[[ ${given[1]} == servers ]] && _files # the server's own command
		return
	fi
	[[ ${words[CURRENT]} == -* ]] && given+=("${words[CURRENT]}")
	found=(${(f)"$("${program/#\~\//$HOME/}" "${given[@]}" --generate-shell-completion 2>/dev/null)"})
	if (( ${found[(Ie):files]} )); then
		found=("${(@)found:#:files}")
		(( $#found )) || _files
	fi
	(( $#found )) && _describe nizectl found
}

if [[ ${funcstack[1]} == _nizectl ]]; then
	_nizectl "$@"
else
	compdef _nizectl nizectl
fi
