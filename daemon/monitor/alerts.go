package monitor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"nize/daemon/alert"
	"nize/daemon/api"
	"nize/daemon/mux"
	"nize/daemon/people"
	"nize/store"
	"nize/store/webhook"
)

// The key of the sealed secret that signs a webhook's messages.
const (
	alertService = "alerts"
	alertSecret  = "WEBHOOK_SECRET"
)

// Destination is where alerts are sent.
type Destination struct {
	alert.Notifier
	Name   string // without secrets
	Signed bool
	Chat   bool // on a chat platform
	// Unclaimed returns the platform if none of its people is an admin whom a message could
	// reach, else "". It is nil if the destination is not a person.
	Unclaimed func(ctx context.Context) (store.Surface, error)
}

// Alerts implements the operations on incidents and their destinations.
type Alerts struct {
	Store interface {
		store.Incidents
		GetCredential(ctx context.Context, key store.CredentialKey) (store.Credential, error)
		AddEvent(by store.Caller, e store.Event)
	}
	Directory *people.Directory
	Config    store.Config
	// Chat returns the destination that alerts.to names on a chat platform, nil if it names
	// none.
	Chat func(to string) *Destination
	// Owner notifies the people whom an incident concerns in private, except for admins.
	Owner func(ctx context.Context, i store.Incident) error
	// Again retries failed deliveries.
	Again func()
	Now   func() time.Time
	Log   *slog.Logger
}

// Mount registers the operations.
func (a *Alerts) Mount(m *mux.Mux) {
	mux.Handle(m, api.ListAlerts, a.List)
	mux.Handle(m, api.TestAlert, a.Test)
	mux.Handle(m, api.AckAlert, a.Acknowledge)
}

// Destination returns the destination in alerts.to, nil for none: a chat platform's address
// or a webhook. If the webhook's secret cannot be used, it returns an error and nothing is
// sent, since a receiver that verifies signatures would drop the message.
func (a *Alerts) Destination(ctx context.Context) (*Destination, error) {
	to := a.Config.Get("", "alerts.to")
	if chat := a.Chat(to); chat != nil || to == "" {
		return chat, nil
	}
	c, err := a.Store.GetCredential(ctx, store.CredentialKey{Scope: "system", Service: alertService, Name: alertSecret})
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("reading the secret of the webhook: %w", err)
	}
	w, err := alert.NewWebhook(to, c.Secret, a.Now)
	if err != nil {
		return nil, err
	}
	return &Destination{Notifier: w, Name: hostOf(to), Signed: !c.Secret.IsZero()}, nil
}

// To returns the notifier for the alerts manager.
func (a *Alerts) To(ctx context.Context) (alert.Notifier, error) {
	to, err := a.Destination(ctx)
	if to == nil || err != nil {
		return nil, err // not a non-nil Notifier that holds a nil
	}
	return withOwners{to, a}, nil
}

// withOwners also notifies the owner of the login or token in question.
type withOwners struct {
	alert.Notifier
	alerts *Alerts
}

// Notify implements [alert.Notifier]. Owners are notified when the incident begins. A
// failure is not retried, since the destination has the incident.
func (w withOwners) Notify(ctx context.Context, i store.Incident) (string, error) {
	handle, err := w.Notifier.Notify(ctx, i)
	if err == nil && i.State == store.IncidentOpen && (i.Kind == alert.LoginLost || i.Kind == alert.TokenEnds) {
		if failed := w.alerts.Owner(ctx, i); failed != nil {
			w.alerts.Log.Warn("notifying the owners of an incident", "id", i.ID, "err", failed)
		}
	}
	return handle, err
}

// CheckSecret returns an error for a webhook secret that can't sign; it accepts any other
// credential.
func CheckSecret(key store.CredentialKey, secret store.Secret) error {
	if key.Service != alertService || key.Name != alertSecret {
		return nil
	}
	_, err := webhook.ReadSecret(secret)
	return err
}

// List returns incidents; members get those that concern them.
func (a *Alerts) List(ctx context.Context, by store.Caller, req api.ListAlertsRequest) (api.List[store.Incident], error) {
	list, err := a.Incidents(ctx, by, store.IncidentQuery{All: req.All})
	return api.Items(list), err
}

// Incidents returns the incidents that the caller may see; for members without the
// destination's response.
func (a *Alerts) Incidents(ctx context.Context, by store.Caller, q store.IncidentQuery) ([]store.Incident, error) {
	all, err := a.Store.ListIncidents(ctx, q)
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

// Acknowledge records that the caller has seen an incident.
func (a *Alerts) Acknowledge(ctx context.Context, by store.Caller, req api.AckAlertRequest) (none store.Incident, err error) {
	id := req.ID
	i, err := a.Store.AckIncident(ctx, by, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return none, a.unknown(ctx, id)
	case errors.Is(err, store.ErrDecided) && !i.Active():
		return none, store.Mark(fmt.Errorf("incident %s is over already", id), store.ErrDecided)
	case errors.Is(err, store.ErrDecided):
		who, nameErr := a.Directory.Names(ctx)
		if nameErr != nil {
			return none, nameErr
		}
		return none, fmt.Errorf("incident %s: %w, by %s", id, store.ErrDecided, who[i.AckedBy])
	case err != nil:
		return none, err
	}
	return i, nil
}

func (a *Alerts) unknown(ctx context.Context, id string) error {
	list, err := a.Store.ListIncidents(ctx, store.IncidentQuery{})
	if err != nil {
		return fmt.Errorf("listing incidents: %w", err)
	}
	ids := make([]string, len(list))
	for n, i := range list {
		ids[n] = i.ID
	}
	return store.Unknown("incident", id, ids)
}

// Test sends a test message and returns the destination's response. If it succeeds, failed
// deliveries are retried.
func (a *Alerts) Test(ctx context.Context, by store.Caller, _ api.Empty) (none api.AlertTest, err error) {
	to, err := a.Destination(ctx)
	if err != nil {
		return none, err
	}
	if to == nil {
		return none, fmt.Errorf("%w destination: alerts.to is not set, so alerts have no recipient; nizectl config set alerts.to https://…", store.ErrInvalid)
	}
	now := a.Now()
	i := store.Incident{
		ID: store.NewID(now), Kind: alert.Test, Subject: "alerts.to", State: store.IncidentOpen, Opened: now,
		Title: store.Textf("This is a test"), Text: store.Textf("An admin of nize tests whether alerts arrive here. Nothing is wrong."), Cure: "nizectl alerts list",
	}
	outcome := store.Done
	_, sendErr := to.Notify(ctx, i)
	if sendErr != nil {
		outcome = store.Failed
	}
	a.Store.AddEvent(by, store.Event{Kind: "incident.test", Subject: i.ID, Outcome: outcome})
	if sendErr != nil {
		return none, &api.Error{Code: "unavailable", Message: fmt.Sprintf("the test message was rejected: %v", sendErr)}
	}
	a.Again()
	return api.AlertTest{ID: i.ID, To: to.Name, Signed: to.Signed}, nil
}

// hostOf returns the part of a destination that is not secret.
func hostOf(to string) string {
	u, err := url.Parse(to)
	if err != nil {
		return ""
	}
	return u.Host
}
