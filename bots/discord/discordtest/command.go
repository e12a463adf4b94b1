package discordtest

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Command is one that the bot registered.
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
	Permissions  *string           `json:"default_member_permissions"`
	DM           *bool             `json:"dm_permission,omitempty"`
	Contexts     []int             `json:"contexts"`
	NSFW         bool              `json:"nsfw"`
	Version      string            `json:"version"`
}

// Option is a parameter of a command, a sub-command, or a group of those.
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
	MaxLength    *int              `json:"max_length,omitempty"`
	MinLength    *int              `json:"min_length,omitempty"`
}

// Choice is one of a parameter's values.
type Choice struct {
	Name  string            `json:"name"`
	Names map[string]string `json:"name_localizations,omitempty"`
	Value json.RawMessage   `json:"value"`
}

func (ch Choice) check(c *checker, at string) {
	c.length(at+".name", ch.Name, 1, 100)
	var text string
	if json.Unmarshal(ch.Value, &text) == nil {
		c.length(at+".value", text, 1, 100)
	}
}

// Text is a choice's value as people would type it.
func (ch Choice) Text() string {
	var text string
	if json.Unmarshal(ch.Value, &text) == nil {
		return text
	}
	return string(ch.Value)
}

var (
	commandName = regexp.MustCompile(`^[-_'\p{L}\p{N}\p{Devanagari}\p{Thai}]{1,32}$`)
	locales     = strings.Fields("id da de en-GB en-US es-ES es-419 fr hr it lt hu nl no pl pt-BR ro fi sv-SE vi tr cs el bg ru uk hi th zh-CN ja zh-TW ko")
)

func (c *checker) localized(at string, names map[string]string, check func(at, v string)) {
	for locale, v := range names {
		if !slices.Contains(locales, locale) {
			c.wrong(at+"."+locale, "BASE_TYPE_CHOICES", "Not a locale of Discord's.")
		}
		check(at+"."+locale, v)
	}
}

