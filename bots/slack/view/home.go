package view

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/phrases"
	"nize/bots/slack/incoming"
	"nize/store"
)

// The layout of the Home: pure functions of a person's data. All potentially long lists
// have pages, so that the total always stays below a hundred blocks.

// How many items of a kind one page has.
const (
	boxGroup       = 10 // checkboxes in one element, Slack's limit
	serverPage     = 2 * boxGroup
	WaitingPage    = 6
	grantPage      = 8
	tokenPage      = 6
	credentialPage = 8
)

// Home is the content of a Home.
type Home struct {
	Data    bots.Home
	Pages   map[string]int
	Notice  string
	Reader  bots.Reader
	Links   map[string]string // URLs of cards, keyed by call
	Picture HomeState
	Does    []HomeButton

	words  phrases.Catalogue
	blocks []slackgo.Block
	state  HomeState
	nonce  string
}

// capital makes the first letter of a label a capital.
func capital(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:]
}

// HomeButton is a command at the bottom of the Home.
type HomeButton struct {
	Words string
	About phrases.Key
}

// View returns the layout.
func (d *Home) View() slackgo.HomeTabViewRequest {
	d.words, d.blocks, d.state = phrases.For(d.Reader.Locale), nil, HomeState{Pages: map[string]int{}, File: d.Picture.File, Key: d.Picture.Key}
	// Slack's client keeps the input of a block with the same id even if it is redrawn with
	// another one: a refused choice would stay on the screen.
	d.nonce = strconv.FormatInt(d.Reader.Now.UnixNano(), 36)
	if d.Notice != "" {
		d.text(Clip(d.Notice, maxContext))
		d.add(slackgo.NewDividerBlock())
	}
	d.waiting()
	d.settings()
	d.servers()
	d.grants()
	d.credentials()
	d.tokens()
	d.recent()
	d.usage()
	var buttons []slackgo.BlockElement
	for _, b := range d.Does {
		if b.Words != "tokens new" {
			buttons = append(buttons, button(WordsAction+":home-"+b.Words, capital(d.words.Say(b.About)), b.Words))
		}
	}
	if len(buttons) > 0 {
		d.add(slackgo.NewDividerBlock(), slackgo.NewActionBlock("", buttons...))
	}
	metadata, _ := json.Marshal(d.state) // encoding strings and numbers can't fail
	if len(metadata) > MaxMetadata {     // the checkboxes then do nothing; our lists are never that long
		d.state.Servers = nil
		metadata, _ = json.Marshal(d.state)
	}
	return slackgo.HomeTabViewRequest{Type: slackgo.VTHomeTab, Blocks: slackgo.Blocks{BlockSet: d.blocks}, PrivateMetadata: string(metadata)}
}

func (d *Home) add(blocks ...slackgo.Block) { d.blocks = append(d.blocks, blocks...) }

func (d *Home) say(key phrases.Key, args ...any) string { return d.words.Say(key, args...) }

func (d *Home) head(key phrases.Key, args ...any) {
	d.add(slackgo.NewHeaderBlock(PlainText(Clip(d.say(key, args...), maxHeader))))
}

// section begins a section at the bottom of the Home.
func (d *Home) section(key phrases.Key, args ...any) {
	d.add(slackgo.NewDividerBlock())
	d.head(key, args...)
}

func (d *Home) text(text string) {
	if text = Clip(bots.Plain(text), MaxSection); strings.Trim(text, "`\n") != "" {
		d.add(WordsBlock("", text))
	}
}

func (d *Home) note(text string) {
	d.add(slackgo.NewContextBlock("", PlainText(Clip(text, maxContext))))
}

// line adds a text with a control beside it.
func (d *Home) line(text string, control slackgo.BlockElement) {
	s := slackgo.NewSectionBlock(PlainText(Clip(text, MaxSection)), nil, slackgo.NewAccessory(control))
	s.BlockID = d.nonce + "-" + strconv.Itoa(len(d.blocks))
	d.add(s)
}

func (d *Home) actions(controls ...slackgo.BlockElement) {
	d.add(slackgo.NewActionBlock(d.nonce+"-"+strconv.Itoa(len(d.blocks)), controls...))
}

