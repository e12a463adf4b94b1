package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"nize/bots/queue"
	"nize/store"
)

// Copies of a card. A pending call's card is also sent in private to the people who may
// decide it, and to the requester if they see no other card, as with an MCP client or the
// command line. One decision updates all copies. Their places are stored with the call, so
// they are updated after a restart too.

// Courier is implemented by a [Platform] that can send private messages.
type Courier interface {
	// Direct returns the person's private conversation, or ErrNotFound if they are not on
	// the platform.
	Direct(ctx context.Context, user store.User) (store.Address, error)
}

// Audience determines who else should see a card. mcp.Gateway and store.Users implement it.
type Audience interface {
	// Approvers returns the people, other than the requester, who get the card of a waiting
	// call.
	Approvers(ctx context.Context, call string) ([]store.User, error)
	// Sees reports whether a caller may see a call at all.
	Sees(ctx context.Context, by store.Caller, call store.Call) bool
	// GetUser returns a user.
	GetUser(ctx context.Context, id string) (store.User, error)
}

// maxCopies limits how many approvers get a copy without asking: the first ones that can be
// reached.
const maxCopies = 5

// copyPrefix is the prefix of the names under which copies are stored, followed by the
// user.
const copyPrefix = "copy/"

// CopyOf returns the name of a user's copy among the places of a call.
func CopyOf(user string) string { return copyPrefix + user }

// Copies keeps the copies of cards up to date.
type Copies struct {
	o         CopiesOptions
	platforms map[store.Surface]Platform
	stale     *queue.Queue[string] // calls whose copies need an update

	mu     sync.Mutex          // guards the fields below
	also   map[string][]string // people who asked for a copy, keyed by call
	copied map[string]bool     // unsettled calls that have copies

	sessions sessions
}

// CopiesOptions configure [Copies]. Without Places or an Audience, no cards are sent.
type CopiesOptions struct {
	Platforms []Platform // a person's copies go to the first one that knows them
	Places    store.Places
	Calls     interface {
		GetCall(ctx context.Context, id string) (store.Call, error)
		ListCalls(ctx context.Context, q store.CallQuery) ([]store.Call, error)
	}
	Cards    Cards
	Audience Audience
	Now      func() time.Time
	Log      *slog.Logger
}

func NewCopies(o CopiesOptions) *Copies {
	c := &Copies{o: o, platforms: map[store.Surface]Platform{}, stale: queue.New[string](o.Now), also: map[string][]string{}, copied: map[string]bool{}}
	for _, p := range o.Platforms {
		c.platforms[p.Surface()] = p
	}
	return c
}

// Bring schedules an update of the copies of a call's card, which Run carries out; also
// lists people who get a copy in addition to the approvers.
func (c *Copies) Bring(call string, also ...string) {
	if c.o.Audience == nil || c.o.Places == nil {
		return
	}
	c.mu.Lock()
	if len(also) > 0 {
		c.also[call] = append(c.also[call], also...)
	}
	c.mu.Unlock()
	c.stale.Set(call, c.o.Now())
}

// Run updates copies until ctx ends, with at most one update per call at a time.
func (c *Copies) Run(ctx context.Context) {
	c.stale.Run(ctx, 0, func(ctx context.Context, call string) {
		c.mu.Lock()
		also := c.also[call]
		delete(c.also, call)
		c.mu.Unlock()
		err := queue.Guard(func() error { return c.bringCopies(ctx, call, also) })
		if err != nil && ctx.Err() == nil {
			c.o.Log.Error("bringing a card to those who decide", "err", err)
		}
	})
}

// Has reports whether a call has copies that may change. Most calls never wait, so nothing
// needs to be read for them.
func (c *Copies) Has(call string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.copied[call] || c.stale.Has(call) // a scheduled update may be about to post one
}

// bringCopies updates the existing copies and, while the call waits, posts the missing
// ones.
func (c *Copies) bringCopies(ctx context.Context, id string, also []string) error {
	places, err := c.o.Places.ListPlaces(ctx, id)
	if err != nil {
		return fmt.Errorf("reading where copies stand: %w", err)
	}
	call, err := c.o.Calls.GetCall(ctx, id)
	if err != nil {
		return fmt.Errorf("reading call %s: %w", id, err)
	}
	var people []store.User
	if call.Waiting() {
		if call.Thread == "" && (call.Decides() || call.Surface == store.OnMCP || call.Surface == store.OnCLI) {
			also = append(also, call.By) // they see no other card
		}
		if people, err = c.audience(ctx, call, also); err != nil {
			return err
		}
	}
	maps.DeleteFunc(places, func(name string, _ store.Address) bool { return !strings.HasPrefix(name, copyPrefix) })
	c.mu.Lock()
	if has := len(places)+len(people) > 0; has && !call.State.Final() {
		c.copied[id] = true
	} else {
		delete(c.copied, id)
	}
	c.mu.Unlock()
	if len(places) == 0 && len(people) == 0 {
		return nil
	}
	card, err := c.o.Cards.Card(ctx, id)
	if err != nil {
		return err
	}
	m := store.Message{ID: id, Kind: store.CardMessage, Card: &card, Final: card.State.Final()}
	var failed error
	copied := 0 // copies for people other than the requester
	for name, at := range places {
		failed = errors.Join(failed, c.bringCopy(ctx, name, at, m, true))
		if name != CopyOf(call.By) {
			copied++
		}
	}
	for _, u := range people {
		name := copyPrefix + u.ID
		if _, ok := places[name]; ok || copied >= maxCopies && !slices.Contains(also, u.ID) {
			continue
		}
		at, ok, err := c.direct(ctx, u)
		if err != nil {
			failed = errors.Join(failed, err)
		}
		if ok {
			copied++
			failed = errors.Join(failed, c.postCopy(ctx, name, at, call, m))
		}
	}
	return failed
}

