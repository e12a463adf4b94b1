package daemon

import (
	"context"
	"fmt"

	"nize/store"
	"nize/store/database"
	"nize/store/project"
)

// principals looks up people and projects for the gateway's rules: a project's calls are
// treated as those of a member with the project's id.
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
