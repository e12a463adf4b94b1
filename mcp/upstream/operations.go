package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"nize/mcp/egress"
	"nize/mcp/upstream/openapi"
	"nize/store"
)

// openAPI opens a session with the service that an OpenAPI document describes. It sends no
// request to the service, except for Probe, which checks that the service responds.
//
// A document is untrusted, so the addresses in it are reached only through the guarded
// client: public addresses, those that egress.allow opens, and the hosts that an admin
// entered. The service's host is one of those if an admin entered it, or if the document is
// on the same host.
func (d *dialer) openAPI(ctx context.Context, s *session) error {
	var given *url.URL
	if d.cfg.URL != "" {
		u, err := url.Parse(d.cfg.URL)
		if err != nil || u.Host == "" || u.User != nil {
			return fmt.Errorf("%w URL of server %s", store.ErrInvalid, d.cfg.Name)
		}
		given = u
	}
	// The document is resolved against the base URL that an admin entered. Otherwise it
	// provides its own, and the record has the one from the time of registration.
	base := given
	if d.cfg.URLFromDocument {
		base = nil
	}
	if given != nil { // before a credential is bound to its host
		if err := d.mayHaveCredentials(given); err != nil {
			return err
		}
	}
	header, err := d.serviceHeaders(ctx, given)
	if err != nil {
		return err
	}
	at, _ := url.Parse(d.cfg.Document) // a file's host is never the service's
	if given == nil || at == nil || at.Scheme != given.Scheme || !strings.EqualFold(at.Host, given.Host) {
		header = nil
	}
	cfg := d.cfg
	spec := openapi.Spec{Document: cfg.Document, Base: base, Allowed: cfg.AllowedTools, Client: &http.Client{Transport: egress.NewTransport(egress.Options{Allow: d.openHosts(at)})}, Header: header,
		Allow: func(name, method, path string) bool { return allowedOperation(cfg, name, method, path) }}
	doc, err := d.source.Load(ctx, spec)
	if err != nil {
		return err
	}
	d.reportStep(StepRead)
	if given == nil {
		given = doc.Base
		d.cfg.URL, d.cfg.URLFromDocument = given.String(), true
	}
	if err := d.mayHaveCredentials(given); err != nil {
		return err
	}
	open := given
	if chosenByDocument(d.cfg, given) {
		open = nil
	}
	transport := egress.NewTransport(egress.Options{Allow: d.openHosts(open), MaxHeaderTime: time.Hour + time.Minute, Keep: 30 * time.Second})
	if d.onStep != nil {
		s.document = doc
		if _, err := d.serviceHeaders(ctx, given); err != nil {
			return err
		}
		if err := reach(ctx, transport, given); err != nil {
			return fmt.Errorf("reaching %s: %w", given.Host, err)
		}
		d.reportStep(StepReach)
	}
	opt := openapi.ConnOptions{Base: given, First: doc, Header: d.headers, Transport: transport, Agent: "nize/" + d.pool.opt.Version,
		Hint: wants(d.cfg, doc.Wants),
		Load: func(ctx context.Context) (*openapi.Document, error) {
			if header != nil {
				if spec.Header, err = d.headers(ctx); err != nil {
					return nil, err
				}
			}
			return d.source.Load(ctx, spec)
		}}
	for _, v := range d.cfg.Headers {
		if v.SecretKey == store.LoginName || v.Credential != "" {
			opt.Denied = d.denied
		}
	}
	if opt.Hint == "" {
		opt.Hint = "it rejects the credential; see the server's headers and nizectl credentials set"
	}
	s.Conn = &maskedConn{openapi.NewConn(d.pool.ctx, opt), d.mask}
	s.version, s.title, s.about, s.since = doc.Format, doc.Title, doc.About, time.Now()
	s.serverInfo = strings.TrimSpace(store.Clip(doc.Title, 100) + " " + store.Clip(doc.Version, 50))
	return nil
}

// serviceHeaders returns the headers for the service at a URL, or nil if the URL is not
// known yet. The shared session of a server that uses people's own credentials gets nil,
// too, because it only lists.
func (d *dialer) serviceHeaders(ctx context.Context, at *url.URL) (http.Header, error) {
	if at == nil {
		return nil, nil
	}
	header, err := d.headers(ctx)
	if err != nil && d.owner == "" && d.cfg.Auth != store.AuthAny && errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return header, err
}

// openHosts returns the hosts that may be reached: the host that an admin entered, if any,
// and those of egress.allow.
func (d *dialer) openHosts(named *url.URL) func() string {
	return func() string {
		var open []string
		if named != nil && named.Hostname() != "" {
			open = append(open, named.Hostname())
		}
		if d.pool.opt.Egress != nil {
			open = append(open, d.pool.opt.Egress())
		}
		return strings.Join(open, ",")
	}
}

// chosenByDocument reports whether only the document named the service's address. An admin
// who entered the document's URL also named its host, unless the service uses http and the
// URL https.
func chosenByDocument(cfg store.Server, service *url.URL) bool {
	if !cfg.URLFromDocument {
		return false
	}
	at, err := url.Parse(cfg.Document)
	return err != nil || !openapi.IsURL(cfg.Document) || !strings.EqualFold(at.Host, service.Host) || at.Scheme == "https" && service.Scheme != "https"
}

// mayHaveCredentials returns an error if the server has credentials for a host that only
// the document named.
func (d *dialer) mayHaveCredentials(service *url.URL) error {
	if !chosenByDocument(d.cfg, service) {
		return nil
	}
	for _, v := range d.cfg.Headers {
		if v.Hidden() {
			return store.Mark(fmt.Errorf("only the document names the service's address %s, and credentials are sent only to an address that an admin entered: give --base-url %s if it is right", service, service), store.ErrRefused)
		}
	}
	return nil
}

// reachTime is the timeout of reach.
const reachTime = 15 * time.Second

// reach returns an error if a service doesn't respond at all. Any response is fine.
func reach(ctx context.Context, transport http.RoundTripper, at *url.URL) error {
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, at.String(), nil)
	if err != nil {
		return store.NetworkError(err)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return store.NetworkError(err)
	}
	_ = resp.Body.Close() // only the response's arrival matters
	return nil
}

// wants returns a sentence about the credential that the operations require and the server
// lacks, or "" if it has one or none is required.
func wants(cfg store.Server, all []openapi.Want) string {
	for _, w := range all {
		for name := range cfg.Headers {
			if w.Header != "" && strings.EqualFold(name, w.Header) || w.Query != "" && name == store.QueryPrefix+w.Query {
				return ""
			}
		}
	}
	for _, w := range all { // prefer a header to the query, which services write to their logs
		if w.Header == "" {
			continue
		}
		text := fmt.Sprintf("it requires the header %s: nizectl servers edit %s --header-secret %s", w.Header, cfg.Name, w.Header)
		if w.Note != "" {
			text += " (" + w.Note + ")"
		}
		return text
	}
	if len(all) > 0 {
		return fmt.Sprintf("it requires its key in the query, as %s: nizectl servers edit %s --header-secret %s%s", all[0].Query, cfg.Name, store.QueryPrefix, all[0].Query)
	}
	return ""
}
