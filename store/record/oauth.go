package record

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"time"

	"nize/store"
	"nize/store/kv"
	"nize/store/oauth"
)

// SignIns implements [oauth.Store].
type SignIns struct{ db kv.DB }

var (
	_ oauth.Store   = SignIns{}
	_ oauth.Notices = SignIns{}
)

// PutClient implements [oauth.Store].
func (s SignIns) PutClient(ctx context.Context, by store.Caller, c oauth.Client) error {
	return s.db.Update(ctx, "registering a client", func(tx kv.Tx) error {
		if err := kv.CheckID("client", c.ID); err != nil {
			return err
		}
		crowded, err := makeRoomForClient(tx)
		if err != nil {
			return err
		}
		one := c
		one.Created = tx.Now()
		if err := kv.PutJSON(tx, "oauth_clients", one.ID, one); err != nil || crowded {
			return err
		}
		return tx.Event(by, store.Event{Kind: "client.register", Subject: one.ID}, one)
	})
}

// makeRoomForClient deletes clients to make room for another one; crowded reports whether
// one was deleted early.
func makeRoomForClient(tx kv.Tx) (crowded bool, err error) {
	kept := 0
	if err := tx.Each("oauth_clients", nil, nil, func(_, _ []byte) error { kept++; return nil }); err != nil || kept < oauth.MaxClients {
		return false, err
	}
	gone, err := unusedClients(tx)
	if err == nil && len(gone) == 0 {
		crowded = true
		gone, err = crowdedClient(tx)
	}
	for _, id := range gone {
		err = errors.Join(err, tx.Delete("oauth_clients", []byte(id)))
	}
	if err == nil && len(gone) == 0 {
		err = store.Mark(errors.New("too many clients have registered"), store.ErrRefused)
	}
	return crowded, err
}

// crowdedClient returns the oldest unused client of the network that has the most unused
// clients; none if all are used.
func crowdedClient(tx kv.Reader) (ids []string, err error) {
	all, err := kv.ListJSON[oauth.Client](tx, "oauth_clients", "")
	of := map[string][]oauth.Client{}
	for _, c := range all {
		if c.Used.IsZero() {
			of[oauth.Network(c.Address)] = append(of[oauth.Network(c.Address)], c)
		}
	}
	var most []oauth.Client
	for _, list := range of {
		slices.SortFunc(list, func(a, b oauth.Client) int { return a.Created.Compare(b.Created) })
		if len(list) > len(most) || len(list) == len(most) && list[0].Created.Before(most[0].Created) {
			most = list
		}
	}
	if len(most) > 0 {
		ids = []string{most[0].ID}
	}
	return ids, err
}

// unusedClients returns the clients that were not used for a sign-in in time.
func unusedClients(tx kv.Reader) (ids []string, err error) {
	all, err := kv.ListJSON[oauth.Client](tx, "oauth_clients", "")
	for _, c := range all {
		if c.Used.IsZero() && tx.Now().Sub(c.Created) >= oauth.UnusedLife {
			ids = append(ids, c.ID)
		}
	}
	return ids, err
}

// GetClient implements [oauth.Store].
func (s SignIns) GetClient(ctx context.Context, id string) (oauth.Client, error) {
	return kv.ReadJSON[oauth.Client](ctx, s.db, "reading a client", "oauth_clients", id)
}

// UseClient implements [oauth.Store].
func (s SignIns) UseClient(ctx context.Context, id string) error {
	return s.db.Update(ctx, "noting that a client was used", func(tx kv.Tx) error {
		c, err := kv.GetJSON[oauth.Client](tx, "oauth_clients", id)
		if errors.Is(err, store.ErrNotFound) || err == nil && !c.Used.IsZero() {
			return nil
		}
		if err != nil {
			return err
		}
		c.Used = tx.Now()
		return kv.PutJSON(tx, "oauth_clients", id, c)
	})
}

