package webhook

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"nize/store"
)

// The example of the specification (standardwebhooks.com), so that receivers
// need nothing of ours.
func TestSignature(t *testing.T) {
	key, err := ReadSecret(store.NewSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"))
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{}
	Sign(header, key, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	got := header.Get("webhook-signature")
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestCheckURL(t *testing.T) {
	for url, ok := range map[string]bool{
		"https://alerts.example.com/nize": true, "http://127.0.0.1:9000/": true, "http://[::1]:9/x?y=z": true, "http://10.0.0.7": true,
		"": false, "alerts.example.com": false, "ftp://x": false, "https://": false, "https:///x": false, "https://u:p@x": false, "https://x/#f": false, "javascript:alert(1)": false, "https://x y": false, "\x00": false,
	} {
		if err := CheckURL(url); (err == nil) != ok {
			t.Errorf("%q: %v", url, err)
		}
	}
}

func FuzzReadSecret(f *testing.F) {
	f.Add("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	f.Add("hunter2")
	f.Add("whsec_")
	f.Fuzz(func(t *testing.T, text string) {
		key, err := ReadSecret(store.NewSecret(text))
		if err == nil && (len(key) < minSecret || len(key) > maxSecret || !strings.HasPrefix(strings.TrimSpace(text), secretHead)) {
			t.Errorf("%q was read as %d bytes", text, len(key))
		}
		if err != nil && len(text) > 8 && strings.Contains(err.Error(), text) {
			t.Errorf("the error holds the secret: %v", err)
		}
	})
}
