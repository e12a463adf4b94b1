package discordtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"nize/bots/chattest"
)

// Command is a command registered by the bot.
type Command struct {
	ID           string            `json:"id"`
	App          string            `json:"application_id"`
	GuildID      string            `json:"guild_id,omitempty"`
	Type         int               `json:"type"` // 1 a slash command, 2 on a user, 3 on a message
	Name         string            `json:"name"`
	Description  string            `json:"description"`
	Names        map[string]string `json:"name_localizations"`
	Descriptions map[string]string `json:"description_localizations"`
	Options      []Option          `json:"options,omitempty"`
}

// Option is a parameter of a command, a subcommand, or a group of those.
type Option struct {
	Type         int               `json:"type"`
	Name         string            `json:"name"`
	Description  string            `json:"description"`
	Names        map[string]string `json:"name_localizations,omitempty"`
	Descriptions map[string]string `json:"description_localizations,omitempty"`
	Required     bool              `json:"required,omitempty"`
	Autocomplete bool              `json:"autocomplete,omitempty"`
	Choices      []Choice          `json:"choices,omitempty"`
	Options      []Option          `json:"options,omitempty"`
	MaxLength    int               `json:"max_length,omitempty"`
}

// sub reports whether it is a subcommand or a group of those.
func (o Option) sub() bool { return o.Type <= 2 }

// Choice is a value of a parameter.
type Choice struct {
	Name  string            `json:"name"`
	Names map[string]string `json:"name_localizations,omitempty"`
	Value json.RawMessage   `json:"value"`
}

// Text returns a choice's value as people would type it.
func (ch Choice) Text() string {
	var text string
	if json.Unmarshal(ch.Value, &text) == nil {
		return text
	}
	return string(ch.Value)
}

// longest returns the length of the longest of a text and its translations, which is what
// counts.
func longest(text string, others map[string]string) int {
	n := utf8.RuneCountInString(text)
	for _, v := range others {
		n = max(n, utf8.RuneCountInString(v))
	}
	return n
}

func (cmd Command) size() int {
	return Option{Name: cmd.Name, Names: cmd.Names, Description: cmd.Description, Descriptions: cmd.Descriptions, Options: cmd.Options}.size()
}

func (o Option) size() int {
	n := longest(o.Name, o.Names) + longest(o.Description, o.Descriptions)
	for _, choice := range o.Choices {
		n += longest(choice.Name, choice.Names) + len(choice.Text())
	}
	for _, sub := range o.Options {
		n += sub.size()
	}
	return n
}

func (s *Server) putCommands(c *call) (any, error) {
	guild := c.PathValue("guild")
	if c.PathValue("app") != App {
		return nil, errOtherApp
	}
	if guild != "" && s.world.guild(guild).member(Bot) == nil {
		return nil, errAccess
	}
	var list []Command
	if err := c.decode(commandShape, &list); err != nil {
		return nil, err
	}
	kinds := map[int]int{}
	for i := range list {
		cmd := &list[i]
		cmd.Type = max(cmd.Type, 1)
		kinds[cmd.Type]++
		cmd.ID, cmd.App, cmd.GuildID = s.idLocked(), App, guild
		for _, old := range s.commands[guild] {
			if old.Name == cmd.Name && old.Type == cmd.Type {
				cmd.ID = old.ID
			}
		}
	}
	if kinds[1] > 100 || kinds[2] > 15 || kinds[3] > 15 {
		return nil, errCommands
	}
	s.commands[guild] = list
	return list, nil
}

// Commands returns the commands registered for a guild, or globally.
func (s *Server) Commands(guild string) []Command {
	return chattest.Get(&s.Base, func() []Command { return slices.Clone(s.commands[guild]) })
}

var errNoCommand = errors.New("discordtest: the bot has no such command here")

// commandLocked finds a command available in a channel: those of the guild hide global ones
// with the same name.
func (s *Server) commandLocked(c *Channel, kind int, name string) (commandData, []Option, error) {
	for _, cmd := range slices.Concat(s.commands[c.Guild], s.commands[""]) {
		if cmd.Type == kind && cmd.Name == name {
			return commandData{ID: cmd.ID, Name: name, Type: kind, GuildID: cmd.GuildID}, cmd.Options, nil
		}
	}
	return commandData{}, nil, errNoCommand
}

// commandData is the data of a command's interaction.
type commandData struct {
	ID       string        `json:"id"`
	Name     string        `json:"name"`
	Type     int           `json:"type"`
	GuildID  string        `json:"guild_id,omitempty"`
	Options  []givenOption `json:"options,omitempty"`
	TargetID string        `json:"target_id,omitempty"`
	Resolved resolved      `json:"resolved,omitzero"`
}

type givenOption struct {
	Name    string          `json:"name"`
	Type    int             `json:"type"`
	Value   json.RawMessage `json:"value,omitempty"`
	Options []givenOption   `json:"options,omitempty"`
	Focused bool            `json:"focused,omitempty"`
}

type resolved struct {
	Messages map[string]*wireMessage `json:"messages,omitempty"`
}

// typedLocked parses a typed command: its name, subcommands, and then "name:value" for each
// parameter, where text without a name is the value of the first one. With focus, the last
// parameter is still being typed. s.Mu must be held.
func (s *Server) typedLocked(c *Channel, text string, focus bool) (commandData, error) {
	name, rest, _ := strings.Cut(strings.TrimPrefix(text, "/"), " ")
	out, options, err := s.commandLocked(c, 1, name)
	if err != nil {
		return out, err
	}
	into := &out.Options
	for len(options) > 0 && options[0].sub() {
		word, more, _ := strings.Cut(strings.TrimSpace(rest), " ")
		i := slices.IndexFunc(options, func(o Option) bool { return o.Name == word })
		if i < 0 {
			return out, fmt.Errorf("discordtest: /%s has no sub-command %q", name, word)
		}
		rest = more
		*into = []givenOption{{Name: word, Type: options[i].Type}}
		into, options = &(*into)[0].Options, options[i].Options
	}
	if !focus {
		rest = strings.TrimSpace(rest)
	}
	given := splitOptions(rest, options)
	for i, o := range options {
		v, has := given[o.Name]
		switch {
		case !has && o.Required && !focus:
			return out, fmt.Errorf("discordtest: /%s needs %s", name, o.Name)
		case !has:
			continue
		case o.MaxLength > 0 && utf8.RuneCountInString(v) > o.MaxLength:
			return out, errors.New("discordtest: " + o.Name + " is too long")
		}
		raw := chattest.JSON(v)
		if slices.Contains([]int{4, 5, 10}, o.Type) && json.Valid([]byte(v)) {
			raw = json.RawMessage(v)
		}
		last := focus && (i == len(options)-1 || given[options[i+1].Name] == "")
		*into = append(*into, givenOption{Name: o.Name, Type: o.Type, Value: raw, Focused: last && o.Autocomplete})
	}
	return out, nil
}

// splitOptions finds the "name:" of each parameter in a text.
func splitOptions(text string, options []Option) map[string]string {
	given := map[string]string{}
	if len(options) == 0 || text == "" {
		return given
	}
	now := options[0].Name
	for _, word := range strings.Split(text, " ") {
		name, v, named := strings.Cut(word, ":")
		if named && slices.ContainsFunc(options, func(o Option) bool { return o.Name == name }) {
			now, word = name, v
		}
		if before, has := given[now]; has {
			word = before + " " + word
		}
		given[now] = word
	}
	return given
}