// AddRequest implements [oauth.Store].
func (s SignIns) AddRequest(ctx context.Context, by store.Caller, r oauth.Request) error {
	return s.db.Update(ctx, "storing a sign-in", func(tx kv.Tx) error {
		one := r
		one.Created = tx.Now()
		makeRoom := makeRoomForAsker
		if one.User != "" {
			makeRoom = makeRoomForLink
		}
		crowded, err := makeRoom(tx, one)
		if err != nil {
			return err
		}
		if err := errors.Join(kv.PutJSON(tx, "oauth_requests", one.ID, one), tx.Put("oauth_codes", one.Code[:], []byte(one.ID))); err != nil {
			return err
		}
		if one.User == "" || one.IsLink() {
			if err := tx.Put("oauth_open", openKey(one), []byte(openValue(one))); err != nil {
				return err
			}
		}
		if crowded {
			return nil
		}
		return tx.Event(by, store.Event{Kind: "signin.ask", Subject: one.ID}, about(one))
	})
}

// openKey is the start time of a request and its id; openValue is the quota that the
// request counts for: a person's by a link, or a network's. The bucket omits requests that
// were confirmed or ended.
func openKey(r oauth.Request) []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(r.Created.UnixNano())), r.ID...)
}

func openValue(r oauth.Request) string {
	if r.IsLink() {
		return linkPrefix + r.User
	}
	return oauth.Network(r.Address)
}

const linkPrefix = "link "

// openRequest is an entry of oauth_open.
type openRequest struct{ key, id, whose string }

// openRequests returns the open requests, oldest first, without decoding any, because
// during a flood of requests every write pays for this. It deletes those that ended long
// ago.
func openRequests(tx kv.Tx) (open []openRequest, err error) {
	var over []openRequest
	err = tx.Each("oauth_open", nil, nil, func(k, v []byte) error {
		if len(k) < 9 {
			return ErrDamaged
		}
		o := openRequest{string(k), string(k[8:]), string(v)}
		switch age := tx.Now().Sub(time.Unix(0, int64(binary.BigEndian.Uint64(k)))); {
		case age >= 2*oauth.RequestLife:
			over = append(over, o)
		case age < oauth.RequestLife:
			open = append(open, o)
		}
		return nil
	})
	for _, o := range over {
		err = errors.Join(err, deleteOpen(tx, o))
	}
	return open, err
}

// deleteOpen deletes a request and all index entries for it.
func deleteOpen(tx kv.Tx, o openRequest) error {
	r, err := kv.GetJSON[oauth.Request](tx, "oauth_requests", o.id)
	if errors.Is(err, store.ErrNotFound) {
		return tx.Delete("oauth_open", []byte(o.key))
	}
	if err != nil {
		return err
	}
	return forgetRequest(tx, r)
}

func forgetRequest(tx kv.Tx, r oauth.Request) error {
	return errors.Join(tx.Delete("oauth_requests", []byte(r.ID)), tx.Delete("oauth_codes", r.Code[:]), tx.Delete("oauth_codes", r.Grant[:]), tx.Delete("oauth_open", openKey(r)))
}

// makeRoomForAsker deletes requests to make room for another one; crowded reports whether
// there was one to delete.
func makeRoomForAsker(tx kv.Tx, one oauth.Request) (crowded bool, err error) {
	open, err := openRequests(tx)
	if err != nil {
		return false, err
	}
	of := map[string][]openRequest{}
	n := 0
	for _, o := range open {
		switch {
		case strings.HasPrefix(o.whose, linkPrefix):
		case o.id == one.Before:
			crowded = true
			err = errors.Join(err, deleteOpen(tx, o))
		default:
			of[o.whose] = append(of[o.whose], o)
			n++
		}
	}
	whose := openValue(one)
	if n >= oauth.MaxRequests && len(of[whose]) < oauth.MaxPerHost {
		whose = mostCrowded(of)
	} else if len(of[whose]) < oauth.MaxPerHost {
		return crowded, err
	}
	return true, errors.Join(err, deleteOpen(tx, of[whose][0]))
}

// mostCrowded returns the key with the most entries; if several have as many, the one whose
// first entry is the oldest.
func mostCrowded(of map[string][]openRequest) (found string) {
	for key, list := range of {
		if n := len(of[found]); len(list) > n || len(list) == n && list[0].key < of[found][0].key {
			found = key
		}
	}
	return found
}

