package posting

import (
	"bytes"
	"encoding/base64"
	"image/png"
	"testing"

	"nize/bots"
)

// point is a WebP of one point.
const point = "UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA=="

// Slack's blocks take no WebP: it becomes PNG, unless it is none.
func TestShownBySlack(t *testing.T) {
	data, err := base64.StdEncoding.DecodeString(point)
	if err != nil {
		t.Fatal(err)
	}
	got, ok := shownBySlack(bots.File{Name: "a.webp", Type: "image/webp", Data: data})
	if _, err := png.Decode(bytes.NewReader(got.Data)); !ok || err != nil || got.Name != "a.png" {
		t.Errorf("got %s, %v, %v", got.Name, ok, err)
	}
	if got, ok := shownBySlack(bots.File{Type: "image/gif", Data: []byte("GIF89a")}); !ok || string(got.Data) != "GIF89a" {
		t.Errorf("a GIF became %q, %v", got.Data, ok)
	}
	if _, ok := shownBySlack(bots.File{Type: "image/webp", Data: data[:20]}); ok {
		t.Error("half of one is shown")
	}
}

func FuzzShownBySlack(f *testing.F) {
	data, err := base64.StdEncoding.DecodeString(point)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		got, ok := shownBySlack(bots.File{Type: "image/webp", Data: data})
		if _, err := png.DecodeConfig(bytes.NewReader(got.Data)); ok && err != nil {
			t.Error(err)
		}
	})
}
