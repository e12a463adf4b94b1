package people

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
	"nize/store/commit"
	"nize/store/record"
	"nize/store/record/access"
	"nize/store/record/catalog"
	"nize/store/record/spending"
)

// linkCode is a code that joins its user with the person who redeems it.
type linkCode struct {
	User    string    `json:"user"`
	Expires time.Time `json:"expires"`
}

// Tries counts the wrong codes that a person entered.
type Tries struct {
	Count int       `json:"count"`
	Until time.Time `json:"until"` // when they are reset
}

// PutLink implements [store.Links].
func (d People) PutLink(ctx context.Context, by store.Caller, user string, hash [32]byte) (expires time.Time, err error) {
	user = d.db.Alias(user)
	err = d.db.Write(ctx, "storing a link code", func(t *commit.Tx) error {
		u, err := commit.GetJSON[store.User](t, "users", []byte(user))
		if err != nil {
			return err
		}
		if u.State != store.Active {
			return store.Mark(store.Errorf("%s is disabled", u.Name), store.ErrRefused)
		}
		if t.Get("links", hash[:]) != nil {
			return store.ErrExists
		}
		if err := DropLinks(t, user); err != nil {
			return err
		}
		expires = t.Now.Add(store.LinkLife)
		if err := t.PutJSON("links", hash[:], linkCode{user, expires}); err != nil {
			return err
		}
		return t.Event(commit.Note{By: by, Kind: "link.put", Subject: user})
	})
	return expires, err
}

// DropLinks deletes the codes of the given users and the expired codes.
func DropLinks(t *commit.Tx, users ...string) error {
	for _, k := range t.Keys("links", nil, 0) {
		l, err := commit.GetJSON[linkCode](t, "links", k)
		if err != nil {
			return err
		}
		if slices.Contains(users, l.User) || !t.Now.Before(l.Expires) {
			if err := t.Delete("links", k); err != nil {
				return err
			}
		}
	}
	return nil
}

// FindLink implements [store.Links].
func (d People) FindLink(ctx context.Context, by store.Caller, hash [32]byte) (u store.User, err error) {
	var wrong error
	err = d.db.Write(ctx, "looking at a link code", func(t *commit.Tx) error {
		var err error
		u, wrong, err = openLink(t, by, hash)
		return err
	})
	if err = cmp.Or(err, wrong); err != nil {
		return store.User{}, err
	}
	return u, nil
}

// openLink returns the owner of the code. wrong is the error to return after the commit,
// which counts the attempt.
func openLink(t *commit.Tx, by store.Caller, hash [32]byte) (u store.User, wrong, err error) {
	me := t.DB.Alias(by.User)
	had, err := commit.GetJSON[Tries](t, "link_tries", []byte(me))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return u, nil, err
	}
	if !t.Now.Before(had.Until) {
		had = Tries{Until: t.Now.Add(store.LinkLife)}
	}
	if had.Count >= store.LinkTries {
		return u, store.Mark(store.Errorf("%d wrong codes in a row; try again in %s", had.Count, had.Until.Sub(t.Now).Round(time.Second)), store.ErrRefused), nil
	}
	l, err := commit.GetJSON[linkCode](t, "links", hash[:])
	switch {
	case errors.Is(err, store.ErrNotFound):
		wrong = store.Errorf("code %w, or used before", store.ErrNotFound)
	case err != nil:
		return u, nil, err
	case l.User == me:
		wrong = store.Errorf("%w code: it is your own; give it where you come in as somebody else", store.ErrInvalid)
	case !t.Now.Before(l.Expires):
		wrong = store.Errorf("code %w: make another one", store.ErrExpired)
	}
	if wrong != nil {
		had.Count++
		if err := t.PutJSON("link_tries", []byte(me), had); err != nil {
			return u, nil, err
		}
		return u, wrong, t.Event(commit.Note{By: by, Kind: "link.wrong", Subject: me})
	}
	u, err = commit.GetJSON[store.User](t, "users", []byte(l.User))
	return u, nil, err
}

// Join implements [store.Links].
func (d People) Join(ctx context.Context, by store.Caller, hash [32]byte, role store.Role) (j store.Joined, err error) {
	var wrong error
	err = d.db.Write(ctx, "joining identities", func(t *commit.Tx) error {
		var from store.User
		var err error
		if from, wrong, err = openLink(t, by, hash); err != nil || wrong != nil {
			return err
		}
		into, err := commit.GetJSON[store.User](t, "users", []byte(d.db.Alias(by.User)))
		if err != nil {
			return err
		}
		j = store.Joined{User: into, Absorbed: from}
		if err := checkJoin(t, &j, role); err != nil {
			return err
		}
		return join(t, by, &j)
	})
	if err = cmp.Or(err, wrong); err != nil {
		return store.Joined{}, err
	}
	return j, d.db.LoadAliases(ctx)
}