// makeRoomForLink is makeRoomForAsker for a link of nizectl login.
func makeRoomForLink(tx kv.Tx, one oauth.Request) (crowded bool, err error) {
	if !one.IsLink() {
		return false, nil
	}
	open, err := openRequests(tx)
	if err != nil {
		return false, err
	}
	same := slices.DeleteFunc(open, func(o openRequest) bool { return o.whose != openValue(one) })
	for len(same) >= oauth.MaxPerUser {
		err = errors.Join(err, deleteOpen(tx, same[0]))
		same = same[1:]
	}
	return false, err
}

// forgetRequests deletes requests that ended at least as long ago as they were open: until
// then a repeated code is recognized.
func forgetRequests(tx kv.Tx, all []oauth.Request) (err error) {
	for _, r := range all {
		if tx.Now().Sub(r.Created) >= 2*oauth.RequestLife {
			err = errors.Join(err, forgetRequest(tx, r))
		}
	}
	return err
}

// about returns the data about a request for the audit trail.
func about(r oauth.Request) any {
	return struct {
		Client   string   `json:"client,omitempty"`
		Redirect string   `json:"redirect,omitempty"`
		Scopes   []string `json:"scopes,omitempty"`
		Address  string   `json:"address,omitempty"`
		User     string   `json:"user,omitempty"`
		Ended    string   `json:"ended,omitempty"`
	}{r.Client, r.Redirect, r.Scopes, r.Address, r.User, r.Ended}
}

// GetRequest implements [oauth.Store].
func (s SignIns) GetRequest(ctx context.Context, id string) (oauth.Request, error) {
	return kv.ReadJSON[oauth.Request](ctx, s.db, "reading a sign-in", "oauth_requests", id)
}

// FindRequest implements [oauth.Store].
func (s SignIns) FindRequest(ctx context.Context, code oauth.Hash) (r oauth.Request, err error) {
	err = s.db.View(ctx, "looking a code up", func(tx kv.Reader) (err error) {
		r, err = requestOf(tx, code)
		if err == nil && !r.Code.Is(code) {
			err = store.ErrNotFound
		}
		return err
	})
	return r, err
}

// FindGrant implements [oauth.Store].
func (s SignIns) FindGrant(ctx context.Context, code oauth.Hash) (r oauth.Request, err error) {
	err = s.db.View(ctx, "looking a grant up", func(tx kv.Reader) (err error) {
		r, err = requestOf(tx, code)
		if err == nil && !r.Grant.Is(code) {
			err = store.ErrNotFound
		}
		return err
	})
	return r, err
}

func requestOf(tx kv.Reader, code oauth.Hash) (oauth.Request, error) {
	id, err := tx.Get("oauth_codes", code[:])
	if err != nil {
		return oauth.Request{}, err
	}
	return kv.GetJSON[oauth.Request](tx, "oauth_requests", string(id))
}

// ChangeRequest implements [oauth.Store].
func (s SignIns) ChangeRequest(ctx context.Context, by store.Caller, id, kind string, change func(r *oauth.Request, now time.Time, open func(user string) int) (keep bool, err error)) (r oauth.Request, err error) {
	var wrong error
	err = s.db.Update(ctx, "changing a sign-in", func(tx kv.Tx) (err error) {
		if r, err = kv.GetJSON[oauth.Request](tx, "oauth_requests", id); err != nil {
			return err
		}
		grant, keep := r.Grant, false
		keep, wrong = change(&r, tx.Now(), func(user string) (n int) {
			all, _ := kv.ListJSON[oauth.Request](tx, "oauth_requests", "") // can't fail: it was read above
			for _, o := range all {
				if o.ID != id && o.User == user && !o.IsLink() && o.Open(tx.Now()) {
					n++
				}
			}
			return n
		})
		if wrong != nil && !keep {
			return nil
		}
		if r.Grant != grant {
			if err := tx.Put("oauth_codes", r.Grant[:], []byte(id)); err != nil {
				return err
			}
		}
		if err := kv.PutJSON(tx, "oauth_requests", id, r); err != nil {
			return err
		}
		if r.User != "" || r.Ended != "" { // it no longer counts for a network's quota
			if err := tx.Delete("oauth_open", openKey(r)); err != nil {
				return err
			}
		}
		return tx.Event(by, store.Event{Kind: kind, Subject: id}, about(r))
	})
	if err == nil {
		err = wrong
	}
	return r, err
}