// PageOf returns the range of a list that a page shows.
func PageOf(all, size, page int) (from, to int) {
	if page < 0 || page > (all-1)/size { // page*size could overflow
		page = 0
	}
	return page * size, min((page+1)*size, all)
}

// page returns the range of a list that is shown; more adds a choice of pages below it.
func (d *Home) page(name string, size, all int, label func(int) string) (from, to int, more func()) {
	from, to = PageOf(all, size, d.Pages[name])
	if from > 0 {
		d.state.Pages[name] = from / size
	}
	return from, to, func() {
		if all <= size {
			return
		}
		var options []*slackgo.OptionBlockObject
		for n := 0; n*size < all && n < MaxOptions; n++ {
			a, b := PageOf(all, size, n)
			text := d.say(phrases.HomePage, strconv.Itoa(a+1), strconv.Itoa(b), strconv.Itoa(all), Clip(label(a), 14), Clip(label(b-1), 14))
			options = append(options, option(strconv.Itoa(n), text))
		}
		d.actions(chooser(HomeAction+":page:"+name, options, min(from/size, len(options)-1)))
		if shown := len(options) * size; shown < all {
			d.text(d.say(phrases.HomeMore, strconv.Itoa(all-shown), name))
		}
	}
}

func option(value, text string) *slackgo.OptionBlockObject {
	return slackgo.NewOptionBlockObject(value, PlainText(Clip(oneLine(text), maxOption)), nil)
}

// oneLine returns outside text as one harmless, non-empty line.
func oneLine(text string) string {
	text = bots.Escape(strings.Join(strings.Fields(text), " ")) // a line end becomes a space instead of an escape
	if text == "" {
		return "?"
	}
	return text
}

// chooser returns a choice of one of several options.
func chooser(id string, options []*slackgo.OptionBlockObject, chosen int) *slackgo.SelectBlockElement {
	s := slackgo.NewOptionsSelectBlockElement(slackgo.OptTypeStatic, nil, id, options...)
	s.InitialOption = options[chosen]
	return s
}

// waiting shows the calls that wait for the person.
func (d *Home) waiting() {
	list := d.Data.Waiting
	d.head(phrases.HomeWaiting)
	if len(list) == 0 {
		d.text(d.say(phrases.ApprovalsNone))
	}
	from, to, more := d.page("approvals", WaitingPage, len(list), func(i int) string { return list[i].Tool })
	for _, w := range list[from:to] {
		var left any = "-"
		if !w.Until.IsZero() {
			left = store.Span(strings.TrimSuffix(max(w.Until.Sub(d.Reader.Now), 0).Round(time.Minute).String(), "0s"))
		}
		control := button(HomeAction+":bring", d.say(phrases.ButtonBringCard), w.Call)
		if link := d.Links[w.Call]; link != "" {
			control = button(WordsAction+"-link", d.say(phrases.ButtonOpenCard), w.Call)
			control.URL = link
		}
		control.Style = slackgo.StylePrimary
		d.line(d.say(phrases.HomeWaitingLine, Clip(oneLine(w.Tool), 200), Clip(oneLine(w.By), 80), left), control)
	}
	more()
}

// settingPage is how many settings one page has.
const settingPage = 10

// settings shows the person's own settings, except those that have checkboxes elsewhere.
func (d *Home) settings() {
	list := slices.DeleteFunc(slices.Clone(d.Data.Settings), func(f bots.Field) bool { return f.Many })
	d.section(phrases.HomeChats)
	from, to, more := d.page("chats", settingPage, len(list), func(i int) string { return list[i].Label })
	for _, f := range list[from:to] {
		switch {
		case f.Fixed:
			d.note(f.Label + ": " + f.Hint)
		case len(f.Options) > 0:
			d.pick(f)
		default:
			value := cmp.Or(f.Written(fieldLimits), d.say(phrases.TheDefault))
			d.line(f.Label+": "+Clip(oneLine(value), 200), button(WordsAction+":home-"+f.Name, d.say(phrases.ButtonEdit), "settings"))
		}
	}
	more()
}

