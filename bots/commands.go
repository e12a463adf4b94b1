package bots

import (
	"context"
	"errors"
	"slices"
	"strings"

	"nize/bots/phrases"
	"nize/store"
)

// Asked is a command as a person gave it, after /nize or after a mention.
type Asked struct {
	By     store.Caller
	At     store.Address // where; Thread is "" outside any thread
	Thread string        // the conversation there, "" if there is none
	Words  string        // what followed the command's name
	Locale string        // of the person, BCP 47
	Zone   string        // of the person, IANA
	Open   bool          // others could read the words
	// Say gives words to nize as the person's message here, to be answered in
	// the conversation.
	Say func(ctx context.Context, words string) error
}

// Answer is what a command says to who gave it, and to nobody else.
type Answer struct {
	Text    string // Markdown; "" says nothing
	Buttons []Button
	Picture *Picture // for who asked alone, wherever that is
	Prompt  *Prompt  // is opened where a dialog can be; Text is for where none can
}

// Button does what a command does, as if its words had been typed.
type Button struct {
	Label phrases.Key
	Words string // the command's name and more; at most 64 bytes
}

// Said is an Answer of text alone.
func Said(text string) Answer { return Answer{Text: text} }

// Command is one word that nize understands itself, without a model.
type Command struct {
	Name  string
	Args  string      // as help shows them
	About phrases.Key // one line for help
	Group phrases.Key // under which help names it; "" is the last
	Admin bool        // for admins only
	// Fits says whether words can follow the name: after a mention a message
	// is a command only then. Nil lets nothing follow.
	Fits func(words string) bool
	// Most is how many words can follow at most. Where /nize stands before it,
	// what does not fit is a slip that the command explains, unless it is longer:
	// then it is a sentence that begins with the same word.
	Most int
	// Here says whether help names the command where it is asked; nil is
	// everywhere. It hides nothing.
	Here func(a Asked) bool
	// Secret says that the answer to these words holds a secret: it is shown
	// once, in a dialog, or the command does not run. Nil is never.
	Secret func(words string) bool
	// Decides says that it decides about a call: what somebody is counts as it is
	// at that moment, as for a press of a button.
	Decides bool
	// Form asks in a dialog for what can follow, where the command is given
	// alone; nil asks nothing.
	Form Filler
	// Run does it and returns what the person reads. Errors that wrap a
	// sentinel of store are told as they are.
	Run func(ctx context.Context, a Asked) (Answer, error)
}

// Commands is what a platform looks words up in. The roof fills it before any
// platform runs.
type Commands struct{ list []Command }

// Add puts commands into the list, in the order in which help shows them.
func (c *Commands) Add(list ...Command) { c.list = append(c.list, list...) }

// Names are the commands that by may use.
func (c *Commands) Names(by store.Caller) []string {
	var names []string
	for _, cmd := range c.list {
		if !cmd.Admin || by.IsAdmin() {
			names = append(names, cmd.Name)
		}
	}
	return names
}

// Find reads text as a command. With loose, as after a mention, only what fits
// one whole is a command, and near is the name that a single misspelt word
// comes close to; otherwise a slip is a command, too, which says what is wrong.
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

// split is the first word of a text and what follows it. People copy a command
// with the code span that it stood in or with the slash that is for elsewhere, and
// end it as they end a sentence: "stop!" in a hurry is no question to a model.
func split(text string) (name, words string) {
	text = strings.TrimSpace(text)
	if span := strings.Trim(text, "`"); len(text) == len(span)+2 && text[0] == '`' && !strings.Contains(span, "`") {
		text = strings.TrimSpace(span)
	}
	name, words, _ = strings.Cut(strings.TrimSpace(strings.TrimPrefix(text, "/nize ")), " ")
	return strings.TrimRight(name, ".,:!"), strings.TrimSpace(words)
}

// Run runs a command and turns its error into what the person reads; an error
// that is not meant for people is returned too, for the log.
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

// helpGroups are the groups of help in their order.
var helpGroups = []phrases.Key{phrases.HelpTools, phrases.HelpTalk, phrases.HelpYou, ""}

// Help names what a person may do where they ask, and what there is in nize's threads
// besides, in a few lines; [Commands.Explain] says what one of them does.
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

// Explain says how one command is written and what it does; "" if there is none of that
// name that the person may use.
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

// InThread is a [Command.Here] of what is about a conversation.
func InThread(a Asked) bool { return a.Thread != "" }

// All are the commands, in the order in which help shows them.
func (c *Commands) All() []Command { return c.list }