// Remind posts text below each copy of a card whose reader has not answered.
func (c *Copies) Remind(ctx context.Context, call store.Call, text func(store.Card) string) error {
	places, err := c.o.Places.ListPlaces(ctx, call.ID)
	if err != nil {
		return fmt.Errorf("reading where copies stand: %w", err)
	}
	card, err := c.o.Cards.Card(ctx, call.ID)
	if err != nil {
		return err
	}
	var failed error
	for name, at := range places {
		user, ok := strings.CutPrefix(name, copyPrefix)
		p := c.platforms[at.Surface]
		if !ok || p == nil || at.Message == "" || slices.Contains(call.Yes(), user) {
			continue
		}
		at.Message = ""
		m := store.Message{ID: "reminder/" + call.ID, Kind: store.NoticeMessage, Text: text(card), Card: &card, Final: true}
		_, err := p.Post(ctx, at, m)
		failed = errors.Join(failed, err)
	}
	return failed
}

// audience returns the people who get a waiting call's card.
func (c *Copies) audience(ctx context.Context, call store.Call, also []string) ([]store.User, error) {
	people, err := c.o.Audience.Approvers(ctx, call.ID)
	if err != nil {
		return nil, fmt.Errorf("finding who decides call %s: %w", call.ID, err)
	}
	for _, id := range also {
		if slices.ContainsFunc(people, func(u store.User) bool { return u.ID == id }) {
			continue
		}
		u, err := c.o.Audience.GetUser(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("reading to whom the card of call %s goes: %w", call.ID, err)
		}
		people = append(people, u)
	}
	return people, nil
}

// direct returns a person's private conversation on the first platform that knows them.
func (c *Copies) direct(ctx context.Context, u store.User) (store.Address, bool, error) {
	for _, p := range c.o.Platforms {
		courier, ok := p.(Courier)
		if !ok {
			continue
		}
		at, err := courier.Direct(ctx, u)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		return at, err == nil, err
	}
	return store.Address{}, false, nil
}

// bringCopy posts or updates one copy. Before it posts, it records the intent, so that a
// crash in between doesn't lead to a second post; noted tells whether an earlier record
// exists.
func (c *Copies) bringCopy(ctx context.Context, name string, at store.Address, m store.Message, noted bool) error {
	p := c.platforms[at.Surface]
	if p == nil {
		return nil
	}
	note := func(at store.Address) error {
		if err := c.o.Places.PutPlace(context.WithoutCancel(ctx), m.ID, name, at); err != nil {
			return fmt.Errorf("noting where a copy stands: %w", err)
		}
		return nil
	}
	if at.Message != "" {
		err := p.Update(ctx, at, m)
		if errors.Is(err, store.ErrNotFound) {
			return nil // its reader deleted it and doesn't want it back
		}
		return err
	}
	if f, ok := p.(Finder); ok && noted {
		found, err := f.Find(ctx, at, m)
		switch {
		case err == nil:
			return errors.Join(note(found), p.Update(ctx, found, m))
		case !errors.Is(err, store.ErrNotFound):
			return err
		}
	}
	if err := note(at); err != nil {
		return err
	}
	posted, err := p.Post(ctx, at, m)
	if at.Thread != "" && (errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrRefused)) {
		at.Thread = "" // a user deleted or closed the session's thread
		if err := note(at); err != nil {
			return err
		}
		posted, err = p.Post(ctx, at, m)
	}
	if err != nil {
		return err
	}
	return note(posted)
}

// Read reports whether by can read the card: in private, in the call's conversation if that
// is theirs, or at at.
func (c *Copies) Read(ctx context.Context, by store.Caller, call store.Call, at store.Address) (bool, error) {
	private, err := c.o.Places.ListPlaces(ctx, call.ID)
	if err != nil {
		return false, fmt.Errorf("reading where copies stand: %w", err)
	}
	if private[CopyOf(by.User)].Message != "" {
		return true, nil
	}
	if call.Thread == "" {
		return false, nil
	}
	place, err := c.o.Places.GetPlace(ctx, call.Thread, call.ID)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading where a card stands: %w", err)
	}
	return place.Message != "" && (call.By == by.User || place.Channel == at.Channel), nil
}

// Cards describes calls in their current state.
type Cards interface {
	Card(ctx context.Context, call string) (store.Card, error)
}
