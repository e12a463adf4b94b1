package people

import (
	"context"
	"errors"
	"fmt"

	"nize/daemon/api"
	"nize/daemon/module"
	"nize/daemon/mux"
	"nize/store"
)

// Leavers implements the operations that remove, erase and export a person.
type Leavers struct {
	Store   leaverStore
	Records RecordStore
	Modules []module.Module // which store more about people
	Users   *Users
	// Feedback is what the index learned from people's searches.
	Feedback interface {
		DropSearches(users ...string)
		Load(ctx context.Context) error
	}
}

// Mount registers the operations.
func (l *Leavers) Mount(m *mux.Mux) {
	mux.Handle(m, api.RemoveUser, l.Remove)
	mux.HandleStream(m, api.ExportUser, l.Export)
	mux.Handle(m, api.ForgetUser, l.Forget)
}

type leaverStore interface {
	store.Leavers
	GetUser(ctx context.Context, id string) (store.User, error)
	AddEvent(by store.Caller, e store.Event)
	Flush(ctx context.Context) error
}

// Remove ends a person's access and returns the user as it was.
func (l *Leavers) Remove(ctx context.Context, by store.Caller, req api.RemoveUserRequest) (none api.UserView, err error) {
	u, err := l.Users.Directory.Find(ctx, req.ID)
	if err != nil {
		return none, err
	}
	was, err := l.Users.view(ctx, u)
	if err != nil {
		return none, err
	}
	if err := l.Store.RemoveUser(ctx, by, u.ID); err != nil {
		return none, fmt.Errorf("user %s: %w", u.Name, err)
	}
	return was, nil
}

// find returns a user, or a removed one by id.
func (l *Leavers) find(ctx context.Context, who string) (store.User, error) {
	u, err := l.Users.Directory.Find(ctx, who)
	if !errors.Is(err, store.ErrNotFound) {
		return u, err
	}
	ids, ok, removedErr := l.Store.RemovedUser(ctx, who)
	if removedErr != nil {
		return u, removedErr
	}
	if !ok {
		return u, err
	}
	return store.User{ID: ids[0], Aliases: ids[1:]}, nil
}

// Forget erases a person's data.
func (l *Leavers) Forget(ctx context.Context, by store.Caller, req api.ForgetUserRequest) (none store.Forgotten, err error) {
	u, err := l.find(ctx, req.ID)
	if err != nil {
		return none, err
	}
	l.Feedback.DropSearches(append([]string{u.ID}, u.Aliases...)...)
	f, err := l.Store.ForgetUser(ctx, by, u.ID, l.erase)
	if err != nil {
		return none, fmt.Errorf("forgetting %s: %w", req.ID, err)
	}
	return f, l.Feedback.Load(ctx)
}

// erase implements [store.Eraser] over the modules.
func (l *Leavers) erase(ctx context.Context, users []string, f *store.Forgotten) error {
	for _, m := range l.Modules {
		if m.Erase == nil {
			continue
		}
		if err := m.Erase(ctx, users, f); err != nil {
			return err
		}
	}
	return nil
}

// Export sends all data about a person, except secrets. Exporting one's own data needs no
// reason.
func (l *Leavers) Export(ctx context.Context, by store.Caller, req api.ExportUserRequest, send func(api.UserRecord) error) error {
	u, err := l.exported(ctx, by, req.ID)
	if err != nil {
		return err
	}
	if u.ID != by.User && req.Reason == "" {
		return fmt.Errorf("%w export: it contains what %s wrote; give a reason with --reason, which is kept in the audit", store.ErrInvalid, req.ID)
	}
	if err := NoteReading(ctx, l.Store, by, "user.export", u.ID, req.Reason); err != nil { // the event must be recorded first, and the newest calls must be included
		return err
	}
	e := &exporter{store: l.Records, user: u, send: send}
	if err := e.export(ctx, l.Users.Directory.Memberships); err != nil {
		return err
	}
	for _, m := range l.Modules {
		if m.Export == nil {
			continue
		}
		if err := m.Export(ctx, e.known(), e.put); err != nil {
			return err
		}
	}
	return nil
}

// exported returns the person to export; for a member, only themselves.
func (l *Leavers) exported(ctx context.Context, by store.Caller, who string) (store.User, error) {
	if by.IsAdmin() {
		return l.find(ctx, who)
	}
	u, err := l.Store.GetUser(ctx, by.User)
	if err != nil {
		return u, fmt.Errorf("reading user %s: %w", by.User, err)
	}
	if who != u.ID && who != u.Name && !hasIdentity(u, who) {
		return u, store.Mark(fmt.Errorf("only admins may manage other people's records"), store.ErrRefused)
	}
	return u, nil
}
