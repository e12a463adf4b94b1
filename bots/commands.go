package bots

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"nize/bots/phrases"
	"nize/store"
)

// Asked is a command that a person gave, after /nize or a mention.
type Asked struct {
	By     store.Caller
	At     store.Address // where it was given; Thread is "" outside any thread
	Thread string        // the conversation in that place, "" if there is none
	Words  string        // the words after the command's name
	Locale string        // of the person, BCP 47
	Zone   string        // of the person, IANA
	Open   bool          // other people could read the words
	// Say submits words as the person's message here, to be answered in the conversation.
	Say func(ctx context.Context, words string) error
}

// Answer is a command's reply, which only its author sees.
type Answer struct {
	Text    string // Markdown; "" for none
	Buttons []Button
	Picture *Picture // shown to the requester only, wherever that is
	Prompt  *Prompt  // opened if a dialog is possible; otherwise Text is shown
}

// Button runs a command as if its words had been typed.
type Button struct {
	Label phrases.Key
	Words string // the command with its arguments; at most 64 bytes
}

// Said returns an Answer that is only text.
func Said(text string) Answer { return Answer{Text: text} }

// Command is a word that nize handles itself, without a model.
type Command struct {
	Name  string
	Args  string      // as shown by help
	About phrases.Key // one line in help
	Group phrases.Key // heading in help; "" is the last group
	Admin bool        // for admins only
	// Fits reports whether words are valid arguments: after a mention, a message is a
	// command only if they are. Nil allows no arguments.
	Fits func(words string) bool
	// Most is the maximum number of words that may follow. After /nize, invalid arguments
	// within this limit count as a mistake that the command explains; a longer text is a
	// sentence that happens to begin with the same word.
	Most int
	// Here reports whether help lists the command in this place; nil is everywhere. The
	// command works either way.
	Here func(a Asked) bool
	// Secret reports whether the answer to these words contains a secret. Such an answer is
	// shown once, in a dialog; without a dialog the command doesn't run. Nil is never.
	Secret func(words string) bool
	// Decides marks commands that decide a call: the person's rights are read at that
	// moment, as for a button press.
	Decides bool
	// Form asks for the arguments in a dialog if the command is given without any; nil for
	// no dialog.
	Form Filler
	// Run runs the command and returns the reply. Errors that wrap a sentinel of store are
	// shown to the person.
	Run func(ctx context.Context, a Asked) (Answer, error)
}

// Commands is the list in which platforms look up commands. The composition root fills it
// before any platform runs.
type Commands struct{ list []Command }

// Add appends commands in the order in which help shows them.
func (c *Commands) Add(list ...Command) { c.list = append(c.list, list...) }

// Names returns the commands that by may use.
func (c *Commands) Names(by store.Caller) []string {
	var names []string
	for _, cmd := range c.list {
		if !cmd.Admin || by.IsAdmin() {
			names = append(names, cmd.Name)
		}
	}
	return names
}

// maxShown bounds how many lines of a kind an answer has.
const maxShown = 12

// FirstLines returns the first lines below a heading and the number of the rest.
func FirstLines(w phrases.Catalogue, head string, lines []string) string {
	rest := len(lines) - maxShown
	if rest > 0 {
		lines = append(lines[:maxShown:maxShown], w.Say(phrases.AndMore, strconv.Itoa(rest)))
	}
	return head + "\n" + strings.Join(lines, "\n")
}

// Find parses text as a command. If loose is true, as after a mention, only a command with
// valid arguments matches. Otherwise a command with invalid arguments matches too, and
// explains the mistake when it runs. near is the name that a misspelt single word is
// closest to.
func (c *Commands) Find(by store.Caller, text string, loose bool) (cmd Command, words, near string, ok bool) {
	name, words := split(text)
	i := slices.IndexFunc(c.list, func(cmd Command) bool { return strings.EqualFold(cmd.Name, name) && (!cmd.Admin || by.IsAdmin()) })
	if i >= 0 {
		cmd = c.list[i]
		fits := words == "" || cmd.Fits != nil && cmd.Fits(words)
		if fits || !loose && len(strings.Fields(words)) <= cmd.Most {
			return cmd, words, "", true
		}
		return Command{}, "", "", false
	}
	if words == "" || !loose {
		near = nearCommand(strings.TrimRight(name, "?"), c.Names(by))
	}
	return Command{}, "", near, false
}

