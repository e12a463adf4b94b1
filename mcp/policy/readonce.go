package policy

import (
	"context"

	"nize/store"
)

// ReadOnce returns an engine for one request about many calls, such as a list of cards. It
// reads each user, token list, agent and conversation once, so it must not be used for later
// requests, for decisions, or by several goroutines.
func (p *Engine) ReadOnce() *Engine {
	a, e := *p.Approvers, *p
	a.store, a.described = newOnce(p.store), map[place][]string{}
	e.Approvers = &a
	e.taints = Once((&Engine{Approvers: &a, tools: p.tools}).Tainted)
	return &e
}

// once is a Store that reads each record once.
type once struct {
	Store
	users   func(context.Context, string) (store.User, error)
	all     func(context.Context, struct{}) ([]store.User, error)
	tokens  func(context.Context, string) ([]store.Token, error)
	agents  func(context.Context, string) (store.Agent, error)
	threads func(context.Context, string) (store.Thread, error)
}

func newOnce(s Store) *once {
	return &once{
		Store: s, users: Once(s.GetUser), tokens: Once(s.ListTokens), agents: Once(s.GetAgent), threads: Once(s.GetThread),
		all: Once(func(ctx context.Context, _ struct{}) ([]store.User, error) { return s.ListUsers(ctx) }),
	}
}

func (o *once) GetUser(ctx context.Context, id string) (store.User, error) { return o.users(ctx, id) }
func (o *once) ListUsers(ctx context.Context) ([]store.User, error)        { return o.all(ctx, struct{}{}) }
func (o *once) ListTokens(ctx context.Context, user string) ([]store.Token, error) {
	return o.tokens(ctx, user)
}
func (o *once) GetAgent(ctx context.Context, id string) (store.Agent, error) {
	return o.agents(ctx, id)
}
func (o *once) GetThread(ctx context.Context, id string) (store.Thread, error) {
	return o.threads(ctx, id)
}

type answer[V any] struct {
	value V
	err   error
}

// Once returns a function that calls read once for each key. It must not be used by several
// goroutines.
func Once[K comparable, V any](read func(context.Context, K) (V, error)) func(context.Context, K) (V, error) {
	known := map[K]answer[V]{}
	return func(ctx context.Context, key K) (V, error) {
		a, ok := known[key]
		if !ok {
			a.value, a.err = read(ctx, key)
			known[key] = a
		}
		return a.value, a.err
	}
}

// place identifies the people that one word of a policy stands for, if that depends on
// nothing else of a call.
type place struct {
	who    string
	thread string // "" if the conversation makes no difference
}
