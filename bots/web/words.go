package web

import (
	"encoding/json"
	"slices"

	"nize/bots/phrases"
	"nize/store"
)

// words are the texts of the page; it fills in {name} itself. A test checks that they are
// exactly those that its modules use.
var words = slices.Concat(conversationWords, chatWords, placeWords, hookWords, cardWords)

var conversationWords = []store.Text{
	store.Textf("A call needs your approval."),
	store.Textf("An image that the tool returned"),
	store.Textf("Arguments"),
	store.Textf("Arguments as JSON"),
	store.Textf("Ask again"),
	store.Textf("Back"),
	store.Textf("Pending approvals"),
	store.Textf("Close"),
	store.Textf("Conversation"),
	store.Textf("Conversations"),
	store.Textf("Copied"),
	store.Textf("Copy"),
	store.Textf("Download"),
	store.Textf("It was erased, or it is somebody else’s."),
	store.Textf("Keys"),
	store.Textf("Latest"),
	store.Textf("Loading…"),
	store.Textf("Menu"),
	store.Textf("Message to nize"),
	store.Textf("New conversation"),
	store.Textf("No conversations yet."),
	store.Textf("No pending approvals."),
	store.Textf("Others decide about this call."),
	store.Textf("Result"),
	store.Textf("Retry"),
	store.Textf("Run"),
	store.Textf("Run with these"),
	store.Textf("Send"),
	store.Textf("Send again"),
	store.Textf("Show what was said before"),
	store.Textf("Sign in"),
	store.Textf("Signed-in browsers"),
	store.Textf("Stop"),
	store.Textf("The arguments must be an object: { … }"),
	store.Textf("The connection is gone; trying again…"),
	store.Textf("There is no such conversation."),
	store.Textf("This conversation is held on {surface}. Go on with it there."),
	store.Textf("This message is too long: at most 64 KiB are taken."),
	store.Textf("To the conversation"),
	store.Textf("Calls"),
	store.Textf("Try again"),
	store.Textf("What can I do for you?"),
	store.Textf("Withdraw"),
	store.Textf("Without a title"),
	store.Textf("You"),
	store.Textf("You are signed out."),
	store.Textf("You are signed out. What you have written is kept."),
	store.Textf("a new conversation"),
	store.Textf("a new line"),
	store.Textf("an app"),
	store.Textf("calling…"),
	store.Textf("calls that wait"),
	store.Textf("nize answered:"),
	store.Textf("nize could not be reached."),
	store.Textf("nize finds the right tool, shows what it would run, and waits for your approval."),
	store.Textf("nize has answered."),
	store.Textf("nize is answering."),
	store.Textf("send"),
	store.Textf("terminal"),
	store.Textf("these keys"),
	store.Textf("took {time}"),
	store.Textf("working…"),
	store.Textf("write a message"),
	store.Textf("{name} wrote:"),
	store.Textf("{n} bytes"),
	store.Textf("{n} steps"),
}

// wordsIn returns the page's texts in one language, keyed by the English text.
func wordsIn(c phrases.Catalogue) []byte {
	said := map[string]string{}
	for _, w := range words {
		said[w.String()] = c.Text(w)
	}
	body, _ := json.Marshal(said) // encoding strings can't fail
	return body
}
