// Package webhook signs requests according to Standard Webhooks (standardwebhooks.com, v1).
package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"nize/store"
)

const (
	minSecret = 24 // bytes, as required by Standard Webhooks
	maxSecret = 64
	// secretHead is the prefix of a secret of Standard Webhooks.
	secretHead = "whsec_"
)

// CheckURL returns an error if an address is not a valid webhook URL.
func CheckURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return errors.New("want an address such as https://alerts.example.com/nize")
	case u.User != nil:
		return errors.New("it contains a password, which everyone who can see the setting could read; sign the messages with a secret instead")
	case u.Fragment != "":
		return errors.New("it has a fragment, which is never sent")
	}
	return nil
}

// ReadSecret returns the key encoded in a secret of Standard Webhooks. The error does not
// contain it.
func ReadSecret(s store.Secret) ([]byte, error) {
	text, ok := strings.CutPrefix(strings.TrimSpace(s.Reveal()), secretHead)
	key, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || len(key) < minSecret || len(key) > maxSecret {
		return nil, fmt.Errorf("%w secret of the webhook: want %s and the base64 of %d to %d random bytes", store.ErrInvalid, secretHead, minSecret, maxSecret)
	}
	return key, nil
}

// Sign sets the headers of a message: its id, which is the same in every attempt so that
// the receiver can drop repetitions, its time, and, if there is a key, the signature.
func Sign(header http.Header, key []byte, id string, at time.Time, body []byte) {
	stamp := strconv.FormatInt(at.Unix(), 10)
	header.Set("webhook-id", id)
	header.Set("webhook-timestamp", stamp)
	if key == nil {
		return
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte(id + "." + stamp + "."))
	h.Write(body)
	header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(h.Sum(nil)))
}
