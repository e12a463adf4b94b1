package slack

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"sync"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/phrases"
	"nize/bots/slack/incoming"
	"nize/bots/slack/view"
	"nize/bots/slack/wire"
	"nize/store"
)

// The App Home shows a person what is theirs and lets them change it.
// Every control stands for a command, which is run as if it had been typed: a
// value that was made up is checked like a typed one. After each change the
// Home is drawn anew, with what the command said on top.

// homes is what is remembered of Homes.
type homes struct {
	drawing [64]sync.Mutex // one Home is drawn at a time, so that the last word is the last state

	mu       sync.Mutex                // guards what follows
	pictures map[string]view.HomeState // File and Key in use, by person
	links    map[string]string         // to cards, by channel and ts

	lately lately
}

func (h *homes) lock(user string) *sync.Mutex {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(user)) // it can't fail
	return &h.drawing[sum.Sum32()%uint32(len(h.drawing))]
}

// picture is the file that a person's Home shows; st is what the Home itself
// says, which counts after a restart.
func (h *homes) picture(user string, st view.HomeState) view.HomeState {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p, ok := h.pictures[user]; ok {
		return p
	}
	return view.HomeState{File: st.File, Key: st.Key}
}

func (h *homes) setPicture(user string, p view.HomeState) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pictures == nil || len(h.pictures) > maxPeople {
		h.pictures = map[string]view.HomeState{}
	}
	h.pictures[user] = view.HomeState{File: p.File, Key: p.Key}
}

// link is where a message is found, if that was asked before: it never changes.
func (h *homes) link(at store.Address) (string, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	link, ok := h.links[at.Channel+"/"+at.Message]
	return link, ok
}

func (h *homes) setLink(at store.Address, link string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.links == nil || len(h.links) >= maxPeople {
		h.links = map[string]string{}
	}
	h.links[at.Channel+"/"+at.Message] = link
}

// openHome draws the Home for who opened it; somebody without access sees that
// they have none.
func (l *live) openHome(ctx context.Context, e incoming.Event) error {
	p, err := l.who(ctx, e.User, keepPerson)
	if err != nil {
		return err
	}
	if p.user.ID == "" {
		return drawRefused(ctx, l, p)
	}
	l.welcome(ctx, p, "", "")
	st := view.ReadHomeState(e.Home.Metadata)
	st.Pages = nil // it opens at the beginning
	return l.drawHome(ctx, p, st, "")
}

// drawHome publishes the Home of one person. The picture of what they used is
// uploaded after the first look, which does not wait for it.
func (l *live) drawHome(ctx context.Context, p person, st view.HomeState, notice string) error {
	if l.b.o.Keeper == nil {
		return nil
	}
	lock := l.homes.lock(p.id)
	lock.Lock()
	defer lock.Unlock()
	p, err := l.who(ctx, p.id, keepPerson) // their language may have been changed just now
	if err != nil || p.user.ID == "" {
		return err
	}
	l.homes.lately.opened(p.id, st, notice, l.b.o.Now())
	draw, err := l.gatherHome(ctx, p, st, notice)
	if err != nil {
		return err
	}
	h := draw.Data
	old := l.homes.picture(p.id, st)
	defer func() {
		kept := l.homes.picture(p.id, st) // the one that stands there by now
		l.keepOpen(ctx, p, view.HomeState{Pages: st.Pages, Servers: st.Servers, File: kept.File, Key: kept.Key})
	}()
	if h.Picture != nil && old.File != "" && old.Key == h.Picture.Key {
		draw.Picture = old
		if err := l.publishHome(ctx, p, &draw); err == nil || wire.Code(err) == "" {
			return err
		}
		draw.Picture = view.HomeState{} // Slack has it no more
	}
	if err := l.publishHome(ctx, p, &draw); err != nil || h.Picture == nil {
		return err
	}
	file, err := l.uploadPicture(ctx, *h.Picture)
	if err != nil {
		l.log.Warn("the picture of a Home is left out", "user", p.id, "err", err)
		return nil
	}
	draw.Picture = view.HomeState{File: file, Key: h.Picture.Key}
	if err := l.withPicture(ctx, func() error { return l.publishHome(ctx, p, &draw) }); err != nil {
		l.log.Warn("the picture of a Home is left out", "user", p.id, "err", err)
		l.dropFile(ctx, file)
		return nil
	}
	l.homes.setPicture(p.id, draw.Picture)
	if old.File != "" {
		l.dropFile(ctx, old.File)
	}
	return nil
}

// gatherHome reads what somebody's Home shows now.
func (l *live) gatherHome(ctx context.Context, p person, st view.HomeState, notice string) (view.Home, error) {
	h, err := l.b.o.Keeper.Home(ctx, l.asked(p, l.place("", ""), ""))
	if err != nil {
		return view.Home{}, fmt.Errorf("gathering a Home: %w", err)
	}
	draw := view.Home{Data: h, Pages: st.Pages, Notice: notice, Reader: bots.Reader{Locale: p.locale, Zone: view.Zone(p.zone), Now: l.b.o.Now()}, Links: l.cardLinks(ctx, h.Waiting, st.Pages["approvals"])}
	for _, name := range homeDoes {
		if cmd, _, _, ok := l.b.o.Commands.Find(p.by(), name, false); ok {
			draw.Does = append(draw.Does, view.HomeButton{Words: name, About: cmd.About})
		}
	}
	l.homes.lately.waits(p.id, h.Waiting, l.b.o.Now())
	return draw, nil
}

