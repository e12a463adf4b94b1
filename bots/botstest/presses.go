package botstest

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"nize/bots"
	"nize/store"
)

// Presses records the results of presses that a platform passes on, for platforms that
// don't show them. The zero value is ready to use.
type Presses struct {
	mu     sync.Mutex
	errors map[string]chan error // keyed by call
}

// Of returns a handler that records them.
func (p *Presses) Of(h bots.Handler) bots.Handler { return noting{h, p} }

// Result waits for the result of the next press of that call.
func (p *Presses) Result(ctx context.Context, call string) error {
	select {
	case err := <-p.results(call):
		return err
	case <-ctx.Done():
		return fmt.Errorf("the press did not reach the handler: %w", context.Cause(ctx))
	}
}

func (p *Presses) results(call string) chan error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.errors == nil {
		p.errors = map[string]chan error{}
	}
	if p.errors[call] == nil {
		p.errors[call] = make(chan error, 64) // more than any test needs
	}
	return p.errors[call]
}

type noting struct {
	bots.Handler
	presses *Presses
}

func (n noting) Press(ctx context.Context, by store.Caller, call string, d store.Decision) (store.Card, error) {
	card, err := n.Handler.Press(ctx, by, call, d)
	n.presses.results(call) <- err
	return card, err
}

// OnePerson is a store in which every person on a platform is [Requester].
type OnePerson struct{ store.DB }

// EnsureUser returns the requester for every identity.
func (OnePerson) EnsureUser(_ context.Context, identity, name string, _ store.Role) (store.User, error) {
	return store.User{ID: Requester, Name: name, Role: store.Member, State: store.Active, Identities: []string{identity}}, nil
}

// ReadRows parses the rows of a card, each a label and a short value, back into arguments.
func ReadRows(rows []string) json.RawMessage {
	args := map[string]json.RawMessage{}
	for _, row := range rows {
		label, value, _ := strings.Cut(row, ": ")
		if !json.Valid([]byte(value)) {
			value = strconv.Quote(value)
		}
		args[label] = json.RawMessage(value)
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return nil
	}
	return raw
}