func (c *checker) commandName(at, v string) {
	if !commandName.MatchString(v) || strings.ToLower(v) != v {
		c.wrong(at, "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
	}
}

func (c *checker) command(at string, cmd Command) {
	name := c.commandName
	if cmd.Type > 1 {
		name = func(at, v string) { c.length(at, v, 1, 32) }
		if cmd.Description != "" || len(cmd.Options) > 0 {
			c.wrong(at+".description", "APPLICATION_COMMAND_DESCRIPTION_INVALID", "Context menu commands have no description and no options")
		}
	} else {
		c.length(at+".description", cmd.Description, 1, 100)
	}
	name(at+".name", cmd.Name)
	c.localized(at+".name_localizations", cmd.Names, name)
	c.localized(at+".description_localizations", cmd.Descriptions, func(at, v string) { c.length(at, v, 1, 100) })
	c.options(at, cmd.Options, 0)
	if cmd.size() > 8000 {
		c.wrong(at, "APPLICATION_COMMAND_TOO_LARGE", "Command exceeds maximum size (8000)")
	}
}

func (c *checker) options(at string, list []Option, depth int) {
	c.count(at+".options", len(list), 0, 25)
	names, optional := map[string]bool{}, false
	for i, o := range list {
		here := at + ".options." + strconv.Itoa(i)
		c.commandName(here+".name", o.Name)
		c.length(here+".description", o.Description, 1, 100)
		c.localized(here+".name_localizations", o.Names, c.commandName)
		c.localized(here+".description_localizations", o.Descriptions, func(at, v string) { c.length(at, v, 1, 100) })
		c.count(here+".choices", len(o.Choices), 0, 25)
		for n, choice := range o.Choices {
			choice.check(c, here+".choices."+strconv.Itoa(n))
		}
		sub := o.Type == 1 || o.Type == 2
		switch {
		case o.Type < 1 || o.Type > 11:
			c.wrong(here+".type", "BASE_TYPE_CHOICES", "Value must be one of {1, …, 11}.")
		case o.Type == 2 && depth > 0 || o.Type == 1 && depth > 1, sub != (list[0].Type == 1 || list[0].Type == 2):
			c.wrong(here+".type", "APPLICATION_COMMAND_OPTIONS_TYPE_INVALID", "Sub-command and sub-command group option types are mutually exclusive to all other types")
		case o.Required && optional:
			c.wrong(here, "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID", "Required options must be placed before non-required options")
		case o.Autocomplete && (len(o.Choices) > 0 || o.Type != 3 && o.Type != 4 && o.Type != 10):
			c.wrong(here+".autocomplete", "APPLICATION_COMMAND_OPTIONS_AUTOCOMPLETE_INVALID", "Autocomplete may not be set to true if choices are present")
		}
		if names[o.Name] {
			c.wrong(here, "APPLICATION_COMMAND_OPTIONS_NAME_ALREADY_EXISTS", "Option name already exists")
		}
		names[o.Name] = true
		optional = optional || !o.Required && !sub
		if sub {
			c.options(here, o.Options, depth+1)
		}
	}
}

// longest is the longest of a text and its translations: that is what counts.
func longest(text string, others map[string]string) int {
	n := utf8.RuneCountInString(text)
	for _, v := range others {
		n = max(n, utf8.RuneCountInString(v))
	}
	return n
}

func (cmd Command) size() int {
	n := longest(cmd.Name, cmd.Names) + longest(cmd.Description, cmd.Descriptions)
	for _, o := range cmd.Options {
		n += o.size()
	}
	return n
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
		return nil, refuse(403, 20012, "You are not authorized to perform this action on this application")
	}
	if guild != "" && (s.world.guild(guild) == nil || s.world.guild(guild).member(Bot) == nil) {
		return nil, errAccess
	}
	var list []Command
	if err := c.decode(&list); err != nil {
		return nil, err
	}
	ck := &checker{}
	kinds, names := map[int]int{}, map[string]bool{}
	for i := range list {
		cmd := &list[i]
		if cmd.Type == 0 {
			cmd.Type = 1
		}
		ck.command(strconv.Itoa(i), *cmd)
		key := strconv.Itoa(cmd.Type) + cmd.Name
		if names[key] {
			ck.wrong(strconv.Itoa(i)+".name", "APPLICATION_COMMANDS_DUPLICATE_NAME", "Application command names must be unique")
		}
		names[key] = true
		kinds[cmd.Type]++
		cmd.ID, cmd.App, cmd.GuildID, cmd.Version = s.idLocked(), App, guild, s.idLocked()
		for _, old := range s.commands[guild] {
			if old.Name == cmd.Name && old.Type == cmd.Type {
				cmd.ID = old.ID
			}
		}
	}
	if kinds[1] > 100 || kinds[2] > 15 || kinds[3] > 15 {
		return nil, refuse(400, 30032, "Maximum number of application commands reached (100)")
	}
	if err := ck.err(); err != nil {
		return nil, err
	}
	s.commands[guild] = list
	return list, nil
}

// Commands are those that are registered for a guild, or globally.
func (s *Server) Commands(guild string) []Command {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return slices.Clone(s.commands[guild])
}

// commandLocked finds a command that people see in a channel: those of the guild
// hide global ones of their name.
func (s *Server) commandLocked(c *Channel, kind int, name string) (Command, bool) {
	for _, guild := range slices.Compact([]string{c.Guild, ""}) {
		for _, cmd := range s.commands[guild] {
			if cmd.Type == kind && cmd.Name == name {
				return cmd, true
			}
		}
	}
	return Command{}, false
}

// commandData is the data of a command's interaction.
type commandData struct {
	ID       string        `json:"id"`
	Name     string        `json:"name"`
	Type     int           `json:"type"`
	GuildID  string        `json:"guild_id,omitempty"`
	Options  []givenOption `json:"options,omitempty"`
	TargetID string        `json:"target_id,omitempty"`
	Resolved *resolved     `json:"resolved,omitempty"`
}

