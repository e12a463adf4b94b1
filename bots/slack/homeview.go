package slack

import (
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
	"nize/store"
)

// How the Home looks: pure functions of what a person has. Everything that
// could be long is shown page by page, so that the sum stays below a hundred
// blocks whatever there is.

// How many of a kind are on one page.
const (
	boxGroup       = 10 // boxes in one element, Slack's limit
	serverPage     = 2 * boxGroup
	waitingPage    = 6
	grantPage      = 8
	tokenPage      = 6
	credentialPage = 8
)

// homeDrawing is all that a Home shows.
type homeDrawing struct {
	home    bots.Home
	pages   map[string]int
	notice  string
	reader  bots.Reader
	links   map[string]string // of cards, by call
	picture homeState
	does    []homeButton

	words  phrases.Catalogue
	blocks []slackgo.Block
	state  homeState
	nonce  string
}

// capital begins a line of help as a label begins.
func capital(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:]
}

// homeButton is a command below all else.
type homeButton struct {
	words string
	about phrases.Key
}

// view lays everything out.
func (d *homeDrawing) view() slackgo.HomeTabViewRequest {
	d.words, d.blocks, d.state = phrases.For(d.reader.Locale), nil, homeState{Pages: map[string]int{}, File: d.picture.File, Key: d.picture.Key}
	// Slack's client keeps what stood in a block of the same id, also where it
	// is drawn otherwise: a choice that was refused would stay on the screen.
	d.nonce = strconv.FormatInt(d.reader.Now.UnixNano(), 36)
	if d.notice != "" {
		d.text(clip(d.notice, maxContext))
		d.add(slackgo.NewDividerBlock())
	}
	d.waiting()
	d.chats()
	d.servers()
	d.grants()
	d.credentials()
	d.tokens()
	d.usage()
	var buttons []slackgo.BlockElement
	for _, b := range d.does {
		if b.words != "tokens new" {
			buttons = append(buttons, button(wordsAction+":home-"+b.words, capital(d.words.Say(b.about)), b.words))
		}
	}
	if len(buttons) > 0 {
		d.add(slackgo.NewDividerBlock(), slackgo.NewActionBlock("", buttons...))
	}
	metadata, _ := json.Marshal(d.state) // strings and numbers always encode
	if len(metadata) > maxMetadata {     // the boxes then do nothing, which no list of ours comes to
		d.state.Servers = nil
		metadata, _ = json.Marshal(d.state)
	}
	return slackgo.HomeTabViewRequest{Type: slackgo.VTHomeTab, Blocks: slackgo.Blocks{BlockSet: d.blocks}, PrivateMetadata: string(metadata)}
}

func (d *homeDrawing) add(blocks ...slackgo.Block) { d.blocks = append(d.blocks, blocks...) }

func (d *homeDrawing) say(key phrases.Key, args ...any) string { return d.words.Say(key, args...) }

func (d *homeDrawing) head(key phrases.Key, args ...any) {
	d.add(slackgo.NewHeaderBlock(plainText(clip(d.say(key, args...), maxHeader))))
}

// section begins a part of the Home below what stands there.
func (d *homeDrawing) section(key phrases.Key, args ...any) {
	d.add(slackgo.NewDividerBlock())
	d.head(key, args...)
}

func (d *homeDrawing) text(text string) {
	if text = clip(text, maxSection); strings.Trim(text, "`\n") != "" {
		d.add(wordsBlock("", text))
	}
}

func (d *homeDrawing) note(text string) {
	d.add(slackgo.NewContextBlock("", plainText(clip(text, maxContext))))
}

// line is a text with a control beside it.
func (d *homeDrawing) line(text string, control slackgo.BlockElement) {
	s := slackgo.NewSectionBlock(plainText(clip(text, maxSection)), nil, slackgo.NewAccessory(control))
	s.BlockID = d.nonce + "-" + strconv.Itoa(len(d.blocks))
	d.add(s)
}

