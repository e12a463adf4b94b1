package web

import "nize/store"

// pageWords are about the page as a whole, and its empty states.
var pageWords = []store.Text{
	store.Textf("Today"),
	store.Textf("Yesterday"),
	store.Textf("Last 7 days"),
	store.Textf("Older"),
	store.Textf("Suggestions"),
	store.Textf("No tool is there yet. Add a server: {command}"),
	store.Textf("No tool is shared with you yet. Ask an admin to share a server."),
	store.Textf("No language model is set up, so a simple planner answers."),
	store.Textf("Add a provider"),
	store.Textf("An admin runs {command}"),
	store.Textf("Continue"),
	store.Textf("Continue here"),
	store.Textf("Go on where you stopped."),
	store.Textf("This conversation is held on {surface}."),
	store.Textf("Edit and run again"),
	store.Textf("Ask again, in a new conversation"),
	store.Textf("Your message"),
	store.Textf("A new conversation begins here with what was said before. This one stays as it is."),
	store.Textf("Run again"),
	store.Textf("The model can’t see pictures: it is told the name only."),
}

func init() { words = append(words, pageWords...) }
