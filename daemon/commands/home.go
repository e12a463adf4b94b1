package daemon

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/control"
	"nize/daemon/plot"
	"nize/daemon/settings"
	"nize/store"
)

// homes is what is somebody's, for the places that show it.
type homes struct{ d *Daemon }

var _ bots.Keeper = homes{}

// Home implements bots.Keeper. What can't be read is an error: half a Home
// would look like one that lost something.
func (k homes) Home(ctx context.Context, a bots.Asked) (h bots.Home, err error) {
	d := k.d
	who := a.By
	h.Agent, h.Model = d.config.Get(who.User, settings.KeyAgent), d.config.Get(who.User, settings.KeyModel)
	h.Language = cmp.Or(d.config.UserValue(who.User, "language"), store.Auto)
	h.Streaming = store.GetBool(d.config, who.User, "streaming")
	h.NoStreaming = !store.GetBool(d.config, "", "streaming")
	for _, part := range []func(context.Context, bots.Asked, *bots.Home) error{k.choices, k.servers, k.waiting, k.access, k.usage} {
		if err := part(ctx, a, &h); err != nil {
			return bots.Home{}, err
		}
	}
	h.Grants, err = d.grantsOf(ctx, who.User)
	return h, err
}

// choices are the agents and models that somebody may use.
func (k homes) choices(ctx context.Context, a bots.Asked, h *bots.Home) error {
	agents, err := k.d.ops.agents.UsableBy(ctx, a.By)
	if err != nil {
		return err
	}
	for _, ag := range agents {
		h.Agents = append(h.Agents, bots.Choice{Name: ag.ID, About: ag.Name})
	}
	models, err := k.d.ops.models.UsableBy(ctx, a.By)
	if err != nil {
		return err
	}
	for _, m := range models {
		h.Models = append(h.Models, bots.Choice{Name: m.Name})
	}
	return nil
}

func (k homes) servers(ctx context.Context, a bots.Asked, h *bots.Home) error {
	d := k.d
	servers, err := d.usableServers(ctx, a.By)
	if err != nil {
		return err
	}
	tallies, err := d.gateway.Catalog.CountTools(ctx)
	if err != nil {
		return fmt.Errorf("counting tools: %w", err)
	}
	health, off := d.ops.servers.States(), store.GetList(d.config, a.By.User, settings.KeyDenied)
	for _, s := range servers {
		state := control.HealthOf(s, health, tallies[s.Name]).State
		h.Servers = append(h.Servers, bots.HomeServer{Name: s.Name, Off: slices.Contains(off, s.Name), Down: state != "ready" && state != "idle"})
		h.Credentials = append(h.Credentials, wanted(s)...)
	}
	return nil
}

