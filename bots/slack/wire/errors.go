package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"

	"nize/bots/queue"
	"nize/bots/slack/manifest"
	"nize/store"
)

// RefusedToken explains Slack's error to the owner of the tokens.
func RefusedToken(which string, err error) error {
	c := ReasonOf(err)
	cure, known := map[string]string{
		"invalid_auth":           "copy it again",
		"not_authed":             "copy it again",
		"account_inactive":       "install the app into its workspace again",
		"token_revoked":          "install the app again and copy the new one",
		"token_expired":          "switch token rotation off in the app's settings and copy the new one",
		"not_allowed_token_type": "it is of another kind",
		"missing_scope":          "an app-level token needs the scope connections:write",
		"forbidden":              "switch Socket Mode on in the app's settings",
		"link_disabled":          "switch Socket Mode on in the app's settings",
		"socket_mode_disabled":   "switch Socket Mode on in the app's settings",
		"too_many_websockets":    "the app has as many links as Slack allows; stop what else uses it",
	}[c]
	if !known {
		cure, known = TokenGone[c]
	}
	after, limited := LimitOf(err)
	switch {
	case limited:
		return fmt.Errorf("asking Slack about %s: it has too much to do; try again in %s", which, store.SpanText(after))
	case faulty[c]:
		return fmt.Errorf("asking Slack about %s: a fault on its side (%s); try again later", which, c)
	case known:
		return fmt.Errorf("%w: Slack refuses %s (%s): %s", store.ErrInvalid, which, c, cure)
	case c != "":
		return fmt.Errorf("%w: Slack refuses %s: %s", store.ErrInvalid, which, c)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("asking Slack about %s: no answer in time; check the network and slack.api_url", which)
	}
	return fmt.Errorf("asking Slack about %s: %w; check the network and slack.api_url", which, store.NetworkError(err))
}

// LackingScopes compares a token's scopes with the manifest. Slack returns them in a
// header; without it, no scope is known to be missing.
func LackingScopes(header string) []string {
	if header == "" {
		return nil
	}
	var have, lacking []string
	for scope := range strings.SplitSeq(header, ",") {
		have = append(have, strings.TrimSpace(scope))
	}
	for _, scope := range manifest.Scopes() {
		if !slices.Contains(have, scope) {
			lacking = append(lacking, scope)
		}
	}
	return lacking
}

// Lasting reports whether retrying can't help.
func Lasting(err error) bool {
	var broken *queue.PanicError
	for _, known := range []error{store.ErrInvalid, store.ErrNotFound, store.ErrRefused, store.ErrDecided, store.ErrExpired} {
		if errors.Is(err, known) {
			return true
		}
	}
	return errors.As(err, &broken) || !Passes(err)
}

// Closed are Slack's error codes for a channel or thread in which nize can't post until a
// person changes it.
var Closed = map[string]bool{
	"channel_not_found": true, "not_in_channel": true, "is_archived": true, "is_inactive": true, "thread_not_found": true, "restricted_action": true,
	"restricted_action_read_only_channel": true, "restricted_action_thread_only_channel": true, "restricted_action_non_threadable_channel": true,
	"restricted_action_thread_locked": true, "cannot_reply_to_message": true, "ekm_access_denied": true, "no_permission": true,
}

// TokenGone maps Slack's error codes for a bot token that no longer works to what to do.
var TokenGone = map[string]string{
	"invalid_auth":     "the bot token is not valid any more: copy it from the app's page OAuth & Permissions, then nizectl bots slack connect",
	"not_authed":       "the bot token is missing: nizectl bots slack connect",
	"token_revoked":    "the app was uninstalled, or its bot token revoked: install it again, then nizectl bots slack connect",
	"account_inactive": "the app was uninstalled, or its workspace is gone: install it again, then nizectl bots slack connect",
	"token_expired":    "the bot token has expired: switch token rotation off in the app's settings, install it again, then nizectl bots slack connect",

	// A workspace or organization that restricts the app.
	"accesslimited":           "Slack takes nothing from this network: add nize's address to those that the workspace allows",
	"team_access_not_granted": "the app may not be used in this workspace any more: an admin of the organization must approve it there",
	"org_login_required":      "the workspace is being moved into an organization: it works again when that is over",
}

// LimitOf reports whether an error is a rate limit, and how long Slack asks to wait.
func LimitOf(err error) (after time.Duration, limited bool) {
	if l, ok := errors.AsType[*slackgo.RateLimitedError](err); ok {
		return l.RetryAfter, true
	}
	if s, ok := errors.AsType[slackgo.StatusCodeError](err); ok && s.Code == http.StatusTooManyRequests {
		return unsaidPause, true // the header with the duration is missing
	}
	switch Code(err) {
	case "ratelimited", "rate_limited": // the code without the matching status
		return unsaidPause, true
	}
	return 0, false
}

// sentinel marks expected Slack errors with the sentinel that they mean.
func sentinel(err error) error {
	switch Code(err) {
	case "message_not_found", "thread_not_found", "channel_not_found":
		return fmt.Errorf("%w: %w", store.ErrNotFound, err)
	}
	if Closed[Code(err)] {
		return store.Mark(err, store.ErrRefused) // until a person changes the channel
	}
	return err
}

// Code returns Slack's error code, "" for an error that is not Slack's.
func Code(err error) string {
	var answer slackgo.SlackErrorResponse
	if errors.As(err, &answer) {
		return answer.Err
	}
	return ""
}

// faulty are Slack's error codes for failures on its side.
var faulty = map[string]bool{"internal_error": true, "fatal_error": true, "request_timeout": true, "service_unavailable": true, "messaging_processing_failed": true, "update_failed": true}

// moving are Slack's error codes while a workspace or a channel is being moved; they end by
// themselves after hours at most.
var moving = map[string]bool{"team_added_to_org": true, "org_login_required": true, "external_channel_migrating": true}

// Passes reports whether Slack's error may be temporary: a failure on its side, a rate
// limit, or a workspace that is being moved.
func Passes(err error) bool {
	c := Code(err)
	_, limited := LimitOf(err)
	return c == "" || faulty[c] || limited || moving[c]
}

// Unsure reports whether it is unknown if a request was carried out: its response is
// missing.
func Unsure(err error) bool {
	if c := Code(err); c != "" {
		return faulty[c] // Slack says so itself
	}
	_, limited := LimitOf(err)
	return err != nil && !limited
}
