package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"nize/daemon/alert"
	"nize/daemon/api"
	"nize/store"
)

// The key of the sealed secret that signs the messages of a webhook.
const (
	alertService = "alerts"
	alertSecret  = "WEBHOOK_SECRET"
)

// destination is where alerts go.
type destination struct {
	alert.Notifier
	name   string // that is no secret
	signed bool
}

// destination is what alerts.to names, nil for none. Here a chat platform's
// address is told apart from a webhook's. A webhook whose secret cannot be used
// gets nothing at all, since a receiver that checks would drop it.
func (d *Daemon) destination(ctx context.Context) (*destination, error) {
	to := d.config.Get("", "alerts.to")
	if chat := d.chatDestination(to); chat != nil || to == "" {
		return chat, nil
	}
	c, err := d.db.GetCredential(ctx, store.CredentialKey{Scope: "system", Service: alertService, Name: alertSecret})
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("reading the secret of the webhook: %w", err)
	}
	w, err := alert.NewWebhook(to, c.Secret, d.now)
	if err != nil {
		return nil, err
	}
	return &destination{w, hostOf(to), !c.Secret.IsZero()}, nil
}

// alertTo is what the desk sends to.
func (d *Daemon) alertTo(ctx context.Context) (alert.Notifier, error) {
	to, err := d.destination(ctx)
	if to == nil || err != nil {
		return nil, err // never a Notifier that holds nil
	}
	return to, nil
}

// checkAlertSecret refuses a secret that would sign nothing.
func checkAlertSecret(key store.CredentialKey, secret store.Secret) error {
	if key.Service != alertService || key.Name != alertSecret {
		return nil
	}
	_, err := alert.ReadSecret(secret)
	return err
}

// listAlerts shows incidents; members see those that concern them.
func (d *Daemon) listAlerts(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	list, err := d.incidents(ctx, by, store.IncidentQuery{All: r.URL.Query().Get("all") != ""})
	if err != nil {
		return nil, err
	}
	return items(list), nil
}

// incidents lists those that the caller may know of, without the destination's
// last words for members.
func (d *Daemon) incidents(ctx context.Context, by store.Caller, q store.IncidentQuery) ([]store.Incident, error) {
	all, err := d.db.ListIncidents(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("listing incidents: %w", err)
	}
	var list []store.Incident
	for _, i := range all {
		if !i.Concerns(by) {
			continue
		}
		if !by.IsAdmin() {
			i.Users, i.Delivery = nil, store.Delivery{Sent: i.Delivery.Sent}
		}
		list = append(list, i)
	}
	return list, nil
}

func (d *Daemon) ackAlert(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	id := r.PathValue("id")
	i, err := d.db.AckIncident(ctx, by, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, d.unknownAlert(ctx, id)
	case errors.Is(err, store.ErrDecided) && !i.Active():
		return nil, fmt.Errorf("incident %s is over: %w", id, store.ErrDecided)
	case errors.Is(err, store.ErrDecided):
		who, nameErr := d.directory.Names(ctx)
		if nameErr != nil {
			return nil, nameErr
		}
		return nil, fmt.Errorf("incident %s: %w, by %s", id, store.ErrDecided, who[i.AckedBy])
	case err != nil:
		return nil, err
	}
	return i, nil
}

func (d *Daemon) unknownAlert(ctx context.Context, id string) error {
	list, err := d.db.ListIncidents(ctx, store.IncidentQuery{})
	if err != nil {
		return fmt.Errorf("listing incidents: %w", err)
	}
	ids := make([]string, len(list))
	for n, i := range list {
		ids[n] = i.ID
	}
	return store.Unknown("incident", id, ids)
}

// testAlert sends one message that stands for nothing, and says what the
// destination answered. If it took it, what failed before is tried again.
func (d *Daemon) testAlert(ctx context.Context, by store.Caller, _ *http.Request) (any, error) {
	to, err := d.destination(ctx)
	if err != nil {
		return nil, err
	}
	if to == nil {
		return nil, fmt.Errorf("%w destination: alerts.to is not set, so nobody is told; nizectl config set alerts.to https://…", store.ErrInvalid)
	}
	now := d.now()
	i := store.Incident{
		ID: store.NewID(now), Kind: alert.Test, Subject: "alerts.to", State: store.IncidentOpen, Opened: now,
		Title: "This is a test", Text: "An admin of nize tests whether alerts arrive here. Nothing is wrong.", Cure: "nizectl alerts list",
	}
	outcome := store.Done
	_, sendErr := to.Notify(ctx, i)
	if sendErr != nil {
		outcome = store.Failed
	}
	d.db.AddEvent(by, store.Event{Kind: "incident.test", Subject: i.ID, Outcome: outcome})
	if sendErr != nil {
		return nil, &api.Error{Code: "unavailable", Message: fmt.Sprintf("the test message was not taken: %v", sendErr)}
	}
	d.desk.Again()
	return api.AlertTest{ID: i.ID, To: to.name, Signed: to.signed}, nil
}

// hostOf is the part of a destination that is no secret.
func hostOf(to string) string {
	u, err := url.Parse(to)
	if err != nil {
		return ""
	}
	return u.Host
}

// forMember hides the value of a setting that members may not see: the address
// of a webhook can be as good as a password.
func forMember(by store.Caller, s api.Setting) api.Setting {
	if s.Private && !by.IsAdmin() && s.Value != "" {
		s.Value, s.Where = "(for admins)", ""
	}
	return s
}