// split returns the first word of a text and the rest. People copy a command together with
// its code span or with the slash form that belongs elsewhere, and add punctuation: a hasty
// "stop!" is a command, not a question for a model.
func split(text string) (name, words string) {
	text = strings.TrimSpace(text)
	if span := strings.Trim(text, "`"); len(text) == len(span)+2 && text[0] == '`' && !strings.Contains(span, "`") {
		text = strings.TrimSpace(span)
	}
	name, words, _ = strings.Cut(strings.TrimSpace(strings.TrimPrefix(text, "/nize ")), " ")
	return strings.TrimRight(name, ".,:!"), strings.TrimSpace(words)
}

// Run runs a command and turns its error into a reply. If the error is not meant for
// people, it is returned too, for the log.
func (c *Commands) Run(ctx context.Context, cmd Command, a Asked) (Answer, error) {
	answer, err := cmd.Run(ctx, a)
	if err == nil {
		return answer, nil
	}
	for _, known := range []error{store.ErrNotFound, store.ErrExists, store.ErrConflict, store.ErrDecided, store.ErrRefused, store.ErrInvalid, store.ErrExpired} {
		if errors.Is(err, known) {
			return Said(Plain(sentence(phrases.For(a.Locale), err))), nil
		}
	}
	return Said(phrases.For(a.Locale).Say(unlessFull(phrases.CommandFailed, err))), err
}

// helpGroups lists the groups of help in their order.
var helpGroups = []phrases.Key{phrases.HelpTools, phrases.HelpTalk, phrases.HelpYou, ""}

// Help lists in a few lines the commands that a person may use in this place, and what else
// is possible in nize's threads; [Commands.Explain] describes one of them.
func (c *Commands) Help(a Asked) string {
	words := phrases.For(a.Locale)
	lines := []string{words.Say(phrases.HelpHead), words.Say(phrases.HelpWords)}
	groups := map[phrases.Key][]string{}
	var elsewhere []string
	for _, cmd := range c.list {
		if cmd.Admin && !a.By.IsAdmin() {
			continue
		}
		name := "`" + cmd.Name + "`"
		if cmd.Here == nil || cmd.Here(a) {
			groups[cmd.Group] = append(groups[cmd.Group], name)
			continue
		}
		inThread := a
		inThread.Thread = "any"
		if a.Thread == "" && cmd.Here(inThread) {
			elsewhere = append(elsewhere, name)
		}
	}
	comma := words.Say(phrases.Comma)
	for _, group := range helpGroups {
		switch names := groups[group]; {
		case len(names) == 0:
		case group == "":
			lines = append(lines, "- "+strings.Join(names, comma))
		default:
			lines = append(lines, "- "+words.Say(group, strings.Join(names, comma)))
		}
	}
	if len(elsewhere) > 0 {
		lines = append(lines, words.Say(phrases.HelpThreads, strings.Join(elsewhere, comma)))
	}
	return strings.Join(lines, "\n")
}

// Explain returns the syntax and the description of a command, or "" if the person has no
// command with that name.
func (c *Commands) Explain(a Asked, name string) string {
	cmd, rest, _, ok := c.Find(a.By, name, true)
	if !ok || rest != "" {
		return ""
	}
	usage := cmd.Name
	if cmd.Args != "" {
		usage += " " + cmd.Args
	}
	return "`" + usage + "`: " + phrases.For(a.Locale).Say(cmd.About)
}

// InThread is the [Command.Here] of commands about a conversation.
func InThread(a Asked) bool { return a.Thread != "" }

// All returns the commands in the order in which help shows them.
func (c *Commands) All() []Command { return c.list }
