package bots

import (
	"context"
	"strings"
	"time"

	"nize/bots/outbox"
	"nize/bots/phrases"
	"nize/store"
)

// Rate limits per person. A message over the limit is refused before it is accepted. A turn
// over the limit waits, and its message stays in the inbox.

// pace is a person's recent activity; c.mu guards it.
type pace struct {
	wrote   []time.Time // accepted messages within the limit's span, oldest first
	running int         // running turns
	parked  []*thread   // threads whose next turn waits for one of those to end
}

// maxPaces is how many inactive people are kept in memory.
const maxPaces = 4096

// paceLocked returns a person's entry, creating it if needed; c.mu is held.
func (c *Conversation) paceLocked(user string) *pace {
	p := c.paces[user]
	if p == nil {
		if len(c.paces) >= maxPaces {
			for id, old := range c.paces {
				if old.running == 0 && len(old.parked) == 0 && (len(old.wrote) == 0 || c.o.Now().Sub(old.wrote[len(old.wrote)-1]) > time.Hour) {
					delete(c.paces, id)
				}
			}
		}
		p = &pace{}
		c.paces[user] = p
	}
	return p
}

// TooManyError is returned if a person exceeded the message limit; it wraps ErrRefused.
type TooManyError struct {
	Messages     int
	Within, Wait string // such as 5m and 4m25s
}

func (e *TooManyError) Error() string {
	return e.Text().String()
}

// Text returns the message.
func (e *TooManyError) Text() store.Text {
	return store.Textf("you sent %d messages within %s, which is all that one person may; the next is taken in %s", e.Messages, store.Span(e.Within), store.Span(e.Wait))
}

func (e *TooManyError) Unwrap() error { return store.ErrRefused }

// Words returns the message in the person's language.
func (e *TooManyError) Words(words phrases.Catalogue) string {
	return words.Say(phrases.TooMany, e.Messages, words.Span(e.Within), words.Span(e.Wait))
}

// MessageCounter counts a message before it is accepted, once per key. It returns
// ErrRefused with a reason if the message must not be accepted.
type MessageCounter interface {
	CountMessage(ctx context.Context, by store.Caller, at store.Address, key string) error
}

// mayWrite counts a message against the person's limit. Call giveBack if the message was
// not accepted after all.
func (c *Conversation) mayWrite(by store.Caller) (giveBack func(), err error) {
	if c.o.Config == nil || by.User == store.System.User {
		return func() {}, nil
	}
	const key = "limits.user.messages"
	limit := store.GetRate(c.o.Config, "", key)
	if limit.Calls == 0 || by.IsAdmin() && by.Surface == store.OnTerminal && limit == store.GetRate(store.Defaults{}, "", key) {
		return func() {}, nil // an admin at the socket could change the limit, so the default doesn't apply to them
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.paceLocked(by.User)
	now, span := c.o.Now(), time.Duration(limit.Per)
	for len(p.wrote) > 0 && now.Sub(p.wrote[0]) >= span {
		p.wrote = p.wrote[1:]
	}
	if len(p.wrote) >= limit.Calls {
		wait := max(span-now.Sub(p.wrote[len(p.wrote)-limit.Calls]), time.Second).Round(time.Second)
		_, within, _ := strings.Cut(limit.String(), "/")
		return nil, &TooManyError{limit.Calls, within, wait.String()}
	}
	p.wrote = append(p.wrote, now)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for i, at := range p.wrote {
			if at.Equal(now) {
				p.wrote = append(p.wrote[:i:i], p.wrote[i+1:]...)
				return
			}
		}
	}, nil
}

// begin takes one of the person's turn slots. If all are in use, the thread waits until one
// is free.
func (c *Conversation) begin(t *thread, user string) (end func(), ok bool) {
	if c.o.Config == nil || user == "" || user == store.System.User {
		return func() {}, true
	}
	limit := store.GetInt(c.o.Config, "", "limits.user.turns")
	if limit == 0 {
		return func() {}, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.paceLocked(user)
	if p.running < limit {
		p.running++
		return func() { c.ended(user) }, true
	}
	if !t.parked {
		t.parked = true
		p.parked = append(p.parked, t)
	}
	return nil, false
}

// tellWaits posts, once per message, that it waits.
func (t *thread) tellWaits(sc *outbox.Screen, message string) {
	if t.told == message {
		return
	}
	t.told = message
	sc.Notice(sc.Words().Say(phrases.TurnWaits, store.GetInt(t.c.o.Config, "", "limits.user.turns")))
}

// ended passes a free turn slot to the thread that has waited longest.
func (c *Conversation) ended(user string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.paceLocked(user)
	p.running--
	if len(p.parked) == 0 {
		return
	}
	t := p.parked[0]
	p.parked, t.parked = p.parked[1:], false
	c.wakeLocked(t)
}
