package view

import (
	"strings"
	"testing"
)

func TestWithoutFrames(t *testing.T) {
	for page, want := range map[string]string{
		`<p>x<iframe srcdoc="<script>">`:           `<p>x< iframe srcdoc="<script>">`,
		`<IFrame/src=x><frame><frameset>`:          `< IFrame/src=x>< frame>< frameset>`,
		"<iframe\nsrc=x><object\tdata=x><embed\f>": "< iframe\nsrc=x>< object\tdata=x>< embed\f>",
		`<svg><foreignObject><iframe>`:             `<svg><foreignObject>< iframe>`,
		`<template><portal></template>`:            `<template>< portal></template>`,
		`<<iframe>`:                                `<< iframe>`,
		`<script>if (a<frame) x = "<iframe>"`:      `<script>if (a<frame) x = "< iframe>"`,
		`<frames><iframe-x><iframes>`:              `<frames><iframe-x><iframes>`,
		`</iframe><i>a < b</i><`:                   `</iframe><i>a < b</i><`,
		``:                                         ``,
	} {
		if got := string(withoutFrames([]byte(page))); got != want {
			t.Errorf("%s became %s, want %s", page, got, want)
		}
	}
}

func TestSeal(t *testing.T) {
	for _, test := range []struct {
		page, nonce string
		domains     Domains
		begins      string
		ends        string
	}{
		{"<!DOCTYPE html><p>x<iframe>", "", Domains{}, "<!doctype html><script>//", "</script>\n<!DOCTYPE html><p>x< iframe>"},
		{"\n<!doctype html>", "n", Domains{}, `<!doctype html><script nonce="n">//`, "\n<!doctype html>"},
		{"<p>x<iframe>", "", Domains{Frame: []string{"https://a.x"}}, "<script>//", "</script>\n<p>x<iframe>"},
		{"", "", Domains{}, "<script>//", "</script>\n"},
	} {
		got := string(Seal([]byte(test.page), test.nonce, test.domains))
		if !strings.HasPrefix(got, test.begins) || !strings.HasSuffix(got, test.ends) || strings.Contains(got, "__FRAMES__") || strings.Count(got, "</script>") != 1 {
			t.Errorf("%q became %s … %s", test.page, got[:min(len(got), 60)], got[max(0, len(got)-60):])
		}
	}
}

func TestAllowlist(t *testing.T) {
	for want, d := range map[string]Domains{
		`()`: {},
		`("https://*.b.x:8443" "https://a.x" "https://c.x")`: {Connect: []string{"https://a.x", "wss://c.x"}, Resource: []string{"https://a.x"}, Frame: []string{"https://*.b.x:8443"}},
	} {
		if got := Allowlist(d); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// What of a view can send on is said of views alone, and names the pages that it shows.
func TestSends(t *testing.T) {
	var none *Claims
	if none.Sends() != nil || (&Claims{NotApp: true}).Sends() != nil {
		t.Error("a tool without a view sends")
	}
	if got := (&Claims{URI: "ui://a"}).Sends(); len(got) != 1 {
		t.Errorf("%q", got)
	}
	if got := (&Claims{URI: "ui://a", Accepted: Domains{Frame: []string{"https://a.x"}}}).Sends(); len(got) != 2 || !strings.Contains(got[1], "https://a.x") {
		t.Errorf("%q", got)
	}
}
