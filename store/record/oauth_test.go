package record_test

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"nize/store"
	"nize/store/database"
	"nize/store/oauth"
	"nize/store/seal"
)

// signIns is a database and its clock.
func signIns(t *testing.T) (*database.DB, *time.Time) {
	t.Helper()
	dir := t.TempDir()
	master, err := seal.Open(filepath.Join(dir, "nize.key"), store.Secret{})
	if err != nil {
		t.Fatal(err)
	}
	now := new(time.Now())
	db, err := database.Open(t.Context(), database.Options{Path: filepath.Join(dir, "nize.db"), Master: master, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return *now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db, now
}

// TestClients: a thousand may have registered. Those that nobody used within a day make
// room, and then the oldest unused one of whoever registered most.
func TestClients(t *testing.T) {
	db, now := signIns(t)
	ctx := t.Context()
	register := func(n int) error {
		*now = now.Add(time.Millisecond)
		return db.PutClient(ctx, store.System, oauth.Client{ID: fmt.Sprintf("c_%d", n), Name: "C", Redirects: []string{"http://localhost/cb"}, Address: fmt.Sprintf("2001:db8::%x", n%7)})
	}
	if err := db.PutClient(ctx, store.System, oauth.Client{ID: "c_other", Name: "C", Redirects: []string{"http://localhost/cb"}, Address: "203.0.113.7"}); err != nil {
		t.Fatal(err)
	}
	for n := range oauth.MaxClients - 1 {
		if err := register(n); err != nil {
			t.Fatal(n, err)
		}
	}
	// Somebody signs in to the first.
	ann, err := db.EnsureUser(ctx, "local:1", "ann", store.Member)
	if err != nil {
		t.Fatal(err)
	}
	asked := oauth.Request{ID: "r", Client: "c_0", Name: "C", User: ann.ID, Code: oauth.HashOf("code"), Grant: oauth.HashOf("grant"), Ended: oauth.Allowed}
	if err := db.AddRequest(ctx, store.System, asked); err != nil {
		t.Fatal(err)
	}
	_, err = db.ChangeRequest(ctx, store.System, "r", "signin.allow", func(o *oauth.Request, now time.Time, _ func(string) int) (bool, error) {
		o.Granted, o.Grant = now, oauth.HashOf("other")
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Redeem(ctx, oauth.Redeeming{Code: oauth.HashOf("other"), Check: func(oauth.Request) error { return nil }, Family: oauth.HashOf("family"), Life: time.Hour,
		Token: store.Token{ID: "t", Name: "oauth:c", Hash: oauth.HashOf("t"), Audience: store.ForMCP}, Next: oauth.Pair{Access: oauth.HashOf("a"), Refresh: oauth.HashOf("r")}})
	if err != nil {
		t.Fatal(err)
	}
	is := func(id string, want bool) {
		t.Helper()
		if _, err := db.GetClient(ctx, id); (err == nil) != want || err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: %v", id, err)
		}
	}
	for n := range 2 {
		if err := register(oauth.MaxClients + n); err != nil {
			t.Errorf("one more: %v", err)
		}
	}
	is("c_0", true) // somebody uses it
	is("c_1", false)
	is("c_2", false)
	is("c_3", true)
	is("c_other", true)                                                                        // its network has no more than this one
	if err := errors.Join(db.UseClient(ctx, "c_3"), db.UseClient(ctx, "nobody")); err != nil { // gets tokens by assertions
		t.Fatal(err)
	}
	*now = now.Add(oauth.UnusedLife)
	if err := register(oauth.MaxClients + 2); err != nil {
		t.Errorf("a day later: %v", err)
	}
	is("c_3", true)
	is("c_0", true)
	is("c_4", false)
	is("c_other", false)
}

// TestOpenRequests: whoever opens many takes their own network's room, and in all that
// of the network with the most. Nobody is locked out, and what a person confirmed or
// nizectl login made is left alone.
func TestOpenRequests(t *testing.T) {
	db, now := signIns(t)
	ctx := t.Context()
	n := 0
	ask := func(r oauth.Request) string {
		t.Helper()
		*now = now.Add(time.Millisecond)
		n++
		r.ID = fmt.Sprintf("r%d", n)
		r.Code = oauth.HashOf(r.ID)
		if r.User == "" {
			r.Browser = oauth.HashOf("cookie " + r.ID)
		}
		if err := db.AddRequest(ctx, store.System, r); err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
		return r.ID
	}
	from := func(address string) string { return ask(oauth.Request{Address: address}) }
	is := func(what, id string, want bool) {
		t.Helper()
		_, err := db.FindRequest(ctx, oauth.HashOf(id))
		if (err == nil) != want || err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s (%s): %v", what, id, err)
		}
		if _, err := db.GetRequest(ctx, id); (err == nil) != want {
			t.Errorf("%s (%s): %v", what, id, err)
		}
	}
	confirm := func(id, user string) {
		t.Helper()
		_, err := db.ChangeRequest(ctx, store.System, id, "signin.confirm", func(o *oauth.Request, _ time.Time, _ func(string) int) (bool, error) {
			o.User = user
			return true, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	// One browser.
	first := from("203.0.113.1")
	second := ask(oauth.Request{Address: "203.0.113.1", Before: first})
	is("what its browser had before", first, false)
	confirm(second, "ann")
	third := ask(oauth.Request{Address: "203.0.113.1", Before: second})
	is("what its browser had before, and somebody confirmed", second, true)

	// One network, whatever its addresses.
	flood := []string{}
	for i := range 2 * oauth.MaxPerHost {
		flood = append(flood, from(fmt.Sprintf("2001:db8::%x", i)))
	}
	is("the oldest of the flood", flood[0], false)
	is("one that made room", flood[oauth.MaxPerHost-1], false)
	is("the oldest that is left", flood[oauth.MaxPerHost], true)
	is("the newest", flood[2*oauth.MaxPerHost-1], true)
	is("another network's", third, true)

	// Links have room of their own, by person.
	var links []string
	for range oauth.MaxPerUser + 1 {
		links = append(links, ask(oauth.Request{User: "ann", Surface: store.OnCLI}))
	}
	other := ask(oauth.Request{User: "ben", Surface: store.OnCLI})
	is("a person's oldest link", links[0], false)
	is("the next", links[1], true)
	_, err := db.ChangeRequest(ctx, store.System, third, "signin.confirm", func(_ *oauth.Request, _ time.Time, open func(string) int) (bool, error) {
		if n := open("ann"); n != 1 {
			t.Errorf("%d requests of ann's are open", n)
		}
		return false, nil
	})
	if err != nil {
		t.Fatal(err)
	}

	// Many networks.
	for i := range oauth.MaxRequests {
		from(fmt.Sprintf("10.%d.%d.1", i/250, i%250))
	}
	quiet := from("198.51.100.7")
	is("the newcomer", quiet, true)
	is("the largest network's oldest", flood[2*oauth.MaxPerHost-2], false)
	is("what is confirmed", second, true)
	is("a link", links[1], true)
	is("another person's link", other, true)
	events := 0
	trail, err := db.Events(ctx, store.EventQuery{Kind: "signin.ask", Limit: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range trail {
		if e.Kind == "signin.ask" {
			events++
		}
	}
	if most := oauth.MaxRequests + oauth.MaxPerUser + 5; events > most {
		t.Errorf("the trail has %d of them, want %d at most", events, most)
	}

	// What is over makes room, and its page can say so for as long again.
	*now = now.Add(oauth.RequestLife)
	late := from("198.51.100.8")
	is("an expired one", quiet, true)
	*now = now.Add(oauth.RequestLife)
	from("198.51.100.9")
	is("one that has long expired", quiet, false)
	is("one that has just expired", late, true)
}
