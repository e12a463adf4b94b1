// Package home draws the App Home, which shows a person their own settings and lets them
// change them. It is drawn when it is opened and when its controls are used, because Slack
// doesn't report which Homes are open.
package home

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/phrases"
	"nize/bots/slack/incoming"
	"nize/bots/slack/people"
	"nize/bots/slack/posting"
	"nize/bots/slack/view"
	"nize/bots/slack/wire"
	"nize/store"
)

// Every control of the App Home runs a command as if it had been typed, so forged values
// pass the same checks. After each change the Home is redrawn with the command's reply on
// top.

// Options configure [Homes].
type Options struct {
	Wire     *wire.Client
	People   *people.Directory
	Posts    *posting.Poster
	Keeper   bots.Keeper // nil draws no Home
	Commands *bots.Commands
	Now      func() time.Time
	Log      *slog.Logger
	Team     string
}

// Homes draws the App Homes of one workspace.
type Homes struct {
	o Options

	drawing [64]sync.Mutex // locks by user: draws of one Home don't overlap, so the last one shows the last state

	mu       sync.Mutex                // guards the fields below
	pictures map[string]view.HomeState // the File and Key in use, keyed by person
	links    map[string]string         // to cards, keyed by channel and ts
}

func New(o Options) *Homes { return &Homes{o: o} }

func (hs *Homes) lock(user string) *sync.Mutex {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(user)) // never fails
	return &hs.drawing[sum.Sum32()%uint32(len(hs.drawing))]
}

// picture returns the file that a person's Home shows; st is the Home's own state, which is
// used after a restart.
func (hs *Homes) picture(user string, st view.HomeState) view.HomeState {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if p, ok := hs.pictures[user]; ok {
		return p
	}
	return view.HomeState{File: st.File, Key: st.Key}
}

func (hs *Homes) setPicture(user string, p view.HomeState) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if hs.pictures == nil || len(hs.pictures) > people.MaxKnown {
		hs.pictures = map[string]view.HomeState{}
	}
	hs.pictures[user] = view.HomeState{File: p.File, Key: p.Key}
}

// link returns a message's permalink if it was looked up before; it never changes.
func (hs *Homes) link(at store.Address) (string, bool) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	link, ok := hs.links[at.Channel+"/"+at.Message]
	return link, ok
}

func (hs *Homes) setLink(at store.Address, link string) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if hs.links == nil || len(hs.links) >= people.MaxKnown {
		hs.links = map[string]string{}
	}
	hs.links[at.Channel+"/"+at.Message] = link
}

// Draw publishes a person's Home. The usage picture is uploaded after the first draw, which
// doesn't wait for it.
func (hs *Homes) Draw(ctx context.Context, p people.Person, st view.HomeState, notice string) error {
	if hs.o.Keeper == nil {
		return nil
	}
	lock := hs.lock(p.ID)
	lock.Lock()
	defer lock.Unlock()
	p, err := hs.o.People.Who(ctx, p.ID, people.Recent) // their language may just have changed
	if err != nil || p.User.ID == "" {
		return err
	}
	draw, err := hs.gatherHome(ctx, p, st, notice)
	if err != nil {
		return err
	}
	h := draw.Data
	old := hs.picture(p.ID, st)
	if h.Picture != nil && old.File != "" && old.Key == h.Picture.Key {
		draw.Picture = old
		if err := hs.publish(ctx, p, draw.View()); err == nil || wire.Code(err) == "" {
			return err
		}
		draw.Picture = view.HomeState{} // Slack no longer has the file
	}
	if err := hs.publish(ctx, p, draw.View()); err != nil || h.Picture == nil {
		return err
	}
	file, err := hs.o.Posts.UploadPicture(ctx, *h.Picture)
	if err != nil {
		hs.o.Log.Warn("the picture of a Home is left out", "user", p.ID, "err", err)
		return nil
	}
	draw.Picture = view.HomeState{File: file, Key: h.Picture.Key}
	if err := hs.o.Posts.WithPicture(ctx, func() error { return hs.publish(ctx, p, draw.View()) }); err != nil {
		hs.o.Log.Warn("the picture of a Home is left out", "user", p.ID, "err", err)
		hs.o.Posts.DropFile(ctx, file)
		return nil
	}
	hs.setPicture(p.ID, draw.Picture)
	if old.File != "" {
		hs.o.Posts.DropFile(ctx, old.File)
	}
	return nil
}

// gatherHome reads the current content of a person's Home.
func (hs *Homes) gatherHome(ctx context.Context, p people.Person, st view.HomeState, notice string) (view.Home, error) {
	h, err := hs.o.Keeper.Home(ctx, p.Asked(store.Address{Surface: store.OnSlack, Team: hs.o.Team}, ""))
	if err != nil {
		return view.Home{}, fmt.Errorf("gathering a Home: %w", err)
	}
	draw := view.Home{Data: h, Pages: st.Pages, Notice: notice, Reader: bots.Reader{Locale: p.Locale, Zone: bots.Zone(p.Zone), Now: hs.o.Now()}, Links: hs.cardLinks(ctx, h.Waiting, st.Pages["approvals"])}
	for _, name := range homeDoes {
		if cmd, _, _, ok := hs.o.Commands.Find(p.Caller(), name, false); ok {
			draw.Does = append(draw.Does, view.HomeButton{Words: name, About: cmd.About})
		}
	}
	return draw, nil
}

