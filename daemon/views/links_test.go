package views

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"nize/daemon/api"
	"nize/store"
)

// linkFixture is what links are made of.
type linkFixture struct {
	*Links
	keys   [][]byte
	calls  map[string]store.Call
	state  store.UserState
	opened []store.Caller
	now    time.Time
	public string
	off    bool
}

func (h *linkFixture) GetCall(_ context.Context, id string) (store.Call, error) {
	c, ok := h.calls[id]
	if !ok {
		return c, store.ErrNotFound
	}
	return c, nil
}

func (h *linkFixture) GetUser(_ context.Context, id string) (store.User, error) {
	return store.User{ID: id, Name: "Ann", State: h.state}, nil
}

func (h *linkFixture) Shows(tool string, state store.State) bool {
	return tool == "native:chart" && state == store.Done
}

func (h *linkFixture) OpenFor(_ context.Context, by, requester store.Caller, req OpenRequest) (Frame, error) {
	h.opened = append(h.opened, by)
	return Frame{Ticket: req.Call + requester.User}, nil
}

func (h *linkFixture) Get(_, key string) string {
	if key == "web.enabled" {
		return map[bool]string{true: "false", false: "true"}[h.off]
	}
	return "24h"
}

const call = "01ARZ3NDEKTSV4RRFFQ69G5FAV"

// newLinkFixture has a call of Ann's that ended an hour ago.
func newLinkFixture() *linkFixture {
	h := &linkFixture{keys: [][]byte{[]byte("new"), []byte("old")}, now: time.Unix(1_800_000_000, 0), state: store.Active, public: "https://nize.example"}
	h.calls = map[string]store.Call{call: {ID: call, Server: "native", Tool: "chart", By: "ann", Thread: "t", State: store.Done, Finished: h.now.Add(-time.Hour), Result: &store.Result{Raw: json.RawMessage(`{}`)}}}
	h.Links = newLinks(&Views{Options: Options{Store: h, Config: h, PublicURL: func() string { return h.public }, Now: func() time.Time { return h.now }, Log: slog.New(slog.DiscardHandler)}})
	h.Links.views, h.Links.keys = h, func(context.Context) ([][]byte, error) { return h.keys, nil }
	return h
}

func (h *linkFixture) link(t *testing.T) string {
	t.Helper()
	link, ok := strings.CutPrefix(h.Address(h.calls[call]), "https://nize.example/w/")
	if !ok {
		t.Fatalf("the address is %q", h.Address(h.calls[call]))
	}
	return link
}

// TestLink: a link holds so long after the call, whoever opens it, and no changed one
// does; what it was signed by may be the key before.
func TestLink(t *testing.T) {
	h := newLinkFixture()
	link := h.link(t)
	if link != h.link(t) {
		t.Error("a call has two links")
	}
	for user, want := range map[string]Viewer{"": Nobody, "ann": Requester, "ben": Other} {
		v, err := h.Open(t.Context(), store.Caller{User: user, Address: "192.0.2.1"}, OpenLinkRequest{Link: link})
		if err != nil || v.Viewer != want || v.Requester != "Ann" || v.Ticket != call+"ann" || (v.Thread != "") != (user == "ann") {
			t.Errorf("for %q: %+v, %v", user, v, err)
		}
	}
	for _, by := range h.opened {
		if by.User == "" || by.User == store.System.User && (by.Address != "192.0.2.1" || by.IsAdmin()) {
			t.Errorf("opened by %+v", by)
		}
	}
	h.keys = [][]byte{[]byte("newest"), []byte("new")}
	if !h.Leads(t.Context(), link) {
		t.Error("a link ended with the key that signed it")
	}
	h.keys = [][]byte{[]byte("newest")}
	if h.Leads(t.Context(), link) {
		t.Error("a link is signed by no key")
	}
	h.keys = [][]byte{[]byte("new")}
	for i := range len(link) {
		for _, c := range []byte{'0', 'A', 'b', '.', link[i] ^ 1} {
			if other := link[:i] + string(c) + link[i+1:]; other != link && h.Leads(t.Context(), other) {
				t.Fatalf("%s was taken for %s", other, link)
			}
		}
	}
	h.now = h.now.Add(23*time.Hour - time.Second)
	if !h.Leads(t.Context(), link) {
		t.Error("it ended too early")
	}
	h.now = h.now.Add(time.Second)
	if _, err := h.Open(t.Context(), store.Caller{User: "ann"}, OpenLinkRequest{Link: link}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("too late: %v", err)
	}
	if got := h.Address(h.calls[call]); got != "" {
		t.Errorf("a link that has ended: %s", got)
	}
}

