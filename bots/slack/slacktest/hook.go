package slacktest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"nize/bots/chattest"
	"strconv"
)

// HTTP mode: signed requests to /slack/events, /slack/interactions and
// /slack/commands of Options.Endpoint.

var hookPaths = map[string]string{"events_api": "/slack/events", "interactive": "/slack/interactions", "slash_commands": "/slack/commands"}

// Sign returns Slack's signature of a body.
func Sign(secret, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "v0:%s:%s", timestamp, body)
	return "v0=" + hex.EncodeToString(mac.Sum(nil))
}

// client posts to the app; like Slack, it follows no redirects.
var client = &http.Client{
	Transport:     &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// request makes one attempt of a delivery.
func (s *Server) request(d *delivery) {
	body, kind := []byte(d.payload), "application/json"
	switch d.kind {
	case "interactive":
		body, kind = []byte(url.Values{"payload": {string(d.payload)}}.Encode()), "application/x-www-form-urlencoded"
	case "slash_commands":
		body, kind = formOf(d.payload), "application/x-www-form-urlencoded"
	}
	header := http.Header{"Content-Type": {kind}}
	if d.attempt > 0 {
		header.Set("X-Slack-Retry-Num", strconv.Itoa(d.attempt))
		header.Set("X-Slack-Retry-Reason", d.reason)
	}
	ctx, cancel := context.WithTimeout(s.Context(), s.opt.Patience)
	defer cancel()
	resp, err := s.PostSigned(ctx, hookPaths[d.kind], header, body)

	s.Mu.Lock()
	defer s.Mu.Unlock()
	defer s.TouchLocked()
	took := s.opt.Now().Sub(d.sent)
	switch {
	case s.ClosedLocked():
		d.SettleLocked(chattest.ErrClosed)
	case errors.Is(err, context.DeadlineExceeded):
		s.Counts.Missed++
		s.againLocked(d, "http_timeout")
	case err != nil:
		s.Counts.Missed++
		s.againLocked(d, "connection_failed")
	case resp.Status/100 != 2 && resp.Header.Get("X-Slack-No-Retry") == "1":
		s.Counts.Missed++
		s.stats.Dropped++
		d.SettleLocked(ErrNotAcked)
	case resp.Status/100 != 2:
		s.Counts.Missed++
		s.againLocked(d, "http_error")
	default:
		s.tookLocked(took)
		reply := json.RawMessage(bytes.TrimSpace(resp.Body))
		if len(reply) > 0 && !json.Valid(reply) {
			reply = chattest.JSON(string(reply)) // the response to a command may be plain text
		}
		d.reply = reply
		d.SettleLocked(nil)
	}
}

// HookAnswer is the app's response in HTTP mode.
type HookAnswer struct {
	Status int
	Header http.Header
	Body   []byte
}

// PostSigned posts a body to the app with a current signature. Headers that are already set
// (a wrong signature, an old timestamp) are kept.
func (s *Server) PostSigned(ctx context.Context, path string, header http.Header, body []byte) (HookAnswer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.opt.Endpoint+path, bytes.NewReader(body))
	if err != nil {
		return HookAnswer{}, fmt.Errorf("posting to the app: %w", err)
	}
	req.Header = header.Clone()
	if req.Header.Get("X-Slack-Request-Timestamp") == "" {
		req.Header.Set("X-Slack-Request-Timestamp", strconv.FormatInt(s.opt.Now().Unix(), 10))
	}
	if req.Header.Get("X-Slack-Signature") == "" {
		req.Header.Set("X-Slack-Signature", Sign(s.opt.SigningSecret, req.Header.Get("X-Slack-Request-Timestamp"), body))
	}
	resp, err := client.Do(req)
	if err != nil {
		return HookAnswer{}, fmt.Errorf("posting to the app: %w", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return HookAnswer{}, fmt.Errorf("reading the app's answer: %w", err)
	}
	return HookAnswer{Status: resp.StatusCode, Header: resp.Header, Body: answer}, nil
}

// Verify performs the url_verification of the events endpoint.
func (s *Server) Verify(ctx context.Context) error {
	const challenge = "3eZbrw1aB10"
	body := chattest.JSON(verification{Type: "url_verification", Token: "fake-verification", Challenge: challenge})
	got, err := s.PostSigned(ctx, hookPaths["events_api"], http.Header{"Content-Type": {"application/json"}}, body)
	if err != nil {
		return err
	}
	var answer verification
	_ = json.Unmarshal(got.Body, &answer) // plain text is valid too
	if got.Status != http.StatusOK || answer.Challenge != challenge && string(bytes.TrimSpace(got.Body)) != challenge {
		return fmt.Errorf("slacktest: the events endpoint answered %d %.100q instead of the challenge", got.Status, got.Body)
	}
	return nil
}

// CheckCertificate checks the command URL as Slack does from time to time: without a
// signature, and expecting only a 200.
func (s *Server) CheckCertificate(ctx context.Context) error {
	header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "X-Slack-Signature": {"none"}}
	got, err := s.PostSigned(ctx, hookPaths["slash_commands"], header, []byte("token=fake-verification&ssl_check=1"))
	if err == nil && got.Status != http.StatusOK {
		err = fmt.Errorf("slacktest: the commands endpoint answered %d to a look at its certificate", got.Status)
	}
	return err
}

type verification struct {
	Type      string `json:"type"`
	Token     string `json:"token"`
	Challenge string `json:"challenge"`
}

// formOf converts a flat JSON object to a form.
func formOf(payload json.RawMessage) []byte {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(payload, &fields) // our own struct
	form := url.Values{}
	for k, v := range fields {
		var text string
		if json.Unmarshal(v, &text) != nil {
			text = string(v)
		}
		form.Set(k, text)
	}
	return []byte(form.Encode())
}
