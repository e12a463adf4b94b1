package record

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"nize/store"
	"nize/store/kv"
	"nize/store/oauth"
)

var _ oauth.Tokens = SignIns{}

// storedToken is the stored form of a token.
type storedToken struct {
	store.Token
	Hash []byte `json:"hash"`
}

// maxLooked limits the tokens that are read for one page.
const maxLooked = 500

// PageTokens implements [oauth.Tokens].
func (s SignIns) PageTokens(ctx context.Context, q oauth.TokenQuery) (page []store.Token, next string, err error) {
	err = s.db.View(ctx, "listing tokens", func(tx kv.Reader) error {
		page, next = nil, q.Before
		for looked := 0; ; {
			ids, more, err := newestTokens(tx, q, next)
			if err != nil {
				return err
			}
			for _, id := range ids {
				t, err := kv.GetJSON[storedToken](tx, "tokens", id)
				if err != nil {
					return err
				}
				next, looked = id, looked+1
				if state := t.State(tx.Now()); (!q.Active || state == "active") && (!q.Unrevoked || state != "revoked") {
					page = append(page, t.Token)
				}
				if q.Limit > 0 && (len(page) == q.Limit || looked == maxLooked) {
					more = more || id != ids[len(ids)-1]
					break
				}
			}
			if !more {
				next = ""
				return nil
			}
			if len(page) == q.Limit || looked >= maxLooked {
				return nil
			}
		}
	})
	return page, next, err
}

// newestTokens returns the ids of the newest tokens of a query before an id, at most as
// many as its limit, by reading only their keys.
func newestTokens(tx kv.Reader, q oauth.TokenQuery, before string) (ids []string, more bool, err error) {
	prefix, floor := []byte(nil), ""
	if q.User != "" {
		prefix = []byte(q.User + "\x00")
	}
	cut := func() {
		slices.SortFunc(ids, func(a, b string) int { return cmp.Compare(b, a) })
		if q.Limit > 0 && len(ids) > q.Limit {
			ids, more = ids[:q.Limit], true
			floor = ids[q.Limit-1]
		}
	}
	err = tx.Each("tokens_name", prefix, nil, func(k, _ []byte) error {
		_, rest, _ := bytes.Cut(k, []byte{0})
		name, id, ok := bytes.Cut(rest, []byte{0})
		switch {
		case !ok:
			return ErrDamaged
		case q.Kinds != nil && !slices.Contains(q.Kinds, oauth.KindOf(string(name))), before != "" && string(id) >= before:
		case string(id) <= floor:
			more = true
		default:
			if ids = append(ids, string(id)); q.Limit > 0 && len(ids) >= 2*q.Limit {
				cut()
			}
		}
		return nil
	})
	cut()
	return ids, more, err
}

// tokenEnd is when a token expires.
type tokenEnd struct {
	id      string
	expires time.Time
}

// allTokenEnds is the cache key of the expiries of all created tokens.
type allTokenEnds struct{}

// ExpiringTokens implements [oauth.Tokens]. The expiry of such a token never changes, so
// the cached list is valid until a token is created or deleted.
func (s SignIns) ExpiringTokens(ctx context.Context, by time.Time) (list []store.Token, err error) {
	const what = "listing tokens that expire"
	recalled, err := s.db.Recall(ctx, what, allTokenEnds{}, func(r kv.Reader) (any, error) {
		var ends []tokenEnd
		err := r.Each("tokens", nil, nil, func(k, v []byte) error {
			t, err := kv.DecodeJSON[storedToken](v)
			if err == nil && oauth.KindOf(t.Name) == oauth.Made {
				ends = append(ends, tokenEnd{string(k), t.Expires})
			}
			return err
		})
		slices.SortFunc(ends, func(a, b tokenEnd) int { return a.expires.Compare(b.expires) })
		return ends, err
	}, "tokens_name")
	if err != nil {
		return nil, err
	}
	ends := recalled.([]tokenEnd)
	at := func(when time.Time) int {
		i, _ := slices.BinarySearchFunc(ends, when, func(e tokenEnd, when time.Time) int { return e.expires.Compare(when) })
		return i
	}
	from, to := at(s.db.Now()), at(by.Add(1))
	if from >= to {
		return nil, nil
	}
	err = s.db.View(ctx, what, func(r kv.Reader) error {
		list = nil
		for _, e := range ends[from:to] {
			switch t, err := kv.GetJSON[storedToken](r, "tokens", e.id); {
			case errors.Is(err, store.ErrNotFound): // deleted meanwhile
			case err != nil:
				return err
			case t.State(r.Now()) == "active":
				list = append(list, t.Token)
			}
		}
		return nil
	})
	return list, err
}

// GetToken implements [oauth.Tokens].
func (s SignIns) GetToken(ctx context.Context, id string) (store.Token, error) {
	t, err := kv.ReadJSON[storedToken](ctx, s.db, "reading a token", "tokens", id)
	return t.Token, err
}