// Redeem implements [oauth.Store].
func (s SignIns) Redeem(ctx context.Context, d oauth.Redeeming) (made store.Token, err error) {
	var wrong error
	err = s.db.Update(ctx, "redeeming a code", func(tx kv.Tx) error {
		wrong = nil
		r, err := requestOf(tx, d.Code)
		switch {
		case err != nil:
			return err
		case !r.Grant.Is(d.Code):
			return store.ErrNotFound
		case r.Spent:
			wrong = store.ErrDecided
			if r.Family == "" {
				return nil
			}
			return endReused(tx, r.Family, r.Name, d.Address)
		case tx.Now().Sub(r.Granted) >= oauth.CodeLife:
			return store.ErrExpired
		}
		r.Spent = true
		if wrong = d.Check(r); wrong != nil {
			return kv.PutJSON(tx, "oauth_requests", r.ID, r)
		}
		u, err := kv.GetJSON[store.User](tx, "users", r.User)
		if err != nil || u.State != store.Active {
			wrong = store.Mark(errors.New("its user is gone"), store.ErrRefused)
			return kv.PutJSON(tx, "oauth_requests", r.ID, r)
		}
		d.Next.Until = tx.Now().Add(d.Life)
		made = d.Token
		made.User, made.Scopes, made.Created, made.Expires = u.ID, r.Scopes, tx.Now(), tx.Now().Add(oauth.FamilyIdle)
		made.SignedIn = &store.SignedIn{Client: r.Client, Redirect: hostOf(r.Redirect), Address: r.Address, Browser: r.Agent}
		r.Family = made.ID
		by := callerOf(u.ID, r.Address)
		first := oauth.Family{Token: made.ID, Client: r.Client, Pairs: []oauth.Pair{d.Next}}
		if c, err := kv.GetJSON[oauth.Client](tx, "oauth_clients", r.Client); err == nil {
			c.Used = tx.Now()
			if err := kv.PutJSON(tx, "oauth_clients", c.ID, c); err != nil {
				return err
			}
		}
		if err := errors.Join(
			kv.PutJSON(tx, "oauth_requests", r.ID, r),
			kv.PutJSON(tx, "tokens", made.ID, storedToken{made, made.Hash[:]}),
			tx.Put("tokens_name", []byte(made.User+"\x00"+made.Name+"\x00"+made.ID), nil),
			kv.PutJSON(tx, "oauth_families", d.Family.String(), first),
			putAccess(tx, made.ID, d.Next),
		); err != nil {
			return err
		}
		tx.Change(store.Change{Kind: "token", ID: made.ID})
		return tx.Event(by, store.Event{Kind: "token.create", Subject: made.ID}, made)
	})
	if err == nil {
		err = wrong
	}
	return made, err
}

func callerOf(user, address string) store.Caller {
	return store.Caller{User: user, Surface: store.OnHTTP, Address: address}
}

// hostOf returns the host of a URL, or its scheme if it has no host.
func hostOf(address string) string {
	scheme, rest, _ := strings.Cut(address, "://")
	host, _, _ := strings.Cut(rest, "/")
	if scheme == "http" || scheme == "https" {
		return host
	}
	return scheme + ":"
}

// The record of an access token is the family's id, a zero byte and the expiry.
func putAccess(tx kv.Tx, family string, p oauth.Pair) error {
	return tx.Put("oauth_access", p.Access[:], binary.BigEndian.AppendUint64([]byte(family+"\x00"), uint64(p.Until.Unix())))
}

// Access returns the family of an access token, and when that token expires.
func Access(r kv.Reader, hash [32]byte) (family string, until time.Time, err error) {
	b, err := r.Get("oauth_access", hash[:])
	if err != nil {
		return "", until, err
	}
	if len(b) < 9 {
		return "", until, ErrDamaged
	}
	return string(b[:len(b)-9]), time.Unix(int64(binary.BigEndian.Uint64(b[len(b)-8:])), 0).UTC(), nil
}

