// Package view makes the page of a template, HTML that shows a tool's result, and the
// policy under which that is served: [Fill] and [Policy].
//
// A view is code of whoever wrote the tool, in a frame without an origin. What keeps
// it there is the policy, which goes with it as a header.
package view

// MaxTemplate bounds a template, in bytes.
const MaxTemplate = 1 << 20

// Policy is the Content-Security-Policy of a view that stands in a page of the
// origin: its own scripts run, by the nonce, and nothing is loaded from elsewhere.
func Policy(origin, nonce string) string {
	return "sandbox allow-scripts allow-forms; default-src 'none'; script-src 'nonce-" + nonce +
		"'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:; media-src data: blob:; connect-src 'none'; frame-src 'none'" +
		"; worker-src blob:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors " + origin
}