func (l *live) publish(ctx context.Context, p person, view slackgo.HomeTabViewRequest) error {
	return l.wire.Call(ctx, func(ctx context.Context) error {
		_, err := l.wire.API.PublishViewContext(ctx, slackgo.PublishViewContextRequest{UserID: p.id, View: view})
		return err
	})
}

// publishHome publishes the Home of somebody who has one.
func (l *live) publishHome(ctx context.Context, p person, draw *view.Home) error {
	view := draw.View()
	l.homes.lately.shows(p.id, "") // until it is known to stand there
	err := l.publish(ctx, p, view)
	if err == nil {
		l.homes.lately.shows(p.id, draw.Digest(view))
	}
	return err
}

// cardLinks are the addresses of the cards on a page, by call.
func (l *live) cardLinks(ctx context.Context, waiting []bots.WaitingCall, page int) map[string]string {
	links := map[string]string{}
	from, to := view.PageOf(len(waiting), view.WaitingPage, page)
	for _, w := range waiting[from:to] {
		if w.At.Surface != store.OnSlack || w.At.Team != l.account.Team || w.At.Message == "" {
			continue
		}
		if link, ok := l.homes.link(w.At); ok {
			links[w.Call] = link
			continue
		}
		err := l.wire.Call(ctx, func(ctx context.Context) error {
			link, err := l.wire.API.GetPermalinkContext(ctx, &slackgo.PermalinkParameters{Channel: w.At.Channel, Ts: w.At.Message})
			if err == nil && strings.HasPrefix(link, "http") && len(link) <= view.MaxURL {
				links[w.Call] = link
				l.homes.setLink(w.At, link)
			}
			return err
		})
		if err != nil { // it was deleted: they can have it anew
			l.log.Info("a card has no link", "call", w.Call, "err", err)
		}
	}
	return links
}

// homeDoes are the commands that the Home has buttons for.
var homeDoes = []string{"tokens new", "connect", "link", "help", "privacy"}

// addHomeViews registers what the controls of the Home do.
func (b *Bot) addHomeViews() {
	b.views.addPress(view.HomeAction, onPress{kept: true, do: pressHome})
	b.views.addPress(view.ConnectAction, onPress{do: pressConnect})
	b.views.addSubmit(view.SecretView, onSubmit{now: submitSecret})
}

// pressHome does what a control of the Home stands for, and draws it anew.
func pressHome(ctx context.Context, l *live, p person, i incoming.Interaction, a incoming.Action) error {
	st := view.ReadHomeState(i.View.Metadata)
	_, what, _ := strings.Cut(a.ID, ":")
	what, arg, _ := strings.Cut(what, ":")
	var words []string
	switch what {
	case "agent", "model":
		words = []string{what + " " + a.Selected.Value}
	case "language":
		words = []string{"settings language " + a.Selected.Value}
	case "streaming":
		words = []string{"settings streaming " + strconv.FormatBool(len(a.SelectedMany) > 0)}
	case "servers":
		words = st.Ticked(arg, a)
	case "grant":
		words = []string{"settings revoke " + a.Value}
	case "token":
		words = []string{"tokens revoke " + a.Value}
	case "key":
		words = []string{"credentials disconnect " + a.Value}
	case "page":
		n, err := strconv.Atoi(a.Selected.Value)
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
		return l.drawHome(ctx, p, st, l.fetchCard(ctx, p, a.Value))
	default:
		return fmt.Errorf("%w press: no such control", store.ErrInvalid)
	}
	notice := ""
	for _, line := range words {
		notice = l.quietly(ctx, p, line)
	}
	return l.drawHome(ctx, p, st, notice)
}

// quietly runs a command and returns what it says.
func (l *live) quietly(ctx context.Context, p person, line string) string {
	cmd, words, _, ok := l.b.o.Commands.Find(p.by(), line, false)
	if !ok {
		return p.words().Say(phrases.UnknownCommand)
	}
	answer, err := l.b.o.Commands.Run(ctx, cmd, l.asked(p, l.place("", ""), words))
	if err != nil {
		l.log.Error("running a command for the Home", "command", cmd.Name, "err", err)
	}
	return answer.Text
}

// fetchCard lets the card of a call come to a person, and says so.
func (l *live) fetchCard(ctx context.Context, p person, call string) string {
	err := store.ErrNotFound
	if store.ValidID(call) {
		err = l.b.o.Keeper.Bring(ctx, p.by(), call)
	}
	switch {
	case err == nil:
		return p.words().Say(phrases.CardBrought)
	case wire.Lasting(err):
		return p.words().Say(phrases.CardNotWaiting)
	}
	l.log.Error("bringing a card", "call", call, "err", err)
	return p.words().Say(phrases.CommandFailed)
}
