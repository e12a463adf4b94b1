package store

import (
	"fmt"
	"strings"
)

// Auth selects whose credentials a server is called with.
type Auth string

const (
	AuthAny  Auth = ""            // the requester's own, else their team's, else the shared one
	AuthUser Auth = "user-apikey" // only the requester's own
	AuthTeam Auth = "team-apikey" // only their team's

	// The same, if the credential is a login at the server.
	AuthUserLogin Auth = "user-oauth"
	AuthTeamLogin Auth = "team-oauth"
)

// Login reports whether a call needs a login.
func (a Auth) Login() bool { return a == AuthUserLogin || a == AuthTeamLogin }

// ParseAuth parses the auth of a server; "none" is the default.
func ParseAuth(text string) (Auth, error) {
	switch a := Auth(strings.TrimSpace(text)); a {
	case AuthAny, AuthUser, AuthTeam, AuthUserLogin, AuthTeamLogin:
		return a, nil
	case "none":
		return AuthAny, nil
	}
	return "", fmt.Errorf("%w auth %q: use none, %s, %s, %s or %s", ErrInvalid, text, AuthUser, AuthTeam, AuthUserLogin, AuthTeamLogin)
}

// Holder owns credentials: a user, a project, a team, or nize itself.
type Holder struct {
	Scope string // user, project, team or system
	Owner string // "" for system
}

// Key returns the key of the holder's credential for a service.
func (h Holder) Key(service, name string) CredentialKey {
	return CredentialKey{Scope: h.Scope, Owner: h.Owner, Service: service, Name: name}
}

// Label returns the user's id, team:ID, project:ID, or "" for nize itself. User ids contain
// no colon, so labels are unambiguous.
func (h Holder) Label() string {
	if h.Scope == "team" || h.Scope == "project" {
		return h.Scope + ":" + h.Owner
	}
	return h.Owner
}

// ParseHolder parses a [Holder.Label].
func ParseHolder(lane string) Holder {
	if scope, owner, ok := strings.Cut(lane, ":"); ok && (scope == "team" || scope == "project") {
		return Holder{scope, owner}
	}
	if lane == "" {
		return Holder{"system", ""}
	}
	return Holder{"user", lane}
}

// Holders returns the holders whose credentials a call of the user may use, in order of
// preference.
func (a Auth) Holders(user string, teams []string) []Holder {
	var list []Holder
	if a != AuthTeam && a != AuthTeamLogin && user != "" && user != System.User {
		list = append(list, Holder{"user", user})
	}
	if a != AuthUser && a != AuthUserLogin {
		for _, t := range teams {
			list = append(list, Holder{"team", t})
		}
	}
	if a == AuthAny {
		list = append(list, Holder{"system", ""})
	}
	return list
}

// LoginName is the name under which a login at a server is stored as a credential. A server
// that is called with logins has this credential in its header Authorization.
const LoginName = "oauth"

// LoginNeeded returns the error for a call that needs a login.
func LoginNeeded(server string, a Auth) *CallError {
	text := Textf("%s is not connected for you: /nize credentials connect %s", server, server)
	if a == AuthTeamLogin {
		text = Textf("%s is not connected for your team: an admin connects it with nizectl servers login %s --team TEAM", server, server)
	}
	return &CallError{Code: CodeUnavailable, Message: text}
}

// NotConnected returns the error for a call whose credential is not set.
func NotConnected(server, name string, a Auth) *CallError {
	if name == LoginName {
		return LoginNeeded(server, a)
	}
	text := fmt.Sprintf("server %s is not connected for you: set your own key with nizectl credentials set %s %s --scope user", server, server, name)
	if a == AuthTeam {
		text = fmt.Sprintf("server %s is not connected for your team: an admin sets its key with nizectl credentials set %s %s --scope team --owner TEAM", server, server, name)
	}
	return &CallError{Code: CodeRefused, Message: Plain(text)}
}