// wanted are the credentials of their own that a server wants of people.
func wanted(s store.Server) (list []bots.HomeCredential) {
	if s.Auth != store.AuthUser {
		return nil
	}
	for _, vals := range []map[string]store.Value{s.Headers, s.Env} {
		for _, v := range vals {
			c := bots.HomeCredential{Server: s.Name, Name: v.SecretKey}
			if v.SecretKey != "" && !slices.Contains(list, c) {
				list = append(list, c)
			}
		}
	}
	slices.SortFunc(list, func(a, b bots.HomeCredential) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// waitingFor are the calls that wait for the yes of somebody.
func (d *Daemon) waitingFor(ctx context.Context, by store.Caller) ([]store.Call, error) {
	calls, err := d.db.ListCalls(ctx, store.CallQuery{Waiting: true, Limit: 1000})
	if err != nil {
		return nil, fmt.Errorf("listing waiting calls: %w", err)
	}
	return slices.DeleteFunc(calls, func(c store.Call) bool { return !d.gateway.Policy.MayApprove(ctx, by, c) }), nil
}

func (k homes) waiting(ctx context.Context, a bots.Asked, h *bots.Home) error {
	calls, err := k.d.waitingFor(ctx, a.By)
	if err != nil {
		return err
	}
	for _, c := range calls {
		at, err := k.cardAt(ctx, a.By, c)
		if err != nil {
			return err
		}
		h.Waiting = append(h.Waiting, bots.WaitingCall{Call: c.ID, Tool: c.ToolID(), By: cmp.Or(c.ByName, c.By), Until: c.Expires, At: at})
	}
	return nil
}

// cardAt is where somebody reads the card of a call: in private, or in the
// conversation if it is theirs.
func (k homes) cardAt(ctx context.Context, by store.Caller, c store.Call) (store.Address, error) {
	places, err := k.d.db.ListPlaces(ctx, c.ID)
	if err != nil {
		return store.Address{}, fmt.Errorf("reading where copies of a card stand: %w", err)
	}
	if at := places[bots.CopyOf(by.User)]; at.Message != "" {
		return at, nil
	}
	if c.Thread == "" || c.By != by.User {
		return store.Address{}, nil
	}
	at, err := k.d.db.GetPlace(ctx, c.Thread, c.ID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return store.Address{}, fmt.Errorf("reading where a card stands: %w", err)
	}
	return at, nil
}

// Bring implements bots.Keeper.
func (k homes) Bring(ctx context.Context, by store.Caller, id string) error {
	c, err := k.d.db.GetCall(ctx, id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("reading call %s: %w", id, err)
	}
	if err != nil || !k.d.gateway.Policy.MayApprove(ctx, by, c) {
		return fmt.Errorf("call %s: %w", id, store.ErrNotFound)
	}
	_, err = k.d.conversation.Shown(ctx, by, c, store.Address{}) // it brings what is not shown
	return err
}

// access is what lets somebody, or what is theirs, in somewhere.
func (k homes) access(ctx context.Context, a bots.Asked, h *bots.Home) error {
	tokens, err := k.d.db.ListTokens(ctx, a.By.User)
	if err != nil {
		return fmt.Errorf("listing tokens: %w", err)
	}
	h.Tokens = slices.DeleteFunc(tokens, func(t store.Token) bool {
		return t.Audience != store.ForMCP || t.State(k.d.now()) != "active"
	})
	all, err := k.d.db.ListCredentials(ctx)
	if err != nil {
		return fmt.Errorf("listing credentials: %w", err)
	}
	for _, c := range all {
		if c.Scope != "user" || c.Owner != a.By.User {
			continue
		}
		i := slices.IndexFunc(h.Credentials, func(o bots.HomeCredential) bool { return o.Server == c.Service && o.Name == c.Name })
		if i < 0 { // the server is gone for them, or wants none any more; what they gave is theirs to take back
			h.Credentials = append(h.Credentials, bots.HomeCredential{Server: c.Service, Name: c.Name})
			i = len(h.Credentials) - 1
		}
		h.Credentials[i].Connected = true
	}
	return nil
}

// homeDays is how many days of usage a Home shows.
const homeDays = 14

func (k homes) usage(ctx context.Context, a bots.Asked, h *bots.Home) error {
	u, err := k.d.usageOf(ctx, a, homeDays)
	h.Days, h.Usage, h.Picture = homeDays, u.brief, u.picture
	return err
}

// PutSecret implements bots.Keeper. It is theirs, whatever role they have, and
// of a server that wants one of them.
func (k homes) PutSecret(ctx context.Context, by store.Caller, f bots.Prompt, secret store.Secret) error {
	d := k.d
	s, err := d.wantsOf(ctx, by, f)
	if err != nil {
		return err
	}
	value := strings.TrimSpace(secret.Reveal())
	if value == "" || strings.ContainsAny(value, "\x00\r\n") {
		return fmt.Errorf("%w credential: it is empty, or has more than one line", store.ErrInvalid)
	}
	c := store.Credential{CredentialKey: ownKeyOf(by, f), Secret: store.NewSecret(value), Updated: d.now()}
	if u, err := url.Parse(s.URL); err == nil && s.URL != "" {
		c.Host = u.Host // sent nowhere else
	}
	if err := d.db.PutCredential(ctx, by, c); err != nil {
		return fmt.Errorf("storing credential %s: %w", f.Name, err)
	}
	return d.pool.Reconnect(ctx, s.Name, store.Holder{Scope: "user", Owner: by.User})
}

func ownKeyOf(by store.Caller, f bots.Prompt) store.CredentialKey {
	return store.CredentialKey{Scope: "user", Owner: by.User, Service: f.Service, Name: f.Name}
}

// wantsOf finds a server that wants that credential of each person. Any other
// is not there.
func (d *Daemon) wantsOf(ctx context.Context, by store.Caller, f bots.Prompt) (store.Server, error) {
	servers, err := d.usableServers(ctx, by)
	if err != nil {
		return store.Server{}, err
	}
	var names []string
	for _, s := range servers {
		wants := wanted(s)
		if len(wants) == 0 {
			continue
		}
		names = append(names, s.Name)
		if s.Name == f.Service && slices.ContainsFunc(wants, func(c bots.HomeCredential) bool { return c.Name == f.Name }) {
			return s, nil
		}
	}
	if slices.Contains(names, f.Service) {
		return store.Server{}, fmt.Errorf("credential %q of %s %w", brief(store.RedactText(f.Name), 60), f.Service, store.ErrNotFound)
	}
	return store.Server{}, store.Unknown("server that wants a credential of yours", brief(f.Service, 60), names)
}

// used is what somebody used, in words and as a picture.
type used struct {
	text    string // with a bar a day
	brief   string // without the days
	picture *bots.Picture
}

// usageOf sums what somebody used in the last days of their zone, and what is
// left of their budgets.
func (d *Daemon) usageOf(ctx context.Context, a bots.Asked, days int) (used, error) {
	w, zone := phrases.For(a.Locale), zoneOf(a)
	y, m, day := d.now().In(zone).Date()
	first := time.Date(y, m, day-days+1, 0, 0, 0, 0, zone)
	report, err := d.db.Usage(ctx, store.UsageQuery{By: "day", Since: first, User: a.By.User, Zone: zone})
	if err != nil {
		return used{}, fmt.Errorf("summing usage: %w", err)
	}
	left, err := d.budgetLines(ctx, a)
	if err != nil {
		return used{}, err
	}
	var u used
	if report.Total.Calls == 0 {
		u.brief = strings.Join(append([]string{w.Say(phrases.UsageNone, fmt.Sprint(days))}, left...), "\n")
		u.text = u.brief
		return u, nil
	}
	sums := usageSums(report, w)
	head := w.Say(phrases.UsageHead, fmt.Sprint(days))
	u.brief = strings.Join(slices.Concat(sums, left), "\n")
	u.text = strings.Join(slices.Concat([]string{head}, usageBars(report, days, w), sums, left), "\n")
	if report.Total.Prompt+report.Total.Completion+report.Total.MicroUSD == 0 { // a planner without tokens
		return u, nil
	}
	drawn := everyDay(report.Rows, first, days)
	u.picture = &bots.Picture{Name: "usage.png", Alt: strings.Join(append([]string{head}, dayLines(drawn, w)...), "\n"), Key: keyOf(drawn), Draw: func() ([]byte, error) { return plot.PNG(drawn) }}
	return u, nil
}

// everyDay are the days of a report and those between them.
func everyDay(rows []store.UsageRow, first time.Time, days int) []plot.Day {
	out := make([]plot.Day, days)
	for i := range out {
		out[i].Date = first.AddDate(0, 0, i).Format(time.DateOnly)
		if n := slices.IndexFunc(rows, func(r store.UsageRow) bool { return r.Key == out[i].Date }); n >= 0 {
			out[i].Tokens, out[i].MicroUSD = rows[n].Prompt+rows[n].Completion, rows[n].MicroUSD
		}
	}
	return out
}

// keyOf is the same for days that look the same.
func keyOf(days []plot.Day) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%v", days))
	return hex.EncodeToString(sum[:8])
}

// dayLines say what a picture shows.
func dayLines(days []plot.Day, w phrases.Catalogue) []string {
	var lines []string
	for _, day := range days {
		line := day.Date + ": " + w.Translate(store.FormatAmount(store.InTokens, day.Tokens))
		if day.MicroUSD > 0 {
			line += w.Say(phrases.Comma) + store.FormatAmount(store.InUSD, day.MicroUSD)
		}
		lines = append(lines, line)
	}
	return lines
}