func (hs *Homes) publish(ctx context.Context, p people.Person, view slackgo.HomeTabViewRequest) error {
	return hs.o.Wire.Call(ctx, func(ctx context.Context) error {
		_, err := hs.o.Wire.API.PublishViewContext(ctx, slackgo.PublishViewContextRequest{UserID: p.ID, View: view})
		return err
	})
}

// cardLinks returns the permalinks of the cards on a page, keyed by call.
func (hs *Homes) cardLinks(ctx context.Context, waiting []bots.WaitingCall, page int) map[string]string {
	links := map[string]string{}
	from, to := view.PageOf(len(waiting), view.WaitingPage, page)
	for _, w := range waiting[from:to] {
		if w.At.Surface != store.OnSlack || w.At.Team != hs.o.Team || w.At.Message == "" {
			continue
		}
		if link, ok := hs.link(w.At); ok {
			links[w.Call] = link
			continue
		}
		err := hs.o.Wire.Call(ctx, func(ctx context.Context) error {
			link, err := hs.o.Wire.API.GetPermalinkContext(ctx, &slackgo.PermalinkParameters{Channel: w.At.Channel, Ts: w.At.Message})
			if err == nil && strings.HasPrefix(link, "http") && len(link) <= view.MaxURL {
				links[w.Call] = link
				hs.setLink(w.At, link)
			}
			return err
		})
		if err != nil { // it was deleted; the Home offers to send it again
			hs.o.Log.Info("a card has no link", "call", w.Call, "err", err)
		}
	}
	return links
}

// homeDoes lists the commands that the Home has buttons for.
var homeDoes = []string{"tokens new", "connect", "link", "help", "privacy"}

// Press runs the command of a control and redraws the Home.
func (hs *Homes) Press(ctx context.Context, p people.Person, i incoming.Interaction, a *incoming.Action) error {
	st := view.ReadHomeState(i.View.PrivateMetadata)
	_, what, _ := strings.Cut(a.ActionID, ":")
	what, arg, _ := strings.Cut(what, ":")
	var words []string
	switch what {
	case "set":
		words = []string{"settings " + arg + " " + a.SelectedOption.Value}
	case "servers":
		words = st.Ticked(arg, a)
	case "grant":
		words = []string{"settings revoke " + a.Value}
	case "token":
		words = []string{"tokens revoke " + a.Value}
	case "key":
		words = []string{"credentials disconnect " + a.Value}
	case "page":
		n, err := strconv.Atoi(a.SelectedOption.Value)
		if err != nil || n < 0 || n > view.MaxOptions {
			return fmt.Errorf("%w press", store.ErrInvalid)
		}
		if st.Pages == nil {
			st.Pages = map[string]int{}
		}
		if len(st.Pages) < view.MaxOptions && len(arg) < view.MaxTitle {
			st.Pages[arg] = n
		}
	case "bring":
		return hs.Draw(ctx, p, st, hs.fetchCard(ctx, p, a.Value))
	default:
		return fmt.Errorf("%w press: no such control", store.ErrInvalid)
	}
	notice := ""
	for _, line := range words {
		notice = hs.runCommand(ctx, p, line)
	}
	return hs.Draw(ctx, p, st, notice)
}

// runCommand runs a command and returns its reply.
func (hs *Homes) runCommand(ctx context.Context, p people.Person, line string) string {
	cmd, words, _, ok := hs.o.Commands.Find(p.Caller(), line, false)
	if !ok {
		return p.Words().Say(phrases.UnknownCommand)
	}
	answer, err := hs.o.Commands.Run(ctx, cmd, p.Asked(store.Address{Surface: store.OnSlack, Team: hs.o.Team}, words))
	if err != nil {
		hs.o.Log.Error("running a command for the Home", "command", cmd.Name, "err", err)
	}
	return answer.Text
}

// fetchCard sends the card of a call to a person and returns the reply.
func (hs *Homes) fetchCard(ctx context.Context, p people.Person, call string) string {
	err := store.ErrNotFound
	if store.ValidID(call) {
		err = hs.o.Keeper.Bring(ctx, p.Caller(), call)
	}
	switch {
	case err == nil:
		return p.Words().Say(phrases.CardBrought)
	case wire.Lasting(err):
		return p.Words().Say(phrases.CardNotWaiting)
	}
	hs.o.Log.Error("bringing a card", "call", call, "err", err)
	return p.Words().Say(phrases.CommandFailed)
}

// DrawRefused publishes the Home of a person without access, with the reason. It replaces
// an earlier Home, whose content requires access.
func (hs *Homes) DrawRefused(ctx context.Context, p people.Person, why string) error {
	if p.IsBot || p.ID == "" {
		return nil
	}
	blocks := []slackgo.Block{slackgo.NewSectionBlock(view.PlainText(view.Clip(why, view.MaxSection)), nil, nil)}
	view := slackgo.HomeTabViewRequest{Type: slackgo.VTHomeTab, Blocks: slackgo.Blocks{BlockSet: blocks}}
	return hs.publish(ctx, p, view)
}
