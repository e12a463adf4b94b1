package bots

import (
	"encoding/json"
	"strings"

	"nize/bots/arguments"
	"nize/bots/phrases"
	"nize/store"
)

// A server's question is shown as a card, although nothing runs: the requester answers,
// declines or dismisses it. A form opens in the dialog for editing arguments; a URL is
// opened by a button that names its host.

// asks reports whether the card is an unanswered question.
func asks(card store.Card) bool {
	return card.Question != nil && card.State == store.Pending && !card.Approved
}

// questionParts replaces the texts of a call's card by those of a question.
func questionParts(p *CardParts, card store.Card, r Reader, words phrases.Catalogue) {
	p.Badge, p.Notice = words.Say(phrases.QuestionBadge), ""
	p.Origin = p.Origin[:1:1] // the reader is the requester
	if card.Token != "" {
		p.Origin = append(p.Origin, words.Say(phrases.CardToken, inline(card.Token)))
	}
	if p.Link != "" {
		p.Origin = append(p.Origin, words.Say(phrases.CardThread))
	}
	p.More = []string{words.Say(phrases.CardWhere, Escape(card.Server), Escape(card.Where)), DigestLine(card, words), words.Say(phrases.CardCall, Escape(card.Call))}
	if asks(card) {
		p.Headline, p.Name = words.Say(phrases.QuestionTitle, inline(card.Server)), Escape(card.Tool)
		p.Rules = []string{words.Say(phrases.QuestionNote)}
		return
	}
	p.Rules = nil
	if p.ArgsHead == words.Say(phrases.CardNoArguments) {
		p.ArgsHead = "" // an answer without values
	}
}

// questionRows returns the server's question as rows of a card.
func questionRows(card store.Card, words phrases.Catalogue) []arguments.Row {
	q := card.Question
	rows := []arguments.Row{questionRow(words.Say(phrases.QuestionMessage), q.Message)}
	if q.URL != "" {
		return append(rows, questionRow(words.Say(phrases.QuestionHost), q.Host()), questionRow(words.Say(phrases.QuestionAddress), q.URL))
	}
	var labels []string
	for _, f := range EditCall(card, q.Schema, TextLimits).Fields {
		labels = append(labels, f.Label)
	}
	if len(labels) > 0 {
		rows = append(rows, questionRow(words.Say(phrases.QuestionFields), strings.Join(labels, words.Say(phrases.Comma))))
	}
	return rows
}

func questionRow(label, text string) arguments.Row {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = Escape(line)
	}
	kind := arguments.Value
	if len(lines) > 1 {
		kind = arguments.Text
	}
	return arguments.Row{Label: label, Kind: kind, Text: strings.Join(lines, "\n")}
}

// questionButtons returns the buttons of a question's card.
func questionButtons(card store.Card, words phrases.Catalogue) []CardButton {
	answer := CardButton{Verb: VerbEdit, Label: words.Say(phrases.ButtonAnswer), Strong: true}
	switch q := card.Question; {
	case q.URL != "":
		answer = CardButton{Verb: VerbRun, Label: words.Say(phrases.ButtonOpenHost, inline(q.Host())), Strong: true, URL: q.URL}
	case !HasFields(q.Schema):
		answer.Verb = VerbRun
	}
	return []CardButton{
		answer, {Verb: VerbDecline, Label: words.Say(phrases.ButtonDecline)}, {Verb: VerbDismiss, Label: words.Say(phrases.ButtonDismiss)},
		{Verb: VerbShow, Label: words.Say(phrases.ButtonDetails)},
	}
}

// HasFields reports whether a form has anything to fill in.
func HasFields(schema json.RawMessage) bool {
	var s editSchema
	return json.Unmarshal(schema, &s) != nil || len(s.Properties) > 0
}

// FormSchema returns the schema of the form for a card: the question's own, or else
// what tool returns for the card's tool.
func FormSchema(card store.Card, tool func(id string) (json.RawMessage, error)) (json.RawMessage, error) {
	if card.Question != nil {
		return card.Question.Schema, nil
	}
	return tool(card.Tool)
}

// FormWords are the texts of the dialog that edits a call or answers a question.
type FormWords struct{ Title, Hint, Send, JSON string }

// WordsOfForm returns the texts of a card's dialog.
func WordsOfForm(card store.Card, w phrases.Catalogue) FormWords {
	if card.Question != nil {
		return FormWords{w.Say(phrases.ButtonAnswer), w.Say(phrases.AnswerHint, Escape(store.Clip(card.Server, 100)), Plain(card.Question.Message)), w.Say(phrases.AnswerSend), w.Say(phrases.AnswerJSON)}
	}
	return FormWords{w.Say(phrases.CardEditTitle), w.Say(phrases.CardEditHint, Escape(store.Clip(card.Tool, 200))), w.Say(phrases.CardEditRun), w.Say(phrases.CardArgumentsJSON)}
}
