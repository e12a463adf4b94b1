package database

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"nize/store"
)

// linkCode is a code that joins whoever gives it with its user.
type linkCode struct {
	User    string    `json:"user"`
	Expires time.Time `json:"expires"`
}

// tries are the wrong codes that a person gave.
type tries struct {
	Count int       `json:"count"`
	Until time.Time `json:"until"` // when they are forgotten
}

// PutLink implements [store.Links].
func (d *DB) PutLink(ctx context.Context, by store.Caller, user string, hash [32]byte) (expires time.Time, err error) {
	user = d.alias(user)
	err = d.update(ctx, "storing a link code", func(t *tx) error {
		u, err := getJSON[store.User](t, "users", []byte(user))
		if err != nil {
			return err
		}
		if u.State != store.Active {
			return store.Mark(store.Errorf("%s is disabled", u.Name), store.ErrRefused)
		}
		if t.get("links", hash[:]) != nil {
			return store.ErrExists
		}
		if err := t.dropLinks(user); err != nil {
			return err
		}
		expires = t.now.Add(store.LinkLife)
		if err := t.putJSON("links", hash[:], linkCode{user, expires}); err != nil {
			return err
		}
		return t.event(auditNote{by: by, kind: "link.put", subject: user})
	})
	return expires, err
}

// dropLinks deletes the codes of the users named and those that expired.
func (t *tx) dropLinks(users ...string) error {
	for _, k := range t.keys("links", nil, 0) {
		l, err := getJSON[linkCode](t, "links", k)
		if err != nil {
			return err
		}
		if slices.Contains(users, l.User) || !t.now.Before(l.Expires) {
			if err := t.del("links", k); err != nil {
				return err
			}
		}
	}
	return nil
}

// FindLink implements [store.Links].
func (d *DB) FindLink(ctx context.Context, by store.Caller, hash [32]byte) (u store.User, err error) {
	var wrong error
	err = d.update(ctx, "looking at a link code", func(t *tx) error {
		var err error
		u, wrong, err = t.openLink(by, hash)
		return err
	})
	if err = cmp.Or(err, wrong); err != nil {
		return store.User{}, err
	}
	return u, nil
}

// openLink returns whose code that is. wrong is what the caller is told after
// the commit, which counts their try.
func (t *tx) openLink(by store.Caller, hash [32]byte) (u store.User, wrong, err error) {
	me := t.db.alias(by.User)
	had, err := getJSON[tries](t, "link_tries", []byte(me))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return u, nil, err
	}
	if !t.now.Before(had.Until) {
		had = tries{Until: t.now.Add(store.LinkLife)}
	}
	if had.Count >= store.LinkTries {
		return u, store.Mark(store.Errorf("%d wrong codes in a row; try again in %s", had.Count, had.Until.Sub(t.now).Round(time.Second)), store.ErrRefused), nil
	}
	l, err := getJSON[linkCode](t, "links", hash[:])
	switch {
	case errors.Is(err, store.ErrNotFound):
		wrong = store.Errorf("code %w, or used before", store.ErrNotFound)
	case err != nil:
		return u, nil, err
	case l.User == me:
		wrong = store.Errorf("%w code: it is your own; give it where you come in as somebody else", store.ErrInvalid)
	case !t.now.Before(l.Expires):
		wrong = store.Errorf("code %w: make another one", store.ErrExpired)
	}
	if wrong != nil {
		had.Count++
		if err := t.putJSON("link_tries", []byte(me), had); err != nil {
			return u, nil, err
		}
		return u, wrong, t.event(auditNote{by: by, kind: "link.wrong", subject: me})
	}
	u, err = getJSON[store.User](t, "users", []byte(l.User))
	return u, nil, err
}

// Join implements [store.Links].
func (d *DB) Join(ctx context.Context, by store.Caller, hash [32]byte, role store.Role) (j store.Joined, err error) {
	var wrong error
	err = d.update(ctx, "joining identities", func(t *tx) error {
		var from store.User
		var err error
		if from, wrong, err = t.openLink(by, hash); err != nil || wrong != nil {
			return err
		}
		into, err := getJSON[store.User](t, "users", []byte(d.alias(by.User)))
		if err != nil {
			return err
		}
		j = store.Joined{User: into, Absorbed: from}
		if err := t.checkJoin(&j, role); err != nil {
			return err
		}
		return t.join(by, &j)
	})
	if err = cmp.Or(err, wrong); err != nil {
		return store.Joined{}, err
	}
	return j, d.loadAliases(ctx)
}

