package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/websocket"
	slackgo "github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"

	"nize/bots/slack/incoming"
	"nize/store"
)

const (
	// MaxFrame limits the size of a frame: a press contains its message with all blocks.
	MaxFrame = 4 << 20
	// maxAck is the size from which Slack ignores an acknowledgement. The write buffer is
	// larger, so an acknowledgement is one frame: slack-go's authors saw Slack drop others.
	maxAck = 20 << 10
)

// DecodeRequest decodes a frame of Socket Mode.
func DecodeRequest(frame []byte) (r socketmode.Request, err error) {
	if len(frame) > MaxFrame {
		return r, fmt.Errorf("%w frame: %d bytes", store.ErrInvalid, len(frame))
	}
	if err := json.Unmarshal(frame, &r); err != nil {
		return r, fmt.Errorf("%w frame: %w", store.ErrInvalid, err)
	}
	if r.EnvelopeID != "" && !incoming.WordForm.MatchString(r.EnvelopeID) {
		return r, fmt.Errorf("%w frame: envelope_id", store.ErrInvalid)
	}
	return r, nil
}

// EncodeAck encodes the acknowledgement of a frame, with the content that Slack should show.
func EncodeAck(id string, payload any) ([]byte, error) {
	frame, err := json.Marshal(socketmode.Response{EnvelopeID: id, Payload: payload})
	if err == nil && len(frame) >= maxAck {
		err = fmt.Errorf("%d bytes, over Slack's limit", len(frame))
	}
	if err != nil {
		return nil, fmt.Errorf("encoding an acknowledgement: %w", err)
	}
	return frame, nil
}

// What checking an account requires besides valid tokens: Socket Mode is on, both tokens
// belong to one app, and the app is installed in a single workspace.

// Dial opens a link. Its URL is valid once, and not for long.
func (w *Client) Dial(ctx context.Context) (*websocket.Conn, error) {
	var address string
	err := w.repeat(ctx, func(ctx context.Context) (err error) {
		_, address, err = w.API.StartSocketModeContext(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("asking for a link: %w", err)
	}
	dialer := websocket.Dialer{HandshakeTimeout: callTime, Proxy: http.ProxyFromEnvironment, WriteBufferSize: maxAck + 1<<10}
	conn, _, err := dialer.DialContext(ctx, address, nil)
	if err != nil {
		return nil, fmt.Errorf("opening the link: %w", err)
	}
	conn.SetReadLimit(MaxFrame)
	return conn, nil
}

// Probe opens a link until Slack sends the hello, which contains the app's id. Slack hands
// out URLs even if Socket Mode is off: only the link reveals it. Events sent meanwhile are
// not acknowledged, so Slack sends them again.
func (w *Client) Probe(ctx context.Context) (app string, err error) {
	conn, err := w.Dial(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // ends the reads below
	_ = conn.SetReadDeadline(time.Now().Add(callTime))          // fails on a closed connection, as the read does
	for {
		_, frame, err := conn.ReadMessage()
		if err != nil {
			return "", fmt.Errorf("waiting for Slack's greeting: %w", err)
		}
		r, err := DecodeRequest(frame)
		switch {
		case err != nil:
			return "", fmt.Errorf("reading Slack's greeting: %w", err)
		case r.Type == socketmode.RequestTypeDisconnect:
			return "", &LinkEnd{r.Reason}
		case r.Type == socketmode.RequestTypeHello:
			leave(conn)
			return r.ConnectionInfo.AppID, nil
		}
	}
}

// leave ends a link and waits until Slack knows, so that it sends no more events there.
func leave(conn *websocket.Conn) {
	end := time.Now().Add(2 * time.Second)
	bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	if conn.WriteControl(websocket.CloseMessage, bye, end) != nil || conn.SetReadDeadline(end) != nil {
		return // the link has ended
	}
	for {
		if _, _, err := conn.ReadMessage(); err != nil {
			return
		}
	}
}

// SameApp rejects an app-level token of an app other than the bot's: the connection would
// look healthy without receiving a message.
func (w *Client) SameApp(ctx context.Context, who *slackgo.AuthTestResponse, app string) error {
	var own *slackgo.Bot
	err := w.Call(ctx, func(ctx context.Context) (err error) {
		own, err = w.API.GetBotInfoContext(ctx, slackgo.GetBotInfoParameters{Bot: who.BotID})
		return err
	})
	if err != nil {
		return RefusedToken("the bot token (xoxb-…)", err)
	}
	if app != "" && own.AppID != "" && app != own.AppID {
		return fmt.Errorf("%w tokens: they are of two apps, the bot token of %.40s and the app-level token of %.40s; copy both from the same one", store.ErrInvalid, own.AppID, app)
	}
	return nil
}

// Identify returns whom a bot token belongs to, and whether the app is installed for a
// whole organization.
func Identify(ctx context.Context, o Options, bot, app store.Secret) (w *Client, who *slackgo.AuthTestResponse, org bool, err error) {
	said := &orgWide{next: o.Transport}
	if said.next == nil {
		said.next = &http.Transport{DisableKeepAlives: true, Proxy: http.ProxyFromEnvironment, WriteBufferSize: maxAck + 1<<10}
	}
	o.Transport = said
	w = New(o, bot, app)
	err = w.Call(ctx, func(ctx context.Context) error {
		who, err = w.API.AuthTestContext(ctx)
		return err
	})
	return w, who, said.said, err
}

// orgWide records whether auth.test reported that the app is installed for a whole
// organization, which slack-go doesn't expose.
type orgWide struct {
	next http.RoundTripper
	said bool // read after the request
}

func (o *orgWide) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := o.next.RoundTrip(r)
	if err != nil || !strings.HasSuffix(r.URL.Path, "/auth.test") {
		return resp, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxFrame))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	var answer struct {
		Org bool `json:"is_enterprise_install"`
	}
	_ = json.Unmarshal(body, &answer) // slack-go reports what is wrong with it
	o.said = answer.Org
	return resp, nil
}

// LinkEnd is Slack's request to end a link.
type LinkEnd struct{ Reason string }

func (e *LinkEnd) Error() string { return "Slack ended the link: " + e.Reason }

func ReasonOf(err error) string {
	var ended *LinkEnd
	if errors.As(err, &ended) {
		return ended.Reason
	}
	return Code(err)
}
