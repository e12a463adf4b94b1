package daemon

import (
	"context"
	"fmt"

	"nize/store"
	"nize/store/database"
	"nize/store/project"
)

// principals are people and projects, as the rules of the gateway look them up: a
// project's calls are judged as those of a member of that id.
type principals struct{ *database.DB }

// GetUser implements [policy.Store].
func (p principals) GetUser(ctx context.Context, id string) (store.User, error) {
	of, ok := project.IDOf(id)
	if !ok {
		return p.DB.GetUser(ctx, id)
	}
	one, err := p.GetProject(ctx, of)
	if err != nil {
		return store.User{}, fmt.Errorf("project %s: %w", of, err)
	}
	return one.User(), nil
}