// pick shows a choice of named things. The default is first, and the chosen one is always
// included, however many there are.
func (d *Home) pick(f bots.Field) {
	list := slices.DeleteFunc(slices.Clone(f.Options), func(o bots.Option) bool { return utf8.RuneCountInString(o.Value) > maxOption })
	chosen := max(slices.IndexFunc(list, func(o bots.Option) bool { return slices.Contains(f.Value, o.Value) }), 0)
	left := max(len(list)-MaxOptions, 0)
	if left > 0 {
		if chosen >= MaxOptions {
			list[MaxOptions-1], chosen = list[chosen], MaxOptions-1
		}
		list = list[:MaxOptions]
	}
	var options []*slackgo.OptionBlockObject
	for _, o := range list {
		options = append(options, option(o.Value, o.Label))
	}
	d.line(f.Label, chooser(HomeAction+":set:"+f.Name, options, chosen))
	if left > 0 {
		d.text(d.say(phrases.HomeMore, strconv.Itoa(left), "settings"))
	}
}

// servers shows a checkbox for each server that the person may use.
func (d *Home) servers() {
	list := d.Data.Servers
	d.section(phrases.HomeServers)
	if len(list) == 0 {
		d.text(d.say(phrases.ServersNone))
		return
	}
	d.note(d.say(phrases.HomeServersNote))
	from, to, more := d.page("servers", serverPage, len(list), func(i int) string { return list[i].Name })
	for n := 0; from+n*boxGroup < to; n++ {
		var options, on []*slackgo.OptionBlockObject
		for _, s := range list[from+n*boxGroup : min(from+(n+1)*boxGroup, to)] {
			o := option(s.Name, s.Name)
			if s.Down {
				o.Description = PlainText(Clip(d.say(phrases.HomeServerDown), maxOption))
			}
			options = append(options, o)
			if !s.Off {
				on = append(on, o)
			}
			d.state.Servers = append(d.state.Servers, s.Name)
		}
		boxes := slackgo.NewCheckboxGroupsBlockElement(HomeAction+":servers:"+strconv.Itoa(n), options...)
		boxes.InitialOptions = on
		d.actions(boxes)
	}
	more()
}

// grants shows the person's standing answers.
func (d *Home) grants() {
	list := d.Data.Grants
	d.section(phrases.HomeGrants)
	if len(list) == 0 {
		d.text(d.say(phrases.HomeGrantsNone))
	}
	from, to, more := d.page("settings", grantPage, len(list), func(i int) string { return list[i].Tool })
	for _, g := range list[from:to] {
		key := phrases.HomeAllowed
		if g.Deny {
			key = phrases.HomeDenied
		}
		d.line(d.say(key, Clip(oneLine(g.Tool), 300)), button(HomeAction+":grant", d.say(phrases.ButtonRevoke), g.ID))
	}
	more()
}

// credentials shows the person's own credentials for servers.
func (d *Home) credentials() {
	list := d.Data.Credentials
	d.section(phrases.HomeKeys)
	if len(list) == 0 {
		d.text(d.say(phrases.KeysNone))
	}
	from, to, more := d.page("credentials", credentialPage, len(list), func(i int) string { return list[i].Server })
	for _, c := range list[from:to] {
		name, value := Clip(oneLine(c.Name), 100), c.Server+" "+c.Name
		if len(value) > maxNamedValue {
			value = c.Server
		}
		control := button(ConnectAction+":key", d.say(phrases.ButtonConnect), value)
		state := phrases.KeyLacks
		if c.Connected {
			state = phrases.KeyThere
			control = button(HomeAction+":key", d.say(phrases.ButtonDisconnect), value)
			control.Confirm = d.confirm(phrases.ButtonDisconnect, d.say(phrases.ConfirmKey, name, c.Server))
		}
		d.line(d.say(state, name, c.Server), control)
	}
	more()
}

