package signin

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"nize/daemon/api"
	"nize/daemon/people"
	"nize/store"
	"nize/store/database/databasetest"
	"nize/store/oauth"
)

// TestNotices: what a person has to be told is told until they were, once, and
// what operators have to see they see for an hour.
func TestNotices(t *testing.T) {
	db := databasetest.Open(t)
	ctx := t.Context()
	ann, err := db.EnsureUser(ctx, "slack:T:ANN", "ann", store.Member)
	if err != nil {
		t.Fatal(err)
	}
	skew := time.Duration(0)
	now := func() time.Time { return time.Now().Add(skew) }
	var told []string
	down := true
	s := New(Options{
		Sessions: &Sessions{Tokens: db, Notices: db, Config: values{}, Now: now}, Store: db, Directory: &people.Directory{Store: db}, Log: slog.New(slog.DiscardHandler),
		Tell: func(_ context.Context, user string, at store.Surface, id string, _ time.Time, text store.Text) (bool, error) {
			if down {
				return false, errors.New("down")
			}
			told = append(told, string(at)+" "+user+" "+text.String())
			return true, nil
		},
	})

	// A code that is used twice, the second time from elsewhere.
	asked := oauth.Request{ID: "r1", Client: "c", Name: "Editor", Redirect: "http://localhost/cb", Code: hashCode("AAAA-AAAA"), Address: "10.0.0.1", User: ann.ID}
	if err := db.AddRequest(ctx, store.System, asked); err != nil {
		t.Fatal(err)
	}
	_, err = db.ChangeRequest(ctx, store.System, "r1", "signin.number", func(o *oauth.Request, now time.Time, _ func(string) int) (bool, error) {
		o.Ended, o.Granted, o.Grant = oauth.Allowed, now, oauth.HashOf("code")
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	redeem := func(from string) error {
		p, _, _, shared := s.pair(nil)
		_, err := db.Redeem(ctx, oauth.Redeeming{Code: oauth.HashOf("code"), Check: func(oauth.Request) error { return nil }, Family: oauth.HashOf(string(shared)), Next: p, Address: from,
			Token: store.Token{ID: store.NewID(now()), Name: "oauth:editor", Hash: oauth.HashOf(from), Audience: store.ForMCP}})
		return err
	}
	if err := redeem("10.0.0.1"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // and a third time tells nobody anything new
		if err := redeem("6.6.6.6"); !errors.Is(err, store.ErrDecided) {
			t.Fatalf("a code twice: %v", err)
		}
	}
	if !s.tell(ctx) || len(told) != 0 {
		t.Errorf("what could not be told is not due any more: %v", told)
	}
	down = false
	if left := s.tell(ctx); left || s.tell(ctx) || len(told) != 1 || !strings.Contains(told[0], ann.ID) || !strings.Contains(told[0], "from 6.6.6.6") || !strings.Contains(told[0], "Editor") {
		t.Errorf("told: %q", told)
	}

	// Not me: who pressed it read so at once, operators see it.
	r2 := oauth.Request{ID: "r2", Client: "c", Name: "Editor", Redirect: "http://localhost/cb", Code: hashCode("BBBB-BBBB"), Address: "10.0.0.9", Agent: "Firefox"}
	if err := db.AddRequest(ctx, store.System, r2); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Deny(ctx, store.Caller{User: ann.ID, Name: "ann", Surface: store.OnSlack}, api.LoginCodeRequest{Code: "BBBB-BBBB"}); err != nil {
		t.Fatal(err)
	}
	if s.tell(ctx) || len(told) != 1 {
		t.Errorf("told: %q", told)
	}

	// A new browser is told where it was confirmed, and is nothing wrong.
	s.Origin = originOf
	if _, err := s.beginSession(httptest.NewRecorder(), httptest.NewRequest("POST", "http://127.0.0.1:1/x", nil), oauth.Request{User: ann.ID, Surface: store.OnSlack}); err != nil {
		t.Fatal(err)
	}
	if s.tell(ctx) || len(told) != 2 || !strings.HasPrefix(told[1], "slack "+ann.ID+" A browser is signed in") {
		t.Errorf("told: %q", told)
	}
	alarms, err := s.Alarms(ctx)
	if err != nil || len(alarms) != 2 {
		t.Fatalf("alarms: %+v %v", alarms, err)
	}
	for i, want := range []string{"A sign-in to Editor was revoked", "ann denied a sign-in"} {
		if !strings.HasPrefix(alarms[i].Title.String(), want) || alarms[i].Users[0] != ann.ID {
			t.Errorf("alarm %d: %+v, want %s", i, alarms[i], want)
		}
	}
	skew = 61 * time.Minute
	if alarms, err := s.Alarms(ctx); err != nil || len(alarms) != 0 {
		t.Errorf("after an hour: %+v %v", alarms, err)
	}
}