func (d *homeDrawing) actions(controls ...slackgo.BlockElement) {
	d.add(slackgo.NewActionBlock(d.nonce+"-"+strconv.Itoa(len(d.blocks)), controls...))
}

// pageOf is the part of a list that a page shows.
func pageOf(all, size, page int) (from, to int) {
	if page < 0 || page > (all-1)/size { // page*size might be beyond all integers
		page = 0
	}
	return page * size, min((page+1)*size, all)
}

// page is the part of a list that is shown, with a choice of all pages below
// it, which more puts there.
func (d *homeDrawing) page(name string, size, all int, label func(int) string) (from, to int, more func()) {
	from, to = pageOf(all, size, d.pages[name])
	if from > 0 {
		d.state.Pages[name] = from / size
	}
	return from, to, func() {
		if all <= size {
			return
		}
		var options []*slackgo.OptionBlockObject
		for n := 0; n*size < all && n < maxOptions; n++ {
			a, b := pageOf(all, size, n)
			text := d.say(phrases.HomePage, strconv.Itoa(a+1), strconv.Itoa(b), strconv.Itoa(all), clip(label(a), 14), clip(label(b-1), 14))
			options = append(options, option(strconv.Itoa(n), text))
		}
		d.actions(chooser(homeAction+":page:"+name, options, min(from/size, len(options)-1)))
		if shown := len(options) * size; shown < all {
			d.text(d.say(phrases.HomeMore, strconv.Itoa(all-shown), name))
		}
	}
}

func option(value, text string) *slackgo.OptionBlockObject {
	return slackgo.NewOptionBlockObject(value, plainText(clip(oneLine(text), maxOption)), nil)
}

// oneLine makes somebody else's words harmless in one line that is not empty.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(bots.Escape(text)), " ")
	if text == "" {
		return "?"
	}
	return text
}

// chooser is a choice of one of several.
func chooser(id string, options []*slackgo.OptionBlockObject, chosen int) *slackgo.SelectBlockElement {
	s := slackgo.NewOptionsSelectBlockElement(slackgo.OptTypeStatic, nil, id, options...)
	s.InitialOption = options[chosen]
	return s
}

// waiting are the calls that wait for the person.
func (d *homeDrawing) waiting() {
	list := d.home.Waiting
	d.head(phrases.HomeWaiting)
	if len(list) == 0 {
		d.text(d.say(phrases.ApprovalsNone))
	}
	from, to, more := d.page("approvals", waitingPage, len(list), func(i int) string { return list[i].Tool })
	for _, w := range list[from:to] {
		left := "-"
		if !w.Until.IsZero() {
			left = d.words.Translate(max(w.Until.Sub(d.reader.Now), 0).Round(time.Minute).String())
			left = strings.TrimSuffix(left, "0s")
		}
		control := button(homeAction+":bring", d.say(phrases.ButtonBringCard), w.Call)
		if link := d.links[w.Call]; link != "" {
			control = button(wordsAction+"-link", d.say(phrases.ButtonOpenCard), w.Call)
			control.URL = link
		}
		control.Style = slackgo.StylePrimary
		d.line(d.say(phrases.HomeWaitingLine, clip(oneLine(w.Tool), 200), clip(oneLine(w.By), 80), left), control)
	}
	more()
}

