package company

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"nize/store"
	"nize/store/identity"
	"nize/store/printable"
)

// claims are a provider's claims about a person, by name.
type claims map[string]json.RawMessage

func (c claims) text(name string) string {
	var s string
	if json.Unmarshal(c[name], &s) != nil {
		return ""
	}
	return s
}

// yes returns the value of a boolean claim, which some providers send as a string.
func (c claims) yes(name string) bool {
	var b bool
	if json.Unmarshal(c[name], &b) == nil {
		return b
	}
	return c.text(name) == "true"
}

// at returns the claim with that name or, if it is nested, with that path
// (realm_access.roles).
func (c claims) at(name string) json.RawMessage {
	if v, ok := c[name]; ok {
		return v
	}
	head, rest, ok := strings.Cut(name, ".")
	if !ok {
		return nil
	}
	var inner claims
	if json.Unmarshal(c[head], &inner) != nil {
		return nil
	}
	return inner.at(rest)
}

// add adds the claims of other whose names c doesn't have.
func (c claims) add(other claims) {
	for name, v := range other {
		if _, ok := c[name]; !ok {
			c[name] = v
		}
	}
}

// readPerson returns the person that verified claims describe.
func readPerson(issuer, subject string, c claims, groupsClaim string) (p identity.Person, err error) {
	p = identity.Person{Issuer: issuer, Subject: subject}
	if subject == "" || len(subject) > identity.MaxSubject || !utf8.ValidString(subject) || strings.ContainsRune(subject, 0) {
		return p, fmt.Errorf("the subject is empty or longer than %d bytes", identity.MaxSubject)
	}
	if email := c.text("email"); c.yes("email_verified") && len(email) <= identity.MaxEmail {
		p.Email = printable.Escape(strings.TrimSpace(email))
	}
	for _, name := range []string{c.text("name"), c.text("preferred_username"), p.Email, subject} {
		if name = strings.Join(strings.Fields(name), " "); name != "" {
			p.Name = store.Clip(printable.Escape(strings.ToValidUTF8(name, "")), identity.MaxName)
			break
		}
	}
	p.Groups, p.GroupsKnown, err = readGroups(c.at(groupsClaim))
	return p, err
}

// readGroups decodes a groups claim: a list of names, or one name. known is false if there
// is no claim. Any other value is an error.
func readGroups(raw json.RawMessage) (groups []string, known bool, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, false, nil
	}
	var one string
	if json.Unmarshal(raw, &one) == nil {
		groups = []string{one}
	} else if json.Unmarshal(raw, &groups) != nil {
		return nil, false, fmt.Errorf("the groups claim is not a list of names")
	}
	if len(groups) > identity.MaxGroups {
		return nil, false, fmt.Errorf("the groups claim has %d names, and %d are the most; have the provider send those that nize needs", len(groups), identity.MaxGroups)
	}
	for _, name := range groups {
		if name == "" || len(name) > identity.MaxGroup || !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
			return nil, false, fmt.Errorf("the groups claim has a name that is empty or longer than %d bytes", identity.MaxGroup)
		}
	}
	slices.Sort(groups)
	return slices.Compact(groups), true, nil
}
