package company

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"nize/daemon/api"
	"nize/daemon/failure"
	"nize/daemon/signin"
	"nize/store"
	"nize/store/identity"
	"nize/store/outage"
)

// This is the part of SCIM 2.0 (RFC 7643, RFC 7644) that directories use: people and
// groups, with the attributes that nize stores. Other attributes are accepted and ignored,
// so that a directory may send its whole schema. Requests need a token of the audience scim
// whose owner is an admin.

const (
	scimPath = "/scim/v2"
	scimType = "application/scim+json"
	scimMost = 200 // maximum number of resources in a page
	scimBody = 4 << 20

	schemaUser  = "urn:ietf:params:scim:schemas:core:2.0:User"
	schemaGroup = "urn:ietf:params:scim:schemas:core:2.0:Group"
	schemaList  = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
	schemaError = "urn:ietf:params:scim:api:messages:2.0:Error"
)

// scimError is an error in SCIM's form.
type scimError struct {
	code string // of the table of errors
	kind string // scimType
	text string
}

func (e *scimError) Error() string { return e.text }

func badSCIM(kind, format string, args ...any) error {
	return &scimError{"invalid", kind, fmt.Sprintf(format, args...)}
}

// SCIM serves the requests of a directory.
func (c *Company) SCIM() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, do func(context.Context, store.Caller, *http.Request) (int, any, error)) {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" "+scimPath+path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "no-store")
			r.Body = http.MaxBytesReader(w, r.Body, scimBody)
			by, err := c.directory(r)
			status, answer := 0, any(nil)
			if err == nil {
				status, answer, err = do(r.Context(), by, r)
			}
			if err != nil {
				c.failSCIM(w, err)
				return
			}
			writeSCIM(w, status, answer)
		})
	}
	about := func(v any) func(context.Context, store.Caller, *http.Request) (int, any, error) {
		return func(context.Context, store.Caller, *http.Request) (int, any, error) { return http.StatusOK, v, nil }
	}
	handle("GET /ServiceProviderConfig", about(scimConfig))
	handle("GET /Schemas", about(listOf(scimSchemas)))
	handle("GET /ResourceTypes", about(listOf(scimTypes)))
	handle("GET /Users", c.listUsers)
	handle("POST /Users", c.putUser)
	handle("GET /Users/{id}", c.getUser)
	handle("PUT /Users/{id}", c.putUser)
	handle("PATCH /Users/{id}", c.patchUser)
	handle("DELETE /Users/{id}", func(ctx context.Context, by store.Caller, r *http.Request) (int, any, error) {
		return http.StatusNoContent, nil, c.Store.DeleteSCIMUser(ctx, by, r.PathValue("id"))
	})
	handle("GET /Groups", c.listGroups)
	handle("POST /Groups", c.putGroup)
	handle("GET /Groups/{id}", c.getGroup)
	handle("PUT /Groups/{id}", c.putGroup)
	handle("PATCH /Groups/{id}", c.patchGroup)
	handle("DELETE /Groups/{id}", func(ctx context.Context, by store.Caller, r *http.Request) (int, any, error) {
		return http.StatusNoContent, nil, c.Store.DeleteSCIMGroup(ctx, by, r.PathValue("id"), c.rules())
	})
	return mux
}

// directory returns the caller for a directory's request: the owner of its token.
func (c *Company) directory(r *http.Request) (by store.Caller, err error) {
	text, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	refused := &scimError{"invalid_token", "", "send a token of the audience scim: nizectl tokens create NAME --audience scim"}
	if !ok {
		return by, refused
	}
	hash, err := store.ReadToken(strings.TrimSpace(text))
	if err != nil {
		return by, refused
	}
	t, u, err := c.Store.Authenticate(r.Context(), hash)
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrRefused), errors.Is(err, store.ErrExpired):
		return by, refused
	case err != nil:
		return by, err
	case t.Audience != store.ForSCIM:
		return by, refused
	case u.Role != store.Admin:
		return by, &scimError{"refused", "", "the owner of this token is no admin any more"}
	}
	return store.Caller{User: u.ID, Name: u.Name, Role: u.Role, Surface: store.OnHTTP, Token: t.ID, Address: signin.Address(r)}, nil
}

