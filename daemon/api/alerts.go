package api

import "nize/store"

// ListAlerts lists the open incidents, newest first; with All it includes the closed ones.
// Members see the incidents that concern them.
var ListAlerts = Op[ListAlertsRequest, List[store.Incident]]{"GET", "/v1/alerts", false, "list incidents"}

// ListAlertsRequest selects the incidents to list.
type ListAlertsRequest struct {
	All bool `query:"all" json:"-"`
}

// AckAlert acknowledges an incident. It returns ErrDecided if the incident is already
// acknowledged or closed.
var AckAlert = Op[AckAlertRequest, store.Incident]{"POST", "/v1/alerts/{id}/ack", true, "acknowledge an incident"}

// AckAlertRequest names an incident.
type AckAlertRequest struct {
	ID string `path:"id" json:"-"`
}

// TestAlert sends a message to alerts.to and waits for the destination's response. It
// returns ErrUnavailable with the reason if the destination rejects the message.
var TestAlert = Op[Empty, AlertTest]{"POST", "/v1/alerts/test", true, "send a test message to alerts.to"}

// AlertTest reports how a test message was delivered.
type AlertTest struct {
	ID     string `json:"id"`     // ID that the message carries
	To     string `json:"to"`     // the destination: a webhook's host
	Signed bool   `json:"signed"` // whether the message carries a signature
}
