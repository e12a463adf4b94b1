package api

import (
	"context"
	"net/url"

	"nize/store"
)

// AlertTest says what became of a message that tests the destination.
type AlertTest struct {
	ID     string `json:"id"`     // that the message carries
	To     string `json:"to"`     // the destination: a webhook's host
	Signed bool   `json:"signed"` // whether the message carries a signature
}

// Alerts lists the incidents that are open, or with all those that are over
// too, the newest first. A member sees those that concern them.
func (c *Client) Alerts(ctx context.Context, all bool) ([]store.Incident, error) {
	return list[store.Incident](ctx, c, request{method: "GET", path: "/v1/alerts", query: query("all", flag(all))})
}

// AckAlert notes that the caller has seen an incident. One that somebody has
// seen, or that is over, is ErrDecided.
func (c *Client) AckAlert(ctx context.Context, id string) (store.Incident, error) {
	return do[store.Incident](ctx, c, request{method: "POST", path: "/v1/alerts/" + url.PathEscape(id) + "/ack"})
}

// TestAlert sends a message to alerts.to and waits for the destination's
// answer; ErrUnavailable says why it did not take it.
func (c *Client) TestAlert(ctx context.Context) (AlertTest, error) {
	return do[AlertTest](ctx, c, request{method: "POST", path: "/v1/alerts/test"})
}
