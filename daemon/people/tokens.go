package people

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"nize/daemon/api"
	"nize/store"
	"nize/store/oauth"
)

// Tokens lists tokens, a page at a time.
type Tokens struct {
	Store     oauth.Tokens
	Directory *Directory
	Now       func() time.Time
}

// The default and the maximum number of tokens in a page.
const (
	pageOf  = 50
	maxPage = 500
)

// Page returns the requested page of a query.
func (t *Tokens) Page(ctx context.Context, q oauth.TokenQuery, req api.ListTokensRequest) (none api.TokenPage, err error) {
	if req.Limit < 0 || req.Limit > maxPage {
		return none, fmt.Errorf("%w limit %d: use 1 to %d", store.ErrInvalid, req.Limit, maxPage)
	}
	q.Before, q.Limit, q.Unrevoked = req.Cursor, cmp.Or(req.Limit, pageOf), req.Unrevoked
	list, next, err := t.Store.PageTokens(ctx, q)
	if err != nil {
		return none, fmt.Errorf("listing tokens: %w", err)
	}
	names, err := t.Directory.Names(ctx)
	if err != nil {
		return none, err
	}
	page := api.TokenPage{Items: make([]api.TokenView, len(list)), Next: next}
	for i, token := range list {
		page.Items[i] = api.TokenView{Token: token, State: token.State(t.Now()), UserName: names[token.User]}
	}
	return page, nil
}