// TestNoLink is what has none, or one that leads nowhere.
func TestNoLink(t *testing.T) {
	for name, change := range map[string]func(h *linkFixture, c *store.Call){
		"no public address":  func(h *linkFixture, _ *store.Call) { h.public = "" },
		"no page":            func(h *linkFixture, _ *store.Call) { h.off = true },
		"no view":            func(_ *linkFixture, c *store.Call) { c.Tool = "other" },
		"a call that failed": func(_ *linkFixture, c *store.Call) { c.State = store.Failed },
		"a call that runs":   func(_ *linkFixture, c *store.Call) { c.Finished = time.Time{} },
		"a result erased":    func(_ *linkFixture, c *store.Call) { c.Result = nil },
	} {
		h := newLinkFixture()
		c := h.calls[call]
		change(h, &c)
		if got := h.Address(c); got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
	ben := store.Caller{User: "ben"}
	for name, one := range map[string]struct {
		change func(h *linkFixture, c *store.Call)
		by     store.Caller
		code   string
	}{
		"forgotten":                 {func(h *linkFixture, _ *store.Call) { h.calls = nil }, ben, "not_found"},
		"pruned":                    {func(_ *linkFixture, c *store.Call) { c.Result = nil }, ben, "not_found"},
		"the tool is gone":          {func(_ *linkFixture, c *store.Call) { c.Tool = "gone" }, ben, "not_found"},
		"its requester is disabled": {func(h *linkFixture, _ *store.Call) { h.state = store.Disabled }, ben, "not_found"},
		"private, of somebody else": {func(_ *linkFixture, c *store.Call) { c.Private = true }, ben, "not_found"},
		"private, signed out":       {func(_ *linkFixture, c *store.Call) { c.InPrivateTurn = true }, store.Caller{}, "signed_out"},
		"private, of an admin's":    {func(_ *linkFixture, c *store.Call) { c.Private = true }, store.Caller{User: "ben", Role: store.Admin}, "not_found"},
		"private, of its requester": {func(_ *linkFixture, c *store.Call) { c.Private = true }, store.Caller{User: "ann"}, ""},
	} {
		h := newLinkFixture()
		link, c := h.link(t), h.calls[call]
		one.change(h, &c)
		if h.calls != nil {
			h.calls[call] = c
		}
		_, err := h.Open(t.Context(), one.by, OpenLinkRequest{Link: link})
		if got := codeOf(err); got != one.code || (one.code != "") != (len(h.opened) == 0) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// TestOpenedOften: one link is no load.
func TestOpenedOften(t *testing.T) {
	h := newLinkFixture()
	link := h.link(t)
	for range maxOpened {
		if _, err := h.Open(t.Context(), store.Caller{}, OpenLinkRequest{Link: link}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.Open(t.Context(), store.Caller{}, OpenLinkRequest{Link: link}); codeOf(err) != "rate_limited" {
		t.Errorf("once more: %v", err)
	}
	h.now = h.now.Add(time.Minute)
	if _, err := h.Open(t.Context(), store.Caller{}, OpenLinkRequest{Link: link}); err != nil {
		t.Errorf("a minute later: %v", err)
	}
}

func codeOf(err error) string {
	if err == nil {
		return ""
	}
	e, _ := api.FromError(err)
	return e.Code
}
