package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"nize/store"
)

// credentials says as whom a call runs and who may therefore press: a server
// that runs on a shared credential is for admins to approve, unless its caller
// brings credentials of their own (SPEC 11).
func (g *Gateway) credentials(ctx context.Context, by store.Caller, e *entry) (runsAs string, p store.Policy, err error) {
	names := e.secrets()
	if len(names) == 0 {
		return "no credential", store.ByRequester, nil
	}
	for _, n := range names {
		_, err := g.opt.Store.GetCredential(ctx, store.CredentialKey{Scope: "user", Owner: by.User, Service: e.Server, Name: n})
		if errors.Is(err, store.ErrNotFound) {
			return "the shared credential " + strings.Join(names, ", "), store.ByAdmins, nil
		}
		if err != nil {
			return "", "", fmt.Errorf("reading credential %s of %s: %w", n, e.Server, err)
		}
	}
	return "the requester's own credential " + strings.Join(names, ", "), store.ByRequester, nil
}

// may says whether the caller may say this of the call: yes is for whom the
// policy names, no also for the requester and for admins.
func may(by store.Caller, c store.Call, verb store.Verb) bool {
	named := by.User == c.By
	if c.Policy == store.ByAdmins {
		named = by.IsAdmin()
	}
	switch verb {
	case store.Approve, store.Edit:
		return named
	case store.Deny, store.Cancel:
		return named || by.User == c.By || by.IsAdmin()
	}
	return false
}

// sees says whether the caller may look at the call at all.
func sees(by store.Caller, c store.Call) bool {
	return by.User == c.By || by.IsAdmin()
}
