package alert

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"nize/store"
	"nize/store/webhook"
)

const maxAnswer = 4 << 10 // bytes of a response that are read

// Message is the body of a webhook's request. Its fields are stable.
type Message struct {
	ID        string     `json:"id"`      // of the incident; the same in the message that it is over
	Kind      string     `json:"kind"`    // server.down, login.lost, tool.held …
	Subject   string     `json:"subject"` // what it is about
	State     string     `json:"state"`   // open or recovered
	Title     string     `json:"title"`
	Text      string     `json:"text"`
	Cure      string     `json:"cure"` // a command
	Opened    time.Time  `json:"opened"`
	Recovered *time.Time `json:"recovered"` // null while it is open
}

// Webhook posts a [Message] to a URL, signed as in Standard Webhooks (standardwebhooks.com,
// v1) if there is a secret. The address may be on loopback or in a private network, since
// only an admin sets it, at the control socket or in the daemon's own configuration.
// Redirects are not followed, since no admin chose their targets.
type Webhook struct {
	url    string
	secret []byte
	client *http.Client
	now    func() time.Time
}

var _ Notifier = (*Webhook)(nil)

// NewWebhook validates address and secret; with a zero secret, messages aren't signed.
func NewWebhook(address string, secret store.Secret, now func() time.Time) (*Webhook, error) {
	if err := webhook.CheckURL(address); err != nil {
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
		key, err := webhook.ReadSecret(secret)
		if err != nil {
			return nil, err
		}
		w.secret = key
	}
	return w, nil
}

// Notify implements [Notifier]. A webhook can't edit messages, so the end of an incident is
// a second message with the same id in its body.
func (w *Webhook) Notify(ctx context.Context, i store.Incident) (string, error) {
	body, err := json.Marshal(messageOf(i))
	if err != nil {
		return "", fmt.Errorf("encoding the message: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return "", fmt.Errorf("making the request: %w", store.NetworkError(err))
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "nized")
	webhook.Sign(req.Header, w.secret, "msg_"+i.ID+"_"+string(i.State), w.now(), body)
	resp, err := w.client.Do(req)
	if err != nil {
		return "", fmt.Errorf("the webhook can't be reached: %w", store.NetworkError(err))
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, maxAnswer) // only the status matters
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
		m.State, m.Recovered, m.Text, m.Cure = string(store.IncidentRecovered), &over, Over(i).String(), ""
		m.Title = "Recovered: " + m.Title
	}
	return m
}
