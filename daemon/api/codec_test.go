package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nize/store"
)

// every has a field of each type that a request may carry.
type every struct {
	Name   string      `path:"name" json:"-"`
	Number uint64      `path:"number" json:"-"`
	Kind   store.State `query:"kind" json:"-"`
	Since  time.Time   `query:"since" json:"-"`
	Limit  int         `query:"limit" json:"-"`
	Before uint64      `query:"before" json:"-"`
	Share  float64     `query:"share" json:"-"`
	Follow bool        `query:"follow" json:"-"`

	Text string            `json:"text"`
	Role *store.Role       `json:"role,omitempty"`
	List []string          `json:"list,omitempty"`
	Map  map[string]string `json:"map,omitempty"`
	Args json.RawMessage   `json:"args,omitempty"`
}

func TestEncode(t *testing.T) {
	role := store.Admin
	req := every{
		Name: "a/b ü", Number: 1 << 63, Kind: store.Done, Since: time.Date(2026, 3, 1, 12, 0, 0, 5, time.FixedZone("", 3600)), Limit: -2, Before: 9, Share: 0.25, Follow: true,
		Text: "x", Role: &role, Args: json.RawMessage(`{"n":9007199254740993}`),
	}
	path, query, body, err := Encode("/v1/{name}/of/{number}", req)
	if err != nil {
		t.Fatal(err)
	}
	got := path + " " + query.Encode() + " " + string(body)
	want := `/v1/a%2Fb%20%C3%BC/of/9223372036854775808 before=9&follow=1&kind=done&limit=-2&share=0.25&since=2026-03-01T11%3A00%3A00.000000005Z {"text":"x","role":"admin","args":{"n":9007199254740993}}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var back every
	values := map[string]string{"name": req.Name, "number": "9223372036854775808"}
	if err := Decode(&back, func(name string) string { return values[name] }, query, body, true); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(back, req); diff != "" {
		t.Errorf("decoded (-got +want):\n%s", diff)
	}
	// Zero values stay away from the query, and a request without JSON has no body.
	if _, query, body, err := Encode("/", AuditRequest{}); len(query) > 0 || body != nil || err != nil {
		t.Errorf("of nothing: %v, %q, %v", query, body, err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct{ path, query, body, want string }{
		{"", "limit=many", "", `invalid limit "many": use a whole number`},
		{"", "limit=99999999999999999999", "", "use a whole number"},
		{"", "before=-1", "", "use a whole number"},
		{"", "share=half", "", "use a number"},
		{"", "follow=yes", "", "use 1 or 0"},
		{"", "since=yesterday", "", "use RFC 3339"},
		{"", "since=9999-12-31T23:59:59-01:00", "", "use RFC 3339"},
		{"x", "", "", `invalid number "x"`},
		{"", "", `{"text":7}`, "invalid request: text cannot be number"},
		{"", "", `{"text":`, "invalid request"},
		{"", "", `{} {}`, "it goes on after its end"},
		{"", "", `{}]`, "it goes on after its end"},
		{"", "", `{"name":"x"}`, `unknown field "name"`}, // it travels in the path
		{"", "", `{"other":1}`, `unknown field "other"`},
	} {
		query, err := url.ParseQuery(c.query)
		if err != nil {
			t.Fatal(err)
		}
		var req every
		err = Decode(&req, func(name string) string { return map[string]string{"number": c.path}[name] }, query, []byte(c.body), true)
		if !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s ?%s %s: %v, want %s", c.path, c.query, c.body, err, c.want)
		}
	}
}

func TestChange(t *testing.T) {
	name, role := "mia", store.Admin
	u := store.User{ID: "01", Name: "ada", Role: store.Member, State: store.Active}
	Change(&u, struct {
		ID    string // a value says nothing of a change
		Name  *string
		Role  *store.Role
		State *store.UserState
		Other *string
	}{ID: "02", Name: &name, Role: &role})
	if want := (store.User{ID: "01", Name: name, Role: role, State: store.Active}); !reflect.DeepEqual(u, want) {
		t.Errorf("got %+v, want %+v", u, want)
	}
}

// Whatever arrives is a request that can be sent as it was understood, or
// invalid.
func FuzzDecode(f *testing.F) {
	for _, seed := range [][3]string{
		{"mia", "limit=3&since=2026-03-01T12:00:00Z&follow=1", `{"text":"x","role":"admin"}`},
		{"7", "share=NaN&before=18446744073709551615&kind=%ff", `{"args":{"n":1e999},"list":["\ud800"]}`},
		{"", "since=0000-01-01T00:00:00%2B23:59", "null"},
		{"a/../b", "limit=00", `[]`},
	} {
		f.Add(seed[0], seed[1], []byte(seed[2]), true)
	}
	types := []reflect.Type{
		reflect.TypeFor[every](), reflect.TypeFor[AuditRequest](), reflect.TypeFor[PatchUserRequest](), reflect.TypeFor[PutSettingRequest](),
		reflect.TypeFor[SetBudgetRequest](), reflect.TypeFor[UseLinkRequest](), reflect.TypeFor[Empty](),
	}
	f.Fuzz(func(t *testing.T, path, query string, body []byte, strict bool) {
		values, _ := url.ParseQuery(query) // with what could be read
		for _, of := range types {
			req := reflect.New(of)
			if err := Decode(req.Interface(), func(string) string { return path }, values, body, strict); err != nil {
				if !errors.Is(err, store.ErrInvalid) {
					t.Errorf("%s: %v", of, err)
				}
				continue
			}
			_, query1, body1, err := Encode("", req.Elem().Interface())
			if err != nil {
				t.Errorf("%s: %v", of, err)
				continue
			}
			again := reflect.New(of)
			if err := Decode(again.Interface(), func(string) string { return path }, query1, body1, true); err != nil {
				t.Errorf("%s: ?%s %s: %v", of, query1.Encode(), body1, err)
				continue
			}
			_, query2, body2, err := Encode("", again.Elem().Interface())
			if err != nil || query1.Encode() != query2.Encode() || !bytes.Equal(body1, body2) {
				t.Errorf("%s: ?%s %s\nthen ?%s %s, %v", of, query1.Encode(), body1, query2.Encode(), body2, err)
			}
		}
	})
}