// chats are what the conversations of the person begin with.
func (d *homeDrawing) chats() {
	h := d.home
	d.section(phrases.HomeChats)
	d.pick("agent", phrases.HomeAgent, h.Agents, h.Agent)
	d.pick("model", phrases.HomeModel, h.Models, h.Model)
	languages := []struct{ tag, name string }{{store.Auto, d.say(phrases.HomeLanguageAuto)}, {"en", "English"}, {"zh-Hans", "简体中文"}, {"zh-Hant", "繁體中文"}}
	if h.Language == "zh" {
		languages = append(languages, struct{ tag, name string }{"zh", "中文"})
	}
	var options []*slackgo.OptionBlockObject
	chosen := 0
	for i, l := range languages {
		options = append(options, option(l.tag, l.name))
		if l.tag == h.Language {
			chosen = i
		}
	}
	d.line(d.say(phrases.HomeLanguage), chooser(homeAction+":language", options, chosen))
	if h.NoStreaming {
		d.note(d.say(phrases.HomeNoStreaming))
		return
	}
	stream := option("on", d.say(phrases.HomeStreams))
	boxes := slackgo.NewCheckboxGroupsBlockElement(homeAction+":streaming", stream)
	if h.Streaming {
		boxes.InitialOptions = []*slackgo.OptionBlockObject{stream}
	}
	d.line(d.say(phrases.HomeStreaming), boxes)
}

// pick is a choice among named things, with the default first and what is
// chosen among them however many there are.
func (d *homeDrawing) pick(what string, label phrases.Key, list []bots.Choice, now string) {
	list = slices.DeleteFunc(slices.Clone(list), func(c bots.Choice) bool {
		return c.Name == "default" || c.Name == "" || utf8.RuneCountInString(c.Name) > maxOption
	})
	chosen := slices.IndexFunc(list, func(c bots.Choice) bool { return c.Name == now })
	left := max(len(list)-(maxOptions-1), 0)
	if left > 0 {
		if chosen >= maxOptions-1 {
			list[maxOptions-2], chosen = list[chosen], maxOptions-2
		}
		list = list[:maxOptions-1]
	}
	options := []*slackgo.OptionBlockObject{option("default", d.say(phrases.TheDefault))}
	for _, c := range list {
		text := c.Name
		if c.About != "" && c.About != c.Name {
			text += " (" + c.About + ")"
		}
		options = append(options, option(c.Name, text))
	}
	d.line(d.say(label), chooser(homeAction+":"+what, options, chosen+1))
	if left > 0 {
		d.text(d.say(phrases.HomeMore, strconv.Itoa(left), what))
	}
}

// servers are boxes, one for each server that the person may use.
func (d *homeDrawing) servers() {
	list := d.home.Servers
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
				o.Description = plainText(clip(d.say(phrases.HomeServerDown), maxOption))
			}
			options = append(options, o)
			if !s.Off {
				on = append(on, o)
			}
			d.state.Servers = append(d.state.Servers, s.Name)
		}
		boxes := slackgo.NewCheckboxGroupsBlockElement(homeAction+":servers:"+strconv.Itoa(n), options...)
		boxes.InitialOptions = on
		d.actions(boxes)
	}
	more()
}

// grants are the standing answers of the person.
func (d *homeDrawing) grants() {
	list := d.home.Grants
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
		d.line(d.say(key, clip(oneLine(g.Tool), 300)), button(homeAction+":grant", d.say(phrases.ButtonRevoke), g.ID))
	}
	more()
}

// credentials are the person's own, for servers.
func (d *homeDrawing) credentials() {
	list := d.home.Credentials
	d.section(phrases.HomeKeys)
	if len(list) == 0 {
		d.text(d.say(phrases.KeysNone))
	}
	from, to, more := d.page("credentials", credentialPage, len(list), func(i int) string { return list[i].Server })
	for _, c := range list[from:to] {
		name, value := clip(oneLine(c.Name), 100), c.Server+" "+c.Name
		if len(value) > maxNamedValue {
			value = c.Server
		}
		control := button(connectAction+":key", d.say(phrases.ButtonConnect), value)
		state := phrases.KeyLacks
		if c.Connected {
			state = phrases.KeyThere
			control = button(homeAction+":key", d.say(phrases.ButtonDisconnect), value)
			control.Confirm = d.confirm(phrases.ButtonDisconnect, d.say(phrases.ConfirmKey, name, c.Server))
		}
		d.line(d.say(state, name, c.Server), control)
	}
	more()
}