// checkJoin sets j.User to the result of joining the two, or returns an error.
func checkJoin(t *commit.Tx, j *store.Joined, role store.Role) error {
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
	j.User.Role, j.User.AdminByGroup = role, into.AdminByGroup && role == store.Admin
	j.User.Email = cmp.Or(into.Email, from.Email)
	j.User.Identities = slices.Concat(into.Identities, from.Identities)
	j.User.Aliases = slices.Concat(into.Aliases, []string{from.ID}, from.Aliases)
	if (into.CanAdminister() || from.CanAdminister()) && !j.User.CanAdminister() {
		return checkAdmins(t, into.ID, from.ID)
	}
	return nil
}

// join moves everything of the absorbed user to the other.
func join(t *commit.Tx, by store.Caller, j *store.Joined) error {
	into, from := j.User.ID, j.Absorbed.ID
	steps := []func() error{
		func() error { return DropLinks(t, into, from) },
		func() error { return t.Delete("link_tries", []byte(into)) },
		func() error { return t.Delete("link_tries", []byte(from)) },
		func() error { return dropGrants(t, by, from) },
		func() error {
			return cancelCalls(t, by, from, store.Textf("its requester was joined with %s", j.User.Name))
		},
		func() error { return moveTokens(t, by, j) },
		func() error { return moveCredentials(t, by, from, into) },
		func() error { return moveSettings(t, from, into) },
		func() error { return record.MoveHooks(t.KV(), by, from, into) },
		func() error { return spending.MoveBudgets(t, by, from, into) },
		func() error { return moveGroups(t, by, from, into) },
		func() error { return moveMembers(t, by, from, into) },
		func() error { return reshare(t, by, "user:"+from, "user:"+into) },
		func() error { return reassign(t, by, "user:"+from, "user:"+into) },
		func() error { return reassignCalls(t, from, into) },
		func() error { return t.Delete("users", []byte(from)) },
		func() error { return saveUser(t, by, j.User) },
	}
	for _, id := range j.Absorbed.Identities {
		steps = append(steps, func() error { return t.Put("identities", []byte(id), []byte(into)) })
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	t.Change(store.Change{Kind: "user", ID: from})
	return t.Event(commit.Note{By: by, Kind: "user.join", Subject: into, Data: struct {
		Absorbed   string     `json:"absorbed"`
		Identities []string   `json:"identities"`
		Role       store.Role `json:"role"`
		Renamed    []string   `json:"renamed,omitempty"`
	}{from, j.Absorbed.Identities, j.User.Role, j.Renamed}})
}

// moveTokens gives the tokens to the survivor. If the name of an active one is taken, a
// number is appended.
func moveTokens(t *commit.Tx, by store.Caller, j *store.Joined) error {
	list, err := access.TokensOf(t, j.Absorbed.ID, "")
	if err != nil {
		return err
	}
	j.Renamed = nil
	for _, tok := range list {
		if err := t.Delete("tokens_name", commit.Key(tok.User, tok.Name, tok.ID)); err != nil {
			return err
		}
		tok.User = j.User.ID
		if tok.State(t.Now) == "active" {
			name := tok.Name
			for n := 2; ; n++ {
				others, err := access.TokensOf(t, tok.User, tok.Name)
				if err != nil {
					return err
				}
				if !slices.ContainsFunc(others, func(o store.Token) bool { return o.State(t.Now) == "active" }) {
					break
				}
				tok.Name = name + "-" + strconv.Itoa(n)
			}
			if tok.Name != name {
				j.Renamed = append(j.Renamed, tok.Name)
			}
		}
		if err := access.SaveToken(t, tok, true); err != nil {
			return err
		}
		if err := access.TokenEvent(t, by, "move", tok); err != nil {
			return err
		}
	}
	return nil
}

// moveCredentials seals personal credentials again, because the seal depends on their key.
func moveCredentials(t *commit.Tx, by store.Caller, from, into string) error {
	for _, k := range t.Keys("credentials", commit.Key("user", from, ""), 0) {
		c, sealed, err := access.DecodeCredential(k, t.Get("credentials", k))
		if err != nil {
			return err
		}
		plain, err := t.DB.Unseal("credentials", string(k), sealed)
		if err != nil {
			return fmt.Errorf("opening credential %s: %w", access.CredentialName(c.CredentialKey), err)
		}
		if err := access.DeleteCredential(t, by, k); err != nil {
			return err
		}
		c.Owner, c.Secret = into, store.NewSecret(string(plain))
		if t.Get("credentials", access.CredentialKey(c.CredentialKey)) != nil {
			continue
		}
		if err := access.PutCredential(t, by, c); err != nil {
			return err
		}
	}
	return nil
}

func moveSettings(t *commit.Tx, from, into string) error {
	for _, k := range t.Keys("settings", commit.Key(from, ""), 0) {
		to := commit.Key(into, string(k[len(from)+1:]))
		if into != "" && t.Get("settings", to) == nil {
			if err := t.Put("settings", to, commit.CloneBytes(t.Get("settings", k))); err != nil {
				return err
			}
		}
		if err := t.Delete("settings", k); err != nil {
			return err
		}
		t.Change(store.Change{Kind: "setting", ID: string(k[len(from)+1:])})
	}
	return nil
}

// moveGroups adds into to the list groups of from and removes from; if into is "", it only
// removes.
func moveGroups(t *commit.Tx, by store.Caller, from, into string) error {
	for _, name := range access.ListsOf(t, from) {
		g, err := commit.GetJSON[store.Group](t, "groups", []byte(name))
		if err != nil {
			return err
		}
		var in []string
		if into != "" {
			in = []string{into}
		}
		if err := access.PutGroup(t, by, &g, in, []string{from}); err != nil {
			return err
		}
	}
	return nil
}

// moveMembers adds into to the teams of from and removes from; if into is "", it only
// removes.
func moveMembers(t *commit.Tx, by store.Caller, from, into string) error {
	list, err := members(t, "", from)
	if err != nil {
		return err
	}
	for _, m := range list {
		if err := deleteMember(t, by, m.Team, from); err != nil {
			return err
		}
		if m.User = into; into == "" {
			continue
		}
		if err := putMember(t, by, m); err != nil {
			return err
		}
	}
	return nil
}

// reshare replaces a user in all shares by another, or removes them.
func reshare(t *commit.Tx, by store.Caller, from, into string) error {
	servers, err := commit.ListJSON[store.Server](t, "servers", nil)
	if err != nil {
		return err
	}
	for _, s := range servers {
		if !slices.Contains(s.Visibility, from) {
			continue
		}
		s.Visibility = access.Replaced(s.Visibility, from, into)
		if err := catalog.SaveServer(t, by, &s); err != nil {
			return err
		}
	}
	agents, err := commit.ListJSON[store.Agent](t, "agents", nil)
	if err != nil {
		return err
	}
	for _, a := range agents {
		if !slices.Contains(a.Who, from) {
			continue
		}
		a.Who = orAdmins(access.Replaced(a.Who, from, into))
		if err := t.PutRecord(by, commit.Record{Kind: "agent", Bucket: "agents", ID: a.ID}, a); err != nil {
			return err
		}
	}
	models, err := commit.ListJSON[store.ModelName](t, "models", nil)
	if err != nil {
		return err
	}
	for _, m := range models {
		if !slices.Contains(m.Who, from) {
			continue
		}
		m.Who = orAdmins(access.Replaced(m.Who, from, into))
		if err := t.PutRecord(by, commit.Record{Kind: "model", Bucket: "models", ID: m.Name}, m); err != nil {
			return err
		}
	}
	return catalog.Rechannel(t, by, from, into)
}

// orAdmins returns the admins for an empty list, if an empty one would mean everyone.
func orAdmins(who []string) []string {
	if len(who) == 0 {
		return []string{"admins"}
	}
	return who
}

// Unlink implements [store.Links].
func (d People) Unlink(ctx context.Context, by store.Caller, user, identity string) (u store.User, err error) {
	err = d.db.Write(ctx, "taking identity "+identity+" away", func(t *commit.Tx) error {
		old, err := commit.GetJSON[store.User](t, "users", []byte(d.db.Alias(user)))
		if err != nil {
			return err
		}
		if !slices.Contains(old.Identities, identity) {
			return fmt.Errorf("%s has no identity %q: %w", old.Name, identity, store.ErrNotFound)
		}
		u = old
		u.Identities = slices.DeleteFunc(slices.Clone(old.Identities), func(id string) bool { return id == identity })
		if err := dropPerson(t, identity); err != nil {
			return err
		}
		if u.AdminByGroup && strings.HasPrefix(identity, store.OIDCSource) {
			u.Role, u.AdminByGroup = store.Member, false
		}
		switch {
		case len(u.Identities) == 0:
			return store.Mark(fmt.Errorf("it is the last identity of %s, who could not come in any more; disable or remove them instead", old.Name), store.ErrRefused)
		case old.State != store.Active:
			return store.Mark(fmt.Errorf("%s is disabled, and whoever comes with that identity would be let in as somebody new", old.Name), store.ErrRefused)
		case old.CanAdminister() && !u.CanAdminister():
			if err := checkAdmins(t, u.ID); err != nil {
				return err
			}
		}
		if err := t.Delete("identities", []byte(identity)); err != nil {
			return err
		}
		teams, err := members(t, "", u.ID)
		if err != nil {
			return err
		}
		for _, m := range teams {
			if m.Identity == identity && !slices.ContainsFunc(u.Identities, func(id string) bool { return strings.HasPrefix(id, m.Team+":") }) {
				if err := deleteMember(t, by, m.Team, u.ID); err != nil {
					return err
				}
			}
		}
		if err := saveUser(t, by, u); err != nil {
			return err
		}
		return t.Event(commit.Note{By: by, Kind: "user.unlink", Subject: u.ID, Data: struct {
			Identity string `json:"identity"`
		}{identity}})
	})
	if err != nil {
		return store.User{}, err
	}
	return u, nil
}