type givenOption struct {
	Name    string          `json:"name"`
	Type    int             `json:"type"`
	Value   json.RawMessage `json:"value,omitempty"`
	Options []givenOption   `json:"options,omitempty"`
	Focused bool            `json:"focused,omitempty"`
}

type resolved struct {
	Users    map[string]wireUser    `json:"users,omitempty"`
	Members  map[string]*wireMember `json:"members,omitempty"`
	Roles    map[string]wireRole    `json:"roles,omitempty"`
	Channels map[string]wireChannel `json:"channels,omitempty"`
	Messages map[string]wireMessage `json:"messages,omitempty"`
}

var errNoCommand = errors.New("discordtest: the bot has no such command here")

// typedLocked reads a command as people type it: its name, sub-commands, and
// then "name:value" for each parameter, where the rest of a text without a name
// is the first one's. With focus, the last parameter is being typed. s.Mu must be
// held.
func (s *Server) typedLocked(c *Channel, text string, focus bool) (commandData, error) {
	words := strings.TrimPrefix(text, "/")
	name, rest, _ := strings.Cut(words, " ")
	cmd, ok := s.commandLocked(c, 1, name)
	if !ok {
		return commandData{}, errNoCommand
	}
	out := commandData{ID: cmd.ID, Name: cmd.Name, Type: 1, GuildID: cmd.GuildID}
	into, options := &out.Options, cmd.Options
	for len(options) > 0 && options[0].Type <= 2 {
		word, more, _ := strings.Cut(strings.TrimSpace(rest), " ")
		i := slices.IndexFunc(options, func(o Option) bool { return o.Name == word })
		if i < 0 {
			return commandData{}, errors.New("discordtest: /" + name + " has no sub-command " + strconv.Quote(word))
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
		if !has {
			if o.Required && !focus {
				return commandData{}, errors.New("discordtest: /" + name + " needs " + o.Name)
			}
			continue
		}
		if o.MaxLength != nil && utf8.RuneCountInString(v) > *o.MaxLength {
			return commandData{}, errors.New("discordtest: " + o.Name + " is too long")
		}
		raw := mustJSON(v)
		if (o.Type == 4 || o.Type == 5 || o.Type == 10) && json.Valid([]byte(v)) {
			raw = json.RawMessage(v)
		}
		last := focus && (i == len(options)-1 || given[options[i+1].Name] == "")
		*into = append(*into, givenOption{Name: o.Name, Type: o.Type, Value: raw, Focused: last && o.Autocomplete})
		s.resolveLocked(&out, c, o.Type, v)
	}
	return out, nil
}

// splitOptions finds "name:" of each parameter in a text.
func splitOptions(text string, options []Option) map[string]string {
	given := map[string]string{}
	if len(options) == 0 || text == "" {
		return given
	}
	now := options[0].Name
	var value []string
	keep := func() {
		if len(value) > 0 {
			given[now] = strings.Join(value, " ")
		}
		value = nil
	}
	for _, word := range strings.Split(text, " ") {
		name, v, named := strings.Cut(word, ":")
		if named && slices.ContainsFunc(options, func(o Option) bool { return o.Name == name }) {
			keep()
			now, word = name, v
		}
		value = append(value, word)
	}
	keep()
	return given
}

func (s *Server) resolveLocked(out *commandData, c *Channel, kind int, id string) {
	if out.Resolved == nil {
		out.Resolved = &resolved{}
	}
	g := s.world.guild(c.Guild)
	switch u := s.world.user(id); {
	case kind == 6 && u != nil:
		out.Resolved.Users = map[string]wireUser{id: u.wire()}
		if m := g.member(id); m != nil {
			out.Resolved.Members = map[string]*wireMember{id: s.world.wireMember(m, false)}
		}
	case kind == 7 && s.world.channel(id) != nil:
		out.Resolved.Channels = map[string]wireChannel{id: s.wireChannelLocked(s.world.channel(id))}
	case kind == 8 && g != nil && g.role(id) != nil:
		out.Resolved.Roles = map[string]wireRole{id: g.role(id).wire(1)}
	}
}
