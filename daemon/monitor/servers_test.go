package monitor

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"

	"nize/daemon/alert"
	"nize/store"
)

// TestLoginLost: whose login it is, and what that person or an admin does about it.
func TestLoginLost(t *testing.T) {
	far := store.Server{Name: "far", Headers: map[string]store.Value{"Authorization": {SecretKey: store.LoginName}}}
	for _, test := range []struct {
		owner, title, cure string
		users              []string
	}{
		{"", "No one is signed in to server far", "nizectl servers login far", nil},
		{"u1", "Ann is no longer signed in to server far", "/nize credentials connect far", []string{"u1"}},
		{"team:slack:T1", "team:slack:T1 is no longer signed in to server far", "nizectl servers login far --team slack:T1", nil},
	} {
		a := loginLost(far, store.ParseHolder(test.owner), "Ann")
		if a.Title.String() != test.title || a.Cure != test.cure || !slices.Equal(a.Users, test.users) {
			t.Errorf("%q: %q, %q, %q", test.owner, a.Title, a.Cure, a.Users)
		}
	}
}

// taker is a destination that takes everything, or nothing.
type taker struct{ err error }

func (n taker) Notify(context.Context, store.Incident) (string, error) { return "m1", n.err }

// TestOwnersAreTold: when what is theirs begins, beside the destination; what fails
// there is no reason to send the alert again.
func TestOwnersAreTold(t *testing.T) {
	for _, test := range []struct {
		kind  string
		state store.IncidentState
		err   error
		want  int
	}{
		{alert.LoginLost, store.IncidentOpen, nil, 1},
		{alert.TokenEnds, store.IncidentOpen, nil, 1},
		{alert.LoginLost, store.IncidentRecovered, nil, 0},
		{alert.ServerDown, store.IncidentOpen, nil, 0},
		{alert.LoginLost, store.IncidentOpen, errors.New("not now"), 0},
	} {
		told := 0
		a := &Alerts{Log: slog.New(slog.DiscardHandler), Owner: func(context.Context, store.Incident) error { told++; return errors.New("no chat") }}
		handle, err := withOwners{taker{test.err}, a}.Notify(t.Context(), store.Incident{Kind: test.kind, State: test.state})
		if handle != "m1" || err != test.err || told != test.want {
			t.Errorf("%s %s: handle %q, error %v, told %d times", test.kind, test.state, handle, err, told)
		}
	}
}
