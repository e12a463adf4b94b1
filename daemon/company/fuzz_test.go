package company

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"nize/store/identity"
)

// FuzzClaims checks that text from any claims is valid and within its limits.
func FuzzClaims(f *testing.F) {
	f.Add(`{"name":"Ana","email":"a@b.example","email_verified":"true","groups":["x","y"]}`, "groups")
	f.Add(`{"email":"a@b.example","email_verified":1,"realm_access":{"roles":"x"}}`, "realm_access.roles")
	f.Add(`{"groups":[1,null]}`, "groups")
	f.Fuzz(func(t *testing.T, body, claim string) {
		var c claims
		if json.Unmarshal([]byte(body), &c) != nil {
			return
		}
		p, err := readPerson("https://idp.example", "sub", c, claim)
		if err != nil {
			return
		}
		if p.Name == "" || !utf8.ValidString(p.Name) || len(p.Groups) > identity.MaxGroups || !p.GroupsKnown && len(p.Groups) > 0 {
			t.Errorf("%+v", p)
		}
		if p.Email != "" && !c.yes("email_verified") {
			t.Errorf("the address %q is not verified", p.Email)
		}
	})
}

// FuzzPatch checks that no request body causes a panic or invalid text.
func FuzzPatch(f *testing.F) {
	f.Add(`{"Operations":[{"op":"Replace","path":"active","value":"False"}]}`)
	f.Add(`{"Operations":[{"op":"replace","value":{"name":{"givenName":"x"},"emails":[{"value":"a@b"}]}}]}`)
	f.Add(`{"Operations":[{"op":"remove","path":"members[value eq \"1\"]"},{"op":"add","path":"members","value":{"value":"2"}}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		ops, err := operations(httptest.NewRequest(http.MethodPatch, "/", strings.NewReader(body)))
		if err != nil {
			return
		}
		s, g := identity.SCIMUser{UserName: "x", Active: true}, groupChange{ID: "1"}
		for _, op := range ops {
			list, err := op.assignments()
			if err != nil {
				continue
			}
			for _, a := range list {
				_ = assign(&s, a) // an error is a valid result, too
				_ = g.assign(op.Op, a)
			}
		}
		if !utf8.ValidString(s.UserName + s.Display + s.Email) {
			t.Errorf("%+v", s)
		}
	})
}
