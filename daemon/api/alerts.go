package api

import "nize/store"

// ListAlerts lists the incidents that are open, or with all those that are over
// too, the newest first. A member sees those that concern them.
var ListAlerts = Op[ListAlertsRequest, List[store.Incident]]{"GET", "/v1/alerts", false, "list incidents"}

// ListAlertsRequest says which.
type ListAlertsRequest struct {
	All bool `query:"all" json:"-"`
}

// AckAlert notes that the caller has seen an incident. One that somebody has
// seen, or that is over, is ErrDecided.
var AckAlert = Op[AckAlertRequest, store.Incident]{"POST", "/v1/alerts/{id}/ack", true, "acknowledge an incident"}

// AckAlertRequest names an incident.
type AckAlertRequest struct {
	ID string `path:"id" json:"-"`
}

// TestAlert sends a message to alerts.to and waits for the destination's
// answer; ErrUnavailable says why it did not take it.
var TestAlert = Op[Empty, AlertTest]{"POST", "/v1/alerts/test", true, "send a test message to alerts.to"}

// AlertTest says what became of a message that tests the destination.
type AlertTest struct {
	ID     string `json:"id"`     // that the message carries
	To     string `json:"to"`     // the destination: a webhook's host
	Signed bool   `json:"signed"` // whether the message carries a signature
}