// Refresh implements [oauth.Store].
func (s SignIns) Refresh(ctx context.Context, f oauth.Refreshing) (tok store.Token, err error) {
	var wrong error
	err = s.db.Update(ctx, "refreshing a token", func(tx kv.Tx) error {
		wrong = nil
		at := f.Family.String()
		fam, err := kv.GetJSON[oauth.Family](tx, "oauth_families", at)
		if err != nil {
			return err
		}
		t, err := kv.GetJSON[storedToken](tx, "tokens", fam.Token)
		if err != nil {
			return err
		}
		tok = t.Token
		u, err := kv.GetJSON[store.User](tx, "users", tok.User)
		switch {
		case fam.Client != f.Client:
			return store.ErrNotFound
		case tok.State(tx.Now()) != "active", err != nil, u.State != store.Active:
			return store.ErrExpired
		}
		i := slices.IndexFunc(fam.Pairs, func(p oauth.Pair) bool { return p.Refresh.Is(f.Given) })
		if i < 0 || !fam.Pairs[i].Rotated.IsZero() && tx.Now().Sub(fam.Pairs[i].Rotated) >= f.Grace {
			// The sender has a token of the family that is not valid, so it is an old one:
			// the part that all of them share is also a secret.
			wrong = store.ErrDecided
			return endReused(tx, tok.ID, strings.TrimPrefix(tok.Name, "oauth:"), f.Address)
		}
		if !f.Admit() {
			return store.ErrRefused
		}
		if fam.Pairs[i].Rotated.IsZero() {
			fam.Pairs[i].Rotated = tx.Now()
		}
		f.Next.Until = tx.Now().Add(f.Life)
		var kept []oauth.Pair
		for _, p := range append(fam.Pairs, f.Next) {
			old := !p.Rotated.IsZero() && tx.Now().Sub(p.Rotated) >= f.Grace && !tx.Now().Before(p.Until)
			if !old {
				kept = append(kept, p)
			} else if err := tx.Delete("oauth_access", p.Access[:]); err != nil {
				return err
			}
		}
		for len(kept) > oauth.MaxPairs {
			if err := tx.Delete("oauth_access", kept[0].Access[:]); err != nil {
				return err
			}
			kept = kept[1:]
		}
		fam.Pairs = kept
		t.LastUsed = tx.Now()
		if t.Expires = tx.Now().Add(oauth.FamilyIdle); t.Expires.After(t.Created.Add(oauth.FamilyLife)) {
			t.Expires = t.Created.Add(oauth.FamilyLife)
		}
		tok = t.Token
		if err := errors.Join(kv.PutJSON(tx, "oauth_families", at, fam), kv.PutJSON(tx, "tokens", tok.ID, t), putAccess(tx, tok.ID, f.Next)); err != nil {
			return err
		}
		return tx.Event(callerOf(tok.User, ""), store.Event{Kind: "token.refresh", Subject: tok.ID}, nil)
	})
	if err == nil {
		err = wrong
	}
	return tok, err
}

// endToken revokes a token that a person signed in for; an ended one is unchanged.
func endToken(tx kv.Tx, by store.Caller, id, kind string) error {
	t, err := kv.GetJSON[storedToken](tx, "tokens", id)
	if err != nil || t.State(tx.Now()) != "active" {
		return err
	}
	t.Revoked = tx.Now()
	if err := kv.PutJSON(tx, "tokens", id, t); err != nil {
		return err
	}
	tx.Change(store.Change{Kind: "token", ID: id})
	return tx.Event(by, store.Event{Kind: kind, Subject: id}, t.Token)
}

// endReused revokes the token of a secret that was used twice, and stores a notice for its
// owner; an ended one is unchanged.
func endReused(tx kv.Tx, id, name, address string) error {
	t, err := kv.GetJSON[storedToken](tx, "tokens", id)
	if err != nil || t.State(tx.Now()) != "active" {
		return err
	}
	if err := endToken(tx, callerOf(t.User, address), id, "token.reused"); err != nil {
		return err
	}
	return kv.PutJSON(tx, "oauth_notices", id, oauth.Notice{ID: id, Kind: oauth.Reused, User: t.User, Name: name, Address: address, Since: tx.Now()})
}

