package control

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

	"nize/daemon/api"
	"nize/daemon/mux"
	"nize/store"
)

// Doubles connects bots to test doubles of their platforms for a while.
//
// The bot's previous state is saved in the database, sealed like every account, from before
// the first change until after the last restoring step. A daemon that is killed at any
// moment therefore finds it at its next start. Restoring is idempotent. The order ensures
// that no token is ever sent to an address that it is not for: the account is removed
// before the address changes, and restored after it.
//
// The double's people who were not users before are removed at the end. A person whose
// first message is being handled at that moment may remain.
type Doubles struct {
	Bots     *Bots
	Settings interface {
		ListSettings(ctx context.Context, user string) (map[string]string, error)
	}
	People interface {
		FindUser(ctx context.Context, identity string) (store.User, error)
		Unlink(ctx context.Context, by store.Caller, user, identity string) (store.User, error)
		RemoveUser(ctx context.Context, by store.Caller, user string) error
	}
	// Put stores a system setting; "" unsets it.
	Put func(ctx context.Context, by store.Caller, key, value string) error
	Log *slog.Logger

	mu   sync.Mutex // guards the fields below
	held map[store.Surface]*heldDouble
}

// Mount registers the operations.
func (d *Doubles) Mount(m *mux.Mux) {
	mux.HandleStream(m, api.ConnectDouble, d.Connect)
	mux.Handle(m, api.DisconnectDouble, d.Disconnect)
}

// heldDouble is a connected double.
type heldDouble struct {
	end  context.CancelFunc
	over chan struct{} // closed when everything is restored, or restoring failed
	err  error         // why it failed; read it only after over is closed
}

// putBackTime is the timeout of restoring, which continues if the caller disconnects.
const putBackTime = 20 * time.Second

// The saved state is stored as an account on a surface of its own. Its team is empty if
// there was no account; its tokens also hold the address and the double's identities.
const (
	aside        = "-aside"
	nobodyThere  = "none"
	asideAddress = "api_url"
	asidePeople  = "double_people"
)

// Connect connects a bot to a double until the caller disconnects.
func (d *Doubles) Connect(ctx context.Context, by store.Caller, req api.ConnectDoubleRequest, send func(api.ConnectedDouble) error) (err error) {
	bot, err := d.Bots.Bots.Find(req.Name)
	if err != nil {
		return err
	}
	if req.APIURL == "" {
		return fmt.Errorf("%w api_url: it is empty", store.ErrInvalid)
	}
	at := bot.Surface()
	for _, id := range req.People {
		if !strings.HasPrefix(id, string(at)+":") {
			return fmt.Errorf("%w people: %q is not an identity on %s", store.ErrInvalid, store.Clip(id, 100), bot.Title())
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	h := &heldDouble{end: cancel, over: make(chan struct{})}
	d.mu.Lock()
	if d.held[at] != nil {
		d.mu.Unlock()
		return fmt.Errorf("a double of %s %w: end the other nizectl dev %s --connect first", bot.Title(), store.ErrExists, at)
	}
	if d.held == nil {
		d.held = map[store.Surface]*heldDouble{}
	}
	d.held[at] = h
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		delete(d.held, at)
		d.mu.Unlock()
		close(h.over)
	}()

	var out api.ConnectedDouble
	if out.Mended, err = d.putBack(ctx, by, at); err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), putBackTime)
		defer cancel()
		if _, h.err = d.putBack(ctx, by, at); h.err != nil {
			d.Log.Error("the account that waited for a double is not back", "bot", at, "err", h.err)
		}
	}()
	before, err := d.putAside(ctx, by, at, req.People)
	if err != nil {
		return err
	}
	if before.Team != nobodyThere {
		out.Away = before.TeamName
	}
	if err := d.Put(ctx, by, string(at)+".api_url", req.APIURL); err != nil {
		return err
	}
	if out.ConnectedBot, err = d.Bots.Connect(ctx, by, api.ConnectBotRequest{Name: req.Name, Tokens: req.Tokens, Team: req.Team}); err != nil {
		return err
	}
	if err := send(out); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// Disconnect ends a Connect and waits until everything is restored. If there is none, it
