package slack

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
	"regexp"
	"strconv"
	"time"

	slackgo "github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"

	"nize/bots"
	"nize/bots/slack/wire"
	"nize/store"
)

// HTTP mode: Slack sends signed POST requests to three paths.

const (
	maxHook = wire.MaxFrame // maximum size of a body
	// hookTime is the maximum time for reading a body.
	hookTime = 5 * time.Second
	// staleHook is the maximum age of a signature; it limits replays.
	staleHook = 5 * time.Minute
	// ackTime is how long storing may take; after that, Slack is left to send the request
	// again.
	ackTime = 2500 * time.Millisecond
)

// Endpoints implements [bots.Receiver].
func (b *Bot) Endpoints(account store.Bot) []string {
	if account.Mode != HTTPMode {
		return nil
	}
	return []string{"/slack/events", "/slack/interactions", "/slack/commands"}
}

// Handler implements [bots.Receiver]. It returns 404 if no account in HTTP mode is in use.
func (b *Bot) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /slack/events", func(w http.ResponseWriter, r *http.Request) { b.hook(w, r, socketmode.RequestTypeEventsAPI) })
	mux.HandleFunc("POST /slack/interactions", func(w http.ResponseWriter, r *http.Request) { b.hook(w, r, socketmode.RequestTypeInteractive) })
	mux.HandleFunc("POST /slack/commands", func(w http.ResponseWriter, r *http.Request) { b.hook(w, r, socketmode.RequestTypeSlashCommands) })
	return mux
}

// hook verifies, stores and acknowledges one request.
func (b *Bot) hook(w http.ResponseWriter, r *http.Request, kind string) {
	l := b.Current()
	if l == nil || l.account.Mode != HTTPMode {
		http.NotFound(w, r)
		return
	}
	// A sender without the secret can send slowly, but not for long. Some ResponseWriters
	// support no deadline; then there is none.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(hookTime))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxHook))
	if err != nil {
		http.Error(w, "the request is too long or was cut", http.StatusRequestEntityTooLarge)
		return
	}
	if kind == socketmode.RequestTypeSlashCommands && certificateCheck(body) {
		return // status 200 even if unsigned: this check requires no more
	}
	if !signed(l.account.Tokens[SigningSecret], r.Header, body, b.o.Now()) {
		l.noteBadSignature(r.Header) // Slack sends it again, and by then the secret may be corrected
		http.Error(w, "the signature is wrong or too old", http.StatusUnauthorized)
		return
	}
	l.setHealth(func(h *bots.Health) { h.Error = "" })
	payload, err := hookPayload(kind, body)
	if err != nil {
		w.Header().Set("X-Slack-No-Retry", "1")
		http.Error(w, "the request is unreadable", http.StatusBadRequest)
		return
	}
	if challenge, ok := verification(payload); ok && kind == socketmode.RequestTypeEventsAPI {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, challenge) // an error means that the client is gone
		return
	}
	show, ok := l.acceptRequest(r.Context(), kind, payload)
	switch {
	case !ok:
		http.Error(w, "it could not be stored; send it again", http.StatusServiceUnavailable)
	case show == nil:
		w.WriteHeader(http.StatusOK)
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(show) // an error means that the client is gone
	}
}

// acceptRequest accepts a payload and waits until it may be acknowledged. The work
// continues on the bot's context, not the request's.
func (l *live) acceptRequest(ctx context.Context, kind string, payload json.RawMessage) (show any, ok bool) {
	l.mu.Lock()
	life := l.life
	if life != nil {
		l.wg.Add(1)
	}
	l.mu.Unlock()
	if life == nil {
		return nil, false
	}
	defer l.wg.Done()
	type answer struct {
		show any
		ok   bool
	}
	answered := make(chan answer, 1) // one slot, because the response may come after we returned
	l.acceptPayload(life, kind, payload, func(show any, ok bool) { answered <- answer{show, ok} })
	late := time.NewTimer(ackTime)
	defer late.Stop()
	select {
	case a := <-answered:
		return a.show, a.ok
	case <-late.C:
	case <-ctx.Done():
	}
	return nil, false
}

// signed verifies Slack's signature of a request.
func signed(secret store.Secret, h http.Header, body []byte, now time.Time) bool {
	stamp := h.Get("X-Slack-Request-Timestamp")
	at, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || secret.IsZero() {
		return false
	}
	if age := now.Sub(time.Unix(at, 0)); age > staleHook || age < -staleHook {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret.Reveal()))
	mac.Write([]byte("v0:" + stamp + ":"))
	mac.Write(body)
	want := "v0=" + hex.EncodeToString(mac.Sum(nil))
	return hmac.Equal([]byte(want), []byte(h.Get("X-Slack-Signature")))
}

// noRequests is the health message of a bot in HTTP mode that has received nothing yet.
const noRequests = "Slack has sent nothing since the start: are the request URLs of the app /slack/events, /slack/interactions and /slack/commands of nize's public address?"

// signatureForm matches Slack's signatures; requests with anything else are not from Slack.
var signatureForm = regexp.MustCompile(`^v0=[0-9a-f]{64}$`)

// noteBadSignature records for the operator why a request that looks like Slack's was
// refused. Anyone can send such a request, so this is only a hint and ends nothing.
func (l *live) noteBadSignature(h http.Header) {
	sent, err := strconv.ParseInt(h.Get("X-Slack-Request-Timestamp"), 10, 64)
	if err != nil || !signatureForm.MatchString(h.Get("X-Slack-Signature")) {
		return
	}
	why := "a request was refused, since its signature is not of this signing secret: copy that of the app's page Basic Information, then nizectl bots slack connect"
	if off := l.b.o.Now().Sub(time.Unix(sent, 0)).Round(time.Second); off > staleHook || off < -staleHook {
		why = fmt.Sprintf("a request was refused, since its time is %s off: it was held back, or this machine's clock is wrong", off.Abs())
	}
	l.setHealth(func(h *bots.Health) { h.Error = why })
}

// hookPayload returns what Socket Mode would have as the envelope's payload.
func hookPayload(kind string, body []byte) (json.RawMessage, error) {
	if kind == socketmode.RequestTypeEventsAPI {
		return bytes.Clone(body), nil
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	if kind == socketmode.RequestTypeInteractive {
		if p := form.Get("payload"); p != "" {
			return json.RawMessage(p), nil
		}
		return nil, errors.New("no payload")
	}
	return json.Marshal(slackgo.SlashCommand{
		Command: form.Get("command"), Text: form.Get("text"), UserID: form.Get("user_id"), TeamID: form.Get("team_id"),
		ChannelID: form.Get("channel_id"), TriggerID: form.Get("trigger_id"),
	})
}

// certificateCheck reports whether a request is Slack's periodic check of the certificate
// of the command URL. It contains nothing else.
func certificateCheck(body []byte) bool {
	form, err := url.ParseQuery(string(body))
	return err == nil && form.Get("ssl_check") == "1" && !form.Has("command")
}

// verification returns the challenge by which Slack verifies that a URL belongs to nize.
func verification(payload []byte) (challenge string, ok bool) {
	var v slackevents.EventsAPIURLVerificationEvent
	if json.Unmarshal(payload, &v) != nil || v.Type != slackevents.URLVerification {
		return "", false
	}
	return v.Challenge, true
}