// PutNotice implements [oauth.Notices].
func (s SignIns) PutNotice(ctx context.Context, n oauth.Notice) error {
	return s.db.Update(ctx, "storing a notice", func(tx kv.Tx) error { return kv.PutJSON(tx, "oauth_notices", n.ID, n) })
}

// ListNotices implements [oauth.Notices].
func (s SignIns) ListNotices(ctx context.Context) (all []oauth.Notice, err error) {
	err = s.db.View(ctx, "listing notices", func(tx kv.Reader) error {
		all, err = kv.ListJSON[oauth.Notice](tx, "oauth_notices", "")
		return err
	})
	slices.SortFunc(all, func(a, b oauth.Notice) int { return a.Since.Compare(b.Since) })
	return all, err
}

// EndFamily implements [oauth.Store].
func (s SignIns) EndFamily(ctx context.Context, by store.Caller, family, access oauth.Hash, client string) error {
	return s.db.Update(ctx, "revoking a sign-in", func(tx kv.Tx) error {
		id, _, err := Access(tx, access)
		if errors.Is(err, store.ErrNotFound) {
			fam, err := kv.GetJSON[oauth.Family](tx, "oauth_families", family.String())
			if err != nil {
				return err
			}
			id = fam.Token
		} else if err != nil {
			return err
		}
		t, err := kv.GetJSON[storedToken](tx, "tokens", id)
		if err != nil {
			return err
		}
		if t.SignedIn == nil || t.SignedIn.Client != client {
			return store.ErrNotFound
		}
		by := by
		by.User = t.User
		return endToken(tx, by, id, "token.revoke")
	})
}

// RevokeSignIn implements [oauth.Store].
func (s SignIns) RevokeSignIn(ctx context.Context, by store.Caller, id string) error {
	return s.db.Update(ctx, "ending a sign-in", func(tx kv.Tx) error {
		t, err := kv.GetJSON[storedToken](tx, "tokens", id)
		if err != nil {
			return err
		}
		if t.SignedIn == nil {
			return store.ErrNotFound
		}
		return endToken(tx, by, id, "token.revoke")
	})
}

// PruneSignIns implements [oauth.Store].
func (s SignIns) PruneSignIns(ctx context.Context) error {
	return s.db.Update(ctx, "forgetting sign-ins that ended", func(tx kv.Tx) error {
		type entry struct {
			bucket string
			key    []byte
		}
		var gone []entry
		drop := func(bucket string, key []byte) { gone = append(gone, entry{bucket, slices.Clone(key)}) }
		requests, err := kv.ListJSON[oauth.Request](tx, "oauth_requests", "")
		err = errors.Join(err, forgetRequests(tx, requests))
		err = errors.Join(err, tx.Each("oauth_families", nil, nil, func(k, v []byte) error {
			f, err := kv.DecodeJSON[oauth.Family](v)
			if err != nil {
				return err
			}
			t, err := kv.GetJSON[storedToken](tx, "tokens", f.Token)
			if err == nil && t.State(tx.Now()) == "active" {
				return nil
			}
			drop("oauth_families", k)
			for _, p := range f.Pairs {
				drop("oauth_access", p.Access[:])
			}
			return nil
		}))
		unused, listErr := unusedClients(tx)
		for _, id := range unused {
			drop("oauth_clients", []byte(id))
		}
		err = errors.Join(err, listErr)
		err = errors.Join(err, tx.Each("oauth_notices", nil, nil, func(k, v []byte) error {
			n, err := kv.DecodeJSON[oauth.Notice](v)
			if tx.Now().Sub(n.Since) >= oauth.NoticeTime || !n.Told.IsZero() && tx.Now().Sub(n.Since) >= oauth.NoticeLife {
				drop("oauth_notices", k)
			}
			return err
		}))
		for _, e := range gone {
			err = errors.Join(err, tx.Delete(e.bucket, e.key))
		}
		return err
	})
}