// restores a state that was left saved.
func (d *Doubles) Disconnect(ctx context.Context, by store.Caller, req api.BotRequest) (none api.Empty, err error) {
	bot, err := d.Bots.Bots.Find(req.Name)
	if err != nil {
		return none, err
	}
	d.mu.Lock()
	h := d.held[bot.Surface()]
	d.mu.Unlock()
	if h == nil {
		mended, err := d.putBack(ctx, by, bot.Surface())
		if err == nil && !mended {
			err = fmt.Errorf("a double of %s %w", bot.Title(), store.ErrNotFound)
		}
		return none, err
	}
	h.end()
	select {
	case <-h.over:
		return none, h.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// Mend restores the states that a killed daemon left saved. It must be called before the
// bots start.
func (d *Doubles) Mend(ctx context.Context) {
	for _, bot := range d.Bots.Bots.All() {
		mended, err := d.putBack(ctx, store.System, bot.Surface())
		switch {
		case err != nil:
			d.Log.Error("the account that waited for a double is not back", "bot", bot.Surface(), "err", err)
		case mended:
			d.Log.Info("the last run ended while a double was connected; its account and address are as before", "bot", bot.Surface())
		}
	}
}

// putAside saves a bot's state and which of the double's people are new, and stops the bot.
func (d *Doubles) putAside(ctx context.Context, by store.Caller, at store.Surface, people []string) (store.Bot, error) {
	account, err := d.Bots.Store.GetBot(ctx, at)
	if errors.Is(err, store.ErrNotFound) {
		account, err = store.Bot{Team: nobodyThere, User: nobodyThere}, nil
	}
	if err != nil {
		return account, fmt.Errorf("reading the bot on %s: %w", at, err)
	}
	set, err := d.Settings.ListSettings(ctx, "")
	if err != nil {
		return account, fmt.Errorf("reading the settings: %w", err)
	}
	pretended, err := d.unknown(ctx, people)
	if err != nil {
		return account, err
	}
	kept := account
	kept.Surface = at + aside
	kept.Tokens = map[string]store.Secret{asideAddress: store.NewSecret(set[string(at)+".api_url"]), asidePeople: store.NewSecret(strings.Join(pretended, "\n"))}
	for name, token := range account.Tokens {
		kept.Tokens[name] = token
	}
	if err := d.Bots.Store.PutBot(ctx, by, kept); err != nil {
		return account, fmt.Errorf("keeping the account of %s aside: %w", at, err)
	}
	if account.Team == nobodyThere {
		return account, nil
	}
	_, err = d.Bots.Remove(ctx, by, api.BotRequest{Name: string(at)})
	return account, err
}

// putBack restores a bot's state, if one is saved.
func (d *Doubles) putBack(ctx context.Context, by store.Caller, at store.Surface) (done bool, err error) {
	kept, err := d.Bots.Store.GetBot(ctx, at+aside)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the account of %s that is kept aside: %w", at, err)
	}
	if _, err := d.Bots.Remove(ctx, by, api.BotRequest{Name: string(at)}); err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, err
	}
	if err := d.Put(ctx, by, string(at)+".api_url", kept.Tokens[asideAddress].Reveal()); err != nil {
		return false, err
	}
	if kept.Team != nobodyThere {
		account := kept
		account.Surface = at
		account.Tokens = maps.Clone(kept.Tokens)
		delete(account.Tokens, asideAddress)
		delete(account.Tokens, asidePeople)
		if err := d.Bots.Store.PutBot(ctx, by, account); err != nil {
			return false, fmt.Errorf("putting the account of %s back: %w", at, err)
		}
		if bot, err := d.Bots.Bots.Find(string(at)); err == nil && account.Enabled {
			bot.Use(&account)
		}
	}
	if err := d.takeOut(ctx, by, strings.Fields(kept.Tokens[asidePeople].Reveal())); err != nil {
		return false, err
	}
	if err := d.Bots.Store.DeleteBot(ctx, by, at+aside); err != nil {
		return false, fmt.Errorf("forgetting what was kept aside of %s: %w", at, err)
	}
	return true, nil
}

// unknown returns the identities that no user has.
func (d *Doubles) unknown(ctx context.Context, identities []string) (list []string, err error) {
	for _, id := range identities {
		switch _, err := d.People.FindUser(ctx, id); {
		case errors.Is(err, store.ErrNotFound):
			list = append(list, id)
		case err != nil:
			return nil, fmt.Errorf("finding the user %s: %w", id, err)
		}
	}
	return list, nil
}

// takeOut removes the users that have only these identities, and unlinks the identities
// from users who linked one with an account of their own. A user that may not be removed
// stays: that must not prevent restoring the account.
func (d *Doubles) takeOut(ctx context.Context, by store.Caller, identities []string) error {
	for _, id := range identities {
		u, err := d.People.FindUser(ctx, id)
		if errors.Is(err, store.ErrNotFound) { // never created, or removed with another identity
			continue
		}
		if err == nil {
			if slices.ContainsFunc(u.Identities, func(own string) bool { return !slices.Contains(identities, own) }) {
				_, err = d.People.Unlink(ctx, by, u.ID, id)
			} else {
				err = d.People.RemoveUser(ctx, by, u.ID)
			}
		}
		switch {
		case errors.Is(err, store.ErrRefused):
			d.Log.Warn("a person of a double stays", "identity", id, "err", err)
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return fmt.Errorf("taking out %s of the double: %w", id, err)
		}
	}
	return nil
}
