# Completion of nizectl for bash 3.2 and newer; needs nothing else.
#
# The words go to nizectl as they were typed and are never evaluated: to press
# Tab behind a $(command) must not run it.
_nizectl() {
	local rest=$COMP_LINE given=() files='' cut='' lead word current line i
	# What bash took apart at a colon (COMP_WORDBREAKS) is one word.
	for ((i = 0; i <= COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		lead=${rest%%[![:space:]]*}
		rest=${rest#"$lead"}
		rest=${rest#"$word"}
		if [[ $i -eq 0 || -n $lead ]]; then
			given+=("$word")
		else
			given[${#given[@]} - 1]+=$word
		fi
	done
	current=${given[${#given[@]} - 1]}
	given=("${given[@]:1:${#given[@]}-2}")
	COMPREPLY=()
	if [[ " ${given[*]} " == *' -- '* ]]; then
		[[ ${given[0]} == servers ]] && files=1 # the server's own command
	else
		[[ $current == -* ]] && given+=("$current")
		[[ $COMP_WORDBREAKS == *:* ]] && cut=${current%"${current##*:}"}
		while IFS= read -r line; do
			if [[ $line == :files ]]; then
				files=1
				continue
			fi
			line=${line//\\:/$'\001'} # a colon of the name; the others end it
			line=${line%%:*}
			line=${line//$'\001'/:}
			if [[ -n $line && $line == "$current"* ]]; then
				COMPREPLY+=("${line#"$cut"}")
			fi
		done < <("${COMP_WORDS[0]/#\~\//$HOME/}" "${given[@]}" --generate-shell-completion 2>/dev/null)
	fi
	if [[ -n $files && ${#COMPREPLY[@]} -eq 0 ]] && ! compopt -o default 2>/dev/null; then
		while IFS= read -r line; do
			COMPREPLY+=("$line")
		done < <(compgen -f -- "$current")
	fi
}
complete -F _nizectl nizectl
