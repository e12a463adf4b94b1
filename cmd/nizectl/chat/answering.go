package chat

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/api"
	"nize/store"
)

// answering asks for the fields of a question's form, one after the other. A question
// whose schema has no form is answered with one JSON object.
type answering struct {
	card   store.Card
	edit   bots.CallEdit
	words  phrases.Catalogue
	values map[string][]string // by field; of a choice the places of the options
	at     int
}

// newAnswering returns nil if nothing has to be filled in.
func newAnswering(card store.Card, words phrases.Catalogue) *answering {
	if card.Question.URL != "" || !bots.HasFields(card.Question.Schema) {
		return nil
	}
	a := &answering{card: card, edit: bots.EditCall(card, card.Question.Schema, bots.TextLimits), words: words, values: map[string][]string{}}
	if a.edit.Form == "" {
		a.edit.Fields = []bots.EditField{{Name: bots.EditedJSON, Label: words.Say(phrases.AnswerJSON), Value: string(card.Args), Chosen: -1, Required: true}}
	}
	return a
}

func (a *answering) field() bots.EditField { return a.edit.Fields[a.at] }

// prompt names the field, and its options by number.
func (a *answering) prompt() string {
	f := a.field()
	text := bots.Escape(f.Label)
	var options []string
	for i, o := range f.Options {
		options = append(options, strconv.Itoa(i+1)+" "+bots.Escape(o))
	}
	switch {
	case f.Many:
		text = a.words.Say(phrases.TermFieldSeveral, text, strings.Join(options, ", "))
	case options != nil:
		text = a.words.Say(phrases.TermFieldChoice, text, strings.Join(options, ", "))
	case f.List:
		text = a.words.Say(phrases.TermFieldList, text)
	}
	if !f.Required {
		text = a.words.Say(phrases.TermFieldOptional, text)
	}
	return text + ": "
}

// about returns what the server says of the field, in one line.
func (a *answering) about() string { return bots.Escape(bots.Brief(a.field().About, 200)) }

// initial is what stands in the field at first, as people type it.
func (a *answering) initial() string {
	f := a.field()
	if given, ok := a.values[f.Name]; ok && len(f.Options) == 0 {
		return strings.Join(given, "\n")
	}
	switch {
	case f.Many:
		var numbers []string
		for _, n := range f.Several {
			numbers = append(numbers, strconv.Itoa(n+1))
		}
		return strings.Join(numbers, ", ")
	case f.Chosen >= 0:
		return strconv.Itoa(f.Chosen + 1)
	case f.List:
		return strings.ReplaceAll(f.Value, "\n", ", ")
	}
	return f.Value
}

// take reads what was typed into the field. done reports that all fields are filled in,
// and answer has their values; problem says what is wrong, and the field is asked for
// again.
func (a *answering) take(line string) (answer json.RawMessage, done bool, problem string) {
	f := a.field()
	values, ok := a.read(f, strings.TrimSpace(line))
	if !ok || f.Required && len(values) == 0 {
		return nil, false, a.words.Say(phrases.CardBadField, a.words.Say(phrases.WantNeeded))
	}
	a.values[f.Name] = values
	args, wrong, err := bots.ReadEdit(a.card, a.card.Question.Schema, a.edit.Form, bots.TextLimits, func(name string) ([]string, bool) {
		v, given := a.values[name]
		return v, given
	}, a.words)
	if err != nil {
		return nil, false, a.words.Problem(err)
	}
	if why := wrong[f.Name]; why != "" {
		return nil, false, why
	}
	if a.at++; a.at < len(a.edit.Fields) {
		return nil, false, ""
	}
	return args, true, ""
}

// read returns the values of a field: of a choice the places of its options, which
// people name by number or label.
func (a *answering) read(f bots.EditField, line string) (values []string, ok bool) {
	switch {
	case line == "":
		return nil, true
	case f.List:
		parts := strings.Split(line, ",")
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
		return []string{strings.Join(parts, "\n")}, true
	case f.Options == nil:
		return []string{line}, true
	}
	words := []string{line}
	if f.Many {
		words = strings.Split(line, ",")
	}
	for _, word := range words {
		word = strings.TrimSpace(word)
		n, err := strconv.Atoi(word)
		if n--; err != nil || n < 0 || n >= len(f.Options) {
			n = slices.IndexFunc(f.Options, func(o string) bool { return strings.EqualFold(o, word) })
		}
		if f.Toggle && n < 0 {
			n = map[string]int{"y": 1, "yes": 1, "n": 2, "no": 2}[strings.ToLower(word)] - 1
		}
		if n < 0 {
			return nil, false
		}
		if value := strconv.Itoa(n); !slices.Contains(values, value) {
			values = append(values, value)
		}
	}
	return values, true
}

// AskAnswer asks for the answer to a question with ask, which prints a prompt and
// returns a line, and say, which prints a line. It returns nil if nothing has to be
// filled in.
func AskAnswer(card store.Card, ask func(prompt string) (string, error), say func(string)) (json.RawMessage, error) {
	a := newAnswering(card, phrases.For(""))
	if a == nil {
		return nil, nil
	}
	for {
		if about := a.about(); about != "" {
			say(about)
		}
		prompt := a.prompt()
		if initial := a.initial(); initial != "" {
			prompt = strings.TrimSuffix(prompt, ": ") + " [" + bots.Escape(initial) + "]: "
		}
		line, err := ask(prompt)
		if err != nil {
			return nil, err
		}
		if strings.TrimSpace(line) == "" {
			line = a.initial()
		}
		answer, done, problem := a.take(line)
		switch {
		case problem != "":
			say(problem)
		case done:
			return answer, nil
		}
	}
}

// questionKeys names the keys of a question.
func questionKeys(card store.Card, words phrases.Catalogue) string {
	if card.Question.URL != "" {
		return words.Say(phrases.TermQuestionPage)
	}
	return words.Say(phrases.TermQuestionKeys)
}

// questionKey answers the question on the screen.
func (f *screen) questionKey(ctx context.Context, c store.Card, k key) {
	switch k.r {
	case 'y':
		if f.answers = newAnswering(c, f.s.words()); f.answers != nil {
			f.askField()
			return
		}
		f.decide(ctx, c, api.DecideCallRequest{Verb: store.Approve})
	case 'n':
		f.decide(ctx, c, api.DecideCallRequest{Verb: store.Deny})
	case 'c':
		f.decide(ctx, c, api.DecideCallRequest{Verb: store.Cancel})
	default:
		f.hint = f.s.words().Say(phrases.TermQuestionWaits)
	}
}

// askField opens the line on which a field of the form is filled in.
func (f *screen) askField() {
	f.args, f.declines = &editor{prompt: f.answers.prompt()}, false
	f.args.set(f.answers.initial())
	f.hint = f.answers.about()
}

// fieldKey takes a key while a field is filled in.
func (f *screen) fieldKey(ctx context.Context, k key) {
	switch f.args.press(k) {
	case actSubmit:
		answer, done, problem := f.answers.take(f.args.value())
		switch {
		case problem != "":
			f.hint = problem
		case done:
			c := f.cards[0]
			f.answers = nil
			f.decide(ctx, c, api.DecideCallRequest{Verb: store.Edit, Args: answer})
		default:
			f.askField()
		}
	case actInterrupt, actEscape, actLeave:
		f.args, f.answers = nil, nil
		f.cardSince = f.s.opt.Now()
	}
}
