package alert

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"nize/store"
)

const (
	maxAnswer = 4 << 10 // bytes of an answer that are read
	minSecret = 24      // bytes, by Standard Webhooks
	maxSecret = 64
	// secretHead marks a secret of Standard Webhooks.
	secretHead = "whsec_"
)

// Message is the body of a webhook's request. Its fields are stable.
type Message struct {
	ID        string     `json:"id"`      // of the incident, the same when it is over
	Kind      string     `json:"kind"`    // server.down, login.lost, tool.held …
	Subject   string     `json:"subject"` // what it is about
	State     string     `json:"state"`   // open or recovered
	Title     string     `json:"title"`
	Text      string     `json:"text"`
	Cure      string     `json:"cure"` // a command
	Opened    time.Time  `json:"opened"`
	Recovered *time.Time `json:"recovered"` // null while it is open
}

// Webhook posts a [Message] to a URL, signed after Standard Webhooks
// (standardwebhooks.com, v1) if there is a secret. The address may be on
// loopback or in a private network: only an admin sets it, at the control
// socket or in the daemon's own configuration. Where it redirects to is nobody's
// choice, so redirects are not followed.
type Webhook struct {
	url    string
	secret []byte
	client *http.Client
	now    func() time.Time
}

var _ Notifier = (*Webhook)(nil)

// NewWebhook checks address and secret; a zero secret signs nothing.
func NewWebhook(address string, secret store.Secret, now func() time.Time) (*Webhook, error) {
	if err := CheckURL(address); err != nil {
		return nil, err
	}
	w := &Webhook{url: address, now: now, client: &http.Client{
		Timeout: patience,
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: patience / 2}).DialContext,
			TLSHandshakeTimeout: patience / 2, ResponseHeaderTimeout: patience, MaxResponseHeaderBytes: 64 << 10, DisableKeepAlives: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if !secret.IsZero() {
		key, err := ReadSecret(secret)
		if err != nil {
			return nil, err
		}
		w.secret = key
	}
	return w, nil
}

// CheckURL says why an address cannot be a webhook's.
func CheckURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return errors.New("want an address such as https://alerts.example.com/nize")
	case u.User != nil:
		return errors.New("it holds a password, which everybody who sees the setting could read; sign the messages with a secret instead")
	case u.Fragment != "":
		return errors.New("it has a fragment, which is never sent")
	}
	return nil
}

// ReadSecret returns the key that a secret of Standard Webhooks stands for. The
// error does not hold it.
func ReadSecret(s store.Secret) ([]byte, error) {
	text, ok := strings.CutPrefix(strings.TrimSpace(s.Reveal()), secretHead)
	key, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || len(key) < minSecret || len(key) > maxSecret {
		return nil, fmt.Errorf("%w secret of the webhook: want %s and the base64 of %d to %d random bytes", store.ErrInvalid, secretHead, minSecret, maxSecret)
	}
	return key, nil
}

// Notify implements [Notifier]. A webhook cannot edit, so the end of an
// incident is a second message with the same id in its body.
func (w *Webhook) Notify(ctx context.Context, i store.Incident) (string, error) {
	body, err := json.Marshal(messageOf(i))
	if err != nil {
		return "", fmt.Errorf("encoding the message: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return "", fmt.Errorf("making the request: %w", bare(err))
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "nized")
	id, at := "msg_"+i.ID+"_"+string(i.State), strconv.FormatInt(w.now().Unix(), 10)
	req.Header.Set("webhook-id", id) // the same in every try, so that the receiver can drop a second
	req.Header.Set("webhook-timestamp", at)
	if w.secret != nil {
		req.Header.Set("webhook-signature", sign(w.secret, id, at, body))
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return "", fmt.Errorf("the webhook can't be reached: %w", bare(err))
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, maxAnswer) // what it says doesn't matter, its status does
	switch code := resp.StatusCode; {
	case code/100 == 2:
		return "", nil
	case code/100 == 3:
		return "", fmt.Errorf("the webhook answered %d: redirects are not followed; set alerts.to to the address that it redirects to", code)
	case code == http.StatusGone:
		return "", fmt.Errorf("the webhook answered 410, so it is gone for good; set another alerts.to: %w", ErrPermanent)
	default:
		return "", fmt.Errorf("the webhook answered %d %s", code, http.StatusText(code))
	}
}

func messageOf(i store.Incident) Message {
	m := Message{ID: i.ID, Kind: i.Kind, Subject: i.Subject, State: string(store.IncidentOpen), Title: i.Title.String(), Text: i.Text.String(), Cure: i.Cure, Opened: i.Opened.UTC()}
	if !i.Active() {
		over := i.Recovered.UTC()
		m.State, m.Recovered = string(store.IncidentRecovered), &over
	}
	return m
}

// sign is the signature of a message, by Standard Webhooks v1.
func sign(key []byte, id, at string, body []byte) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(id + "." + at + "."))
	h.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// bare strips the *url.Error that repeats the address: its path may be secret.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