// tokens shows the person's tokens for MCP clients.
func (d *Home) tokens() {
	list := d.Data.Tokens
	d.section(phrases.HomeTokens)
	if len(list) == 0 {
		d.text(d.say(phrases.TokensNone))
	}
	zone := d.Reader.Zone
	if zone == nil {
		zone = time.UTC
	}
	from, to, more := d.page("tokens", tokenPage, len(list), func(i int) string { return list[i].Name })
	for _, t := range list[from:to] {
		name := Clip(oneLine(t.Name), 100)
		control := button(HomeAction+":token", d.say(phrases.ButtonRevoke), Clip(t.Name, maxNamedValue))
		control.Confirm = d.confirm(phrases.ButtonRevoke, d.say(phrases.ConfirmToken, name))
		d.line(d.say(phrases.HomeTokenLine, name, oneLine(t.Prefix), t.Expires.In(zone).Format(time.DateOnly)), control)
	}
	more()
	if slices.ContainsFunc(d.Does, func(b HomeButton) bool { return b.Words == "tokens new" }) {
		d.actions(button(WordsAction+":home-tokens-new", d.say(phrases.ButtonToken), "tokens new"))
	}
}

// confirm asks for confirmation of an action that can't be undone.
func (d *Home) confirm(yes phrases.Key, text string) *slackgo.ConfirmationBlockObject {
	c := slackgo.NewConfirmationBlockObject(PlainText(Clip(d.say(phrases.ConfirmTitle), 100)), PlainText(Clip(text, 300)),
		PlainText(Clip(d.say(yes), 30)), PlainText(Clip(d.say(phrases.ConfirmNo), 30)))
	c.Style = slackgo.StyleDanger
	return c
}

// recent shows the latest conversations as plain text, because their titles are words from
// a chat.
func (d *Home) recent() {
	if len(d.Data.Recent) == 0 {
		return
	}
	d.section(phrases.HomeRecent)
	zone := cmp.Or(d.Reader.Zone, time.UTC)
	for _, c := range d.Data.Recent {
		d.note("• " + oneLine(c.Title) + " (" + c.Where + ", " + c.At.In(zone).Format(time.DateOnly) + ")")
	}
}

func (d *Home) usage() {
	d.section(phrases.HomeUsage, strconv.Itoa(d.Data.Days))
	d.text(d.Data.Usage)
	if d.Picture.File != "" && d.Data.Picture != nil {
		d.add(ImageBlock("", d.Picture.File, d.Data.Picture.Alt))
	}
}

const WordsAction = "words"

// AnswerButtons returns the buttons under a reply.
func AnswerButtons(a bots.Answer, w phrases.Catalogue) slackgo.Block {
	var list []slackgo.BlockElement
	for n, b := range a.Buttons {
		list = append(list, button(WordsAction+":"+strconv.Itoa(n), w.Say(b.Label), b.Words))
	}
	return slackgo.NewActionBlock("", list...)
}

// HomeState is carried by the Home: the pages shown, the servers named, so that an unticked
// checkbox can be told from a missing one, and the picture.
type HomeState struct {
	Pages   map[string]int `json:"pages,omitempty"`
	Servers []string       `json:"servers,omitempty"`
	File    string         `json:"file,omitempty"`
	Key     string         `json:"key,omitempty"` // of the picture in File
}

// ReadHomeState decodes the state that a Home carries; it ignores a state of another
// format.
func ReadHomeState(metadata string) (st HomeState) {
	if len(metadata) > MaxMetadata || json.Unmarshal([]byte(metadata), &st) != nil || st.File != "" && !incoming.IDForm.MatchString(st.File) {
		return HomeState{}
	}
	return st
}

const (
	HomeAction    = "home"
	ConnectAction = "connect"
)

// Ticked returns the commands that apply a group of checkboxes: they turn the servers shown
// in it on or off.
func (st HomeState) Ticked(group string, a *incoming.Action) []string {
	groups := slices.Collect(slices.Chunk(st.Servers, boxGroup))
	n, err := strconv.Atoi(group)
	if err != nil || n < 0 || n >= len(groups) {
		return nil
	}
	on := map[string]bool{}
	for _, o := range a.SelectedOptions {
		on[o.Value] = true
	}
	var allow, deny []string
	for _, name := range groups[n] {
		if on[name] {
			allow = append(allow, name)
		} else {
			deny = append(deny, name)
		}
	}
	var words []string
	if len(allow) > 0 {
		words = append(words, "servers allow "+strings.Join(allow, ","))
	}
	if len(deny) > 0 {
		words = append(words, "servers deny "+strings.Join(deny, ","))
	}
	return words
}
