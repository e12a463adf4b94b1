package people

import (
	"context"
	"testing"
	"time"

	"nize/store"
	"nize/store/database"
	"nize/store/database/databasetest"
)

// runStreams follows the feed until the test calls stop.
func runStreams(t *testing.T, l *Streams, db *database.DB) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx, db) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// Who is disabled before the feed is followed loses a stream that began earlier,
// too: the first connections come while a daemon starts.
func TestStreamsBeforeTheFeed(t *testing.T) {
	db := databasetest.Open(t)
	u, err := db.EnsureUser(t.Context(), "local:1", "mia", store.Member)
	if err != nil {
		t.Fatal(err)
	}
	l := NewStreams(db, nil)
	stream, end := context.WithCancel(t.Context())
	defer end()
	defer l.Watch(stream, store.Caller{User: u.ID, Role: u.Role}, end)()
	u.State = store.Disabled
	if err := db.PutUser(t.Context(), store.System, u); err != nil || stream.Err() != nil {
		t.Fatal(err, stream.Err())
	}
	defer runStreams(t, l, db)()
	select {
	case <-stream.Done():
	case <-time.After(time.Minute):
		t.Error("the stream goes on")
	}
}

// A stream ends when its person is disabled, lowered, removed or joined with
// somebody, also if that happens before it was noted; others go on.
func TestStreams(t *testing.T) {
	db := databasetest.Open(t)
	l := NewStreams(db, nil)
	defer runStreams(t, l, db)()
	person := func(identity string, role store.Role) store.User {
		t.Helper()
		u, err := db.EnsureUser(t.Context(), identity, identity, role)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	person("local:0", store.Admin)
	listen := func(u store.User) context.Context {
		ctx, end := context.WithCancel(t.Context())
		t.Cleanup(end)
		t.Cleanup(l.Watch(ctx, store.Caller{User: u.ID, Role: u.Role}, end))
		return ctx
	}
	bystander := listen(person("local:1", store.Member))
	for what, change := range map[string]func(store.User) error{
		"disabled": func(u store.User) error { u.State = store.Disabled; return db.PutUser(t.Context(), store.System, u) },
		"lowered":  func(u store.User) error { u.Role = store.Member; return db.PutUser(t.Context(), store.System, u) },
		"removed":  func(u store.User) error { return db.RemoveUser(t.Context(), store.System, u.ID) },
		"joined": func(u store.User) error {
			_, hash := store.NewCode()
			if _, err := db.PutLink(t.Context(), store.System, u.ID, hash); err != nil {
				return err
			}
			_, err := db.Join(t.Context(), store.Caller{User: person("local:0", store.Admin).ID, Role: store.Admin}, hash, store.Admin)
			return err
		},
	} {
		u := person("slack:T:"+what, store.Admin)
		stream := listen(u)
		if stream.Err() != nil {
			t.Errorf("%s: the stream ended before", what)
		}
		if err := change(u); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		select {
		case <-stream.Done():
		case <-time.After(time.Minute): // it should take two seconds; a busy machine may take longer
			t.Errorf("%s: the stream goes on", what)
		}
		if late := listen(u); late.Err() == nil {
			t.Errorf("%s: a stream that begins then goes on", what)
		}
	}
	if bystander.Err() != nil {
		t.Error("somebody else's stream ended")
	}
}