// tokens let MCP clients of the person in.
func (d *homeDrawing) tokens() {
	list := d.home.Tokens
	d.section(phrases.HomeTokens)
	if len(list) == 0 {
		d.text(d.say(phrases.TokensNone))
	}
	zone := d.reader.Zone
	if zone == nil {
		zone = time.UTC
	}
	from, to, more := d.page("tokens", tokenPage, len(list), func(i int) string { return list[i].Name })
	for _, t := range list[from:to] {
		name := clip(oneLine(t.Name), 100)
		control := button(homeAction+":token", d.say(phrases.ButtonRevoke), clip(t.Name, maxNamedValue))
		control.Confirm = d.confirm(phrases.ButtonRevoke, d.say(phrases.ConfirmToken, name))
		d.line(d.say(phrases.HomeTokenLine, name, oneLine(t.Prefix), t.Expires.In(zone).Format(time.DateOnly)), control)
	}
	more()
	if slices.ContainsFunc(d.does, func(b homeButton) bool { return b.words == "tokens new" }) {
		d.actions(button(wordsAction+":home-tokens-new", d.say(phrases.ButtonToken), "tokens new"))
	}
}

// confirm asks before something that can't be taken back.
func (d *homeDrawing) confirm(yes phrases.Key, text string) *slackgo.ConfirmationBlockObject {
	c := slackgo.NewConfirmationBlockObject(plainText(clip(d.say(phrases.ConfirmTitle), 100)), plainText(clip(text, 300)),
		plainText(clip(d.say(yes), 30)), plainText(clip(d.say(phrases.ConfirmNo), 30)))
	c.Style = slackgo.StyleDanger
	return c
}

// usage is what the person used, in words and as a picture.
func (d *homeDrawing) usage() {
	d.section(phrases.HomeUsage, strconv.Itoa(d.home.Days))
	d.text(d.home.Usage)
	if d.picture.File != "" && d.home.Picture != nil {
		d.add(imageBlock("", d.picture.File, d.home.Picture.Alt))
	}
}

const wordsAction = "words"

// answerButtons are those under an answer.
func answerButtons(a bots.Answer, w phrases.Catalogue) slackgo.Block {
	var list []slackgo.BlockElement
	for n, b := range a.Buttons {
		list = append(list, button(wordsAction+":"+strconv.Itoa(n), w.Say(b.Label), b.Words))
	}
	return slackgo.NewActionBlock("", list...)
}

// homeState travels in the Home: what part of long lists it shows, which
// servers it names, so that an unticked box is told from one that is not there,
// and the picture in it.
type homeState struct {
	Pages   map[string]int `json:"pages,omitempty"`
	Servers []string       `json:"servers,omitempty"`
	File    string         `json:"file,omitempty"`
	Key     string         `json:"key,omitempty"` // of the picture in File
}

// readHomeState reads what a Home carries; what is of another make is left out.
func readHomeState(metadata string) (st homeState) {
	if len(metadata) > maxMetadata || json.Unmarshal([]byte(metadata), &st) != nil || st.File != "" && !idForm.MatchString(st.File) {
		return homeState{}
	}
	return st
}

const (
	homeAction    = "home"
	connectAction = "connect"
)

// ticked are the commands that make a group of boxes true: those servers of it
// that it shows are on or off.
func (st homeState) ticked(group string, a action) []string {
	groups := slices.Collect(slices.Chunk(st.Servers, boxGroup))
	n, err := strconv.Atoi(group)
	if err != nil || n < 0 || n >= len(groups) {
		return nil
	}
	on := map[string]bool{}
	for _, o := range a.SelectedMany {
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

// sumOf is the same for views of a drawing that look the same.
func (d *homeDrawing) sumOf(view slackgo.HomeTabViewRequest) string {
	b, err := json.Marshal(view)
	if err != nil {
		return "" // of no Home: it is published, and says what is wrong
	}
	return sum([]byte(strings.ReplaceAll(string(b), `"`+d.nonce+"-", `"`)))
}
