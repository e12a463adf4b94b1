package people

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"nize/bots/slack/slacktest"
	"nize/bots/slack/wire"
	"nize/bots/sweep"
	"nize/store"
	"nize/store/database/databasetest"
)

// sweepScene is people whom nize knows and a bot that looks them up.
type sweepScene struct {
	t    *testing.T
	fake *slacktest.Server
	db   store.DB
	d    *Directory
	now  time.Time
}

func newSweepScene(t *testing.T) *sweepScene {
	db := databasetest.Open(t)
	fake := slacktest.Running(t, slacktest.Options{Unlimited: true, Patience: time.Minute})
	soon := func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	s := &sweepScene{t: t, fake: fake, db: db, now: time.Now()}
	s.d = New(Options{
		Wire:  wire.New(wire.Options{URL: fake.APIURL(), Wait: soon}, store.NewSecret(fake.BotToken()), store.Secret{}),
		Store: db, Config: store.Defaults{}, Now: func() time.Time { return s.now }, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Team: slacktest.Team,
	})
	return s
}

func (s *sweepScene) user(identities ...string) store.User {
	s.t.Helper()
	for i, id := range identities {
		if id[0] == 'U' {
			identities[i] = "slack:" + slacktest.Team + ":" + id
		}
	}
	u, err := s.db.AddUser(s.t.Context(), store.System, store.User{Name: identities[0], Role: store.Member, Identities: identities})
	if err != nil {
		s.t.Fatal(err)
	}
	return u
}

// leave switches an account off without telling anybody.
func (s *sweepScene) leave(id string) {
	s.fake.AddUser(slacktest.User{ID: id, Name: id, Deleted: true})
}

func (s *sweepScene) active(u store.User) bool {
	s.t.Helper()
	got, err := s.db.GetUser(s.t.Context(), u.ID)
	if err != nil {
		s.t.Fatal(err)
	}
	return got.State == store.Active
}

func (s *sweepScene) last() store.Sweep {
	s.t.Helper()
	got, err := s.db.GetSweep(s.t.Context(), store.OnSlack)
	if err != nil {
		s.t.Fatal(err)
	}
	return got
}

// Who was switched off is disabled, where it was their last identity that lives;
// guests, strangers, people whom Slack does not know, and the last admin stay.
func TestSweep(t *testing.T) {
	s := newSweepScene(t)
	boss := s.user("U0BOSS")
	boss.Role = store.Admin
	if err := s.db.PutUser(t.Context(), store.System, boss); err != nil {
		t.Fatal(err)
	}
	gone, twice, half := s.user("U0GONE"), s.user("U0TWO1", "U0TWO2"), s.user("U0HALF", slacktest.Cho)
	local, elsewhere := s.user("U0LOCAL", "local:1001"), s.user("slack:T0OTHER:U0GONE2")
	for _, id := range []string{"U0BOSS", "U0GONE", "U0TWO1", "U0TWO2", "U0HALF", "U0LOCAL", "U0GONE2"} {
		s.leave(id)
	}
	stay := []store.User{s.user(slacktest.Ben), s.user(slacktest.Guest), s.user("U0NOBODY"), s.user("named:mia"), half, local, elsewhere, boss}
	if err := s.d.sweeps.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, u := range []store.User{gone, twice} {
		if s.active(u) {
			t.Errorf("%s stays", u.Name)
		}
	}
	for _, u := range stay {
		if !s.active(u) {
			t.Errorf("%s was disabled", u.Name)
		}
	}
	got := s.last()
	left := slices.Sorted(slices.Values(got.Disabled)) // ids of one millisecond have no order
	if got.UnderWay() || got.Checked != 9 || got.Failed != 1 || !slices.Equal(left, slices.Sorted(slices.Values([]string{gone.ID, twice.ID}))) {
		t.Errorf("the sweep: %+v", got)
	}
	events, err := s.db.Events(t.Context(), store.EventQuery{Kind: "bot.sweep", Limit: 10})
	if err != nil || len(events) != 1 {
		t.Errorf("%d events of it, %v", len(events), err)
	}
	if d := s.d.sweeps.Until(got); d < sweep.Every || d > sweep.Every+sweep.Spread {
		t.Errorf("the next one in %v", d)
	}
	s.now = s.now.Add(3 * sweep.Every)
	if d := s.d.sweeps.Until(got); d > 0 {
		t.Errorf("one that is due comes in %v", d)
	}
}

// A Slack that fails disables nobody and is left alone; what was looked up is
// not looked up again.
func TestSweepFails(t *testing.T) {
	s := newSweepScene(t)
	var all []store.User
	for n := range 30 {
		id := fmt.Sprintf("U0MANY%02d", n)
		s.fake.AddUser(slacktest.User{ID: id, Name: id})
		all = append(all, s.user(id))
	}
	s.leave("U0MANY29")
	calls := func() int { return s.fake.Stats().Calls["users.info"] }
	if err := s.d.sweeps.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := calls(); n != 30 {
		t.Errorf("%d look-ups of 30 people", n)
	}
	if s.active(all[29]) || !s.active(all[28]) {
		t.Error("who left stays, or another went")
	}

	s.now = s.now.Add(sweep.Every)
	before := s.last()
	s.fake.Fail("users.info", slacktest.Fault{Times: 100, Error: "internal_error"})
	if err := s.d.sweeps.Sweep(t.Context()); !errors.Is(err, sweep.ErrSilent) {
		t.Errorf("while Slack fails: %v", err)
	}
	if n := calls() - 30; n != sweep.MaxFails {
		t.Errorf("%d look-ups while Slack fails", n)
	}
	if got := s.last(); !got.UnderWay() || !got.Ended.Equal(before.Ended) || len(got.Disabled) > 0 {
		t.Errorf("the sweep that failed: %+v", got)
	}
	if s.d.sweeps.Until(s.last()) != 0 {
		t.Error("what is under way is not due")
	}

	// Halfway through, and another start: it goes on where it was.
	s = newSweepScene(t)
	for n := range 30 {
		id := fmt.Sprintf("U0MANY%02d", n)
		s.fake.AddUser(slacktest.User{ID: id, Name: id})
		all[n] = s.user(id)
	}
	slices.SortFunc(all, func(a, b store.User) int { return strings.Compare(a.ID, b.ID) })
	err := s.db.PutSweep(t.Context(), store.System, store.Sweep{Surface: store.OnSlack, Team: slacktest.Team, Began: s.now, After: all[19].ID, Checked: 20})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.d.sweeps.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.last(); got.UnderWay() || got.Checked != 30 || calls() != 10 {
		t.Errorf("the sweep that went on: %+v with %d look-ups", got, calls())
	}

	// That of another workspace is none of this one.
	err = s.db.PutSweep(t.Context(), store.System, store.Sweep{Surface: store.OnSlack, Team: "T0OTHER", Began: s.now, After: "Z"})
	if err != nil {
		t.Fatal(err)
	}
	s.now = s.now.Add(Recent)
	if err := s.d.sweeps.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.last(); got.Checked != 30 || got.Team != slacktest.Team {
		t.Errorf("the sweep of this workspace: %+v", got)
	}
}
