package bots

import (
	"strings"

	"nize/bots/phrases"
)

// pasts maps the verbs that begin tool titles to their past tense.
var pasts = func() map[string]string {
	all := map[string]string{
		"begin": "began", "build": "built", "buy": "bought", "choose": "chose", "do": "did", "draw": "drew", "find": "found",
		"get": "got", "give": "gave", "hide": "hid", "keep": "kept", "make": "made", "pay": "paid", "rerun": "reran",
		"run": "ran", "send": "sent", "show": "showed", "speak": "spoke", "take": "took",
		"tell": "told", "undo": "undid", "write": "wrote",
		"ban": "banned", "ship": "shipped", "drop": "dropped", "log": "logged", "map": "mapped", "pin": "pinned", "plan": "planned", "scan": "scanned",
		"skip": "skipped", "stop": "stopped", "submit": "submitted", "swap": "swapped", "tag": "tagged", "trim": "trimmed", "unpin": "unpinned",
	}
	for _, verb := range strings.Fields(`accept add amend analyze append apply approve archive ask assign attach block book call cancel check clean clear clone
		close collect commit compare complete compute configure connect convert copy count create delete deploy describe destroy detect disable
		disconnect dismiss download duplicate echo edit email enable erase estimate evaluate execute export extend fetch fill filter finish fix
		fork format generate grant import index insert inspect install invite invoke join launch leave link list load lock lookup mark measure
		merge message move mute notify open order parse patch pause ping poll post preview print process publish pull purge push query queue
		rank register reject release reload remove rename render reopen reorder replace reply report request reschedule resize resolve restart
		restore resume retrieve retry return revert review revoke rotate save schedule search select share sign sort star start store subscribe
		summarize suspend sync tail test toggle track transfer transform translate trigger turn unlink unlock unsubscribe update upgrade upload
		validate verify view visit wait watch zip`) {
		if _, irregular := all[verb]; irregular || verb == "leave" {
			continue
		}
		switch last := len(verb) - 1; {
		case verb[last] == 'e':
			all[verb] = verb + "d"
		case verb[last] == 'y' && !strings.ContainsRune("aeiou", rune(verb[last-1])):
			all[verb] = verb[:last] + "ied"
		default:
			all[verb] = verb + "ed"
		}
	}
	return all
}()

// past returns a title in the past tense: "Added a note" for "Add a note". ok is false for
// other verbs, and for languages other than English.
func past(title string, words phrases.Catalogue) (done string, ok bool) {
	verb, rest, more := strings.Cut(title, " ")
	was, known := pasts[strings.ToLower(verb)]
	if !words.English() || !known || !more || verb != strings.ToUpper(verb[:1])+strings.ToLower(verb[1:]) {
		return "", false
	}
	return strings.ToUpper(was[:1]) + was[1:] + " " + rest, true
}