func writeSCIM(w http.ResponseWriter, status int, v any) {
	if v == nil {
		w.WriteHeader(status)
		return
	}
	w.Header().Set("Content-Type", scimType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the directory disconnected
}

func (c *Company) failSCIM(w http.ResponseWriter, err error) {
	var e *scimError
	retry := 0
	switch {
	case errors.As(err, &e):
	case errors.Is(err, store.ErrNotFound):
		e = &scimError{"not_found", "", "there is no such resource"}
	case errors.Is(err, store.ErrExists):
		e = &scimError{"exists", "uniqueness", "another resource has that name or externalId"}
	case outage.Is(err):
		e, retry = &scimError{"no_database", "", "the database can't be reached; try again later"}, 1
	case errors.Is(err, identity.ErrAmbiguous):
		e = &scimError{"exists", "uniqueness", "several people in nize have that email address: link or remove them"}
	case errors.Is(err, store.ErrInvalid):
		e = &scimError{"invalid", "invalidValue", err.Error()}
	default:
		c.Log.Error("answering the directory", "err", err)
		e = &scimError{"internal", "", "internal error"}
	}
	failure.Form{Type: scimType, Body: func(sent *api.Error) any {
		return map[string]any{"schemas": []string{schemaError}, "status": strconv.Itoa(sent.Status()), "scimType": e.kind, "detail": e.text}
	}}.Write(w, &api.Error{Code: e.code, Message: e.text, Retry: retry})
}

type scimMeta struct {
	Type     string    `json:"resourceType"`
	Created  time.Time `json:"created"`
	Modified time.Time `json:"lastModified"`
	Location string    `json:"location"`
}

type scimName struct {
	Formatted string `json:"formatted,omitempty"`
	Given     string `json:"givenName,omitempty"`
	Family    string `json:"familyName,omitempty"`
}

type scimEmail struct {
	Value   string   `json:"value"`
	Type    string   `json:"type,omitempty"`
	Primary flexBool `json:"primary,omitempty"`
}

// flexBool is a boolean that may be sent as a string, as Entra does.
type flexBool bool

// UnmarshalJSON implements [json.Unmarshaler].
func (b *flexBool) UnmarshalJSON(raw []byte) error {
	switch strings.ToLower(strings.Trim(string(raw), `"`)) {
	case "true":
		*b = true
	case "false", "null", "":
		*b = false
	default:
		return fmt.Errorf("%s is not true or false", store.Clip(string(raw), 40))
	}
	return nil
}

type scimUser struct {
	Schemas  []string    `json:"schemas"`
	ID       string      `json:"id"`
	External string      `json:"externalId,omitempty"`
	UserName string      `json:"userName"`
	Name     *scimName   `json:"name,omitempty"`
	Display  string      `json:"displayName,omitempty"`
	Emails   []scimEmail `json:"emails,omitempty"`
	Active   *flexBool   `json:"active"`
	Meta     *scimMeta   `json:"meta,omitempty"`
}

type scimMember struct {
	Value   string `json:"value"`
	Display string `json:"display,omitempty"`
	Ref     string `json:"$ref,omitempty"`
}

type scimGroup struct {
	Schemas  []string     `json:"schemas"`
	ID       string       `json:"id"`
	External string       `json:"externalId,omitempty"`
	Name     string       `json:"displayName"`
	Members  []scimMember `json:"members,omitempty"`
	Meta     *scimMeta    `json:"meta,omitempty"`
}

func (c *Company) location(kind, id string) string {
	return strings.TrimSuffix(c.Base(), "/") + scimPath + "/" + kind + "/" + id
}

func (c *Company) showUser(s identity.SCIMUser) scimUser {
	active := flexBool(s.Active)
	u := scimUser{Schemas: []string{schemaUser}, ID: s.ID, External: s.External, UserName: s.UserName, Display: s.Display, Active: &active,
		Meta: &scimMeta{"User", s.Created, s.Modified, c.location("Users", s.ID)}}
	if s.Given != "" || s.Family != "" {
		u.Name = &scimName{strings.TrimSpace(s.Given + " " + s.Family), s.Given, s.Family}
	}
	if s.Email != "" {
		u.Emails = []scimEmail{{s.Email, "work", true}}
	}
	return u
}

func (c *Company) showGroup(g identity.SCIMGroup, members []identity.SCIMUser) scimGroup {
	v := scimGroup{Schemas: []string{schemaGroup}, ID: g.ID, External: g.External, Name: g.Name, Meta: &scimMeta{"Group", g.Created, g.Modified, c.location("Groups", g.ID)}}
	for _, m := range members {
		v.Members = append(v.Members, scimMember{m.ID, m.UserName, c.location("Users", m.ID)})
	}
	return v
}

// keep returns s with the attributes of the resource u.
func (u scimUser) keep(s identity.SCIMUser) identity.SCIMUser {
	s.UserName, s.External, s.Display = clean(u.UserName), clean(u.External), clean(u.Display)
	s.Given, s.Family, s.Email = "", "", ""
	if u.Name != nil {
		s.Given, s.Family = clean(u.Name.Given), clean(u.Name.Family)
		if s.Display == "" && s.Given == "" && s.Family == "" {
			s.Display = clean(u.Name.Formatted)
		}
	}
	for _, e := range u.Emails {
		if s.Email == "" || bool(e.Primary) {
			s.Email = clean(e.Value)
		}
	}
	s.Active = u.Active == nil || bool(*u.Active)
	return s
}

var scimFilter = regexp.MustCompile(`^\s*([A-Za-z]+)\s+(?i:eq)\s+("(?:[^"\\]|\\.)*")\s*$`)

// query reads a request's filter and page.
func query(r *http.Request, names ...string) (q identity.SCIMQuery, start int, err error) {
	v := r.URL.Query()
	number := func(name string, otherwise int) (int, error) {
		if v.Get(name) == "" {
			return otherwise, nil
		}
		n, err := strconv.Atoi(v.Get(name))
		if err != nil {
			return 0, badSCIM("invalidValue", "%s is not a number", name)
		}
		return n, nil
	}
	if start, err = number("startIndex", 1); err != nil {
		return q, 0, err
	}
	if q.Limit, err = number("count", 100); err != nil {
		return q, 0, err
	}
	start, q.Limit = max(1, start), min(max(0, q.Limit), scimMost)
	q.Skip = start - 1
	filter := v.Get("filter")
	if filter == "" {
		return q, start, nil
	}
	m := scimFilter.FindStringSubmatch(filter)
	if m == nil || json.Unmarshal([]byte(m[2]), &q.Value) != nil {
		return q, 0, badSCIM("invalidFilter", "use ATTRIBUTE eq \"VALUE\" with one of %s", strings.Join(names, ", "))
	}
	for _, name := range names {
		if strings.EqualFold(name, m[1]) {
			q.Attribute = name
			return q, start, nil
		}
	}
	return q, 0, badSCIM("invalidFilter", "%s can't be filtered by; use one of %s", m[1], strings.Join(names, ", "))
}

func listOf[T any](all []T) any { return page(all, len(all), 1) }

func page[T any](list []T, total, start int) any {
	if list == nil {
		list = []T{}
	}
	return map[string]any{"schemas": []string{schemaList}, "totalResults": total, "startIndex": start, "itemsPerPage": len(list), "Resources": list}
}

func (c *Company) listUsers(ctx context.Context, _ store.Caller, r *http.Request) (int, any, error) {
	q, start, err := query(r, "userName", "externalId", "id")
	if err != nil {
		return 0, nil, err
	}
	list, total, err := c.Store.ListSCIMUsers(ctx, q)
	var out []scimUser
	for _, s := range list {
		out = append(out, c.showUser(s))
	}
	return http.StatusOK, page(out, total, start), err
}

func (c *Company) getUser(ctx context.Context, _ store.Caller, r *http.Request) (int, any, error) {
	s, err := c.Store.GetSCIMUser(ctx, r.PathValue("id"))
	return http.StatusOK, c.showUser(s), err
}

// putUser creates a person, or replaces the one whose id is in the path.
func (c *Company) putUser(ctx context.Context, by store.Caller, r *http.Request) (int, any, error) {
	var u scimUser
	if err := json.NewDecoder(r.Body).Decode(&u); err != nil {
		return 0, nil, badSCIM("invalidSyntax", "the body is not a User: %v", err)
	}
	c.people.Lock()
	defer c.people.Unlock()
	return c.saveUser(ctx, by, u.keep(identity.SCIMUser{ID: r.PathValue("id")}))
}

func (c *Company) saveUser(ctx context.Context, by store.Caller, s identity.SCIMUser) (int, any, error) {
	if s.UserName == "" {
		return 0, nil, badSCIM("invalidValue", "userName is needed")
	}
	status := http.StatusOK
	if s.ID == "" {
		status = http.StatusCreated
	}
	p, _, err := c.Provider(ctx)
	if err != nil {
		return 0, nil, err
	}
	s, err = c.Store.PutSCIMUser(ctx, by, s, p.Issuer, c.rules())
	return status, c.showUser(s), err
}

func (c *Company) listGroups(ctx context.Context, _ store.Caller, r *http.Request) (int, any, error) {
	q, start, err := query(r, "displayName", "externalId", "id")
	if err != nil {
		return 0, nil, err
	}
	list, total, err := c.Store.ListSCIMGroups(ctx, q)
	var out []scimGroup
	for _, g := range list {
		out = append(out, c.showGroup(g, nil)) // members are returned only for a single group
	}
	return http.StatusOK, page(out, total, start), err
}

func (c *Company) getGroup(ctx context.Context, _ store.Caller, r *http.Request) (int, any, error) {
	return c.groupNow(ctx, http.StatusOK, r.PathValue("id"), strings.Contains(r.URL.Query().Get("excludedAttributes"), "members"))
}

func (c *Company) groupNow(ctx context.Context, status int, id string, bare bool) (int, any, error) {
	g, members, err := c.Store.GetSCIMGroup(ctx, id)
	if bare {
		members = nil
	}
	return status, c.showGroup(g, members), err
}

// putGroup creates a group, or replaces the one whose id is in the path.
func (c *Company) putGroup(ctx context.Context, by store.Caller, r *http.Request) (int, any, error) {
	var g scimGroup
	if err := json.NewDecoder(r.Body).Decode(&g); err != nil {
		return 0, nil, badSCIM("invalidSyntax", "the body is not a Group: %v", err)
	}
	name, external := clean(g.Name), clean(g.External)
	change := identity.SCIMGroupChange{ID: r.PathValue("id"), Name: &name, External: &external, Replace: true}
	for _, m := range g.Members {
		change.Add = append(change.Add, m.Value)
	}
	status := http.StatusOK
	if change.ID == "" {
		status = http.StatusCreated
	}
	made, err := c.Store.ChangeSCIMGroup(ctx, by, change, c.rules())
	if err != nil {
		return 0, nil, err
	}
	return c.groupNow(ctx, status, made.ID, false)
}

func text(s string) map[string]any {
	return map[string]any{"type": "string", "name": s, "multiValued": false}
}

var (
	supported   = map[string]any{"supported": true}
	unsupported = map[string]any{"supported": false}
	scimConfig  = map[string]any{
		"schemas": []string{"urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"}, "patch": supported, "bulk": map[string]any{"supported": false, "maxOperations": 0, "maxPayloadSize": 0},
		"filter": map[string]any{"supported": true, "maxResults": scimMost}, "changePassword": unsupported, "sort": unsupported, "etag": unsupported,
		"authenticationSchemes": []any{map[string]any{"type": "oauthbearertoken", "name": "Bearer token", "description": "nizectl tokens create NAME --audience scim", "primary": true}},
	}
	scimTypes = []any{
		map[string]any{"schemas": []string{"urn:ietf:params:scim:schemas:core:2.0:ResourceType"}, "id": "User", "name": "User", "endpoint": "/Users", "schema": schemaUser},
		map[string]any{"schemas": []string{"urn:ietf:params:scim:schemas:core:2.0:ResourceType"}, "id": "Group", "name": "Group", "endpoint": "/Groups", "schema": schemaGroup},
	}
	scimSchemas = []any{
		map[string]any{"id": schemaUser, "name": "User", "attributes": []any{text("userName"), text("externalId"), text("displayName"),
			map[string]any{"type": "complex", "name": "name", "multiValued": false, "subAttributes": []any{text("givenName"), text("familyName"), text("formatted")}},
			map[string]any{"type": "complex", "name": "emails", "multiValued": true, "subAttributes": []any{text("value"), text("type")}},
			map[string]any{"type": "boolean", "name": "active", "multiValued": false}}},
		map[string]any{"id": schemaGroup, "name": "Group", "attributes": []any{text("displayName"), text("externalId"),
			map[string]any{"type": "complex", "name": "members", "multiValued": true, "subAttributes": []any{text("value"), text("display")}}}},
	}
)
