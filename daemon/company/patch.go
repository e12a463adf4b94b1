package company

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"nize/store"
	"nize/store/identity"
	"nize/store/printable"
)

// clean returns a value of a directory with surrounding space removed and invisible
// characters escaped.
func clean(s string) string {
	return printable.Escape(strings.TrimSpace(strings.ToValidUTF8(s, "")))
}

// operation is one operation of a PATCH request.
type operation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value"`
}

// maxOperations is the maximum number in one request.
const maxOperations = 10_000

func operations(r *http.Request) ([]operation, error) {
	var body struct {
		Operations []operation `json:"Operations"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return nil, badSCIM("invalidSyntax", "the body is not a PatchOp: %v", err)
	}
	if len(body.Operations) == 0 || len(body.Operations) > maxOperations {
		return nil, badSCIM("invalidSyntax", "Operations needs 1 to %d operations", maxOperations)
	}
	for i := range body.Operations {
		op := &body.Operations[i]
		op.Op = strings.ToLower(op.Op)
		if !slices.Contains([]string{"add", "replace", "remove"}, op.Op) {
			return nil, badSCIM("invalidSyntax", "op is not add, replace or remove")
		}
	}
	return body.Operations, nil
}

// assignment is an attribute and its new value; nil removes the attribute.
type assignment struct {
	path  string
	value json.RawMessage
}

// assignments splits an operation into attributes. Without a path, the value is an object
// of attributes: Okta sends this form, and Entra uses it with names such as name.givenName.
func (op operation) assignments() ([]assignment, error) {
	value := op.Value
	if op.Op == "remove" {
		value = nil
	}
	if op.Path != "" {
		return []assignment{{op.Path, value}}, nil
	}
	var all map[string]json.RawMessage
	if op.Op == "remove" || json.Unmarshal(op.Value, &all) != nil {
		return nil, badSCIM("noTarget", "an operation without a path needs an object of attributes")
	}
	var list []assignment
	for path, v := range all {
		var inner map[string]json.RawMessage
		if strings.EqualFold(path, "name") && json.Unmarshal(v, &inner) == nil {
			for name, v := range inner {
				list = append(list, assignment{"name." + name, v})
			}
			continue
		}
		list = append(list, assignment{path, v})
	}
	return list, nil
}

// patchUser changes attributes of a person.
func (c *Company) patchUser(ctx context.Context, by store.Caller, r *http.Request) (int, any, error) {
	ops, err := operations(r)
	if err != nil {
		return 0, nil, err
	}
	c.people.Lock() // otherwise concurrent changes could overwrite each other, and re-enable a person who left
	defer c.people.Unlock()
	s, err := c.Store.GetSCIMUser(ctx, r.PathValue("id"))
	if err != nil {
		return 0, nil, err
	}
	for _, op := range ops {
		list, err := op.assignments()
		if err != nil {
			return 0, nil, err
		}
		for _, a := range list {
			if err := assign(&s, a); err != nil {
				return 0, nil, err
			}
		}
	}
	return c.saveUser(ctx, by, s)
}

// assign sets one attribute. It ignores attributes that nize doesn't store.
func assign(s *identity.SCIMUser, a assignment) error {
	path := strings.ToLower(strings.TrimPrefix(a.path, schemaUser+":"))
	text := map[string]*string{"username": &s.UserName, "externalid": &s.External, "displayname": &s.Display, "name.givenname": &s.Given, "name.familyname": &s.Family}[path]
	switch {
	case text != nil:
		var v string
		if a.value != nil && string(a.value) != "null" && json.Unmarshal(a.value, &v) != nil {
			return badSCIM("invalidValue", "%s is not a text", store.Clip(a.path, 60))
		}
		*text = clean(v)
	case path == "active":
		var v flexBool
		if a.value == nil || json.Unmarshal(a.value, &v) != nil {
			return badSCIM("invalidValue", "active is not true or false")
		}
		s.Active = bool(v)
	case path == "emails" || strings.HasPrefix(path, "emails["):
		var one string
		var many []scimEmail
		switch {
		case a.value == nil || string(a.value) == "null":
			s.Email = ""
		case strings.HasSuffix(path, "].value") && json.Unmarshal(a.value, &one) == nil:
			s.Email = clean(one)
		case json.Unmarshal(a.value, &many) == nil:
			s.Email = scimUser{Emails: many}.keep(identity.SCIMUser{}).Email
		}
	}
	return nil
}

var oneMember = regexp.MustCompile(`^(?i:members)\[\s*(?i:value)\s+(?i:eq)\s+"([^"]{1,200})"\s*\]$`)

// patchGroup changes a group. It applies all operations in order, as one change.
func (c *Company) patchGroup(ctx context.Context, by store.Caller, r *http.Request) (int, any, error) {
	ops, err := operations(r)
	if err != nil {
		return 0, nil, err
	}
	change := groupChange{ID: r.PathValue("id")}
	for _, op := range ops {
		if m := oneMember.FindStringSubmatch(op.Path); m != nil && op.Op == "remove" {
			change.takeOut(m[1])
			continue
		}
		list := []assignment{{op.Path, op.Value}}
		if op.Path == "" {
			if list, err = op.assignments(); err != nil {
				return 0, nil, err
			}
		}
		for _, a := range list {
			if err := change.assign(op.Op, a); err != nil {
				return 0, nil, err
			}
		}
	}
	g, err := c.Store.ChangeSCIMGroup(ctx, by, identity.SCIMGroupChange(change), c.rules())
	if err != nil {
		return 0, nil, err
	}
	return c.groupNow(ctx, http.StatusOK, g.ID, true)
}

// groupChange collects the changes of a request's operations.
type groupChange identity.SCIMGroupChange

func (g *groupChange) putIn(id string) {
	g.Out = slices.DeleteFunc(g.Out, func(other string) bool { return other == id })
	g.Add = append(g.Add, id)
}

func (g *groupChange) takeOut(id string) {
	g.Add = slices.DeleteFunc(g.Add, func(other string) bool { return other == id })
	g.Out = append(g.Out, id)
}

// assign applies an operation to one attribute.
func (g *groupChange) assign(op string, a assignment) error {
	switch strings.ToLower(strings.TrimPrefix(a.path, schemaGroup+":")) {
	case "displayname", "externalid":
		var v string
		if a.value != nil && json.Unmarshal(a.value, &v) != nil {
			return badSCIM("invalidValue", "%s is not a text", store.Clip(a.path, 60))
		}
		if v = clean(v); strings.EqualFold(a.path, "externalId") {
			g.External = &v
		} else {
			g.Name = &v
		}
	case "members":
		var members []scimMember
		if len(a.value) > 0 && string(a.value) != "null" {
			var one scimMember
			if json.Unmarshal(a.value, &members) != nil {
				if json.Unmarshal(a.value, &one) != nil {
					return badSCIM("invalidValue", "members is not a list of {value}")
				}
				members = []scimMember{one}
			}
		}
		if op == "replace" || op == "remove" && len(members) == 0 {
			g.Replace, g.Add, g.Out = true, nil, nil
		}
		for _, m := range members {
			if op == "remove" {
				g.takeOut(m.Value)
			} else {
				g.putIn(m.Value)
			}
		}
	}
	return nil
}