// checkJoin makes j.User what the two become, or refuses.
func (t *tx) checkJoin(j *store.Joined, role store.Role) error {
	into, from := j.User, j.Absorbed
	if into.State != store.Active || from.State != store.Active {
		return store.Mark(store.Errorf("one of the two is disabled"), store.ErrRefused)
	}
	lower := store.Member
	if into.Role == store.Admin && from.Role == store.Admin {
		lower = store.Admin
	}
	switch {
	case role == "":
		role = lower
	case role != store.Admin && role != store.Member:
		return fmt.Errorf("%w role %q: use admin or member", store.ErrInvalid, role)
	case role != lower && into.Role != store.Admin:
		return store.Mark(fmt.Errorf("only an admin says what role the two have"), store.ErrRefused)
	}
	j.User.Role = role
	j.User.Identities = slices.Concat(into.Identities, from.Identities)
	j.User.Aliases = slices.Concat(into.Aliases, []string{from.ID}, from.Aliases)
	if (into.CanAdminister() || from.CanAdminister()) && !j.User.CanAdminister() {
		return t.checkAdmins(into.ID, from.ID)
	}
	return nil
}

// join moves what the absorbed user has to the other.
func (t *tx) join(by store.Caller, j *store.Joined) error {
	into, from := j.User.ID, j.Absorbed.ID
	steps := []func() error{
		func() error { return t.dropLinks(into, from) },
		func() error { return t.del("link_tries", []byte(into)) },
		func() error { return t.del("link_tries", []byte(from)) },
		func() error { return t.dropGrants(by, from) },
		func() error {
			return t.cancelCalls(by, from, store.Textf("its requester was joined with %s", j.User.Name))
		},
		func() error { return t.moveTokens(by, j) },
		func() error { return t.moveCredentials(by, from, into) },
		func() error { return t.moveSettings(from, into) },
		func() error { return t.moveBudgets(by, from, into) },
		func() error { return t.moveGroups(by, from, into) },
		func() error { return t.moveMembers(by, from, into) },
		func() error { return t.reshare(by, "user:"+from, "user:"+into) },
		func() error { return t.reassign(by, "user:"+from, "user:"+into) },
		func() error { return t.reassignCalls(from, into) },
		func() error { return t.del("users", []byte(from)) },
		func() error { return t.saveUser(by, j.User) },
	}
	for _, id := range j.Absorbed.Identities {
		steps = append(steps, func() error { return t.put("identities", []byte(id), []byte(into)) })
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	t.change(store.Change{Kind: "user", ID: from})
	return t.event(auditNote{by: by, kind: "user.join", subject: into, data: struct {
		Absorbed   string     `json:"absorbed"`
		Identities []string   `json:"identities"`
		Role       store.Role `json:"role"`
		Renamed    []string   `json:"renamed,omitempty"`
	}{from, j.Absorbed.Identities, j.User.Role, j.Renamed}})
}

// moveTokens gives the tokens to the survivor; of an active one whose name is
// taken the name gets a number.
func (t *tx) moveTokens(by store.Caller, j *store.Joined) error {
	list, err := t.tokensOf(j.Absorbed.ID, "")
	if err != nil {
		return err
	}
	j.Renamed = nil
	for _, tok := range list {
		if err := t.del("tokens_name", key(tok.User, tok.Name, tok.ID)); err != nil {
			return err
		}
		tok.User = j.User.ID
		if tok.State(t.now) == "active" {
			name := tok.Name
			for n := 2; ; n++ {
				others, err := t.tokensOf(tok.User, tok.Name)
				if err != nil {
					return err
				}
				if !slices.ContainsFunc(others, func(o store.Token) bool { return o.State(t.now) == "active" }) {
					break
				}
				tok.Name = name + "-" + strconv.Itoa(n)
			}
			if tok.Name != name {
				j.Renamed = append(j.Renamed, tok.Name)
			}
		}
		if err := t.saveToken(tok, true); err != nil {
			return err
		}
		if err := t.tokenEvent(by, "move", tok); err != nil {
			return err
		}
	}
	return nil
}

// moveCredentials seals personal credentials again, since their place is bound
// into them.
func (t *tx) moveCredentials(by store.Caller, from, into string) error {
	for _, k := range t.keys("credentials", key("user", from, ""), 0) {
		c, sealed, err := decodeCredential(k, t.get("credentials", k))
		if err != nil {
			return err
		}
		plain, err := t.db.unseal("credentials", string(k), sealed)
		if err != nil {
			return fmt.Errorf("opening credential %s: %w", credentialName(c.CredentialKey), err)
		}
		if err := t.deleteCredential(by, k); err != nil {
			return err
		}
		c.Owner, c.Secret = into, store.NewSecret(string(plain))
		if t.get("credentials", credentialKey(c.CredentialKey)) != nil {
			continue
		}
		if err := t.putCredential(by, c); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) moveSettings(from, into string) error {
	for _, k := range t.keys("settings", key(from, ""), 0) {
		to := key(into, string(k[len(from)+1:]))
		if into != "" && t.get("settings", to) == nil {
			if err := t.put("settings", to, cloneBytes(t.get("settings", k))); err != nil {
				return err
			}
		}
		if err := t.del("settings", k); err != nil {
			return err
		}
		t.change(store.Change{Kind: "setting", ID: string(k[len(from)+1:])})
	}
	return nil
}

// moveGroups puts into the groups of from that are lists; "" takes from out
// only.
func (t *tx) moveGroups(by store.Caller, from, into string) error {
	for _, name := range t.listsOf(from) {
		g, err := getJSON[store.Group](t, "groups", []byte(name))
		if err != nil {
			return err
		}
		var in []string
		if into != "" {
			in = []string{into}
		}
		if err := t.putGroup(by, &g, in, []string{from}); err != nil {
			return err
		}
	}
	return nil
}

// moveMembers puts into the teams of from; "" takes from out only.
func (t *tx) moveMembers(by store.Caller, from, into string) error {
	list, err := t.members("", from)
	if err != nil {
		return err
	}
	for _, m := range list {
		if err := t.deleteMember(by, m.Team, from); err != nil {
			return err
		}
		if m.User = into; into == "" {
			continue
		}
		if err := t.putMember(by, m); err != nil {
			return err
		}
	}
	return nil
}

// reshare replaces one who things are shared with by another, or by nobody.
func (t *tx) reshare(by store.Caller, from, into string) error {
	servers, err := listJSON[store.Server](t, "servers", nil)
	if err != nil {
		return err
	}
	for _, s := range servers {
		if !slices.Contains(s.Visibility, from) {
			continue
		}
		s.Visibility = replaced(s.Visibility, from, into)
		if err := t.saveServer(by, &s); err != nil {
			return err
		}
	}
	agents, err := listJSON[store.Agent](t, "agents", nil)
	if err != nil {
		return err
	}
	for _, a := range agents {
		if !slices.Contains(a.Who, from) {
			continue
		}
		a.Who = orAdmins(replaced(a.Who, from, into))
		if err := t.putThing(by, thing{"agent", "agents", a.ID}, a); err != nil {
			return err
		}
	}
	models, err := listJSON[store.ModelName](t, "models", nil)
	if err != nil {
		return err
	}
	for _, m := range models {
		if !slices.Contains(m.Who, from) {
			continue
		}
		m.Who = orAdmins(replaced(m.Who, from, into))
		if err := t.putThing(by, thing{"model", "models", m.Name}, m); err != nil {
			return err
		}
	}
	return t.rechannel(by, from, into)
}

func replaced(list []string, from, into string) []string {
	var out []string
	for _, who := range list {
		if who == from {
			who = into
		}
		if who != "" && !slices.Contains(out, who) {
			out = append(out, who)
		}
	}
	return out
}

// orAdmins is for lists of which an empty one would mean everybody.
func orAdmins(who []string) []string {
	if len(who) == 0 {
		return []string{"admins"}
	}
	return who
}

// Unlink implements [store.Links].
func (d *DB) Unlink(ctx context.Context, by store.Caller, user, identity string) (u store.User, err error) {
	err = d.update(ctx, "taking identity "+identity+" away", func(t *tx) error {
		old, err := getJSON[store.User](t, "users", []byte(d.alias(user)))
		if err != nil {
			return err
		}
		if !slices.Contains(old.Identities, identity) {
			return fmt.Errorf("%s has no identity %q: %w", old.Name, identity, store.ErrNotFound)
		}
		u = old
		u.Identities = slices.DeleteFunc(slices.Clone(old.Identities), func(id string) bool { return id == identity })
		switch {
		case len(u.Identities) == 0:
			return store.Mark(fmt.Errorf("it is the last identity of %s, who could not come in any more; disable or remove them instead", old.Name), store.ErrRefused)
		case old.State != store.Active:
			return store.Mark(fmt.Errorf("%s is disabled, and whoever comes with that identity would be let in as somebody new", old.Name), store.ErrRefused)
		case old.CanAdminister() && !u.CanAdminister():
			if err := t.checkAdmins(u.ID); err != nil {
				return err
			}
		}
		if err := t.del("identities", []byte(identity)); err != nil {
			return err
		}
		teams, err := t.members("", u.ID)
		if err != nil {
			return err
		}
		for _, m := range teams {
			if m.Identity == identity && !slices.ContainsFunc(u.Identities, func(id string) bool { return strings.HasPrefix(id, m.Team+":") }) {
				if err := t.deleteMember(by, m.Team, u.ID); err != nil {
					return err
				}
			}
		}
		if err := t.saveUser(by, u); err != nil {
			return err
		}
		return t.event(auditNote{by: by, kind: "user.unlink", subject: u.ID, data: struct {
			Identity string `json:"identity"`
		}{identity}})
	})
	if err != nil {
		return store.User{}, err
	}
	return u, nil
}
